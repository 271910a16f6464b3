"""Tables of cumulative probabilities, inverted at uniform numbers of 128 bits: how laws with few outcomes are drawn.

A weight is a whole number, its probability times an unknown constant, in fixed point with 192 bits of fraction. Weights
become cumulatives of 128 bits, and an outcome is how many cumulatives do not exceed a uniform number: no rejection, no
loop over draws. A table has fewer than 2^21 entries, each cumulative is rounded by less than 2^-126, and tails that are
left out weigh less than 2^-120; so a draw is within a total variation of 2^-100 of the stated law.

Source: Devroye 1986, section III.2, for inversion by a guide table.
"""

from __future__ import annotations

import decimal
from bisect import bisect_left
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.randomness import Entropy

BITS = 192
"""Fraction bits of a weight while a table is built."""

ONE = 1 << BITS
NEGLIGIBLE = ONE >> 128
_GUIDE_SHIFT = np.uint64(48)  # the guide is indexed by the top 16 bits
BLOCK = 2**16
"""Draws in a block: 1 MiB of entropy, so that temporaries stay in the cache."""


class CumulativeTable(NamedTuple):
    """Cumulative probabilities times 2^128, in two words; 2^128 itself is left out.

    `guide[b]` counts the cumulatives below b * 2^112. Where two neighbours agree the top 16 bits decide alone.
    """

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    guide: NDArray[np.int64]

    def invert(self, numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return, for each uniform number u of shape (n, 2), low word first, how many cumulatives are <= u.

        Outcome k thus owns the numbers from its predecessor's cumulative, included, to its own, excluded.
        """
        outcome, tied = self.by_high_word(numbers[:, 1])
        for i in tied:
            low, high = (int(word) for word in numbers[i])
            outcome[i] = self.outcome(high << 64 | low)
        return outcome

    def by_high_word(self, high: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how many cumulatives lie below each number with this high word, and which numbers are tied.

        Ties of high words are left to the low words. One happens with probability below 2^-43 per draw.
        """
        bucket = (high >> _GUIDE_SHIFT).astype(np.int64)
        outcome = self.guide[bucket]
        unsettled = np.flatnonzero(outcome != self.guide[bucket + 1])
        sought = high[unsettled]
        outcome[unsettled] = first = np.searchsorted(self.high, sought)
        inside = first < len(self.high)
        return outcome, unsettled[inside][self.high[first[inside]] == sought[inside]]

    def outcome(self, number: int) -> int:
        """Return how many cumulatives are at most this number of 128 bits."""
        word = np.uint64(number >> 64)
        first, last = (int(np.searchsorted(self.high, word, side=side)) for side in ("left", "right"))
        return first + int(np.searchsorted(self.low[first:last], np.uint64(number & 2**64 - 1), side="right"))


def tabulate(weights: Iterable[int]) -> CumulativeTable:
    """Build the table of the outcomes 0, 1, 2, ... with these weights; last ones too small to own a number have no place."""
    ends = cumulative(weights)
    del ends[bisect_left(ends, 1 << 128) :]
    words = np.frombuffer(b"".join([end.to_bytes(16, "little") for end in ends]), "<u8").reshape(-1, 2)
    low, high = (np.ascontiguousarray(column, np.uint64) for column in words.T)
    buckets = np.arange(2**16, dtype=np.uint64) << _GUIDE_SHIFT
    return CumulativeTable(high, low, np.append(np.searchsorted(high, buckets), len(high)))


def cumulative(weights: Iterable[int]) -> list[int]:
    """Return the even whole numbers nearest below the cumulative probabilities times 2^128.

    Instead of dividing each by the total, they are multiplied by its inverse, rounded up; by less than would reach the next
    whole number, which is a part in the total away.
    """
    sums = list(accumulate(weights))
    bits = 2 * sums[-1].bit_length()
    inverse = -((-1 << 127 + bits) // sums[-1])
    return [s * inverse >> bits << 1 for s in sums]


def exponential(exponent: Fraction) -> int:
    """Return exp(exponent) in fixed point, correct to its last bit."""
    with decimal.localcontext(decimal.Context(prec=80)):
        value = (decimal.Decimal(exponent.numerator) / exponent.denominator).exp()
        return int(value * ONE)


def by_blocks(size: int, draw: Callable[[int], NDArray[np.int64]]) -> NDArray[np.int64]:
    """Draw `size` whole numbers, a block at a time."""
    drawn = np.empty(size, np.int64)
    for start in range(0, size, BLOCK):
        block = drawn[start : start + BLOCK]
        block[:] = draw(len(block))
    return drawn


def uniform(n: int, entropy: Entropy) -> NDArray[np.uint64]:
    """Return n uniform numbers of 128 bits, shape (n, 2), low word first."""
    return np.frombuffer(entropy(16 * n), "<u8").reshape(n, 2)


def signed(magnitude: NDArray[np.int64], numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Take the sign from the lowest bit, on which a magnitude from a table of even cumulatives does not depend."""
    return np.where(numbers[:, 0] & np.uint64(1), -magnitude, magnitude)
