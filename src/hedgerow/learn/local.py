"""Local functions of training: what a party computes on its own records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hedgerow.core.bound import Bounds
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import BITS, held

from .descent import Correction, Solver, descend
from .descent.eager import slope_of
from .descent.work import tensors
from .models import Model, hits, per_record_loss
from .settings import Weighting
from .weighting import weighed

SCORED_AT_ONCE = 2048
"""Records of a forward pass, so that a large table's activations fit in memory."""


def sum_loss(flat: Tensor, x: Tensor, target: Tensor, w: Tensor, model: Model) -> Tensor:
    """Weighted sum of losses."""
    return (w * model.losses(flat, x, target)).sum()


@local(additive=True, stackable=True)
def gradient(broadcast: np.ndarray, party: Party, rng: Any, *, model: Model) -> dict[str, np.ndarray]:
    """Sum of the records' gradients, shape (d,), and the weighted number of records."""
    flat, (x, target, w) = torch.from_numpy(broadcast), tensors(party)
    flat = flat.expand(*w.shape[:-1], -1)
    return {"gradient": slope_of(sum_loss, flat, x, target, w, model=model).numpy(), "n": party.n}


@local(stackable=True)
def local_sgd(
    broadcast: np.ndarray,
    party: Party,
    rng: Any,
    *,
    model: Model,
    solver: Solver,
    weighting: Weighting,
    largest_weight: float | None = None,
    pull: float = 0.0,
) -> Mapping[str, np.ndarray]:
    """Train from the broadcast weights; return the weighted change `update`, (d,), and its weight `n`; see `weighed`."""
    found = descend(broadcast, party, rng, model=model, solver=solver, correction=Correction(pull))
    return weighed(party, weighting, largest_weight, update=found.change)


@local(additive=True, stackable=True, holds=BITS)
def score(
    broadcast: np.ndarray,
    party: Party,
    rng: Any,
    *,
    model: Model,
    with_loss: bool = True,
    bounds: Bounds | None = None,
) -> dict[str, np.ndarray]:
    """Sums from which metrics are made: losses, hits (classification) or squared errors (numbers), records.

    With the loss, and of a binary target, also records of class one: those that are (`ones`) and that are `taken_for_one`.
    With `bounds`, behind noise, the model sees one record at a time, so that no other record changes a bit of its output.
    """
    flat, (x, target, w) = torch.from_numpy(broadcast), tensors(party)
    x, target = x.flatten(0, w.ndim - 1), target.flatten()
    found = {name: torch.zeros(len(x)) for name in ("hits", *("loss",) * with_loss)}
    if with_loss and model.kind == "binary":
        found |= {"ones": (target > 0.5).float(), "taken_for_one": torch.zeros(len(x))}
    with torch.no_grad():
        at_once = SCORED_AT_ONCE if bounds is None else 1
        for start in range(0, len(x), at_once):
            rows = slice(start, start + at_once)
            output = model.outputs(flat, x[rows] if bounds is None else x[rows].clone())
            found["hits"][rows] = hits(model.kind, output, target[rows])
            if with_loss:
                found["loss"][rows] = per_record_loss(model.kind)(output, target[rows])
            if "ones" in found:
                found["taken_for_one"][rows] = (output.reshape(target[rows].shape) > 0).float()
    own = {name: w.double() * value.reshape(w.shape) for name, value in found.items()}
    if bounds is None:
        return {name: value.sum(-1).numpy() for name, value in own.items()} | {"n": np.asarray(party.n)}
    whole = {name: held(value.numpy(), bounds, name) for name, value in own.items()} | {"n": held(party.w, bounds, "n")}
    return {name: np.asarray(value.sum(-1)) for name, value in whole.items()}
