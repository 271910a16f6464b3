"""Local solvers: what a party computes on its own records. One party alone, or many stacked with `vmap`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import grad, vmap

from hedgerow.core.party import Party
from hedgerow.core.query import local

from .models import Model, hits, own_generator


def mean_loss(flat: Tensor, x: Tensor, target: Tensor, w: Tensor, model: Model) -> Tensor:
    """Weighted mean loss of a batch; records of weight zero do not count, an empty batch has loss zero."""
    return (w * model.losses(flat, x, target)).sum() / w.sum().clamp_min(1e-12)


def sum_loss(flat: Tensor, x: Tensor, target: Tensor, w: Tensor, model: Model) -> Tensor:
    """Weighted sum of losses."""
    return (w * model.losses(flat, x, target)).sum()


@local(additive=True, stackable=True)
def gradient(broadcast: np.ndarray, party: Party, rng: Any, *, model: Model) -> dict[str, np.ndarray]:
    """Sum of the records' gradients, shape (d,), and the weighted number of records."""
    flat, (x, target, w) = torch.from_numpy(broadcast), _tensors(party)
    slope = grad(sum_loss)
    if w.ndim == 2:
        slope = vmap(slope, in_dims=(None, 0, 0, 0, None))
    return {"gradient": slope(flat, x, target, w, model).numpy(), "n": party.n}


@local(stackable=True)
def local_sgd(
    broadcast: np.ndarray,
    party: Party,
    rng: Any,
    *,
    model: Model,
    epochs: int,
    batch_size: int | None,
    learning_rate: float,
    weighting: str,
) -> dict[str, np.ndarray]:
    """Train from the broadcast weights by minibatch SGD; return the weighted change and its weight.

    Returns
    -------
    {"update": (d,), "n": ()}
        `weighting="records"`: the change times the number of records, and that number; `"uniform"`: the change, and 1;
        `"expected"`: the change alone, to be divided by the expected size of the cohort.
    """
    x, target, w = _tensors(party)
    stacked = w.ndim == 2
    start = torch.from_numpy(broadcast)
    flat = start.expand(len(w), -1).clone() if stacked else start.clone()
    slope = grad(mean_loss)
    if stacked:
        slope = vmap(slope, in_dims=(0, 0, 0, 0, None))
    for records, kept in batches(party, rng, epochs, batch_size):
        flat -= learning_rate * slope(flat, _take(x, records), _take(target, records), _take(w, records) * kept, model)
    change = (flat - start).numpy()
    if weighting == "expected":
        return {"update": change}
    n = np.asarray(party.n if weighting == "records" else np.ones(np.shape(party.n)))
    return {"update": change * n[..., None], "n": n}


def local_sgd_alone(broadcast: np.ndarray, party: Party, rng: Any, **settings: Any) -> dict[str, np.ndarray]:
    """`local_sgd` for modules that cannot be stacked or draw random numbers: one party at a time, on its own stream."""
    with own_generator(rng):
        return local_sgd(broadcast, party, rng, **settings)


@local(additive=True, stackable=True)
def score(broadcast: np.ndarray, party: Party, rng: Any, *, model: Model, with_loss: bool = True) -> dict[str, np.ndarray]:
    """Sums from which metrics are made: losses, hits (classification) or squared errors (numbers), records."""
    flat, (x, target, w) = torch.from_numpy(broadcast), _tensors(party)
    with torch.no_grad():
        output = model.outputs(flat, x.flatten(0, w.ndim - 1)).unflatten(0, w.shape)
        w = w.double()
        made = {"hits": (w * hits(model.kind, output, target)).sum(-1).numpy(), "n": np.asarray(party.n)}
        if with_loss:
            losses = model.losses(flat, x.flatten(0, w.ndim - 1), target.flatten()).reshape(w.shape)
            made["loss"] = (w * losses).sum(-1).numpy()
    return made


def batches(party: Party, rng: Any, epochs: int, batch_size: int | None) -> list[tuple[Tensor, Tensor]]:
    """Shuffle each epoch and cut into batches; `None` takes all records in one.

    Returns
    -------
    list of (records, kept)
        Indices of shape (batch_size,), or (n_parties, batch_size) for a stack, and 1.0 where an index counts. A stacked
        party that has fewer batches than another is given empty ones, which do not move its weights.
    """
    stacked = party.w.ndim == 2
    counted = [np.flatnonzero(w) for w in np.atleast_2d(party.w)]
    if batch_size is None:
        batch_size = max(1, *map(len, counted))
    plans = [_plan(found, stream, epochs, batch_size) for found, stream in zip(counted, rng if stacked else [rng], strict=True)]
    n_steps = max(len(plan) for plan in plans)
    padded = np.full((len(plans), n_steps, batch_size), -1)
    for plan, target in zip(plans, padded, strict=True):
        target[: len(plan)] = plan
    records = torch.from_numpy(padded.transpose(1, 0, 2) if stacked else padded[0])
    return [(step.clamp_min(0), (step >= 0).float()) for step in records]


def _plan(counted: np.ndarray, rng: Any, epochs: int, batch_size: int) -> np.ndarray:
    """Indices of records that count, of shape (steps, batch_size), -1 where a last batch is short."""
    n_steps = -(-len(counted) // batch_size)
    plan = np.full((epochs, n_steps * batch_size), -1)
    for epoch in plan:
        epoch[: len(counted)] = counted[rng.permutation(len(counted))]
    return plan.reshape(epochs * n_steps, batch_size)


def _take(values: Tensor, records: Tensor) -> Tensor:
    """Select records of shape (b,), or of each stacked party (n_parties, b)."""
    return values[records] if records.ndim == 1 else values[torch.arange(len(records))[:, None], records]


def _tensors(party: Party) -> Sequence[Tensor]:
    return [
        torch.from_numpy(np.ascontiguousarray(a))
        for a in (party["model_input"], party["model_target"], party.w.astype(np.float32))
    ]
