"""Descent by autograd, one batch after the other: the path that takes every module, and the reference of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.func import vmap

from ..models import Model
from .optimisers import stepper
from .rules import RULES
from .work import Work


def mean_loss(flat: Tensor, x: Tensor, target: Tensor, w: Tensor, model: Model) -> Tensor:
    """Weighted mean loss of a batch; records of weight zero do not count, an empty batch has loss zero."""
    return (w * model.losses(flat, x, target)).sum() / w.sum().clamp_min(1e-12)


def slope_of(loss: Callable[..., Tensor], flat: Tensor, *batch: Tensor, model: Model) -> Tensor:
    """Gradient of `loss(flat, *batch, model)` at weights of shape (d,), or of stacked parties' losses at (n_parties, d).

    A party's loss depends on its own weights alone, so the gradient of their sum has each party's in its row. `torch.func.grad`
    gives the same, and imports PyTorch's compiler.
    """
    at = flat.detach().requires_grad_()
    ask = vmap(loss, in_dims=(*(0,) * (len(batch) + 1), None)) if flat.ndim == 2 else loss
    with torch.enable_grad():
        total = ask(at, *batch, model).sum()
    return torch.autograd.grad(total, at)[0]


def eager(work: Work, rng: Any = None) -> None:
    """Take the steps of one party; a short last batch is not padded. Records that are moved start at random by `rng`."""
    anchor, solver = work.y.clone(), work.solver
    theirs = (
        stepper(solver.rule, work.y, work.model.shapes, solver.learning_rate, solver.rule_settings) if solver.by_torch else None
    )
    with gradients(work, rng) as slope:
        for i, step in enumerate(work.plan):
            records = step[step >= 0]
            gradient = corrected(work, slope(work.y, records), lambda records=records: slope(anchor, records))
            if theirs is None:
                _move(work, gradient, i + 1)
            else:
                theirs(gradient)


@contextmanager
def gradients(work: Work, rng: Any = None) -> Iterator[Callable[[Tensor, Tensor], Tensor]]:
    """A function `(weights, records) -> gradient of their mean loss`, of shape (d,).

    Where torch may use several threads, each takes a share of the batch: they meet once a step instead of once a product.
    """
    model, half, n_threads = work.model, work.solver.precision == "bfloat16", torch.get_num_threads()
    adversary, uniform = work.solver.adversary, None if rng is None else rng.random

    def share(at: Tensor, records: Tensor, total: Tensor) -> Tensor:
        flat, x = at.detach().requires_grad_(), work.inputs[records]
        x = model.scaled(x)
        if x.ndim == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        with torch.enable_grad(), torch.autocast(at.device.type, torch.bfloat16) if half else nullcontext():
            if adversary is not None:
                x = adversary.moved(lambda x: model.losses(at.detach(), x, work.target[records], scaled=True), x, uniform)
            losses = model.losses(flat, x, work.target[records], scaled=True)
        return torch.autograd.grad((work.w[records] / total * losses).sum(), flat)[0]

    def alone(at: Tensor, records: Tensor) -> Tensor:
        return share(at, records, work.w[records].sum().clamp_min(1e-12))

    def together(at: Tensor, records: Tensor) -> Tensor:
        total = work.w[records].sum().clamp_min(1e-12)
        parts = [part for part in records.tensor_split(n_threads) if len(part)]
        made = list(_threads(n_threads).map(lambda part: share(at, part, total), parts))
        return sum(made[1:], made[0])

    if n_threads == 1 or model.stochastic or work.away or adversary is not None:
        yield alone
        return
    torch.set_num_threads(1)
    try:
        yield together
    finally:
        torch.set_num_threads(n_threads)


@lru_cache
def _threads(n: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n, thread_name_prefix="hedgerow-batch", initializer=lambda: torch.set_num_threads(1))


def eager_stack(work: Work) -> None:
    """Take the steps of stacked parties; one that has fewer than another rests at the end."""
    anchor, rows = work.y.clone(), torch.arange(work.parties)[:, None].to(work.y.device)
    for i, step in enumerate(work.plan):
        kept, records = step >= 0, step.clamp_min(0)
        batch = work.inputs[rows, records], work.target[rows, records], work.w[rows, records] * kept
        gradient = slope_of(mean_loss, work.y, *batch, model=work.model)
        gradient = corrected(work, gradient, lambda batch=batch: slope_of(mean_loss, anchor, *batch, model=work.model))
        _move(work, gradient, i + 1, kept.any(-1, keepdim=True))


def corrected(work: Work, gradient: Tensor, at_anchor: Callable[[], Tensor]) -> Tensor:
    """The gradient with the algorithm's terms; see `correction`."""
    terms = work.correction
    if terms.anchored:
        gradient = gradient - at_anchor()
    if terms.pull:
        gradient = gradient + terms.pull * (work.y - work.towards)
    if work.shift is not None:
        gradient = gradient + work.shift
    return gradient if work.mask is None else gradient * work.mask


def _move(work: Work, gradient: Tensor, t: int, moves: Tensor | None = None) -> None:
    solver = work.solver
    constants = (solver.learning_rate, solver.momentum, solver.second_decay, solver.epsilon, t)
    made = RULES[solver.rule](work.y, gradient, work.first, work.second, *constants)
    for value, new in zip((work.y, work.first, work.second), made, strict=True):
        value.copy_(new if moves is None else torch.where(moves, new, value))
