"""Local functions of training: what a party computes on its own records."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hedgerow.core.bound import Bounds
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import BITS, held

from .anew import anew, outputs_alone
from .descent import Correction, Solver, descend
from .descent.eager import slope_of
from .descent.work import tensors
from .devices import CPU, device
from .models import Model, hits
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
    if model.task is not None and not w.size(-1):  # functions of one's own need not know what no records are
        return {"gradient": np.zeros((*w.shape[:-1], len(flat)), np.float32), "n": party.n}
    flat, where = flat.expand(*w.shape[:-1], -1), device()
    moved = (value.to(where) for value in (flat, x, target, w))
    return {"gradient": slope_of(sum_loss, *moved, model=model.on(where)).cpu().numpy(), "n": party.n}


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


def scored(model: Model) -> tuple[str, ...]:
    """Names of the sums that tell how good a model is."""
    return ("hits",) if model.task is None else tuple(metric.name for metric in model.task.metrics)


def judged(model: Model, output: Any, target: Tensor, asked: Collection[str]) -> dict[str, Tensor]:
    """Of each record what is asked for, (n,)."""
    if model.task is not None:
        found = {metric.name: model.task.values(metric, output, target).float() for metric in model.task.metrics}
        return found | ({"loss": model.losses_of(output, target)} if "loss" in asked else {})
    found = {"hits": hits(model.kind, output, target)}
    if "loss" in asked:
        found["loss"] = model.losses_of(output, target)
    if "taken_for_one" in asked:
        found["taken_for_one"] = (output.reshape(target.shape) > 0).float()
    return found


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
    With `bounds`, behind noise, the model sees one record at a time, so that no other record changes a bit of its output, and
    what module, metric and loss keep of it is left behind with the copies that they are; and a record for which they fail
    counts as zero, as an error would tell of it.
    A model with a task has its metrics by name in the place of hits; behind noise a task has those alone that have bounds.
    """
    flat, (x, target, w) = torch.from_numpy(broadcast), tensors(party)
    x, target = x.flatten(0, w.ndim - 1), target.flatten(0, w.ndim - 1)
    found = {name: torch.zeros(len(x)) for name in (*scored(model), *("loss",) * with_loss)}
    if with_loss and model.kind == "binary":
        found |= {"ones": (target > 0.5).float(), "taken_for_one": torch.zeros(len(x))}
    where = device() if bounds is None else CPU
    model, flat, x, target = model.on(where), flat.to(where), x.to(where), target.to(where)
    with torch.no_grad(), model.at_rest():
        at_once = SCORED_AT_ONCE if bounds is None else 1
        for start in range(0, len(x), at_once):
            rows = slice(start, start + at_once)
            with nullcontext() if bounds is None else suppress(Exception):
                if bounds is None:
                    values = judged(model, model.outputs(flat, x[rows]), target[rows], found)
                else:
                    own, wanted = x[rows].clone(), target[rows].clone()
                    values = judged(anew(model), outputs_alone(model, flat, own), wanted, found)
                for name, value in values.items():
                    found[name][rows] = value
    own = {name: w.double() * value.reshape(w.shape) for name, value in found.items()}
    if bounds is None:
        return {name: value.sum(-1).numpy() for name, value in own.items()} | {"n": np.asarray(party.n)}
    whole = {name: held(value.numpy(), bounds, name) for name, value in own.items()} | {"n": held(party.w, bounds, "n")}
    return {name: np.asarray(value.sum(-1)) for name, value in whole.items()}
