"""FedExP: federated averaging whose server step grows with the disagreement of the updates.

    u, s  <- means of the updates w_k - w and of their squared lengths        sum, as FedAvg
    w     <- w + max(1, s / (2 (|u|^2 + damping))) u

Releases : sums of n_k (w_k - w), of n_k |w_k - w|^2, and of n_k, once per round.
State    : none at the parties.
Unit     : party.
Source   : Jhunjhunwala et al., ICLR 2023, Algorithm 1. Differs: means are weighted by records, unless `weighting` says
           otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Unpack

import numpy as np
from torch import nn

import hedgerow as hr
from hedgerow.learn import ModelState, Settings, Training, above, declares, local_sgd, mean_of, weighed


@hr.local(stackable=True)
def update_and_length(
    w: np.ndarray, party: hr.Party, rng: Any, *, weighting: Any, largest_weight: float | None = None, **solver: Any
) -> Mapping[str, np.ndarray]:
    """Train from `w`; the update of shape (d,) and its squared length of shape (1,), weighed."""
    update = local_sgd(w, party, rng, weighting="expected", **solver)["update"]  # "expected": as it is, without a weight
    return weighed(party, weighting, largest_weight, update=update, squared=(update**2).sum(-1, keepdims=True))


@hr.program("Federated averaging with an extrapolated server step (Jhunjhunwala et al. 2023).", **declares(rounds=2))
def fedexp(
    federation: hr.Federation,
    module: nn.Module,
    *,
    rounds: int,
    damping: float = 1e-3,
    start: ModelState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[ModelState]:
    """Federated averaging with an extrapolated server step.

    Parameters
    ----------
    module : torch.nn.Module
        Architecture and initial weights.
    rounds : int
        Rounds in all, those before `start` included.
    damping : float
        Added to the squared length of the mean update; above zero.
    **settings
        As `hedgerow.learn.fedavg`; so are the errors.

    Yields
    ------
    ModelState
        After each round.
    """
    above(0.0, damping=damping)
    training = Training.of(federation, module, rounds, settings)
    model, w = training.model, training.begin(start)
    for t in training.left(start):
        cohort = training.cohort()
        total = cohort.sum(training.ask(update_and_length, t), w)
        update, squared = mean_of(total, cohort), mean_of(total, cohort, "squared")
        step = max(1.0, float(squared[0]) / (2 * (float(update @ update) + damping)))
        w = (w + step * update).astype(np.float32)
        yield ModelState(t + 1, model.named(w))
