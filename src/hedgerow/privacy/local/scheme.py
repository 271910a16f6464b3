"""What every way of reporting a value provides; `Reports` turns one into a mechanism at the party.

A value is a level, counted from zero, or `levels` for "nothing": a party without a record reports too, as if it had one.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.arrays import Array

from .chance import WORD, Words

Values = NDArray[np.int64]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


class Scheme(Protocol):
    """A way of reporting one of so many levels at one epsilon.

    Attributes
    ----------
    levels : int
    columns : int
        Numbers in a report; reports of one party, and those of all parties, are added up.
    words : int
        Uniform 64-bit words that one report takes.
    """

    @property
    def levels(self) -> int: ...

    @property
    def columns(self) -> int: ...

    @property
    def words(self) -> int: ...

    def report(self, values: Values, words: Words) -> Counts:
        """Add up the reports of each party: values of shape (parties, reports), words (parties, reports, words), to
        (parties, columns)."""

    def estimate(self, total: Array, n: int) -> Floats:
        """Estimate, without bias, how many of n reports were about each level, shape (levels,)."""

    def variance(self, counts: Floats) -> Floats:
        """Variance of the estimates where so many reports were about each level, shape (levels,)."""

    def ratio(self) -> Fraction:
        """The largest factor by which two values can differ in the chance of one report, from the words themselves."""


class Encoding(Protocol):
    """What a user chooses: a scheme but for the epsilon and the number of levels."""

    def scheme(self, epsilon: float, levels: int) -> Scheme:
        """The scheme for one release."""


def odds(one: int, other: int) -> Fraction:
    """The larger of the two factors by which the chances of a bit differ, where it is set by so many words of 2^64."""
    return max(
        Fraction(one, other), Fraction(WORD - other, WORD - one), Fraction(other, one), Fraction(WORD - one, WORD - other)
    )


def unbiased(seen: Array, n: Any, truth: float, other: float) -> Floats:
    """Turn how often a bit was seen in n reports into how many reports it is true of."""
    found: Floats = np.asarray((seen - n * other) / (truth - other), np.float64)
    return found


def two_sided(counts: Floats, truth: float, other: float) -> Floats:
    """Variance of `unbiased`, where the bit is true of so many of the reports."""
    rest = counts.sum() - counts
    found: Floats = (counts * truth * (1 - truth) + rest * other * (1 - other)) / (truth - other) ** 2
    return found


def in_blocks(n: int, each: int, most: int, do: Callable[[range], None]) -> None:
    """Go through n items in blocks that hold at most so many words, at least one item each."""
    block = max(1, most // max(each, 1))
    for start in range(0, n, block):
        do(range(start, min(start + block, n)))
