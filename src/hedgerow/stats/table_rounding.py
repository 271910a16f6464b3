"""By which multiple the counts of a table are rounded, so that small ones do not follow from sums and their parts.

    shown          0            0
    below b        1 to b - 1
    v              v - b/2 to below v + b/2, and b at least

    each sum lies between the sums of its parts' ends, and each part between the sum's ends less those of the others;
    then each small count between the ends of a linear program of all sums together

Parts of 1, 1 and 5 with a sum of 7 are shown as below 5, below 5, 5 and 5, and only 1, 1 and 5 fit. So the multiple is doubled
until whoever knows the rule finds as many counts for a small cell as it would have by itself. This is about one table: a second
one of other columns, or with none of them small, gives further sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import lil_array

from hedgerow.core.arrays import Array

MOST_CHECKED = 40
"""Small counts, those with the fewest choices, that are looked at by all sums together."""


class ShownCounts(NamedTuple):
    """Counts (m,), which of them are shown, and places of a sum and of its parts."""

    counts: Array
    shown: Array
    parts: Sequence[tuple[int, Array]]


def multiple_for(table: ShownCounts, least: int) -> int:
    """The smallest `least`, doubled as often as is needed, of which no small count follows."""
    small = (table.counts > 0.5) & (table.counts < least - 0.5)
    base = least
    while base <= 4 * table.counts.max(initial=0.0):
        low, high = narrowed(table, *ends_of(table, base))
        places = np.flatnonzero(small)[np.argsort((high - low)[small], kind="stable")]
        wide = ((high - low)[small] >= least - 2).all()
        if wide and all(width(table, low, high, int(place)) > least - 2.5 for place in places[:MOST_CHECKED]):
            break
        base *= 2
    return base


def ends_of(table: ShownCounts, base: int) -> tuple[Array, Array]:
    """Between which counts each lies, from how it is shown by itself."""
    value = np.floor(table.counts / base + 0.5) * base
    low, high = np.maximum(np.ceil(value - base / 2), base), np.ceil(value + base / 2) - 1
    few, none = table.counts < base - 0.5, table.counts < 0.5
    low, high = np.where(few, 1.0, low), np.where(few, base - 1.0, high)
    low, high = np.where(none, 0.0, low), np.where(none, 0.0, high)
    return np.where(table.shown, low, 0.0), np.where(table.shown, high, np.inf)


def narrowed(table: ShownCounts, low: Array, high: Array) -> tuple[Array, Array]:
    """The ends that sums and parts leave, each by itself, until nothing moves."""
    low, high = low.copy(), high.copy()
    for _ in range(50):
        before = (high - low).copy()
        for whole, parts in table.parts:
            open_, ends = np.isinf(high[parts]), np.where(np.isinf(high[parts]), 0.0, high[parts])
            least, most = low[parts].sum(), high[parts].sum()
            low[whole], high[whole] = max(low[whole], least), min(high[whole], most)
            others = np.where(open_.sum() > open_, np.inf, ends.sum() - ends)  # the most that the other parts are
            low[parts], high[parts] = (
                np.maximum(low[parts], low[whole] - others),
                np.minimum(high[parts], high[whole] - (least - low[parts])),
            )
        if np.array_equal(high - low, before):
            break
    return low, high


def width(table: ShownCounts, low: Array, high: Array, place: int) -> float:
    """Between how many counts one lies by all sums together, a linear program each way."""
    sums = lil_array((len(table.parts), len(table.counts)))
    for row, (whole, parts) in enumerate(table.parts):
        sums[row, parts], sums[row, whole] = 1.0, -1.0
    aim = np.zeros(len(table.counts))
    aim[place] = 1.0
    ends = [
        linprog(sign * aim, A_eq=sums.tocsr(), b_eq=np.zeros(len(table.parts)), bounds=np.column_stack([low, high])).x
        for sign in (1, -1)
    ]
    return float(ends[1][place] - ends[0][place]) if all(one is not None for one in ends) else np.inf
