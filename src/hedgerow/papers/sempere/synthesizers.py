"""Section 4.2 of Sempere's thesis: made-up records by several synthesizers, measured as he does, and by what he leaves out.

    for each way:
        made   <- a synthesizer of the way's program                                              its own questions, once
        drawn  <- `draws` tables of `rows` records from it                                        free
    measured by the simulator, which holds the real records, means over draws:
        KS complement of numbers, TV complement of categories                                     as he does
        correlation of the first two numbers
        closest record: share of drawn records nearer to a real record than to a held-out one     0.5 where nothing is copied
        train on made-up, test on real                                                            on the held-out records

His measures reward copies: the records themselves have 1 in every column. So two rows stand beside the ways: the records
themselves, and the held-out records, which are another draw of the same law, as if both were made up.

Releases : what each way's program releases.
Unit     : record.
Source   : J. Sempere, Privacy preserving machine learning, 2024, section 4.2. Differs: his TV complement lacks its half in the
           text; numbers of the library that he used have it.
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
from hedgerow.data import Schema, Table, complete_cases, load
from hedgerow.errors import SettingsInvalid
from hedgerow.stats.columns import schema_of

from .ways import made_by, ways_named

if TYPE_CHECKING:
    from hedgerow.report import Outcome


@dataclass(frozen=True)
class MadeBesideState:
    """Tables of made-up records so far.

    Attributes
    ----------
    round : int
        Ways that have ended.
    drawn : array of shape (ways, draws, rows, columns)
        Made-up records in the order of the schema, categories as places of their levels; zeros until then.
    held_out : array of shape (records, columns)
        The server's records.
    """

    round: int
    drawn: Array
    held_out: Array


def outcome(federation: Federation, settings: Mapping[str, Any], state: MadeBesideState, records: Parties | None) -> Outcome:
    """A table of measures, his numbers first, and histograms."""
    from .synthesizer_pages import outcome

    return outcome(schema_of(federation), settings, state, records)


@program(
    "Made-up records of several synthesizers beside published ones: alike by column, copied or not, and of use or not.",
    name="synthesizers_beside",
    keys={
        "called": Key(str, "", "the data set, in the titles of tables"),
        "printed": Key(dict[str, float], {}, "published KS and TV complements, by column"),
        "printed_by": Key(str, "CTGAN, as printed", "what they are of"),
        "predict": Key(str, "", "what models predict from the other columns; the schema's target by default"),
    },
    fixed={"test": None},
    with_test=True,
    with_records=True,
    outcome=outcome,
    case=lambda: Case(
        load("iris").select(["petal_length", "petal_width", "species"]),
        {"ways": ["tree inside each class"], "rows": 60, "draws": 2},
    ),
)
def synthesizers_beside(
    federation: Federation,
    *,
    ways: list[str] | None = None,
    rows: int = 1000,
    draws: int = 20,
    bins: int = 16,
    fine_bins: int = 64,
    epsilon: float | None = None,
    delta: float | None = None,
    effort: float = 1.0,
    test: Table | None = None,
    start: MadeBesideState | None = None,
) -> Iterator[MadeBesideState]:
    """Make records up by every way, and draw tables of them.

    Parameters
    ----------
    ways : list of str, optional
        Names of those that are tried (`hedgerow.papers.sempere.ways`); all by default.
    rows : int
        Records of a table.
    draws : int
        Tables of each way, over which measures are averaged.
    bins : int
        Bins of a number, of ways that have tables of several columns.
    fine_bins : int
        Bins of a number, of ways that have histograms of single columns alone.
    epsilon, delta : float, optional
        A budget for each way that can divide one; without it sums are exact.
    effort : float
        Share of the epochs of ways that train, for short runs.

    Yields
    ------
    MadeBesideState
        After each way.

    Raises
    ------
    SettingsInvalid (HR-511)
        A number is below one, or a name is none of the ways.
    """
    todo = ways_named(ways)
    if min(rows, draws) < 1 or effort <= 0:
        raise SettingsInvalid(f"{rows=}, {draws=}, {effort=}.", remedy="Give one or more, and an effort above zero.")
    schema = federation.schema
    federation = complete_cases(federation, schema.names)
    shared = {"bins": bins, "fine_bins": fine_bins, "target": schema.target} | (
        {} if epsilon is None else {"epsilon": epsilon, "delta": delta}
    )
    held_out = np.zeros((0, len(schema.names))) if test is None else flat(test.columns, schema)
    state = start or MadeBesideState(0, np.zeros((len(todo), draws, rows, len(schema.names))), held_out)
    for number, way in [*enumerate(todo)][state.round :]:
        made = made_by(way.at(effort), federation, shared)
        drawn = state.drawn.copy()
        for draw in range(draws):
            drawn[number, draw] = flat(made.sample(rows, seed=draw).columns, schema)
        state = MadeBesideState(number + 1, drawn, state.held_out)
        yield state


def flat(columns: Mapping[str, Any], schema: Schema) -> Array:
    """Columns side by side: shape (n, columns)."""
    return np.stack([np.asarray(columns[name], float) for name in schema.names], axis=1)
