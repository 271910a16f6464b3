"""Accuracy against epsilon: the ways of one of the survey's families, fitted again and again at each epsilon.

    for each way, epsilon and repeat:
        model    <- the way's program on the federation, which plans its own noise for that epsilon
        value    <- accuracy, or mean squared error, of the model on the server's table
        spent    <- epsilon of this fit alone, by the ledger

Every fit is charged, so that a whole run has no finite epsilon: it is a simulation that shows what one fit is worth.

Releases : what each program releases, `repeats` times at each epsilon.
Unit     : record.
Source   : T. Haug, A survey of federated learning and differential privacy, 2022, section 6.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, Key, program
from hedgerow.core.federation import Federation
from hedgerow.data import Schema, Table, complete_cases, load
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.costs import epsilon_since
from hedgerow.privacy.shares import BudgetShares, Share
from hedgerow.stats.columns import schema_of
from hedgerow.stats.private import UnitRows
from hedgerow.stats.private.rows import unit_rows
from hedgerow.stats.scores import accuracy, reading, score
from hedgerow.study import PROGRAMS
from hedgerow.study.keys import keys_of, settings_of

from .dual_svm import dual_variables, gathered, with_noise
from .families import CELLS, DUALS, GRID, WAYS, FamilyOfModels, ModelWay

if TYPE_CHECKING:
    from hedgerow.report import Outcome

VALUE, SPENT = 0, 1
"""What is known of a fit."""


@dataclass(frozen=True)
class ModelTrial:
    """One fit: a way at an epsilon, for the so-manieth time; without noise epsilon is infinite."""

    way: ModelWay
    epsilon: float
    repeat: int


@dataclass(frozen=True)
class ModelTrialState:
    """Fits so far.

    Attributes
    ----------
    round : int
        Fits that have ended.
    results : array of shape (fits, 2)
        What each fit reached on the server's table, NaN where there is none; and its epsilon by the ledger.
    """

    round: int
    results: Array


def outcome(federation: Federation, settings: Mapping[str, Any], state: ModelTrialState) -> Outcome:
    """A table and a figure of the family."""
    from .pages import outcome

    return outcome(settings, state)


def trials_of(settings: Mapping[str, Any]) -> list[ModelTrial]:
    """Every fit of a run, in order."""
    ways = [way for way in WAYS[settings["family"]] if not settings["ways"] or way.name in settings["ways"]]
    found = []
    for way in ways:
        exact = way.form == "without noise"
        for epsilon in [math.inf] if exact else settings["epsilons"]:
            found += [ModelTrial(way, epsilon, repeat) for repeat in range(1 if exact else settings["repeats"])]
    return found


@program(
    "The survey's families of private models: as printed, corrected and ours, at several epsilons (Haug 2022, section 6.2).",
    name="haug_models",
    keys={
        "called": Key(str, "", "the data set, in the title of its table"),
        "reasons": Key(bool, True, "whether a table says what is to be known of each way"),
    },
    fixed={"test": None},
    with_test=True,
    outcome=outcome,
    case=lambda: Case(
        load("breast_cancer").select(["malignant", "mean_radius", "mean_texture"]).take(range(120)),
        {"family": "forests", "epsilons": [1.0], "repeats": 1},
    ),
)
def model_trials(
    federation: Federation,
    *,
    family: FamilyOfModels,
    epsilons: list[float],
    repeats: int = 3,
    formula: str = "",
    log: list[str] | None = None,
    delta: float = 1e-5,
    ways: list[str] | None = None,
    test: Table | None = None,
    start: ModelTrialState | None = None,
) -> Iterator[ModelTrialState]:
    """Fit every way of a family at every epsilon.

    Parameters
    ----------
    family : {"linear", "error", "machines", "forests", "networks", "adult"}
        As in `hedgerow.papers.haug.families`.
    epsilons : list of float
        Of each fit, in turn.
    repeats : int
        Fits of each way at each epsilon, whose mean is shown.
    formula : str
        Of the models that have one.
    log : list of str, optional
        Columns whose public bins have equal widths on a logarithmic scale.
    delta : float
        Of the ways with Gaussian noise.
    ways : list of str, optional
        Names of those that are fitted; all by default.

    Yields
    ------
    ModelTrialState
        After each fit.

    Raises
    ------
    SettingsInvalid (HR-511)
        An epsilon is not above zero, or a name is none of the family's ways.
    """
    settings: dict[str, Any] = {"family": family, "epsilons": epsilons, "repeats": repeats, "ways": ways}
    known = [way.name for way in WAYS[family]]
    strangers = [name for name in ways or () if name not in known]
    if repeats < 1 or not epsilons or min(epsilons) <= 0 or strangers:
        raise SettingsInvalid(
            f"{epsilons=}, {repeats=}, {ways=}.", remedy=f"Epsilons are above zero, and ways are {', '.join(known)}."
        )
    given = {"formula": formula, "log": log or [], "delta": delta}
    todo = trials_of(settings)
    state = start or ModelTrialState(0, np.full((len(todo), 2), np.nan))
    duals: dict[str, Any] = {}
    for number, trial in [*enumerate(todo)][state.round :]:
        before, results = len(federation.ledger), state.results.copy()
        fit = _duals if trial.way.program == DUALS else _fitted
        results[number, VALUE] = fit(federation, trial, given, number, test, duals)
        results[number, SPENT] = epsilon_since(federation, before, delta)
        state = ModelTrialState(number + 1, results)
        yield state


def _fitted(
    federation: Federation, trial: ModelTrial, given: Mapping[str, Any], number: int, test: Table | None, kept: dict[str, Any]
) -> float:
    """Fit by a program of the catalogue, and measure."""
    way, one = trial.way, PROGRAMS[trial.way.program]
    settings = program_settings(trial, given | {"seed": number, "structure": trial.repeat})
    asked = federation
    if way.by_channel and math.isfinite(trial.epsilon):
        budget = BudgetShares(trial.epsilon, given["delta"])
        asked = federation.protect(mechanism=budget.noise(Share(1.0, way.by_channel)))
    *_, state = one.program(settings)(asked)
    return math.nan if test is None else measured(one, settings, state, schema_of(federation), test)


def program_settings(trial: ModelTrial, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a trial's program: those of `given` that it takes, and the way's own.

    Raises
    ------
    StudyInvalid (HR-101)
        The way has a setting that the program does not take.
    """
    way, one = trial.way, PROGRAMS[trial.way.program]
    own = dict(given)
    if way.form == "without noise" or way.by_channel:
        del own["delta"]
    else:
        own |= {"epsilon": trial.epsilon} | ({"delta": 0.0} if way.pure else {})
    taken = set(keys_of(one).model_fields)
    if "bins" in taken and "bins" not in way.settings:
        taken -= {"log"}  # which is of bins
    settings = {key: value for key, value in own.items() if key in taken} | way.settings
    if settings.get("bins") == GRID:
        columns = 2 + str(given["formula"]).count("+")  # the target is one
        settings["bins"] = max(2, int(CELLS ** (1 / columns)))
    return settings_of(one, settings)


def _duals(
    federation: Federation, trial: ModelTrial, given: Mapping[str, Any], number: int, test: Table | None, kept: dict[str, Any]
) -> float:
    """Noise on the dual variables of all records, which are gathered for every fit and fitted once."""
    rows = UnitRows.of(given["formula"], schema_of(federation))
    known = complete_cases(federation, rows.spec.schema.names)
    X, y = gathered(known.prepare(unit_rows, spec=rows))
    signs = np.where(y > 0.5, 1.0, -1.0)
    if "duals" not in kept:
        kept["duals"] = dual_variables(X, signs, 1.0)
    noisy = kept["duals"]
    if math.isfinite(trial.epsilon):
        noisy = with_noise(noisy, X, C=1.0, epsilon=trial.epsilon, rng=np.random.default_rng(number))
    return math.nan if test is None else right(rows, (noisy * signs) @ X, test)


def right(rows: UnitRows, coef: Array, table: Table) -> float:
    """Share of records on the right side of zero."""
    return float(np.mean((rows.predictor(coef, table) > 0) == (rows.targets(table.columns) > 0.5)))


def measured(one: Any, settings: Mapping[str, Any], state: Any, schema: Schema, test: Table) -> float:
    """Accuracy on a table; of a number the mean squared error, its declared range scaled to [-1, 1]."""
    metric = one.metric(schema)[0]
    if one.score is None:  # coefficients of unit rows
        keys = ("bins", "log", "weights")
        rows = UnitRows.of(settings["formula"], schema, **{key: settings[key] for key in keys if settings.get(key)})
        return right(rows, np.asarray(state.coef), test)
    if metric == "log-loss":
        return float(score(reading("binomial"), accuracy)(settings, state, schema, test))
    found = one.score(settings, state, schema, test)
    if metric == "accuracy":
        return float(found)
    target = schema[str(settings["formula"]).partition("~")[0].strip()]
    low, high = (0.0 if target.low is None else float(target.low)), (1.0 if target.high is None else float(target.high))
    half = (high - low) / 2
    return float((1 - found) * np.var(np.asarray(test[target.name], np.float64) / half))
