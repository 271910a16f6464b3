"""Gradients of any module, one record after the other, by autograd: each on a fresh copy, with one thread.

A record is copied to memory of its own, since products may depend on addresses. The module is copied for each record with all
its weights, trained or not, and so are losses that are more than plain functions; the generators of torch, NumPy and Python
begin anew. So a record finds what every other does. A record for which the module fails counts as zero: an error that leaves
the party would tell of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...anew import losses_alone, module_anew
from ...models import begin_anew, own_generator
from ..trained import Trained
from .operations import Array
from .parts import Formed, LayerGradients

log = logging.getLogger("hedgerow.learn")


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch's operations on this thread use no other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def parts_alone(
    trained: Trained, weights: Mapping[str, Tensor], x: Tensor, target: Tensor, *, tell: bool = True
) -> list[LayerGradients]:
    """The gradients of records of shape (n, ...), parameter by parameter."""
    found = {name: np.zeros((len(x), trained.shapes[name].numel()), np.float32) for name in trained.names}
    failed = 0
    with one_thread(), own_generator(np.random.default_rng(0)), torch.enable_grad():
        for i in range(len(x)):
            begin_anew(0)
            try:
                rows = _gradients(trained, weights, x[i], target[i])
            except Exception:  # whatever a record does to the module, nobody else may learn of it
                failed += 1
                continue
            for name, row in zip(found, rows, strict=True):
                found[name][i] = row
    if failed and tell:
        log.warning("%d of %d records count as zero: the module fails for them.", failed, len(x))
    return [Formed(name, rows, tuple(trained.shapes[name])) for name, rows in found.items()]


def slopes_alone(losses: Callable[[Any, Tensor], Tensor], output: Array, target: Array) -> Array:
    """Gradients of an own loss at the output, (n, ...), one record after the other; zeros where it fails or is not finite."""
    found = np.zeros_like(output)
    with one_thread(), own_generator(np.random.default_rng(0)), torch.enable_grad():
        for i in range(len(output)):
            begin_anew(0)
            own, wanted = (torch.from_numpy(values[i : i + 1]).clone() for values in (output, target))
            with suppress(Exception):  # whatever a record does to the loss, nobody else may learn of it
                row = torch.autograd.grad(losses(own.requires_grad_(), wanted)[0], own)[0].numpy()
                found[i] = row[0] if np.isfinite(row).all() else 0.0
    return found


def _gradients(trained: Trained, weights: Mapping[str, Tensor], x: Tensor, target: Tensor) -> list[Array]:
    """Of one record, flat, one for each trained parameter."""
    model, own, wanted = trained.model, x[None].clone(), target[None].clone()
    fresh = {name: nn.Parameter(value.detach().clone(), requires_grad=False) for name, value in weights.items()}
    learned = [fresh[name].requires_grad_() for name in trained.names]
    output = model.applied(module_anew(model, fresh), model.scaled(own), fresh)
    loss = losses_alone(output, wanted, model=model)[0]
    rows = torch.autograd.grad(loss, learned, allow_unused=True)
    return [
        np.zeros(value.numel(), np.float32) if row is None else row.to_dense().reshape(-1).numpy()
        for row, value in zip(rows, learned, strict=True)
    ]
