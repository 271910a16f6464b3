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
    axis %= values.ndim
    shape, n = values.shape, values.shape[axis]
    before = (slice(None),) * axis
    if n == 0:
        return np.zeros(shape[:axis] + shape[axis + 1 :])
    if n > BLOCK:
        full = n // BLOCK * BLOCK
        blocks = values[(*before, slice(full))].reshape(*shape[:axis], full // BLOCK, BLOCK, *shape[axis + 1 :])
        sums = fold(blocks, axis + 1)
        if n > full:
            sums = np.concatenate([sums, np.expand_dims(fold(values[(*before, slice(full, n))], axis), axis)], axis)
        return fold(sums, axis)
    while n > 1:
        half = (n + 1) // 2
        kept = values[(*before, slice(half))].copy()
        kept[(*before, slice(n - half))] += values[(*before, slice(half, n))]
        values, n = kept, half
    return values[(*before, 0)].copy()


@ieee
def squares(rows: np.ndarray) -> np.ndarray:
    """Squared lengths of float32 rows of shape (m, n): float64 of shape (m,)."""
    wide = rows.astype(np.float64)
    return fold(wide * wide)


@ieee
def summed(values: np.ndarray) -> np.ndarray:
    """Sums over the places of each record: float32 of shape (m, places, n) to (m, n), added in float64."""
    return fold(values.astype(np.float64), 1).astype(np.float32)
