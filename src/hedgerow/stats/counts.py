"""Counts: of levels, of pairs of levels, of bins.

Releases : one count for each level, cell or bin; once.
Unit     : record. A record adds its weight to one count of each table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, l1
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.query import local
from hedgerow.data import Schema
from hedgerow.errors import SettingsInvalid

from .columns import COUNTED, NUMERIC, chosen, heaviest, levels_of, names_of, schema_of

if TYPE_CHECKING:
    import pandas


@local(additive=True, stackable=True)
def level_counts(broadcast: None, party: Party, rng: Any, *, sizes: tuple[tuple[str, int], ...]) -> dict[str, Array]:
    """Count the levels of each column; `sizes` pairs columns with their numbers of levels."""
    return {name: tally(party[name].astype(np.intp), party.w, size) for name, size in sizes}


@local(additive=True, stackable=True)
def pair_counts(broadcast: None, party: Party, rng: Any, *, pair: tuple[str, str], shape: tuple[int, int]) -> Array:
    """Count the pairs of levels of two columns, row by row, shape (rows * columns,)."""
    first, second = (party[name].astype(np.intp) for name in pair)
    return tally(first * shape[1] + second, party.w, shape[0] * shape[1])


@local(additive=True, stackable=True)
def bin_counts(edges: Array, party: Party, rng: Any, *, column: str) -> Array:
    """Count records between `edges` (k + 1,); every bin holds its lower edge and the last one both. Shape (k,)."""
    x, n_bins = party[column], len(edges) - 1
    inside = (x >= edges[0]) & (x <= edges[-1])
    bins = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, n_bins - 1)
    return tally(bins, party.w * inside, n_bins)


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
        yield CountState(1, federation.sum(partial(level_counts, sizes=sizes), bound=bounds))


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


def contingency(federation: Federation, rows: str, columns: str) -> pandas.DataFrame:
    """How often each pair of levels of two columns occurs, as a data frame of rows by columns."""
    import pandas

    schema = schema_of(federation)
    first, second = chosen(schema, [rows, columns], COUNTED)
    shape = len(levels_of(first)), len(levels_of(second))
    ask = partial(pair_counts, pair=(rows, columns), shape=shape)
    found = federation.sum(ask, bound=count_bound(heaviest(schema)))
    return pandas.DataFrame(
        found.reshape(shape),
        index=pandas.Index(levels_of(first), name=rows),
        columns=pandas.Index(levels_of(second), name=columns),
    )


def histogram(federation: Federation, column: str, edges: Sequence[float]) -> pandas.DataFrame:
    """How many records lie between edges.

    Parameters
    ----------
    edges : sequence of float
        Rising; every bin holds its lower edge, the last one both. What lies outside is not counted.

    Returns
    -------
    pandas.DataFrame
        `low`, `high` and `count` of each bin.
    """
    import pandas

    schema = schema_of(federation)
    chosen(schema, [column], NUMERIC)
    points = np.asarray(edges, dtype=float)
    if points.ndim != 1 or len(points) < 2 or not (np.diff(points) > 0).all():
        raise SettingsInvalid(f"edges {list(edges)[:6]} do not enclose bins.", remedy="Give two or more edges in rising order.")
    found = federation.sum(partial(bin_counts, column=column), points, bound=count_bound(heaviest(schema)))
    return pandas.DataFrame({"low": points[:-1], "high": points[1:], "count": found})
