"""Sums of a row in one order: by halves, in blocks of 4096.

    fold(v)    v[i] + v[i + h] for h = half of the length, rounded up, until one number is left

Each step adds numbers pair by pair, so NumPy, every width of vectors and every compiler give the same bits, and the order is a
function of the length alone.
"""

from __future__ import annotations

import numpy as np

from .subnormals import ieee

BLOCK = 4096


def fold(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """Sum float64 `values` along one axis, in the order above; zero where there are none."""
    rows = np.moveaxis(values, axis, 0)
    n = len(rows)
    if n == 0:
        return np.zeros(rows.shape[1:])
    if n > BLOCK:
        full = n // BLOCK * BLOCK
        sums = fold(rows[:full].reshape(-1, BLOCK, *rows.shape[1:]), 1)
        return fold(sums if n == full else np.concatenate([sums, fold(rows[full:], 0)[None]]), 0)
    while n > 1:
        half = (n + 1) // 2
        kept = rows[:half].copy()
        kept[: n - half] += rows[half:n]
        rows, n = kept, half
    return rows[0].copy()


@ieee
def squares(rows: np.ndarray) -> np.ndarray:
    """Squared lengths of float32 rows of shape (m, n): float64 of shape (m,)."""
    wide = rows.astype(np.float64)
    return fold(wide * wide)


@ieee
def summed(values: np.ndarray) -> np.ndarray:
    """Sums over the places of each record: float32 of shape (m, places, n) to (m, n), added in float64."""
    return fold(values.astype(np.float64), 1).astype(np.float32)
