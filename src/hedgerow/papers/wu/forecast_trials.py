"""Forecast and achieved: gradient queries many times over, each combination forecast before its first question.

    pilot        <- second moments by one noisy sum at a small epsilon            private, charged in the same ledger
                    or the server's records, which belong to no owner             public
    forecasts    <- `hedgerow.market.forecast` of every combination: mean, and the interval of one run
    trials       <- `hedgerow.learn.queries.query_trials`, then fitness, known to a simulation alone

Forecasts are of the fitness on the records that are asked, so that nothing is due to their number. A hinge with a small
ridge, or a logistic loss, has no private pilot (`second_moments`): then the server's records are needed, without which trials
are run and nothing is forecast.

Releases : as `pilot_moments` and `query_trials`.
Unit     : record.
Source   : Wu 2019, Figures 3.1 to 3.4 and 3.7 to 3.9. Differs: the thesis fits lines to what was achieved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, Key, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Parties
from hedgerow.data import Table, load
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.queries import (
    Inputs,
    QueryLoss,
    Steps,
    Trial,
    TrialState,
    answers_for,
    length_of,
    looks_of,
    query_trials,
    trials_of,
)
from hedgerow.learn.queries.answers import Neighbours, multiplier
from hedgerow.learn.queries.grid import NoiseName
from hedgerow.learn.queries.keys import INPUTS, loss_of_keys, spec_of_keys
from hedgerow.learn.queries.steps import Rule
from hedgerow.market import Forecast, PilotEstimate, PilotState, estimate_of, forecast, pilot_moments
from hedgerow.market.forecasts.second_moments import parts_of

if TYPE_CHECKING:
    from hedgerow.report import Outcome


@dataclass(frozen=True)
class ForecastTrialState:
    """Forecasts, and trials one after the other.

    Attributes
    ----------
    round : int
        The pilot, then trials that have ended.
    known : tuple of str
        Names of the estimates that forecasts stand on.
    forecasts : array of shape (estimates, trials, 6)
        Relative fitness: expected, ends of the interval of a run, of zeros, without noise; share of coordinates that the box
        stops.
    average : array of shape (trials, repeats, d)
        Results; zeros until then.
    path : array of shape (looks, trials, repeats, d)
        Results so far, as `TrialState` has them.
    """

    round: int
    known: tuple[str, ...]
    forecasts: Array
    average: Array
    path: Array


def outcome(
    federation: Federation, settings: Mapping[str, Any], state: ForecastTrialState, records: Parties | None = None
) -> Outcome:
    """Forecast beside what was achieved."""
    from .forecast_pages import outcome

    return outcome(federation, settings, state, records)


def estimates_of(
    test: Table | None, pilot: PilotState | None, loss: QueryLoss, spec: Inputs, n_records: int, box: float
) -> dict[str, PilotEstimate]:
    """What is known before the first question, by its name."""
    found = {}
    if pilot is not None:
        found["private moments"] = estimate_of(pilot, loss, spec, n_records, box)
    if test is not None:
        found["public records"] = PilotEstimate.of_table(loss, spec, test, box, "public records")
    return found


def forecast_of(
    estimate: PilotEstimate, trial: Trial, federation: Federation, loss: QueryLoss, spec: Inputs, steps: Steps, **given: Any
) -> Forecast:
    """The forecast of one combination: of the fitness on the share of records that it asks."""
    names, n = federation.names, given["n_records"] * trial.share
    delta, neighbours = given["delta"], given["neighbours"]
    records = [n / len(names)] * len(names)
    noise: Any
    if trial.noise == "server":
        z = multiplier("gaussian", trial.epsilon, trial.horizon, neighbours, delta)
        noise = (z * length_of(loss, spec, steps.box, 2)) ** 2
    else:
        each = dict.fromkeys(names, trial.epsilon)
        more: Any = {"law": trial.noise, "neighbours": neighbours, "delta": delta if trial.noise == "gaussian" else 0.0}
        noise = answers_for(federation.schema, each, trial.horizon, loss, spec, steps.box, **more)
    return forecast(estimate, steps, trial.horizon, noise, records, sample=False)


@program(
    "Gradient queries many times over, beside what was forecast before the first question (Wu 2019, 3.3).",
    keys=INPUTS | {"called": Key(str, "", "the data set, in titles")},
    bind={"loss": loss_of_keys, "spec": spec_of_keys},
    fixed={"test": None},
    with_test=True,
    outcome=outcome,
    with_records=True,
    case=lambda: Case(
        load("hie").select(["mdvis", "lncoins", "idp", "physlm", "disea"]).take(range(200)),
        {
            "repeats": 3,
            "horizons": [3],
            "epsilons": [1.0],
            "ridge": 1.0,
            "n_records": 200,
            "step": 0.5,
            "pilot_epsilon": 5.0,
        },
    ),
)
def forecast_trials(
    federation: Federation,
    *,
    loss: QueryLoss,
    spec: Inputs,
    n_records: int,
    epsilons: list[float],
    shares: list[float] = [1.0],  # noqa: B006
    horizons: list[int] = [100],  # noqa: B006
    noises: list[NoiseName] = ["laplace", "gaussian", "server"],  # noqa: B006
    repeats: int = 100,
    delta: float = 1e-6,
    rule: Rule = "algorithm-2",
    step: float = 1.0,
    box: float = 1.0,
    convexity: float = 0.0,
    neighbours: Neighbours = "replace-one",
    pilot_epsilon: float | None = 0.1,
    test: Table | None = None,
    start: ForecastTrialState | None = None,
) -> Iterator[ForecastTrialState]:
    """Forecast every combination, then repeat it.

    Parameters
    ----------
    n_records : int
        Records of all parties, a constant in public.
    epsilons : list of float
        What one training may spend over its horizon, each in turn.
    shares : list of float
        Trainings on so many of each party's records, by their buckets.
    horizons : list of int
        Questions of a training, each in turn.
    noises : list of {"laplace", "gaussian", "server"}
        As of `query_trials`.
    repeats : int
        Trainings of each combination; the ledger charges all of them.
    delta : float
        For Gaussian noise, that of the pilot included.
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
    pilot_epsilon : float, optional
        Of the one question about second moments; without it none is asked.

    Yields
    ------
    ForecastTrialState
        Once after the pilot, then after each combination.

    Raises
    ------
    BudgetInvalid (HR-214), UnlawfulChannel (HR-211)
        As `pilot_moments` and `query_trials`.
    """
    steps, trials = Steps(rule, step, box, convexity), trials_of(noises, epsilons, shares, horizons)
    if start is None:
        pilot = None
        if pilot_epsilon is not None and _told_by_moments(loss, spec):
            (pilot,) = pilot_moments(federation, loss=loss, spec=spec, epsilon=pilot_epsilon, delta=delta)
        known = estimates_of(test, pilot, loss, spec, n_records, box)
        given = {"n_records": n_records, "delta": delta, "neighbours": neighbours}
        told = [[forecast_of(one, trial, federation, loss, spec, steps, **given) for trial in trials] for one in known.values()]
        rows = [[(f.relative_fitness, f.low, f.high, f.ceiling, f.bias / f.least, f.stopped) for f in row] for row in told]
        kept = np.reshape(rows, (len(known), len(trials), 6))
        average = np.zeros((len(trials), repeats, spec.size))
        start = ForecastTrialState(1, tuple(known), kept, average, np.full((len(looks_of(horizons)), *average.shape), np.nan))
        yield start
    for state in query_trials(
        federation,
        loss=loss,
        spec=spec,
        n_records=n_records,
        epsilons=epsilons,
        shares=shares,
        horizons=horizons,
        noises=noises,
        repeats=repeats,
        delta=delta,
        rule=rule,
        step=step,
        box=box,
        convexity=convexity,
        neighbours=neighbours,
        start=TrialState(start.round - 1, start.average, start.path),
    ):
        yield ForecastTrialState(1 + state.round, start.known, start.forecasts, state.average, state.path)


def _told_by_moments(loss: QueryLoss, spec: Inputs) -> bool:
    try:
        parts_of(loss, spec)
    except SettingsInvalid:
        return False
    return True
