"""What a budget buys in made-up records: synthesizers at several epsilons, each trial with a budget of its own.

    real     <- exact counts of all pairs of columns, for the comparison alone                     sum, once
    for each way, epsilon and repeat:
        made     <- a synthesizer of the way's program, which plans its own noise for that epsilon
        drawn    <- `rows` records from it
        trained  <- logistic regression and boosting on them, scored on the server's table
        alike    <- TV complements of columns, and of pairs of columns, of drawn and real records' codes
        spent    <- epsilon of this trial alone, by the ledger

Without noise an epsilon is infinite. Every trial is charged, and the counts are exact, so that a run has no finite epsilon:
it is a simulation that shows what one table of made-up records is worth.

Releases : exact counts of all pairs of columns, and what each program releases, `repeats` times at each epsilon.
Unit     : record.
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
from hedgerow.core.party import Party
from hedgerow.data import Schema, Table, complete_cases, load
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.costs import epsilon_since
from hedgerow.stats.columns import schema_of
from hedgerow.synth import Codes
from hedgerow.synth.codes import coded
from hedgerow.synth.metrics import tv_of_counts
from hedgerow.synth.tables import Tables, pairs, table_counts
from hedgerow.synth.tstr import MADE, tstr

from .ways import SynthesizerWay, made_by, ways_named

if TYPE_CHECKING:
    from hedgerow.report import Outcome

LINEAR, BOOSTED, COLUMNS, PAIRS, SPENT = range(5)
"""What is known of a trial."""


COMPARED = 16
"""Bins of a number where columns and pairs are compared, and in what models learn from."""


@dataclass(frozen=True)
class RecordTrial:
    """One table of made-up records: a way at an epsilon, for the so-manieth time; without noise epsilon is infinite."""

    way: SynthesizerWay
    epsilon: float
    repeat: int


@dataclass(frozen=True)
class RecordTrialState:
    """Trials so far.

    Attributes
    ----------
    round : int
        Trials that have ended.
    results : array of shape (trials, 5)
        Scores on the server's table of a linear model and of boosting, NaN where there is none; TV complements, means over
        columns and over pairs; and epsilon by the ledger.
    real : array of shape (cells,)
        Counts of all pairs of columns, one table after the other.
    """

    round: int
    results: Array
    real: Array


def alike(real: Array, made: Array, tables: Tables) -> tuple[float, float]:
    """TV complements of two flat arrays of tables of pairs: means over columns, and over pairs of columns."""
    two = tables.split(real), tables.split(made)
    of_pairs = [tv_of_counts(two[0][pair], two[1][pair]) for pair in tables.cliques]
    of_columns = []
    for j in range(len(tables.sizes)):
        pair = next(pair for pair in tables.cliques if j in pair)
        axes = (0, 2 - pair.index(j))  # classes, and the other column
        of_columns.append(tv_of_counts(*(part[pair].sum(axis=axes) for part in two)))
    return float(np.mean(of_columns)), float(np.mean(of_pairs))


def trials_of(settings: Mapping[str, Any]) -> list[RecordTrial]:
    """Every trial of a run, in order; without noise a way is tried once, and so is one that takes no epsilon."""
    found = []
    for way in ways_named(settings["ways"]):
        if way.private:
            found += [RecordTrial(way, epsilon, i) for epsilon in settings["epsilons"] for i in range(settings["repeats"])]
        found += [RecordTrial(way, math.inf, 0)] * bool(settings["exact"] or not way.private)
    return found


def outcome(federation: Federation, settings: Mapping[str, Any], state: RecordTrialState) -> Outcome:
    """Tables and figures over epsilon."""
    from .budget_pages import outcome

    return outcome(schema_of(federation), settings, state)


@program(
    "Made-up records by several synthesizers at several epsilons: what models learn from them, and how alike they are.",
    name="synthesizer_trials",
    keys={"called": Key(str, "", "the data set, in the titles of tables")},
    fixed={"test": None},
    with_test=True,
    outcome=outcome,
    case=lambda: Case(
        load("breast_cancer").select(["malignant", "mean_radius", "mean_texture"]).take(range(120)),
        {"epsilons": [1.0], "repeats": 1, "bins": 4, "ways": ["tree inside each class"], "rows": 100},
    ),
)
def synthesizer_trials(
    federation: Federation,
    *,
    epsilons: list[float],
    repeats: int = 2,
    ways: list[str] | None = None,
    rows: int = 1000,
    target: str | None = None,
    bins: int | None = None,
    fine_bins: int = 64,
    log: list[str] | None = None,
    points: dict[str, list[float]] | None = None,
    delta: float = 1e-5,
    exact: bool = False,
    test: Table | None = None,
    start: RecordTrialState | None = None,
) -> Iterator[RecordTrialState]:
    """Make records up by every way at every epsilon.

    Parameters
    ----------
    epsilons : list of float
        Of each trial, in turn.
    repeats : int
        Trials of each way at each epsilon, whose mean is shown.
    ways : list of str, optional
        Names of those that are tried (`hedgerow.papers.sempere.ways`); all by default.
    rows : int
        Records drawn in each trial: a number in public.
    target : str, optional
        What models predict; the schema's target by default.
    bins : int, optional
        Bins of a number, of ways that have tables of several columns, and of the comparison; by default each way's own, and 16
        in the comparison.
    fine_bins : int
        Bins of a number, of ways that have histograms of single columns alone.
    log : list of str, optional
        Columns whose bins have equal widths on a logarithmic scale.
    points : dict of lists, optional
        Values of a number that many records have exactly, known beforehand: each has a code of its own.
    delta : float
        Of every budget.
    exact : bool
        Whether each way is tried once without noise, too.

    Yields
    ------
    RecordTrialState
        After each trial.

    Raises
    ------
    SettingsInvalid (HR-511)
        An epsilon is not above zero, a number is below one, a name is none of the ways, or there is one column only.
    """
    settings: dict[str, Any] = {"epsilons": epsilons, "repeats": repeats, "ways": ways, "exact": exact}
    if min(repeats, rows) < 1 or not epsilons or min(epsilons) <= 0:
        raise SettingsInvalid(f"{epsilons=}, {repeats=}, {rows=}.", remedy="Epsilons are above zero, and numbers one or more.")
    todo = trials_of(settings)
    codes = Codes.of(federation.schema, target=target, bins=bins or COMPARED, log=log or (), points=points)
    shared = {"target": codes.target, "bins": bins, "fine_bins": fine_bins, "log": log or [], "points": points}
    if len(codes.names) < 2:
        raise SettingsInvalid("one column has no pairs.", remedy="Give a table of two columns or more.")
    federation = complete_cases(federation, [column.name for column in codes.columns if not column.optional])
    tables = pairs(codes)
    state = start or RecordTrialState(0, np.full((len(todo), 5), np.nan), np.zeros(0))
    if state.round == 0:
        state = RecordTrialState(0, state.results, tables.ask(federation.prepare(coded, codes=codes), codes.heaviest))
    for number, trial in [*enumerate(todo)][state.round :]:
        before, results = len(federation.ledger), state.results.copy()
        budget = {"epsilon": trial.epsilon, "delta": delta} if math.isfinite(trial.epsilon) else {}
        drawn = made_by(trial.way, federation, shared | budget).sample(rows, seed=trial.repeat)
        results[number, [COLUMNS, PAIRS]] = alike(state.real, counted(drawn, codes, tables), tables)
        if test is not None:
            results[number, [LINEAR, BOOSTED]] = scores(drawn, test, codes)
        results[number, SPENT] = epsilon_since(federation, before, delta)
        state = RecordTrialState(number + 1, results, state.real)
        yield state


def counted(drawn: Table, codes: Codes, tables: Tables) -> Array:
    """Tables of made-up records, one after the other: shape (cells,)."""
    party = Party("made up", {"codes": codes.number(drawn.columns)}, np.ones(len(drawn)))
    found: Array = table_counts(None, party, None, sizes=tables.sizes, cliques=tables.cliques)
    return found


def scores(drawn: Table, test: Table, codes: Codes) -> tuple[float, float]:
    """Scores on a table of a linear model and of boosting, trained on made-up records."""
    found = tstr(drawn, test, codes=codes).scores
    linear = next(name for name, _ in found if name != "boosting")
    return found[linear, MADE], found["boosting", MADE]


def measure_of(schema: Schema, target: str | None) -> str:
    """How models are scored."""
    name = target or schema.target
    return "accuracy" if name and schema[name].kind in ("binary", "category") else "R2"
