"""Counts: of levels, of pairs of levels, of bins.

Releases : one count for each level, cell or bin; once.
Unit     : record. A record adds its weight to one count of each table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds, l1
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Parties, Party
from hedgerow.core.question import local, minds_missing
from hedgerow.core.whole import held
from hedgerow.data import Schema, complete_cases, load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.report import Outcome

from .columns import COUNTED, NUMERIC, chosen, heaviest, is_exact, levels_of, names_of, schema_of
from .sparse import LEAST, sparse

if TYPE_CHECKING:
    import pandas

LARGEST_ERROR = "largest error of a count"
"""A metric of simulations with noise."""


@minds_missing
@local(additive=True, stackable=True, holds=True)
def level_counts(
    broadcast: None, party: Party, rng: Any, *, sizes: tuple[tuple[str, int], ...], bounds: Bounds | None = None
) -> dict[str, Array]:
    """Count the levels of each column; `sizes` pairs columns with their numbers of levels. Of each, what is missing is not."""
    found = {}
    for name, size in sizes:
        there = party[name] >= 0  # neither NaN nor the code -1
        w = np.where(there, party.w, 0.0)
        found[name] = tally(np.where(there, party[name], 0).astype(np.intp), held(w, bounds, name), size)
    return found


@local(additive=True, stackable=True, holds=True)
def pair_counts(
    broadcast: None,
    party: Party,
    rng: Any,
    *,
    pair: tuple[str, str],
    shape: tuple[int, int],
    bounds: Bounds | None = None,
) -> Array:
    """Count the pairs of levels of two columns, row by row, shape (rows * columns,)."""
    first, second = (party[name].astype(np.intp) for name in pair)
    return tally(first * shape[1] + second, held(party.w, bounds), shape[0] * shape[1])


@local(additive=True, stackable=True, holds=True)
def bin_counts(edges: Array, party: Party, rng: Any, *, column: str, bounds: Bounds | None = None) -> Array:
    """Count records between `edges` (k + 1,); every bin holds its lower edge and the last one both. Shape (k,)."""
    x, n_bins = party[column], len(edges) - 1
    inside = (x >= edges[0]) & (x <= edges[-1])
    bins = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, n_bins - 1)
    return tally(bins, held(party.w, bounds) * inside, n_bins)


def tally(codes: Array, w: Array, n_codes: int) -> Array:
    """Add up weights by code: both of shape (..., n_records), to (..., n_codes)."""
    lead = codes.shape[:-1]
    n_rows = int(np.prod(lead, dtype=int))
    apart = codes + n_codes * np.arange(n_rows).reshape(*lead, 1)
    return np.bincount(apart.ravel(), weights=w.ravel(), minlength=n_rows * n_codes).reshape(*lead, n_codes)


def count_bound(weight: float | None) -> Bound | None:
    """Return by how much one record moves a table of counts."""
    return None if weight is None else l1(weight, "record")


def counts(federation: Federation, columns: Sequence[str] | None = None) -> pandas.DataFrame:
    """How often each level occurs.

    Parameters
    ----------
    columns : sequence of str, optional
        Categories or binary columns; every such feature and target by default.

    Returns
    -------
    pandas.DataFrame
        Indexed by column and level, with `count` (sum of weights) and `share` of that column's total. Every declared
        level has a row, whether it occurs or not.
    """
    *_, state = level_totals(federation, columns)
    return counts_of(schema_of(federation), columns, state)


@displayed
@dataclass(frozen=True)
class CountState:
    """Counts of the levels of each column, after the only round.

    Attributes
    ----------
    counts : dict of arrays
        By column, of shape (levels,).
    """

    round: int
    counts: dict[str, Array]


def show_counts(
    federation: Federation, settings: Mapping[str, Any], state: CountState, records: Parties | None = None
) -> Outcome:
    """Counts and shares of levels; of a simulation with noise, beside the true counts."""
    read = chosen(schema_of(federation), settings["columns"], COUNTED)
    table = counts_of(schema_of(federation), settings["columns"], state).reset_index()
    metrics: dict[str, float] = {}
    if records is not None and not is_exact(federation):
        sizes = tuple((column.name, len(levels_of(column))) for column in read)
        true = np.concatenate([_held(records, name, size) for name, size in sizes])
        metrics[LARGEST_ERROR] = float(np.abs(table["count"] - true).max())
        table["true count"] = true
    shown = sparse(table, settings["least"], ["count"], beside=[name for name in table if name in ("share", "true count")])
    found = Outcome.of_table("Counts", shown)
    return replace(found, metrics={**found.metrics, **metrics})


def _held(records: Parties, name: str, size: int) -> Array:
    """How often all parties together hold each level of a column."""
    codes = np.asarray(records.columns[name])
    there = codes >= 0
    return tally(np.where(there, codes, 0).astype(np.intp), np.where(there & np.isfinite(records.w), records.w, 0.0), size)


@program(
    "How often each level of a category occurs.",
    name="counts",
    keys={"least": LEAST},
    outcome=show_counts,
    with_records=True,
    case=lambda: Case(load("fair").take(range(200)), {}),
)
def level_totals(
    federation: Federation, columns: Sequence[str] | None = None, *, start: CountState | None = None
) -> Iterator[CountState]:
    """Ask once for the counts of all levels, as `hedgerow.stats.counts`."""
    if start is None:
        schema = schema_of(federation)
        read = chosen(schema, columns, COUNTED)
        sizes = tuple((column.name, len(levels_of(column))) for column in read)
        bound = count_bound(heaviest(schema))
        bounds = None if bound is None else dict.fromkeys(names_of(read), bound)
        weighed = complete_cases(federation, [], count=False)  # a record without a weight counts for nothing
        yield CountState(1, weighed.sum(partial(level_counts, sizes=sizes), bound=bounds))


def counts_of(schema: Schema, columns: Sequence[str] | None, state: CountState) -> pandas.DataFrame:
    """Turn the state of `level_totals` into a table of counts and shares."""
    import pandas

    read = chosen(schema, columns, COUNTED)
    found = [state.counts[column.name] for column in read]
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = [levels / levels.sum() for levels in found]
    index = pandas.MultiIndex.from_tuples(
        [(column.name, level) for column in read for level in levels_of(column)], names=["column", "level"]
    )
    return pandas.DataFrame({"count": np.concatenate(found), "share": np.concatenate(shares)}, index=index)


@displayed
@dataclass(frozen=True)
class CrossState:
    """Counts of the pairs of levels of two columns, after the only round.

    Attributes
    ----------
    counts : array of shape (levels of the rows, levels of the columns)
    """

    round: int
    counts: Array


def show_contingency(federation: Federation, settings: Mapping[str, Any], state: CrossState) -> Outcome:
    """A cross table; where counts are exact, Pearson's test of independence besides."""
    rows, columns = settings["rows"], settings["columns"]
    table = cross_of(schema_of(federation), rows, columns, state)
    shown = sparse(table, settings["least"], list(table.columns)).reset_index()
    found = independence(state.counts) if is_exact(federation) else None
    metrics: dict[str, float] = {}
    text: dict[str, str] = {}
    if found is not None:
        metrics = {"chi-square": found.statistic, "df": float(found.df), "p": found.p_value}
        if found.smallest_expected < 5:
            text["Note"] = f"The smallest expected count is {found.smallest_expected:.3g}, so the p-value is rough."
    return Outcome(metrics=metrics, tables={f"{rows} by {columns}": shown}, text=text, coefficients=shown)


@program(
    "How often each pair of levels of two columns occurs, with Pearson's test.",
    name="contingency",
    keys={"least": LEAST},
    outcome=show_contingency,
    case=lambda: Case(load("fair").take(range(200)), {"rows": "occupation", "columns": "occupation_husb"}),
)
def cross_totals(federation: Federation, rows: str, columns: str, *, start: CrossState | None = None) -> Iterator[CrossState]:
    """Ask once for the counts of all pairs of levels, as `hedgerow.stats.contingency`."""
    if start is None:
        schema = schema_of(federation)
        first, second = chosen(schema, [rows, columns], COUNTED)
        shape = len(levels_of(first)), len(levels_of(second))
        federation = complete_cases(federation, [rows, columns])
        ask = partial(pair_counts, pair=(rows, columns), shape=shape)
        found = federation.sum(ask, bound=count_bound(heaviest(schema)))
        yield CrossState(1, found.reshape(shape))


def contingency(federation: Federation, rows: str, columns: str) -> pandas.DataFrame:
    """How often each pair of levels of two columns occurs, as a data frame of rows by columns.

    Parameters
    ----------
    rows : str
        Category or binary column, whose levels are the rows of the table.
    columns : str
        Category or binary column, whose levels are its columns.
    """
    *_, state = cross_totals(federation, rows, columns)
    return cross_of(schema_of(federation), rows, columns, state)


def cross_of(schema: Schema, rows: str, columns: str, state: CrossState) -> pandas.DataFrame:
    """Turn the state of `cross_totals` into a table of rows by columns."""
    import pandas

    first, second = chosen(schema, [rows, columns], COUNTED)
    return pandas.DataFrame(
        state.counts,
        index=pandas.Index(levels_of(first), name=rows),
        columns=pandas.Index(levels_of(second), name=columns),
    )


@dataclass(frozen=True)
class Independence:
    """Pearson's test that two columns have nothing to do with each other.

    Attributes
    ----------
    statistic : float
        Chi-square, without correction for continuity.
    df : int
        Degrees of freedom; rows and columns without records are left out.
    p_value : float
    smallest_expected : float
        Smallest expected count; below 5 the p-value is rough.
    """

    statistic: float
    df: int
    p_value: float
    smallest_expected: float


def independence(counts: Array) -> Independence | None:
    """Test a table of counts without noise for independence; None where it has fewer than two rows or columns with records.

    Source: Pearson 1900; Agresti 2013, section 3.2.
    """
    found = np.asarray(counts, dtype=float)
    found = found[found.sum(1) > 0][:, found.sum(0) > 0]
    df = (found.shape[0] - 1) * (found.shape[1] - 1)
    if df < 1:
        return None
    expected = np.outer(found.sum(1), found.sum(0)) / found.sum()
    statistic = float(((found - expected) ** 2 / expected).sum())
    return Independence(statistic, df, float(chdtrc(df, statistic)), float(expected.min()))


@displayed
@dataclass(frozen=True)
class HistogramState:
    """Counts of bins, after the only round.

    Attributes
    ----------
    edges : array of shape (k + 1,)
    counts : array of shape (k,)
    """

    round: int
    edges: Array
    counts: Array


def show_histogram(federation: Federation, settings: Mapping[str, Any], state: HistogramState) -> Outcome:
    """Counts and shares of bins."""
    found = histogram_of(state)
    total = found["count"].sum()
    table = found.assign(share=found["count"] / total if total > 0 else np.nan)
    shown = sparse(table, settings["least"], ["count"], beside=["share"])
    return Outcome.of_table(f"Histogram of {settings['column']}", shown)


@program(
    "How many records lie between given edges.",
    name="histogram",
    keys={"least": LEAST},
    outcome=show_histogram,
    case=lambda: Case(load("diabetes").take(range(200)), {"column": "age", "edges": [18, 40, 60, 90]}),
)
def bin_totals(
    federation: Federation, column: str, edges: Sequence[float], *, start: HistogramState | None = None
) -> Iterator[HistogramState]:
    """Ask once for the counts of all bins, as `hedgerow.stats.histogram`."""
    if start is None:
        schema = schema_of(federation)
        chosen(schema, [column], NUMERIC)
        points = np.asarray(edges, dtype=float)
        if points.ndim != 1 or len(points) < 2 or not (np.diff(points) > 0).all():
            raise SettingsInvalid(
                f"edges {list(edges)[:6]} do not enclose bins.", remedy="Give two or more edges in rising order."
            )
        federation = complete_cases(federation, [column])
        found = federation.sum(partial(bin_counts, column=column), points, bound=count_bound(heaviest(schema)))
        yield HistogramState(1, points, found)


def histogram(federation: Federation, column: str, edges: Sequence[float]) -> pandas.DataFrame:
    """How many records lie between edges.

    Parameters
    ----------
    column : str
        Numbers, integers or a binary column.
    edges : sequence of float
        Rising; every bin holds its lower edge, the last one both. What lies outside is not counted.

    Returns
    -------
    pandas.DataFrame
        `low`, `high` and `count` of each bin.
    """
    *_, state = bin_totals(federation, column, edges)
    return histogram_of(state)


def histogram_of(state: HistogramState) -> pandas.DataFrame:
    """Turn the state of `bin_totals` into a table of bins."""
    import pandas

    return pandas.DataFrame({"low": state.edges[:-1], "high": state.edges[1:], "count": state.counts})
