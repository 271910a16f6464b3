"""Trials: gradient queries repeated over epsilons, shares of records and horizons, for studies of what noise costs.

    for every noise, epsilon, share and horizon:
        for k = 1 .. horizon:
            theta of all repeats   -> owners                                    broadcast
            their gradients        <- each with noise of its own                local, sum
            step, projection, average, for each repeat                          server

Three kinds of noise, at the same epsilon over the same horizon and for the same neighbours:

    laplace    the thesis: Laplace noise at each owner, epsilons added up; l1-lengths; pure epsilon
    gaussian   Gaussian noise at each owner, composed exactly; l2-lengths; epsilon at a delta
    server     the same added once, by the server: the owners must trust it with their sums

Repeats are independent trainings on the same records, and the ledger is charged for all of them: each answer of an owner
counts so many times, and R gradients of one sum are root R times as long as one.

Releases : sums of gradients of all repeats; for each combination once for each k.
State    : none at the parties.
Unit     : record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.question import local, travels
from hedgerow.data import complete_cases, load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid, UnlawfulChannel
from hedgerow.privacy import Gaussian

from . import results
from .answers import Answers, Neighbours, multiplier
from .grid import NoiseName, Trial, looks_of, trials_of
from .inputs import BUCKET, Inputs, X, Y, inputs
from .keys import INPUTS, loss_of_keys, spec_of_keys
from .lengths import answers_for, bound_of
from .losses import QueryLoss
from .program import held
from .steps import Rule, Steps


@displayed
@dataclass(frozen=True)
class TrialState:
    """Trials, one after the other.

    Attributes
    ----------
    round : int
        Trials that have ended.
    average : array of shape (trials, repeats, d)
        Their results; zeros until then.
    path : array of shape (looks, trials, repeats, d)
        Results so far after the questions of `looks_of`; NaN where a trial has ended before.
    """

    round: int
    average: Array
    path: Array


@travels
def partial_gradient(broadcast: Array, party: Any, rng: Any, *, loss: QueryLoss, box: float, share: float) -> Array:
    """Sum of the gradients of a share of a party's records, by their buckets: shape (..., d) for theta of that shape."""
    kept = party[BUCKET] < share
    return loss.gradient_sums(held(broadcast, box), party[X][kept], party[Y][kept], party.w[kept])


@local(private="plan")
def private_gradients(
    broadcast: Array, party: Any, rng: Any, *, loss: QueryLoss, box: float, share: float, plan: Answers
) -> Array:
    """The same with the owner's own noise on the gradient of each repeat."""
    return plan.noisy(party.id, partial_gradient(broadcast, party, rng, loss=loss, box=box, share=share), rng.entropy)


@program(
    "Gradient queries many times over, to see what noise costs: slopes by epsilon, records and horizon (Wu 2019).",
    keys=INPUTS,
    bind={"loss": loss_of_keys, "spec": spec_of_keys},
    outcome=results.trials,
    with_records=True,
    case=lambda: Case(
        load("hie").select(["mdvis", "lncoins", "idp", "physlm", "disea"]).take(range(200)),
        {"repeats": 3, "horizons": [3], "epsilons": [1.0], "ridge": 1.0, "n_records": 200, "step": 0.5},
    ),
)
def query_trials(
    federation: Federation,
    *,
    loss: QueryLoss,
    spec: Inputs,
    n_records: int,
    epsilons: list[float],
    shares: list[float] = [1.0],  # noqa: B006
    horizons: list[int] = [100],  # noqa: B006
    noises: list[NoiseName] = ["laplace", "gaussian", "server"],  # noqa: B006
    repeats: int = 50,
    delta: float = 1e-6,
    rule: Rule = "algorithm-2",
    step: float = 1.0,
    box: float = 1.0,
    convexity: float = 0.0,
    neighbours: Neighbours = "replace-one",
    start: TrialState | None = None,
) -> Iterator[TrialState]:
    """Repeat gradient queries over a grid of settings.

    Parameters
    ----------
    n_records : int
        Records of all parties, a constant in public.
    epsilons : list of float
        What one training may spend over its horizon, each in turn.
    shares : list of float
        Trainings on so many of each party's records, by their buckets (`hedgerow.learn.queries.inputs`).
    horizons : list of int
        Questions of a training, each in turn.
    noises : list of {"laplace", "gaussian", "server"}
        The thesis's noise; Gaussian noise at the owners; Gaussian noise added once by the server.
    repeats : int
        Trainings of each combination; the ledger charges all of them.
    delta : float
        For Gaussian noise.
    rule : {"algorithm-2", "algorithm-1", "strongly-convex"}
        Steps and average (`hedgerow.learn.queries.Steps`).
    step : float
        The first step: about one over the largest curvature.
    box : float
        Largest absolute value of a coefficient.
    convexity : float
        Least curvature, for the rule `strongly-convex`.
    neighbours : {"replace-one", "add-remove"}
        For whom epsilon holds.

    Yields
    ------
    TrialState

    Raises
    ------
    UnlawfulChannel (HR-211)
        The federation has noise already: trials bring their own.
    SettingsInvalid (HR-511), BudgetInvalid (HR-214)
        A setting, an epsilon or a delta is out of its range.
    """
    if federation.protection.noisy:
        raise UnlawfulChannel(
            f"trials bring noise of their own, and the channel would add {federation.protection.mechanism}.",
            remedy="Leave [protection] mechanism out.",
        )
    if repeats < 1 or n_records < 1 or min(horizons, default=0) < 1:
        raise SettingsInvalid(f"{repeats=}, {n_records=}, {horizons=}.", remedy="Each is a whole number of at least 1.")
    steps, trials, looks = Steps(rule, step, box, convexity), trials_of(noises, epsilons, shares, horizons), looks_of(horizons)
    known = complete_cases(federation, [*spec.features, spec.target], count=False)
    shape, prepared = (repeats, spec.size), known.prepare(inputs, spec=spec)
    questions = [_question(prepared, trial, loss, spec, box, repeats, delta, neighbours) for trial in trials]
    empty = np.full((len(looks), len(trials), *shape), np.nan)
    state = start or TrialState(0, np.zeros((len(trials), *shape)), empty)
    for i, trial in [*enumerate(trials)][state.round :]:
        theta, average, path, results = np.zeros(shape), np.zeros(shape), state.path.copy(), state.average.copy()
        for k in range(1, trial.horizon + 1):
            gradient = questions[i](theta) / (n_records * trial.share) + loss.ridge * theta
            moved = steps.move(theta, gradient, k, trial.horizon)
            theta, average = moved, steps.average(average, theta, moved, k, trial.horizon)
            if k in looks:
                path[looks.index(k), i] = average
        results[i] = average
        state = TrialState(i + 1, results, path)
        yield state


def _question(
    federation: Federation,
    trial: Trial,
    loss: QueryLoss,
    spec: Inputs,
    box: float,
    repeats: int,
    delta: float,
    neighbours: Neighbours,
) -> Callable[[Array], Array]:
    """What asks for the noisy gradients of all repeats of a trial."""
    if trial.noise == "server":
        z = multiplier("gaussian", trial.epsilon, trial.horizon, neighbours, delta)
        asked = federation.protect(mechanism=Gaussian(z / math.sqrt(repeats)))
        question = partial(partial_gradient, loss=loss, box=box, share=trial.share)
        return partial(asked.sum, question, bound=bound_of(asked, loss, spec, box, repeats))
    each = dict.fromkeys(federation.names, trial.epsilon)
    plan = answers_for(
        federation.schema,
        each,
        trial.horizon,
        loss,
        spec,
        box,
        law=trial.noise,
        neighbours=neighbours,
        delta=delta if trial.noise == "gaussian" else 0.0,
        repeats=repeats,
    )
    plan.fit(spec.size)
    return partial(federation.sum, partial(private_gradients, loss=loss, box=box, share=trial.share, plan=plan))
