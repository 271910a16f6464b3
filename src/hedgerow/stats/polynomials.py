"""Polynomials through a few points, of the same bits in each run."""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Array


def through_points(u: Array, values: Array, at: float) -> Array:
    """The polynomial through some points (n,), of values (..., n), at another one."""
    apart = at - u
    if (apart == 0).any():
        return np.asarray(values[..., int(np.argmin(np.abs(apart)))])
    steps = u[:, None] - u + np.eye(len(u))
    weights = 1 / (np.prod(steps, axis=1) * apart)
    return np.asarray(values @ weights / weights.sum())
