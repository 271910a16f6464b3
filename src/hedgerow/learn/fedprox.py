"""FedProx: FedAvg with a proximal term, which keeps a party near the server's model.

    party:   y <- y - lr * (g(y) + mu * (y - w))                       E epochs, from w
    server:  w <- w + sum_k n_k (y_k - w) / sum_k n_k                  as FedAvg

Releases : as FedAvg.
State    : none at the parties.
Unit     : party.
Source   : Li et al., MLSys 2020, Algorithm 2. Differs: the inexactness gamma is not a parameter; a party takes the epochs it is
           given, or fewer where `stragglers` says so (section 5.2 there). Section 5.3.2 adapts mu to the loss; here it may
           fall by a factor each round (Sempere 2024, section 2.5). With mu = 0 it is FedAvg, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Unpack

from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation

from .fedavg import ModelState
from .local import local_sgd
from .results import declares
from .robust.named import RuleSetting
from .settings import Settings
from .training import Training, at_least


@program("FedAvg with a proximal term (Li et al. 2020).", **declares(rounds=2))
def fedprox(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    mu: float = 0.01,
    mu_decay: float = 1.0,
    rule: RuleSetting = "mean",
    expect: float | None = None,
    start: ModelState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[ModelState]:
    """FedProx (Li et al. 2020, Algorithm 2).

    Parameters
    ----------
    mu : float
        Strength of the pull towards the server's model, in the units of the loss over squared weights; at least zero.
    mu_decay : float
        Factor by which mu falls from round to round.

    rule, expect, **settings
        As `hedgerow.learn.fedavg`; so are what it yields, releases and refuses.
    """
    at_least(0.0, mu=mu, mu_decay=mu_decay)
    training = Training.of(federation, module, rounds, settings, rule=rule, expect=expect)
    model, w, kept = training.model, training.begin(start), training.kept(start)
    for t in training.left(start):
        found, kept = training.combined(local_sgd, t, w, kept, pull=mu * mu_decay**t)
        w = w + found["update"]
        yield ModelState(t + 1, model.named(w), kept)
