"""FedNAG: parties descend with Nesterov's momentum, and the server averages momenta as well as weights.

    for each round:
        w, v      -> cohort S                                              broadcast
        party i, tau_i steps from (w, v):
            v_i   <- gamma v_i - eta g_i(w_i)                                local
            w_i   <- w_i + gamma v_i - eta g_i(w_i)
        w         <- sum_i n_i w_i / sum_i n_i                               sum, server
        v         <- sum_i n_i v_i / sum_i n_i

A local solver remembers m <- gamma m + g and steps by -eta (g + gamma m); so v = -eta m, and it is the same descent. What the
server keeps is v, in the units of the weights. Under a schedule that matters: a step of the past keeps its length when eta
falls, as in the box, while an m kept from round to round would shrink with eta.

Releases : sum of n_i (w_i - w), sum of n_i (v_i - v), sum of n_i; once a round. Changes rather than values, so that what does
           not arrive moves nothing.
State    : none at the parties; w and v, both of shape (d,), at the server.
Unit     : party. A single clip bounds both changes together; or give one bound to each of "update" and "v".
Source   : Yang, Bao, Yuan, Tran and Zomaya, IEEE TPDS 33 (2022), as in Sempere 2024, section 2.7. Differs: parties may take
           different numbers of steps, and a cohort may be a sample. With gamma = 0 it is FedAvg.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid

from .descent import Solver, descend
from .models import Model, Weights
from .results import declares
from .robust.named import RuleSetting
from .settings import Settings, Weighting
from .training import Training
from .weighting import weighed


@displayed
@dataclass(frozen=True)
class NagState:
    """A model after a round, the mean velocity v of shape (d,) in the units of the weights, and what the rule keeps."""

    round: int
    weights: Weights
    velocity: np.ndarray
    rule_state: Weights = field(default_factory=dict)


@local(stackable=True)
def accelerated_sgd(
    server: Mapping[str, np.ndarray],
    party: Party,
    rng: Any,
    *,
    model: Model,
    solver: Solver,
    weighting: Weighting,
    largest_weight: float | None,
) -> Mapping[str, np.ndarray]:
    """Train from the broadcast weights and velocity; return the changes of both."""
    w, v, rate = server["w"], server["v"], np.float32(solver.learning_rate)
    found = descend(w, party, rng, model=model, solver=solver, velocity=-v / rate)
    return weighed(party, weighting, largest_weight, update=found.change, v=-rate * found.velocity - v)


@program("Nesterov momentum at the parties, averaged like the weights (Yang et al. 2022).", **declares(rounds=2))
def fednag(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    rule: RuleSetting = "mean",
    expect: float | None = None,
    start: NagState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[NagState]:
    """FedNAG (Yang et al. 2022).

    Parameters
    ----------
    rule, expect, **settings
        As `hedgerow.learn.fedavg`; a rule takes the changes of weights and velocity as one row. `momentum` is gamma, and the
        local solver is nesterov.

    Releases
    --------
    The total changes of weights and velocity, of shape (d,) each, and the total weight (except "expected"), once per round.
    """
    if settings.get("solver", "nesterov") not in ("sgd", "nesterov"):  # sgd is what a study fills in
        raise SettingsInvalid(f"solver is {settings['solver']!r}.", remedy="FedNAG is defined for nesterov; leave solver out.")
    training = Training.of(federation, module, rounds, settings, rule=rule, expect=expect)
    training = replace(training, solver=replace(training.solver, rule="nesterov"))
    model, w, kept = training.model, training.begin(start), training.kept(start)
    v = np.zeros_like(w) if start is None else start.velocity
    for t in training.left(start):
        found, kept = training.combined(accelerated_sgd, t, {"w": w, "v": v}, kept)
        w, v = w + found["update"], v + found["v"]
        yield NagState(t + 1, model.named(w), v, kept)
