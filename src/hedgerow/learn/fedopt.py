"""FedOpt: the server takes the mean update for a gradient, and steps by an adaptive optimiser.

    delta <- mean update of the cohort                                           sum, as FedAvg
    m     <- beta1 * m + (1 - beta1) * delta
    v     <- v + delta^2                                       FedAdagrad
             v - (1 - beta2) * delta^2 * sign(v - delta^2)     FedYogi
             beta2 * v + (1 - beta2) * delta^2                 FedAdam
    w     <- w + server_rate * m / (sqrt(v) + tau)

FedAvgM has no v: m <- beta1 * m + delta, w <- w + server_rate * m.

Releases : as FedAvg.
State    : none at the parties; m and v of shape (d,) at the server.
Unit     : party. What the server does with a release costs nothing.
Source   : Reddi et al., ICLR 2021, Algorithm 2 (v starts at tau^2, no bias correction); FedAvgM: Hsu et al. 2019, section 4.3.
           FedAvgM with beta1 = 0 and server_rate = 1 is FedAvg, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, Unpack

import numpy as np
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.display import displayed

from .local import local_sgd
from .models import Weights
from .results import declares
from .robust.named import RuleSetting
from .settings import Settings
from .training import Training, at_least

Rule = Literal["momentum", "adagrad", "adam", "yogi"]

SECOND_MOMENT: dict[str, Callable[[np.ndarray, np.ndarray, float], np.ndarray]] = {
    "adagrad": lambda v, square, beta2: v + square,
    "adam": lambda v, square, beta2: beta2 * v + (1 - beta2) * square,
    "yogi": lambda v, square, beta2: v - (1 - beta2) * square * np.sign(v - square),
}


@displayed
@dataclass(frozen=True)
class ServerState:
    """A model after a round, the server's first and second moments of shape (d,), and what its rule of rows keeps."""

    round: int
    weights: Weights
    m: np.ndarray
    v: np.ndarray
    rule_state: Weights = field(default_factory=dict)


@program(
    "Momentum, Adagrad, Adam or Yogi at the server (Reddi et al. 2021).", **declares(rounds=2, rule="yogi", server_rate=0.1)
)
def fedopt(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    rule: Rule = "adam",
    server_rate: float = 0.01,
    beta1: float = 0.9,
    beta2: float = 0.99,
    tau: float = 1e-3,
    row_rule: RuleSetting = "mean",
    expect: float | None = None,
    start: ServerState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[ServerState]:
    """Adaptive federated optimisation (Reddi et al. 2021, Algorithm 2).

    Parameters
    ----------
    rule : {"momentum", "adagrad", "adam", "yogi"}
        FedAvgM, FedAdagrad, FedAdam or FedYogi.
    server_rate : float
        Learning rate of the server.
    beta1, beta2 : float
        Decay of the first and the second moment, in [0, 1).
    tau : float
        Degree of adaptivity, in the units of an update; above zero.
    row_rule : str, dict or Rule
        What the server takes of the parties' updates for its gradient, as the `rule` of `fedavg`; here `rule` is the optimiser.

    expect, **settings
        As `hedgerow.learn.fedavg`; so are releases and errors.
    """
    at_least(0.0, server_rate=server_rate, beta1=beta1, beta2=beta2, tau=tau)
    training = Training.of(federation, module, rounds, settings, rule=row_rule, expect=expect)
    model, w, kept = training.model, training.begin(start), training.kept(start)
    m, v = (np.zeros_like(w), np.full_like(w, tau**2)) if start is None else (start.m, start.v)
    for t in training.left(start):
        found, kept = training.combined(local_sgd, t, w, kept)
        delta = found["update"]
        if rule == "momentum":
            m = (beta1 * m + delta).astype(np.float32)
            w = (w + server_rate * m).astype(np.float32)
        else:
            m = (beta1 * m + (1 - beta1) * delta).astype(np.float32)
            v = SECOND_MOMENT[rule](v, delta**2, beta2).astype(np.float32)
            w = (w + server_rate * m / (np.sqrt(v) + tau)).astype(np.float32)
        yield ServerState(t + 1, model.named(w), m, v, kept)
