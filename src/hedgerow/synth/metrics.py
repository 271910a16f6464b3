"""How alike two columns, or two pairs of columns, are: pure functions of values, codes and counts. One means alike.

    numbers      KS complement             1 - sup_x |F(x) - G(x)|, F(x) = share of values <= x
    categories   TV complement             1 - 1/2 sum_levels |p - q|
    two numbers  correlation similarity    1 - |r - s| / 2
    two columns  pair similarity           1 - 1/2 sum_cells |P - Q|

Nobody is asked anything here. What is computed of real records is a release wherever it is told to others: `quality` asks sums
and charges them. A value that is missing stands above all numbers, and is a level of its own.

Source : Kolmogorov 1933, Smirnov 1948; total variation with its half (Levin & Peres 2017, Proposition 4.2). The text of Sempere
         2024, 4.1.2, leaves the half out: of shares (1/2, 1/4, 1/4) and (1/4, 3/4, 0) his sentence gives 0, and this gives 1/2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid


def ks_complement(real: Any, made: Any) -> float:
    """One less the largest difference of two distribution functions.

    Parameters
    ----------
    real, made : array of shape (n,) and (m,)
        Numbers; NaN is above all others. Ties are counted at once: both functions are continuous from the right.

    Raises
    ------
    SettingsInvalid (HR-511)
        One of them is empty.
    """
    first, second = (np.sort(_some(values).astype(float)) for values in (real, made))
    points = np.unique(np.concatenate([first, second]))
    F, G = (np.searchsorted(values, points, side="right") / len(values) for values in (first, second))
    return float(1 - np.abs(F - G).max())


def tv_complement(real: Any, made: Any) -> float:
    """One less half of the summed differences of two columns' shares of levels.

    Parameters
    ----------
    real, made : array of shape (n,) and (m,)
        Levels: words or numbers.

    Raises
    ------
    SettingsInvalid (HR-511)
        One of them is empty.
    """
    first, second = _some(real), _some(made)
    levels, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    p, q = (np.bincount(part, minlength=len(levels)) for part in np.split(codes, [len(first)]))
    return tv_of_counts(p, q)


def tv_of_counts(real: Any, made: Any) -> float:
    """The TV complement of two tables of counts of equal shape: of levels, or of pairs of levels.

    Counts with noise may be negative; what would be below zero is zero. NaN where one of the tables holds nothing at all.
    """
    p, q = shares(real), shares(made)
    return float(max(0.0, 1 - np.abs(p - q).sum() / 2)) if p.any() and q.any() else math.nan


def ks_of_counts(real: Any, made: Any) -> float:
    """The KS complement of counts (k,) of ordered bins: at least that of the values, as nothing inside a bin is looked at.

    NaN where there are no counts on one side.
    """
    p, q = shares(real), shares(made)
    return float(max(0.0, 1 - np.abs(np.cumsum(p - q))[:-1].max(initial=0.0))) if p.any() and q.any() else math.nan


def correlation_similarity(real: Any, made: Any) -> Array:
    """One less half of the difference of correlations; NaN where one of them is not defined."""
    r, s = np.asarray(real, float), np.asarray(made, float)
    return np.asarray(1 - np.abs(r - s) / 2)


def correlation_of_counts(counts: Any, rows: Any, columns: Any) -> float:
    """Pearson's correlation of a table of counts (a, b), whose rows and columns stand for numbers (a,) and (b,).

    NaN where one of the two does not vary; within [-1, 1] whatever noise does.
    """
    P, x, y = shares(counts), np.asarray(rows, float), np.asarray(columns, float)
    p, q = P.sum(1), P.sum(0)
    x, y = x - p @ x, y - q @ y
    variances = float(p @ x**2), float(q @ y**2)
    if min(variances) <= 1e-12 * max(np.square(x).max(initial=0.0), np.square(y).max(initial=0.0), 1e-300):
        return math.nan
    return float(np.clip(x @ P @ y / math.sqrt(variances[0] * variances[1]), -1.0, 1.0))


def auc_of_counts(nearer: Any, farther: Any) -> float:
    """The chance that one of the first kind lies in a lower bin than one of the second, of counts (k,); ties count half.

    One half where nothing tells them apart. Of counts with noise those below zero are zero.
    """
    p, q = (shares(np.maximum(np.asarray(counts, float), 0.0)) for counts in (nearer, farther))
    above = q.sum() - np.cumsum(q)
    return float(np.clip(p @ (above + q / 2) + (1 - p.sum()) / 2, 0.0, 1.0))


def shares(counts: Any) -> Array:
    """Counts, or sums of weights in any unit, as parts of their total; zeros where that is not above zero."""
    found = np.asarray(counts, float)
    total = float(found.sum())
    return found / total if total > 0 else np.zeros_like(found)


def level_table(codes: Array, place: int, sizes: Sequence[int]) -> Array:
    """Count the codes of one column: of codes (n, f) to (sizes[place],)."""
    return np.bincount(codes[:, place].astype(np.int64), minlength=sizes[place]).astype(float)


def pair_table(codes: Array, first: int, second: int, sizes: Sequence[int]) -> Array:
    """Count pairs of codes of two columns: of codes (n, f) to (sizes[first], sizes[second])."""
    a, b = sizes[first], sizes[second]
    both = codes[:, first].astype(np.int64) * b + codes[:, second]
    return np.bincount(both, minlength=a * b).reshape(a, b).astype(float)


def _some(values: Any) -> Array:
    found = np.asarray(values)
    if found.ndim != 1 or not len(found):
        raise SettingsInvalid(
            f"a column of shape {found.shape} has nothing to be compared.", remedy="Give one value or more for each record."
        )
    return found
