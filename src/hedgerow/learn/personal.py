"""Personal models: Ditto and fine-tuning. `evaluate_personal` says how well they do.

    Ditto, for each round:
        w          -> cohort S                                                     broadcast
        w_k        <- local SGD on F_k from w                                        local
        v_k        <- s steps of  v_k - eta (grad F_k(v_k) + lambda (v_k - w))       party state
        w          <- w + sum_k n_k (w_k - w) / sum_k n_k                            sum, server

    fine-tuning:  FedAvg, and in the last round every party  v_k <- local SGD on F_k from w,  which it keeps

Releases : as FedAvg; of v_k nothing leaves. The last round of fine-tuning releases nothing.
State    : v_k at each party, of shape (d,); in Ditto initially the first w that it is sent.
Unit     : party.
Source   : Li, Hu, Beirami and Smith, ICML 2021, Algorithm 1. Differs: w_k is found by FedAvg's local solver, and parties may
           count by records. With lambda = 0 the v_k are those of parties that train alone. Fine-tuning: Wang et al., Federated
           evaluation of on-device personalization, 2019.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import numpy as np
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.query import local, travels

from .descent import NOTHING, Correction, Solver, descend
from .fedavg import ModelState, average
from .local import local_sgd
from .models import Model
from .results import declares
from .settings import Settings, Weighting
from .training import Training, above, at_least, mean_of
from .weighting import weighed


@travels
def own_copy(w: np.ndarray, party: Party) -> dict[str, np.ndarray]:
    """A party that keeps no model yet begins with the broadcast one."""
    return {"v": np.array(w, np.float32)}


@local(stackable=True)
def two_models(
    w: np.ndarray,
    party: Party,
    rng: Any,
    *,
    model: Model,
    solver: Solver,
    weighting: Weighting,
    largest_weight: float | None,
    personal: Solver,
    pull: float,
) -> Mapping[str, np.ndarray]:
    """Train the broadcast model and return its change; train the party's own, pulled towards the broadcast, and keep it."""
    streams = (
        [rng[i] for i in range(len(rng))] if party.w.ndim == 2 else rng
    )  # the second training goes on where the first ended
    change = descend(w, party, streams, model=model, solver=solver).change
    v, terms = party.state["v"], Correction(pull, towards=w)
    party.state["v"] = v + descend(v, party, streams, model=model, solver=personal, correction=terms).change
    return weighed(party, weighting, largest_weight, update=change)


@travels
def train_own(w: np.ndarray, party: Party, rng: Any, *, model: Model, solver: Solver, afresh: bool = False) -> None:
    """Train the party's own model, or `afresh` the broadcast one, on its records alone, and keep it."""
    v = np.asarray(w, np.float32) if afresh else party.state["v"]
    party.state["v"] = v + descend(v, party, rng, model=model, solver=solver, correction=NOTHING).change


@program(
    "FedAvg, and a personal model at each party, pulled towards the global one (Li et al. 2021).",
    **declares(personal=True, rounds=2),
)
def ditto(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    pull: float = 0.1,
    personal_epochs: int | None = None,
    personal_steps: int | None = None,
    personal_rate: float | None = None,
    start: ModelState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[ModelState]:
    """Ditto (Li et al. 2021, Algorithm 1); `evaluate_personal` says how well the parties' own models do.

    Parameters
    ----------
    pull : float
        Lambda, the pull of a personal model towards the global one, in the units of the loss over squared weights; 0 leaves it
        to train alone.
    personal_epochs : int, optional
        Passes of the personal model in a round; as many as `epochs` by default.
    personal_steps : int, optional
        Steps of the personal model in a round, instead of passes.
    personal_rate : float, optional
        Learning rate of the personal model in the first round; `learning_rate` by default.

    **settings
        Shared, as `hedgerow.learn.fedavg`; so is what the global model yields and releases.
    """
    at_least(0.0, pull=pull)
    training = Training.of(federation, module, rounds, settings)
    alone = replace(training, solver=personal_solver(training.solver, personal_epochs, personal_steps, personal_rate))
    model, w = training.model, training.begin(start)
    for t in training.left(start):
        cohort, terms = training.cohort(), {"personal": alone.solver_in(t), "pull": pull}
        w = w + mean_of(cohort.sum(training.ask(two_models, t, **terms), w, init=own_copy), cohort)
        yield ModelState(t + 1, model.named(w))


def personal_solver(solver: Solver, epochs: int | None, steps: int | None, rate: float | None) -> Solver:
    """The solver of the personal models: that of the global one, with what was given in its place."""
    given = {"personal_epochs": epochs, "personal_steps": steps, "personal_rate": rate}
    above(0.0, **{name: value for name, value in given.items() if value is not None})
    if epochs is not None or steps is not None:
        solver = replace(solver, epochs=epochs or solver.epochs, steps=steps)
    return solver if rate is None else replace(solver, learning_rate=rate)


@program("FedAvg, and a last round in which each party trains the model for itself.", **declares(personal=True, rounds=2))
def fine_tune(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    tuning_epochs: int = 1,
    start: ModelState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[ModelState]:
    """FedAvg, and a last round in which every party trains the model further for itself.

    Parameters
    ----------
    rounds : int
        Rounds in all, the last one and those before `start` included. After any algorithm's `state`, give `start=state` and
        `rounds=state.round + 1`, and only the last round is left.
    tuning_epochs : int
        Passes in the last round, which everybody takes part in.

    **settings
        Shared, as `hedgerow.learn.fedavg`; the last round releases nothing, and its state has the weights that everybody tuned.
    """
    above(0.0, tuning_epochs=tuning_epochs)
    training = Training.of(federation, module, rounds, settings)
    state = start
    for state in average(replace(training, rounds=rounds - 1), start, local_sgd):
        yield state
    if rounds - 1 in training.left(start):
        w = training.begin(state)
        solver = replace(training.solver_in(rounds - 1), epochs=tuning_epochs, steps=None)
        training.federation.each(partial(train_own, model=training.model, solver=solver, afresh=True), w)
        yield ModelState(rounds, training.model.named(w))
