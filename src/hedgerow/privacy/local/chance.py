"""Exact chances: a coin is a whole number of 2^64 equally likely words, so that what a report tells can be computed exactly.

A chance is rounded in the direction that tells less: the likelihood ratio of any report under any two values is at most
e^epsilon for the epsilon that was asked for, as a comparison of whole numbers and not up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.randomness import Entropy
from hedgerow.errors import BudgetInvalid

WORD = 2**64
LEAST_EPSILON, LARGEST_EPSILON = 1e-4, 20.0
"""Below, reports hold nothing; above, they hide nobody."""

Words = NDArray[np.uint64]


def checked(epsilon: float) -> float:
    """Refuse an epsilon that a local report cannot have."""
    if not LEAST_EPSILON <= epsilon <= LARGEST_EPSILON:  # also where it is not a number
        raise BudgetInvalid(
            f"a local epsilon of {epsilon!r} is outside [{LEAST_EPSILON:g}, {LARGEST_EPSILON:g}].",
            remedy="Values from 0.5 (strong) to 8 (weak) are usual; the more parties, the smaller it can be.",
        )
    return float(epsilon)


def below(numerator: Callable[[Decimal], Decimal], exponent: float) -> int:
    """The whole number of words just below `numerator(e^exponent) * 2^64`, in arithmetic of 80 digits."""
    with localcontext(Context(prec=80)):
        return int(numerator(Decimal(exponent).exp()) * WORD)


def lie(epsilon: float, levels: int) -> int:
    """Words for each of the other answers where the truth is said e^epsilon times as often, rounded up."""
    return below(lambda e: 1 / (e + levels - 1), epsilon) + 1


def draw(entropies: Callable[[int], Entropy], parties: range, words: int) -> Words:
    """Uniform words of each party's own entropy, shape (parties, words)."""
    return np.frombuffer(b"".join(entropies(i)(8 * words) for i in parties), "<u8").reshape(len(parties), words)


def uniform_index(words: Words, n: int) -> NDArray[np.int64]:
    """Turn words into indices below n, all equally likely but for the last, which lacks at most n of 2^64 words."""
    if n == 1:
        return np.zeros(words.shape, np.int64)
    return (words // np.uint64(-(-WORD // n))).astype(np.int64)


def unit_interval(words: Words) -> NDArray[np.float64]:
    """Turn words into numbers in [0, 1) with 53 bits each."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
