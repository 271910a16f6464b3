"""Columns that single out few people: totals of products with them would tell of each.

    a column of n people      other than zero for one to `least` - 1 of them, or
                              the same for all but one to `least` - 1, or
                              an affine function of another column for all but as many (`alike`)

The second is the complement of a group. Whoever holds columns looks at them before anything of them is masked.
"""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import TooFewRecords

from .alike import first_nearly_alike


def first_of_few(rows: Array, least: int, *, pairs: bool = True) -> tuple[int, int] | None:
    """Return the first column that singles out few people, alone or with one before it, and how many; None where there is none.

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
    found = first_nearly_alike(rows, least) if pairs else None
    return found and found[1:]


def refuse_few(rows: Array, least: int, what: str, *, asked: bool = True, pairs: bool = True) -> None:
    """Refuse columns (n,) or (n, d) that single out fewer than `least` people, alone or, of `pairs`, one beside another.

    Raises
    ------
    TooFewRecords (HR-604)
        A party tells it by its code alone.
    """
    columns = rows.reshape(len(rows), -1)
    if (found := first_of_few(columns, least, pairs=pairs)) is not None:
        raise TooFewRecords(
            f"column {found[0]} of {what} singles out {found[1]} of {len(columns)} people, and {least} are the fewest.",
            remedy="Join levels, or leave the column out.",
            asked=asked,
        )


def refuse_weights_of_few(rows: Array, least: int, *, weights: bool) -> None:
    """Refuse the hub's rows (n, c) in which few people count for nearly all: (sum of |w|)^2 / sum of w^2 of them are too few.

    Weights are taken as they are; other columns less their middle value, which is that of most people where these are alike.
    Half the people are then enough, since numbers about a middle never count alike.

    Raises
    ------
    TooFewRecords (HR-604)
    """
    half = (len(rows) - 1) // 2
    size = np.abs(rows if weights else rows - np.partition(rows, half, axis=0)[half])
    size = size / np.maximum(size.max(0), np.finfo(float).tiny)
    square = (size**2).sum(0)
    count = np.divide(size.sum(0) ** 2, square, out=np.full(len(square), np.inf), where=square > 0)
    due = least if weights else min(least, len(rows) / 2)
    if (few := np.flatnonzero(count < due * (1 - 1e-9))).size:
        raise TooFewRecords(
            f"column {few[0]} of the hub's {'weights' if weights else 'rows'} counts {count[few[0]]:.3g} of {len(rows)} people "
            f"for nearly all, and {least} are the fewest.",
            remedy="Weigh people more alike.",
        )
