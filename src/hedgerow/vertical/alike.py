"""Two columns that are affine functions of one another but for few people: their products would tell of those few.

    x = a + s y    for all people but one to `least` - 1

Products with x less s times those with y, less a times the sum, are sums over the others. A relation of three columns and more
is not looked for.
"""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Array

SAME = 1e-6
"""Values that differ by less, as a share of the column's spread, count as one; products hold some 20 bits of a column."""


def first_nearly_alike(columns: Array, least: int) -> tuple[int, int, int] | None:
    """Return the first two columns that are affine functions of one another but for few people, and how many those are.

    A column twice says that it is constant but for them; None says that there are none. The slope is the median of slopes
    between pairs of people, of whom fewer than `least` pairs hold one of the few; where so few pairs have different values that
    this is no majority, every slope is tried. Some pairs are enough to rule most columns out, so the work is of order n log n a
    column and about `least` a pair of columns.

    Parameters
    ----------
    columns : array of shape (n, d)
    least : int
    """
    x = np.asarray(columns, np.float64).T
    if not x.size or least < 2:
        return None
    spread = SAME * np.maximum(np.ptp(x, axis=1), np.finfo(float).tiny)
    for i, column in enumerate(x):
        if 0 < (n := _off(column, spread[i])) < least:
            return i, i, n
    varies = [i for i in range(len(x)) if _off(x[i], spread[i])]
    for j in varies:
        here, there = _pairs(x[j], spread[j], max(64, 4 * least))
        run = x[j, here] - x[j, there]
        some = np.concatenate([here, there])
        for i in varies:
            if i <= j:
                continue
            slopes = (x[i, here] - x[i, there]) / run
            tried = np.unique(slopes) if len(slopes) < 2 * least else [np.partition(slopes, len(slopes) // 2)[len(slopes) // 2]]
            for slope in tried:
                if len(some) > 4 * least and _off(x[i, some] - slope * x[j, some], spread[i]) >= least:
                    continue
                if 0 < (n := _off(x[i] - slope * x[j], spread[i])) < least:
                    return j, i, n
    return None


def _off(values: Array, within: float) -> int:
    """How many values are not the middle one, which is that of most where most are alike."""
    half = (len(values) - 1) // 2
    return int(np.count_nonzero(np.abs(values - np.partition(values, half)[half]) > within))


def _pairs(y: Array, within: float, most: int) -> tuple[Array, Array]:
    """People in pairs that differ in y, everybody in one pair at most: `most` of them, evenly along y."""
    half = len(y) // 2
    middle = np.partition(y, (len(y) - 1) // 2)[(len(y) - 1) // 2]
    away = np.abs(y - middle)
    sparse = np.count_nonzero(away > within) <= half
    order = np.argsort(-away if sparse else y, kind="stable")
    here, there = order[:half], order[half : 2 * half]
    apart = np.flatnonzero(np.abs(y[here] - y[there]) > within)
    chosen = apart[np.unique(np.linspace(0, len(apart) - 1, min(most, len(apart))).astype(np.intp))] if len(apart) else apart
    return here[chosen], there[chosen]
