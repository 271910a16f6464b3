"""SCAFFOLD: stochastic controlled averaging.

Each party keeps a control variate `c_i`, an estimate of its own gradient; the server keeps their mean `c`. Local steps
move along `g_i(y) - c_i + c`, which removes the drift that unequal data cause in FedAvg.

    for each round:
        x, c      -> cohort S                                            broadcast
        y_i       <- K_i steps of  y - lr * (g_i(y) - c_i + c)             local
        c_i'      <- c_i - c + (x - y_i) / (K_i * lr)                      party state  (option II)
        x         <- x + server_lr * mean over S of (y_i - x)              sum, server
        c         <- c + 1 / N * sum over S of (c_i' - c_i)

Option I sets c_i' to the gradient of all the party's records at x.

Releases : sum of (y_i - x), sum of (c_i' - c_i), |S|; once a round. |S| is not sent through a channel that clips.
State    : c_i at each party, of shape (d,), initially zero; committed when the round was counted.
Unit     : party. Behind a clip give one bound to each of "dy" and "dc".
Source   : Karimireddy et al., ICML 2020, Algorithm 1. Differs: parties may take different numbers of steps. (Sempere 2024,
           Algorithm 3, line 9 subtracts the mean change, which would lead uphill.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local, travels
from hedgerow.display import displayed

from .descent import Correction, Solver, descend
from .local import gradient
from .models import Model, Weights
from .results import declares
from .settings import Settings, Weighting
from .training import Training, at_least, equal_parties, mean_of
from .weighting import weighed


@displayed
@dataclass(frozen=True)
class ScaffoldState:
    """A model after a round, and the server's control variate of shape (d,)."""

    round: int
    weights: Weights
    control: np.ndarray


@travels
def zero_control(server: Mapping[str, np.ndarray], party: Party) -> dict[str, np.ndarray]:
    """A party that was never asked expects no gradient."""
    return {"c": np.zeros_like(server["c"])}


@local(stackable=True)
def controlled_sgd(
    server: Mapping[str, np.ndarray],
    party: Party,
    rng: Any,
    *,
    model: Model,
    solver: Solver,
    weighting: Weighting,
    largest_weight: float | None,
    option: str,
) -> Mapping[str, np.ndarray]:
    """Train with the control variates; return the changes of model and control variate."""
    x, c, ci = server["x"], server["c"], party.state["c"]
    found = descend(x, party, rng, model=model, solver=solver, correction=Correction(shift=c - ci))
    if option == "II":
        ci_new = ci - c - found.change / (np.maximum(found.steps, 1)[..., None] * solver.learning_rate)
    else:
        at_x = gradient(x, party, rng, model=model)
        ci_new = at_x["gradient"] / np.maximum(at_x["n"], 1e-12)[..., None]
    party.state["c"] = ci_new.astype(np.float32)
    return weighed(party, weighting, largest_weight, dy=found.change, dc=ci_new - ci)


@program("Control variates against drift (Karimireddy et al. 2020).", **declares(rounds=2))
def scaffold(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    option: Literal["I", "II"] = "II",
    server_rate: float = 1.0,
    start: ScaffoldState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[ScaffoldState]:
    """SCAFFOLD (Karimireddy et al. 2020, Algorithm 1).

    Parameters
    ----------
    option : {"I", "II"}
        How a party renews its control variate: by a pass over its records at the server's model, or from its own steps.
    server_rate : float
        Step of the server along the mean change.

    **settings
        As `hedgerow.learn.fedavg`; the local solver is sgd, parties count equally.
    """
    at_least(0.0, server_rate=server_rate)
    fixed = ("solver", "adversarial") if option == "I" else ("solver",)  # option I takes a gradient at records as they are
    training = Training.of(federation, module, rounds, settings, lawful=equal_parties(settings, *fixed))
    model, n_parties = training.model, federation.size
    x = training.begin(start)
    c = np.zeros_like(x) if start is None else start.control
    for t in training.left(start):
        cohort = training.cohort()
        total = cohort.sum(training.ask(controlled_sgd, t, option=option), {"x": x, "c": c}, init=zero_control)
        x = (x + server_rate * mean_of(total, cohort, "dy")).astype(np.float32)
        c = (c + total["dc"] / n_parties).astype(np.float32)
        yield ScaffoldState(t + 1, model.named(x), c)
