"""Columns that single out few people: totals of products with them would tell of each.

    a column of n people      other than zero for one to `least` - 1 of them, or
                              the same for all but one to `least` - 1

The second is the complement of a group. Whoever holds columns looks at them before anything of them is masked.
"""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import TooFewRecords


def first_of_few(rows: Array, least: int) -> tuple[int, int] | None:
    """Return the first column that singles out few people, and how many; None where there is none.

    Parameters
    ----------
    rows : array of shape (n, d)
    least : int
    """
    if not rows.size:
        return None
    half = (len(rows) - 1) // 2
    middle = np.partition(rows, half, axis=0)[half]  # the value of most rows, where these are alike
    for n in (np.count_nonzero(rows, axis=0), np.count_nonzero(rows != middle, axis=0)):
        if few := np.flatnonzero((n > 0) & (n < least)).tolist():
            return few[0], int(n[few[0]])
    return None


def refuse_few(rows: Array, least: int, what: str, *, asked: bool = True) -> None:
    """Refuse columns (n,) or (n, d) that single out fewer than `least` people.

    Raises
    ------
    TooFewRecords (HR-604)
        A party tells it by its code alone.
    """
    columns = rows.reshape(len(rows), -1)
    if (found := first_of_few(columns, least)) is not None:
        raise TooFewRecords(
            f"column {found[0]} of {what} singles out {found[1]} of {len(columns)} people, and {least} are the fewest.",
            remedy="Join levels, or leave the column out.",
            asked=asked,
        )
