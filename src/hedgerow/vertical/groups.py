"""Means by group and tables of counts, of columns that lie apart.

    means        count_l, sum_l  <- onehot(group)' (1, x)         one cross product
    contingency  count_lm        <- onehot(rows)' onehot(columns)

A group is a column of one party, which counts its levels at home, before anything is sent: levels of fewer than `least` people
are made zeros there, and so is the next smallest level where those that are left out are fewer than `least` together, since a
total over everybody less the levels told would be theirs. Of a table only its margins are known at home. Its cells are counts,
and are opened to the hub; cells of fewer than `least` people are not told on, nor others of their row or column that would tell
them.

Releases : counts and sums of the levels that are told; of a table all cells of levels that are told, to the hub.
Unit     : record. Through noise nothing is left out, since what is left out would depend on single people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.crypto.cross.bits import ColumnReach
from hedgerow.display import displayed
from hedgerow.errors import DisclosureExceeded
from hedgerow.stats.columns import COUNTED, NUMERIC, chosen, levels_of
from hedgerow.stats.counts import Independence, independence
from hedgerow.stats.factors import Number, Term

from .channel import is_noisy, least_of
from .cross import Factors
from .design import HeldColumns
from .given import gives
from .terms import CONSTANT, OwnTerm, Terms, admit_column, block_of, joint_schema, own_units, refuse_few_of, refuse_shared

if TYPE_CHECKING:
    import pandas

    from hedgerow.data import Column

    from .aligned import Aligned


# ---- at the parties -------------------------------------------------------------------------------------------------
@gives("indicators of levels")
@local
def level_rows(broadcast: Any, party: Party, rng: Any, *, at: str, column: str, size: int, least: int = 0) -> Array:
    """Indicators of a column's levels at its party, shape (n, size); zeros of levels that are not told, none elsewhere."""
    if party.id != at:
        return np.zeros((len(party.w), 0))
    return indicators(party, column, size, least)


@gives("values")
@local
def value_rows(broadcast: Any, party: Party, rng: Any, *, terms: Terms, size: int, least: int = 0) -> Array:
    """Columns of all parties side by side, each at its owner and zeros elsewhere, shape (n, size)."""
    rows, start = np.zeros((len(party.w), size)), 0
    for name, own in terms:
        width = sum(len(one.names) for one in own)
        if name == party.id:
            rows[:, start : start + width] = found = block_of(party, own)
            if least > 0:
                refuse_few_of(found, least)
        start += width
    return rows


def indicators(party: Party, column: str, size: int, least: int) -> Array:
    """Indicators of levels (n, size), those of few people zeros."""
    codes = np.asarray(party[column]).astype(np.intp)
    told = ~hidden_levels(np.bincount(codes, minlength=size), least)
    found: Array = (codes[:, None] == np.arange(size)) * told.astype(float)
    return found


def hidden_levels(counts: Array, least: int) -> Array:
    """Which levels are not told: those of few people, and of the others the smallest until no few people are left over.

    Parameters
    ----------
    counts : array of shape (levels,)
        Of one partition of all people.
    least : int

    Returns
    -------
    array of bool, shape (levels,)
    """
    hidden = (counts > 0) & (counts < least)
    while 0 < counts[hidden].sum() < least:
        rest = np.where(hidden | (counts == 0), np.iinfo(np.int64).max, counts)
        smallest = int(np.argmin(rest))
        if hidden[smallest] or counts[smallest] == 0:
            break
        hidden[smallest] = True
    return hidden


# ---- the programs ---------------------------------------------------------------------------------------------------
def means(aligned: Aligned, columns: str | Sequence[str], by: str, *, least: int | None = None) -> pandas.DataFrame:
    """Means of columns in each group of a column that may lie elsewhere; all from one cross product.

    Parameters
    ----------
    aligned : Aligned
    columns : str or sequence of str
        Numbers, of any parties, with declared ranges.
    by : str
        A category or binary column of any party.
    least : int, optional
        Groups of fewer people are not told; at least the alignment's own number.

    Returns
    -------
    pandas.DataFrame
        One row for each level of `by`, with `count` and the mean of every column; NaN of a group that is not told, and of one
        that is empty, which look alike; NaN of the mean of a binary column that counts few people of a group, and of groups
        beside it, without which the column's total would tell of those few.

    Releases
    --------
    Counts and sums of the groups that are told.

    Raises
    ------
    MissingColumn (HR-403), ColumnsDiffer (HR-407), SchemaInvalid (HR-409), UnboundedSum (HR-210)
        Before any party is asked.
    DisclosureExceeded (HR-216)
        No group is told.
    """
    import pandas

    names = [columns] if isinstance(columns, str) else list(columns)
    schema, owners, shared = joint_schema(aligned.schemas)
    refuse_shared([*names, by], shared)
    read = chosen(schema, names, NUMERIC)
    (group,) = chosen(schema, [by], COUNTED)
    for column in (*read, group):
        admit_column(column)
    fewest = least_of(aligned, least)
    held = HeldColumns.of(aligned.names, [(owners[by], CONSTANT), *((owners[c.name], _own(c, schema)) for c in read)])
    levels = levels_of(group)
    left = partial(level_rows, at=owners[by], column=by, size=len(levels), least=fewest)
    right = partial(value_rows, terms=held.terms, size=held.size, least=fewest)
    reach: Any = Factors(_of_levels(aligned.names, owners[by], len(levels)), held.rows)
    sums = np.asarray(aligned.cross(left, right=right, bound=reach))[:, held.place]
    counts = sums[:, 0] if is_noisy(aligned) else np.rint(sums[:, 0])
    if not (counts > 0).any():
        raise _nothing(by, fewest)
    told = np.where(counts > 0, counts, np.nan)
    with np.errstate(invalid="ignore"):
        found = held.centre[1:] + held.scale[1:] * sums[:, 1:] / told[:, None]
    for i, column in enumerate(read):
        if column.kind == "binary" and fewest:  # its sums are counts too: cells of the group by the column
            cells = np.rint(np.nan_to_num(np.column_stack([found[:, i] * told, (1 - found[:, i]) * told])))
            found[hidden_shares(cells, aligned.n, fewest), i] = np.nan
    return pandas.DataFrame(
        np.column_stack([told, found]), index=pandas.Index(levels, name=by), columns=["count", *(c.name for c in read)]
    )


def hidden_shares(cells: Array, n: float, least: int) -> Array:
    """Of which groups the mean of a binary column is not told.

    Those with few ones or few zeros, and the next smallest until those that are left out have no few together, since a total of
    the column less the groups told would be theirs. Groups that a party did not tell at home may hold few of either.

    Parameters
    ----------
    cells : array of shape (groups, 2)
        Ones and zeros of each group; both zero of groups that are not told.
    n : float
        All people.
    least : int

    Returns
    -------
    array of bool, shape (groups,)
    """
    hidden: Array = ((cells > 0) & (cells < least)).any(1)
    others = cells.sum() < n
    for j in (0, 1) * len(cells):
        together, rest = cells[hidden, j].sum(), ~hidden & (cells[:, j] > 0)
        if together < least and (together > 0 or others) and rest.any():
            hidden[np.argmin(np.where(rest, cells[:, j], np.inf))] = True
    return hidden


@displayed
@dataclass(frozen=True, eq=False)
class CrossTable:
    """A table of counts of two columns that lie apart.

    Attributes
    ----------
    counts : pandas.DataFrame
        NaN of cells that are not told.
    test : Independence or None
        Pearson's test of independence, where every cell is told and counts are exact.
    withheld : int
        Cells that are not told.
    """

    counts: pandas.DataFrame
    test: Independence | None
    withheld: int

    def to_frame(self) -> pandas.DataFrame:
        """The counts."""
        return self.counts

    def __str__(self) -> str:
        lines = [self.counts.to_string(na_rep="-", float_format=lambda value: f"{value:g}")]
        if self.withheld:
            lines.append(
                f"{self.withheld} cells are not told, and no test: they are about too few people, or a total of their row, of "
                "their column or of everybody less the others would be"
            )
        if self.test is not None:
            lines.append(f"chi-square {self.test.statistic:.6g}, df {self.test.df}, p {self.test.p_value:.3g}")
        return "\n".join(lines)


def contingency(aligned: Aligned, rows: str, columns: str, *, least: int | None = None) -> CrossTable:
    """Counts of pairs of levels of two columns, with Pearson's test of independence.

    Parameters
    ----------
    aligned : Aligned
    rows, columns : str
        Categories or binary columns of any parties.
    least : int, optional
        Cells of fewer people are not told; at least the alignment's own number.

    Returns
    -------
    CrossTable

    Releases
    --------
    All cells of levels that are told at home, to the hub; the table leaves out those of few people.

    Raises
    ------
    As `means`.
    """
    import pandas

    schema, owners, shared = joint_schema(aligned.schemas)
    refuse_shared([rows, columns], shared)
    first, second = chosen(schema, [rows, columns], COUNTED)
    for column in (first, second):
        admit_column(column)
    fewest = least_of(aligned, least)
    sizes = len(levels_of(first)), len(levels_of(second))
    left = partial(level_rows, at=owners[rows], column=rows, size=sizes[0], least=fewest)
    right = partial(level_rows, at=owners[columns], column=columns, size=sizes[1], least=fewest)
    first_reach, second_reach = (
        _of_levels(aligned.names, owners[one], k) for one, k in zip((rows, columns), sizes, strict=True)
    )
    reach: Any = Factors(first_reach, second_reach)
    found = np.asarray(aligned.cross(left, right=right, bound=reach))
    noisy = is_noisy(aligned)
    counts = found if noisy else np.rint(found)
    hidden = hidden_cells(counts, aligned.n, fewest)
    if not noisy and counts.sum() < aligned.n:  # levels were left out at home, and look like those of nobody
        hidden |= ~counts.any(1, keepdims=True) | ~counts.any(0, keepdims=True)
    if not noisy and (hidden | (counts == 0)).all():
        raise _nothing(f"{rows} by {columns}", fewest)
    test = None if noisy or hidden.any() else independence(counts)
    shown = np.where(hidden, np.nan, counts)
    table = pandas.DataFrame(
        shown, index=pandas.Index(levels_of(first), name=rows), columns=pandas.Index(levels_of(second), name=columns)
    )
    return CrossTable(table, test, int(hidden.sum()))


def hidden_cells(counts: Array, n: float, least: int) -> Array:
    """Which cells of a table (r, c) are not told: few people, or few in the rest of their row or column or of everybody.

    The rest counts those that are not in the table, of levels that a party did not tell. A row or column has at least two cells
    that are not told, or none: its total, which `means` tells, less the cells that are told would be the one.
    """
    few = (counts > 0) & (counts < least)
    if least <= 0:
        return few
    rest = n - counts
    hidden = few | ((rest > 0) & (rest < least) & (counts > 0))
    more = True
    while more:
        more = False
        for lines, marked in ((counts, hidden), (counts.T, hidden.T)):
            for line, mark in zip(lines, marked, strict=True):  # views: marks are set in `hidden`
                together = line[mark].sum()
                if together and not mark.all() and (together < least or mark.sum() < 2):  # zeros last
                    price = np.where(line > 0, line, 2 * n + 2) + (n + 1) * ~marked.any(
                        0
                    )  # lines across that have some come first
                    mark[np.argmin(np.where(mark, np.inf, price))] = more = True
        for i, j in () if more else np.argwhere(few):
            if (could := _would_hide(hidden, i, j)).any():
                hidden[
                    np.unravel_index(np.argmin(np.where(could, np.where(counts > 0, counts, n + 1), np.inf)), counts.shape)
                ] = True
                more = True
    return hidden


def _would_hide(hidden: Array, i: int, j: int) -> Array:
    """Cells of which one more keeps totals of rows and columns from telling cell (i, j); none where they do not tell it.

    They tell it where no way leads from its row to its column through other hidden cells, along rows and columns.
    """
    others = hidden.copy()
    others[i, j] = False
    rows = np.arange(len(hidden)) == i
    while True:
        columns = others[rows].any(0)
        reached = rows | others[:, columns].any(1)
        if (reached == rows).all():
            break
        rows = reached
    found: Array = ~others & (rows[:, None] != columns) if not columns[j] else np.zeros_like(hidden)
    found[i, j] = False
    return found


def _of_levels(names: Sequence[str], party: str, size: int) -> dict[str, ColumnReach]:
    """Reaches of indicators at one party; others have no columns."""
    return {name: ColumnReach((1.0,) * size if name == party else ()) for name in names}


def _own(column: Column, schema: Any) -> OwnTerm:
    return own_units(Term((Number(column.name),)), schema)


def _nothing(what: str, least: int) -> DisclosureExceeded:
    return DisclosureExceeded(
        f"no group of {what} has {least} people and leaves as many.",
        remedy="Join levels, or align parties that have more people in common.",
        asked=True,
    )
