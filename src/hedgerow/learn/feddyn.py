"""FedDyn: each party's objective is bent so that its own optimum agrees with the federation's.

    party:   y_i <- local steps along  g_i(y) - h_i + alpha * (y - x),  from x       h_i: the party's gradient memory
             h_i <- h_i - alpha * (y_i - x)                                        party state
    server:  h   <- h - alpha / N * sum over S of (y_i - x)
             x   <- x + mean over S of (y_i - x) - h / alpha

Releases : sum of (y_i - x), |S|; once a round. |S| is not sent through a channel that clips.
State    : h_i at each party, of shape (d,), initially zero; committed when the round was counted.
Unit     : party.
Source   : Acar et al., ICLR 2021, Algorithm 1. Differs: the local problem is solved by the given number of SGD steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local, travels
from hedgerow.display import displayed

from .descent import Correction, Solver, descend
from .models import Model, Weights
from .results import declares
from .settings import Settings, Weighting
from .training import Training, above, equal_parties, mean_of
from .weighting import weighed


@displayed
@dataclass(frozen=True)
class DynState:
    """A model after a round, and the server's gradient memory of shape (d,)."""

    round: int
    weights: Weights
    memory: np.ndarray


@travels
def no_memory(x: np.ndarray, party: Party) -> dict[str, np.ndarray]:
    """A party that was never asked remembers no gradient."""
    return {"h": np.zeros_like(x)}


@local(stackable=True)
def regularised_sgd(
    x: np.ndarray,
    party: Party,
    rng: Any,
    *,
    model: Model,
    solver: Solver,
    weighting: Weighting,
    largest_weight: float | None,
    alpha: float,
) -> Mapping[str, np.ndarray]:
    """Train on the bent objective; renew the memory; return the change."""
    h = party.state["h"]
    change = descend(x, party, rng, model=model, solver=solver, correction=Correction(alpha, shift=-h)).change
    party.state["h"] = (h - alpha * change).astype(np.float32)
    return weighed(party, weighting, largest_weight, update=change)


@program("Dynamically regularised parties (Acar et al. 2021).", **declares(rounds=2))
def feddyn(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    alpha: float = 0.1,
    start: DynState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[DynState]:
    """FedDyn (Acar et al. 2021, Algorithm 1).

    Parameters
    ----------
    alpha : float
        Strength of the regularisation, in the units of the loss over squared weights; above zero.

    **settings
        As `hedgerow.learn.fedavg`; parties count equally.
    """
    above(0.0, alpha=alpha)
    training = Training.of(federation, module, rounds, settings, lawful=equal_parties(settings))
    model, n_parties = training.model, federation.size
    x = training.begin(start)
    h = np.zeros_like(x) if start is None else start.memory
    for t in training.left(start):
        cohort = training.cohort()
        total = cohort.sum(training.ask(regularised_sgd, t, alpha=alpha), x, init=no_memory)
        h = (h - alpha / n_parties * total["update"]).astype(np.float32)
        x = (x + mean_of(total, cohort) - h / alpha).astype(np.float32)
        yield DynState(t + 1, model.named(x), h)
