"""FedNova: normalised averaging, so that a party with more steps does not pull further for it.

    party:   y_i after tau_i local steps;    d_i <- (y_i - x) / a_i
    server:  x <- x + a_eff * sum_i p_i d_i,    a_eff <- sum_i p_i a_i,    p_i = n_i / sum n

a_i is the sum of the weights that local steps give to gradients: tau_i for SGD; with a proximal term
(1 - (1 - lr * mu)^tau_i) / (lr * mu).

Releases : sum of n_i d_i, sum of n_i a_i, sum of n_i; once a round.
State    : none at the parties.
Unit     : party. Behind a clip give one bound to each of "d", "a" and "n".
Source   : Wang et al., NeurIPS 2020, section 4. Differs: none. (Sempere 2024, Algorithm 2, line 8 multiplies the change,
           which holds the learning rate already, by it once more.) Where all parties take equally many steps it is FedAvg.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from torch import nn

from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.query import local
from hedgerow.errors import SettingsInvalid

from .fedavg import ModelState
from .models import Model
from .solver import Solver, descend
from .training import Training, Weighting, at_least


@local(stackable=True)
def normalised_sgd(
    x: np.ndarray, party: Party, rng: Any, *, model: Model, solver: Solver, weighting: str, mu: float
) -> dict[str, np.ndarray]:
    """Train from the broadcast weights; return the change per unit of gradient weight, that weight, and the records."""
    change, steps = descend(x, party, rng, model=model, solver=solver, pull=mu)
    decay = solver.learning_rate * mu
    a = np.maximum(steps, 1e-12) if decay == 0 else np.maximum((1 - (1 - decay) ** steps) / decay, 1e-12)
    n = np.asarray(party.n if weighting == "records" else np.ones(np.shape(party.n)))
    return {"d": change * (n / a)[..., None], "a": n * a, "n": n}


def fednova(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    mu: float = 0.0,
    rate: float | None = None,
    size: int | None = None,
    epochs: int = 1,
    batch_size: int | None = 10,
    learning_rate: float = 0.1,
    weighting: Weighting | None = None,
    features: Sequence[str] | None = None,
    start: ModelState | None = None,
) -> Iterator[ModelState]:
    """FedNova (Wang et al. 2020).

    Parameters
    ----------
    mu : float
        Strength of a proximal term; 0 leaves it out. Below one over the learning rate.
    weighting : {"records", "uniform"}
        How parties count.

    Others as `hedgerow.learn.fedavg`.
    """
    at_least(0.0, mu=mu)
    if learning_rate * mu >= 1 or weighting == "expected":
        raise SettingsInvalid(
            f"mu is {mu}, learning_rate is {learning_rate}, weighting is {weighting!r}.",
            remedy="mu times learning_rate is below one; FedNova divides by sums that the parties send.",
        )
    weighting = weighting or "records"
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
    model, train = training.model, training.ask(normalised_sgd, mu=mu)
    x = model.initial if start is None else model.flat(start.weights)
    for t in range(start.round if start else 0, rounds):
        total = training.cohort().sum(train, x)
        n = max(float(total["n"]), 1e-12)
        x = (x + (total["a"] / n) * (total["d"] / n)).astype(np.float32)
        yield ModelState(t + 1, model.named(x))
