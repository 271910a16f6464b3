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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from torch import nn

from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.query import local

from .local import gradient
from .models import Model, Weights
from .solver import Solver, descend
from .training import Training, Weighting, at_least, mean_of


@dataclass(frozen=True)
class ScaffoldState:
    """A model after a round, and the server's control variate of shape (d,)."""

    round: int
    weights: Weights
    control: np.ndarray


def zero_control(server: Mapping[str, np.ndarray], party: Party) -> dict[str, np.ndarray]:
    """A party that was never asked expects no gradient."""
    return {"c": np.zeros_like(server["c"])}


@local(stackable=True)
def controlled_sgd(
    server: Mapping[str, np.ndarray], party: Party, rng: Any, *, model: Model, solver: Solver, weighting: str, option: str
) -> dict[str, np.ndarray]:
    """Train with the control variates; return the changes of model and control variate."""
    x, c, ci = server["x"], server["c"], party.state["c"]
    dy, steps = descend(x, party, rng, model=model, solver=solver, shift=c - ci)
    if option == "II":
        ci_new = ci - c - dy / (np.maximum(steps, 1)[..., None] * solver.learning_rate)
    else:
        at_x = gradient(x, party, rng, model=model)
        ci_new = at_x["gradient"] / np.maximum(at_x["n"], 1e-12)[..., None]
    party.state["c"] = ci_new.astype(np.float32)
    made = {"dy": dy, "dc": ci_new - ci}
    return made if weighting == "expected" else {**made, "n": np.ones(np.shape(party.n))}


def scaffold(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    option: Literal["I", "II"] = "II",
    server_rate: float = 1.0,
    rate: float | None = None,
    size: int | None = None,
    epochs: int = 1,
    batch_size: int | None = 10,
    learning_rate: float = 0.1,
    features: Sequence[str] | None = None,
    start: ScaffoldState | None = None,
) -> Iterator[ScaffoldState]:
    """SCAFFOLD (Karimireddy et al. 2020, Algorithm 1).

    Parameters
    ----------
    option : {"I", "II"}
        How a party renews its control variate: by a pass over its records at the server's model, or from its own steps.
    server_rate : float
        Step of the server along the mean change.

    Others as `hedgerow.learn.fedavg`; parties count equally.
    """
    at_least(0.0, server_rate=server_rate)
    weighting: Weighting | None = "uniform" if federation.channel.open or isinstance(federation.channel.clip, Mapping) else None
    training = Training.of(
        federation,
        module,
        features=features,
        weighting=weighting,
        rounds=rounds,
        rate=rate,
        size=size,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
    )
    model, step, n_parties = training.model, training.ask(controlled_sgd, option=option), federation.size
    x = model.initial if start is None else model.flat(start.weights)
    c = np.zeros_like(x) if start is None else start.control
    for t in range(start.round if start else 0, rounds):
        cohort = training.cohort()
        total = cohort.sum(step, {"x": x, "c": c}, init=zero_control)
        x = (x + server_rate * mean_of(total, cohort, "dy")).astype(np.float32)
        c = (c + total["dc"] / n_parties).astype(np.float32)
        yield ScaffoldState(t + 1, model.named(x), c)
