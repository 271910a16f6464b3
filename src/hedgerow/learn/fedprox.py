"""FedProx: FedAvg with a proximal term, which keeps a party near the server's model.

    party:   y <- y - lr * (g(y) + mu * (y - w))                       E epochs, from w
    server:  w <- w + sum_k n_k (y_k - w) / sum_k n_k                  as FedAvg

Releases : as FedAvg.
State    : none at the parties.
Unit     : party.
Source   : Li et al., MLSys 2020, Algorithm 2. Differs: the inexactness gamma is not a parameter; a party takes the epochs it is
           given. With mu = 0 it is FedAvg, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import nn

from hedgerow.core.federation import Federation

from .fedavg import ModelState, average
from .local import local_sgd
from .training import Training, Weighting, at_least


def fedprox(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    mu: float = 0.01,
    rate: float | None = None,
    size: int | None = None,
    epochs: int = 1,
    batch_size: int | None = 10,
    learning_rate: float = 0.1,
    weighting: Weighting | None = None,
    features: Sequence[str] | None = None,
    start: ModelState | None = None,
) -> Iterator[ModelState]:
    """FedProx (Li et al. 2020, Algorithm 2).

    Parameters
    ----------
    mu : float
        Strength of the pull towards the server's model, in the units of the loss over squared weights; at least zero.

    Others, yields, releases and errors as `hedgerow.learn.fedavg`.
    """
    at_least(0.0, mu=mu)
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
    yield from average(training, training.ask(local_sgd, pull=mu), rounds, start)
