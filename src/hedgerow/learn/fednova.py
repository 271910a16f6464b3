"""FedNova: normalised averaging, so that a party with more steps does not pull further for it.

    party:   y_i after tau_i local steps;    d_i <- (y_i - x) / a_i
    server:  x <- x + a_eff * sum_i p_i d_i,    a_eff <- sum_i p_i a_i,    p_i = n_i / sum n

a_i is the sum of the weights that local steps give to gradients: tau_i for SGD; with a proximal term
(1 - (1 - lr * mu)^tau_i) / (lr * mu); with momentum m: (tau_i - m (1 - m^tau_i) / (1 - m)) / (1 - m).

Releases : sum of n_i d_i, sum of n_i a_i, sum of n_i; once a round.
State    : none at the parties.
Unit     : party. Behind a clip give one bound to each of "d", "a" and "n".
Source   : Wang et al., NeurIPS 2020, section 4. Differs: none. (Sempere 2024, Algorithm 2, line 8 multiplies the change,
           which holds the learning rate already, by it once more.) Where all parties take equally many steps it is FedAvg.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Unpack

import numpy as np
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.query import local
from hedgerow.errors import SettingsInvalid

from .descent import Correction, Solver, descend
from .fedavg import ModelState
from .models import Model
from .results import declares
from .settings import Settings, Weighting
from .training import Training, at_least
from .weighting import weighed


@local(stackable=True)
def normalised_sgd(
    x: np.ndarray,
    party: Party,
    rng: Any,
    *,
    model: Model,
    solver: Solver,
    weighting: Weighting,
    largest_weight: float | None,
    mu: float,
) -> Mapping[str, np.ndarray]:
    """Train from the broadcast weights; return the change per unit of gradient weight, that weight, and the party's weight."""
    found = descend(x, party, rng, model=model, solver=solver, correction=Correction(mu))
    a = np.maximum(gradient_weight(found.steps, solver, mu), 1e-12)
    return weighed(party, weighting, largest_weight, d=found.change / a[..., None].astype(np.float32), a=a[..., None])


def gradient_weight(steps: np.ndarray, solver: Solver, mu: float) -> np.ndarray:
    """The sum of the weights with which a local change accumulates gradients (Wang et al. 2020, section 4.1).

    The local rule is linear in the gradients, so it is the change that gradients of one would make, over the learning rate.
    """
    lr, m = solver.learning_rate, 0.0 if solver.rule == "sgd" else solver.momentum
    change = velocity = 0.0
    after = [0.0]
    for _ in range(int(np.max(steps))):
        g = 1.0 + mu * change
        velocity = m * velocity + g
        change -= lr * (g + m * velocity if solver.rule == "nesterov" else velocity)
        after.append(-change / lr)
    return np.asarray(after)[np.asarray(steps, int)]


@program("Averaging normalised by local work (Wang et al. 2020).", **declares(rounds=2))
def fednova(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    mu: float = 0.0,
    start: ModelState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[ModelState]:
    """FedNova (Wang et al. 2020).

    Parameters
    ----------
    mu : float
        Strength of a proximal term; 0 leaves it out. Below one over the learning rate.
    **settings
        As `hedgerow.learn.fedavg`; the local solver is sgd, momentum or nesterov; parties count by records or equally.
    """
    at_least(0.0, mu=mu)
    training = Training.of(federation, module, rounds, settings, lawful=("records", "uniform"))
    solver = training.solver
    if solver.learning_rate * mu >= 1 or solver.rule not in ("sgd", "momentum", "nesterov"):
        raise SettingsInvalid(
            f"mu is {mu}, learning_rate is {solver.learning_rate}, solver is {solver.rule!r}.",
            remedy="mu times learning_rate is below one; the weights of gradients are known for sgd, momentum and nesterov.",
        )
    model, x = training.model, training.begin(start)
    for t in training.left(start):
        total = training.cohort().sum(training.ask(normalised_sgd, t, mu=mu), x)
        n = max(float(total["n"]), 1e-12)
        x = (x + (total["a"] / n) * (total["d"] / n)).astype(np.float32)
        yield ModelState(t + 1, model.named(x))
