"""Local functions of training: what a party computes on its own records."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import grad, vmap

from hedgerow.core.party import Party
from hedgerow.core.query import local

from .models import Model, hits
from .solver import Solver, descend, tensors


def sum_loss(flat: Tensor, x: Tensor, target: Tensor, w: Tensor, model: Model) -> Tensor:
    """Weighted sum of losses."""
    return (w * model.losses(flat, x, target)).sum()


@local(additive=True, stackable=True)
def gradient(broadcast: np.ndarray, party: Party, rng: Any, *, model: Model) -> dict[str, np.ndarray]:
    """Sum of the records' gradients, shape (d,), and the weighted number of records."""
    flat, (x, target, w) = torch.from_numpy(broadcast), tensors(party)
    slope = grad(sum_loss)
    if w.ndim == 2:
        slope = vmap(slope, in_dims=(None, 0, 0, 0, None))
    return {"gradient": slope(flat, x, target, w, model).numpy(), "n": party.n}


@local(stackable=True)
def local_sgd(
    broadcast: np.ndarray, party: Party, rng: Any, *, model: Model, solver: Solver, weighting: str, pull: float = 0.0
) -> dict[str, np.ndarray]:
    """Train from the broadcast weights; return the weighted change and its weight.

    Returns
    -------
    {"update": (d,), "n": ()}
        `weighting="records"`: the change times the number of records, and that number; `"uniform"`: the change, and 1;
        `"expected"`: the change alone, to be divided by the expected size of the cohort.
    """
    change, _ = descend(broadcast, party, rng, model=model, solver=solver, pull=pull)
    if weighting == "expected":
        return {"update": change}
    n = np.asarray(party.n if weighting == "records" else np.ones(np.shape(party.n)))
    return {"update": change * n[..., None], "n": n}


@local(additive=True, stackable=True)
def score(broadcast: np.ndarray, party: Party, rng: Any, *, model: Model, with_loss: bool = True) -> dict[str, np.ndarray]:
    """Sums from which metrics are made: losses, hits (classification) or squared errors (numbers), records."""
    flat, (x, target, w) = torch.from_numpy(broadcast), tensors(party)
    with torch.no_grad():
        output = model.outputs(flat, x.flatten(0, w.ndim - 1)).unflatten(0, w.shape)
        w = w.double()
        made = {"hits": (w * hits(model.kind, output, target)).sum(-1).numpy(), "n": np.asarray(party.n)}
        if with_loss:
            losses = model.losses(flat, x.flatten(0, w.ndim - 1), target.flatten()).reshape(w.shape)
            made["loss"] = (w * losses).sum(-1).numpy()
    return made
