"""Local solvers: how a party descends on its own records. One party alone, or many stacked with `vmap`.

Algorithms differ from FedAvg by what they add to the gradient, which is always of one form:

    g(y) + pull * (y - x) + shift        pull: FedProx, FedDyn      shift: SCAFFOLD, FedDyn
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import grad, vmap

from hedgerow.core.party import Party

from .models import Model, own_generator


@dataclass(frozen=True)
class Solver:
    """Minibatch SGD at a party.

    Parameters
    ----------
    learning_rate : float
    epochs : int
        Passes over the party's records.
    batch_size : int or None
        Records in a step; `None` takes all of them.
    """

    learning_rate: float = 0.1
    epochs: int = 1
    batch_size: int | None = 10

    def problems(self) -> list[str]:
        """What is out of range, in words."""
        wrong = [
            (self.epochs < 1, f"epochs is {self.epochs}"),
            (self.batch_size is not None and self.batch_size < 1, f"batch_size is {self.batch_size}"),
            (not (np.isfinite(self.learning_rate) and self.learning_rate > 0), f"learning_rate is {self.learning_rate}"),
        ]
        return [text for bad, text in wrong if bad]


def descend(
    x: np.ndarray, party: Party, rng: Any, *, model: Model, solver: Solver, pull: float = 0.0, shift: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Descend from the weights `x` on a party's records.

    Parameters
    ----------
    x : array of shape (d,)
    pull : float
        Of the proximal term that is added to the gradient.
    shift : array of shape (d,), stacked (n_parties, d), optional
        Added to every gradient.

    Returns
    -------
    change : array of shape (d,) or (n_parties, d)
        From `x` to where the party ended.
    steps : array of shape () or (n_parties,)
        Steps taken.

    Notes
    -----
    A module that draws random numbers follows the party's stream, one party at a time.
    """
    if model.stochastic:
        with own_generator(rng):
            return _descend(x, party, rng, model, solver, pull, shift)
    return _descend(x, party, rng, model, solver, pull, shift)


def _descend(
    x: np.ndarray, party: Party, rng: Any, model: Model, solver: Solver, pull: float, shift: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    inputs, target, w = tensors(party)
    stacked = w.ndim == 2
    start = torch.from_numpy(np.asarray(x, np.float32))
    flat = start.expand(len(w), -1).clone() if stacked else start.clone()
    added = None if shift is None else torch.from_numpy(np.asarray(shift, np.float32))
    slope = vmap(grad(mean_loss), in_dims=(0, 0, 0, 0, None)) if stacked else grad(mean_loss)
    steps = torch.zeros(w.shape[:-1])
    for records, kept in batches(party, rng, solver.epochs, solver.batch_size):
        gradient = slope(flat, _take(inputs, records), _take(target, records), _take(w, records) * kept, model)
        if pull:
            gradient += pull * (flat - start)
        if added is not None:
            gradient += added
        moves = kept.any(-1, keepdim=True)  # a stacked party with fewer batches than another rests
        flat -= solver.learning_rate * gradient * moves
        steps += moves[..., 0]
    return (flat - start).numpy(), steps.numpy()


def mean_loss(flat: Tensor, x: Tensor, target: Tensor, w: Tensor, model: Model) -> Tensor:
    """Weighted mean loss of a batch; records of weight zero do not count, an empty batch has loss zero."""
    return (w * model.losses(flat, x, target)).sum() / w.sum().clamp_min(1e-12)


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


def tensors(party: Party) -> Sequence[Tensor]:
    """A party's prepared inputs, targets and weights."""
    return [
        torch.from_numpy(np.ascontiguousarray(a))
        for a in (party["model_input"], party["model_target"], party.w.astype(np.float32))
    ]
