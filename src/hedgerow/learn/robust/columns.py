"""Rules coordinate by coordinate: the median and the trimmed mean.

    median    of each coordinate, the middle value of n; of an even n the mean of the two
    trimmed   of each coordinate, the mean of the n - 2 f values that are left without the f least and the f largest

Needs  : 2 f < n.
Cost   : O(n d), a block of coordinates at a time.
Source : Yin et al., ICML 2018, Definitions 1 and 2. Differs: their beta is f / n here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .rule import Array, Beside, CountingRule, Rule

BLOCK = 1 << 19
"""Numbers in a block of coordinates: they fit in a processor's cache."""


def blocks(rows: Array) -> Iterator[slice]:
    """Slices of the coordinates of rows (n, d), each of about `BLOCK` numbers in all."""
    width = max(1, BLOCK // len(rows))
    for start in range(0, rows.shape[1], width):
        yield slice(start, start + width)


def products_of(rows: Array) -> Array:
    """Scalar products of all pairs of rows (n, d), shape (n, n), in double precision."""
    found = np.zeros((len(rows), len(rows)))
    for part in blocks(rows):
        block = rows[:, part].astype(np.float64)
        found += block @ block.T
    return found


def median_of(rows: Array) -> Array:
    """The median of each coordinate of rows (n, d)."""
    found, middle = np.empty(rows.shape[1], rows.dtype), len(rows) // 2
    lower = middle - (len(rows) % 2 == 0)
    for part in blocks(rows):
        ordered = np.sort(rows[:, part].T.copy(), axis=1)
        found[part] = ordered[:, middle] if lower == middle else (ordered[:, lower] + ordered[:, middle].astype(np.float64)) / 2
    return found


def trimmed_mean_of(rows: Array, f: int) -> Array:
    """The mean of each coordinate of rows (n, d) without its f least and its f largest values."""
    found, n = np.empty(rows.shape[1], rows.dtype), len(rows)
    for part in blocks(rows):
        ordered = np.sort(rows[:, part].T.copy(), axis=1)
        left = ordered[:, f : n - f]
        found[part] = np.clip(left.mean(1, dtype=np.float64), left[:, 0], left[:, -1])
    return found


@dataclass(frozen=True)
class Median(Rule):
    """The median of each coordinate (Yin et al. 2018, Definition 1); needs 2 f < n."""

    @property
    def name(self) -> str:
        return "median"

    @property
    def condition(self) -> str:
        return "2 f < n"

    def largest(self, n: int) -> int:
        return (n - 1) // 2

    def combine(self, rows: Array, beside: Beside) -> Array:
        return median_of(rows)


@dataclass(frozen=True)
class TrimmedMean(CountingRule):
    """The mean of each coordinate without its f least and f largest values (Yin et al. 2018, Definition 2); needs 2 f < n.

    Attributes
    ----------
    f : int, optional
        Of the rows, how many may be false; from `expect` where it is left out.
    """

    @property
    def name(self) -> str:
        return "trimmed"

    @property
    def condition(self) -> str:
        return "2 f < n"

    def largest(self, n: int) -> int:
        return (n - 1) // 2

    def combine(self, rows: Array, beside: Beside) -> Array:
        return trimmed_mean_of(rows, self.f or 0)
