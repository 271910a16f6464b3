"""Public hashes of levels: the same for everybody, chosen by a salt, and no secret of anybody."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Buckets = NDArray[np.int64]


@lru_cache(maxsize=32)
def buckets(salt: int, functions: int, levels: int, width: int) -> Buckets:
    """Bucket of each level under each hash function, shape (functions, levels)."""
    functions_, levels_ = np.arange(functions, dtype=np.uint64)[:, None], np.arange(levels, dtype=np.uint64)
    mixed = _mix(_mix(_mix(np.full((1, 1), salt, np.uint64)) + functions_) + levels_)
    found: Buckets = ((mixed >> np.uint64(33)) * np.uint64(width) >> np.uint64(31)).astype(np.int64)
    found.setflags(write=False)
    return found


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every bit of the input moves about half of the output."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
