"""Noise on an integer grid, from uniform bytes.

    discrete Gaussian    P(k) proportional to exp(-k^2 / (2 sigma^2))    k integer
    discrete Laplace     P(k) proportional to exp(-|k| / scale)

Floating-point noise leaks its input: which doubles can come out depends on what was added to the noise. Here data are
rounded to a public grid first and noise is a whole number of grid steps, so that every output is reachable from every
input. A coordinate is drawn by inverting a table of cumulative probabilities at a uniform number of 128 bits: no
rejection, no loop over coordinates, and a law within a total variation of 2^-100 of the stated one.

How that holds. A table has fewer than 2^21 entries, each cumulative is rounded by less than 2^-126, and the tail that
is left out weighs less than 2^-120. Cumulatives are even, so the lowest bit of the uniform number is independent of the
magnitude and gives the sign: the law is exactly symmetric.

Source: Mironov 2012 for what floating point gives away; Canonne, Kamath & Steinke 2020 for the privacy of the discrete
Gaussian; Devroye 1986, section III.2, for inversion by a guide table.
"""

from __future__ import annotations

import decimal
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.randomness import Entropy
from hedgerow.errors import BudgetInvalid

LARGEST_SCALE = 2.0**17
"""Largest `sigma` or `scale`, in grid steps, for which a table is built."""

_BITS = 192  # fraction bits of a weight while a table is built
_ONE = 1 << _BITS
_NEGLIGIBLE = _ONE >> 128
_GUIDE_SHIFT = np.uint64(48)  # the guide is indexed by the top 16 bits
_BLOCK = 2**16  # coordinates per block: 1 MiB of entropy, so that temporaries stay in the cache


def discrete_gaussian(sigma: float, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Draw from the discrete Gaussian, P(k) proportional to exp(-k^2 / (2 sigma^2)).

    Parameters
    ----------
    sigma : float
        Scale in grid steps, in (0, 2^17]. From about 2 on it is the standard deviation to 15 digits.
    size : int
        Number of coordinates.
    entropy : Entropy
        Source of uniform bytes; 16 are used for each coordinate.

    Returns
    -------
    array of shape (size,), int64
        Independent draws, in grid steps.

    Raises
    ------
    BudgetInvalid (HR-214)
        `sigma` is out of range.
    """
    table = _gaussian_table(_checked(sigma))

    def draw(n: int) -> NDArray[np.int64]:
        words = _words(n, entropy)
        return _signed(table.invert(words), words)

    return _by_blocks(size, draw)


def discrete_laplace(scale: float, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Draw from the discrete Laplace distribution, P(k) proportional to exp(-|k| / scale).

    A magnitude is zero or `1 + base * high + low` with independent digits, because a geometric variable has no memory.
    Two short tables then serve where a single one would need 89 entries per unit of `scale`.

    Parameters
    ----------
    scale : float
        Scale in grid steps, in (0, 2^17].
    size : int
        Number of coordinates.
    entropy : Entropy
        Source of uniform bytes; 32 are used for each coordinate, 16 for each digit.

    Returns
    -------
    array of shape (size,), int64
        Independent draws, in grid steps.

    Raises
    ------
    BudgetInvalid (HR-214)
        `scale` is out of range.
    """
    zero_or_high, low, base = _laplace_tables(_checked(scale))

    def draw(n: int) -> NDArray[np.int64]:
        words = _words(n, entropy)
        high = zero_or_high.invert(words)
        magnitude = (high - 1) * base + low.invert(_words(n, entropy)) + 1
        return _signed(np.where(high == 0, 0, magnitude), words)

    return _by_blocks(size, draw)


def grid_step(scale: float) -> float:
    """Return the power of two `g` for which `scale / g` lies in [4096, 8192).

    On this grid rounding moves a value by at most 2^-13 of the noise, tables stay small, and discrete noise costs what
    continuous noise costs.

    Parameters
    ----------
    scale : float
        Standard deviation (Gaussian) or scale (Laplace) of the noise, in units of the data.

    Raises
    ------
    BudgetInvalid (HR-214)
        `scale` is not positive, not finite, or so small that its grid is not a normal number.
    """
    step = math.ldexp(1.0, math.frexp(scale)[1] - 13) if math.isfinite(scale) else 0.0
    if scale <= 0 or step < sys.float_info.min:
        raise BudgetInvalid(
            f"noise of scale {scale:g} has no grid: the scale must be positive, finite and at least 1e-303",
            remedy="Check the bound's radius and the noise multiplier; their product is the scale.",
        )
    return step


class _Table(NamedTuple):
    """Cumulative probabilities times 2^128, in two words; the last one, 2^128 itself, is left out.

    `guide[b]` counts the cumulatives below b * 2^112. Where two neighbours agree the top 16 bits decide alone.
    """

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    guide: NDArray[np.int64]

    def invert(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return, for each uniform number u of shape (n, 2), low word first, how many cumulatives are <= u.

        Outcome k thus owns the numbers from its predecessor's cumulative, included, to its own, excluded.
        """
        high = words[:, 1]
        bucket = (high >> _GUIDE_SHIFT).astype(np.int64)
        outcome = self.guide[bucket]
        unsettled = np.flatnonzero(outcome != self.guide[bucket + 1])
        sought = high[unsettled]
        first = np.searchsorted(self.high, sought)
        outcome[unsettled] = first
        tied = self.high[np.minimum(first, len(self.high) - 1)] == sought
        # Ties of high words are left to the low words. One happens with probability below 2^-43 per coordinate.
        for i in np.flatnonzero(tied):
            last = np.searchsorted(self.high, sought[i], side="right")
            lows = self.low[first[i] : last]
            outcome[unsettled[i]] += np.searchsorted(lows, words[unsettled[i], 0], side="right")
        return outcome


def _tabulate(weights: Iterable[int]) -> _Table:
    cumulative = _cumulative(weights)[:-1]
    words = np.frombuffer(b"".join(c.to_bytes(16, "little") for c in cumulative), "<u8").reshape(-1, 2)
    low, high = (np.ascontiguousarray(column, np.uint64) for column in words.T)
    buckets = np.arange(2**16, dtype=np.uint64) << _GUIDE_SHIFT
    return _Table(high, low, np.append(np.searchsorted(high, buckets), len(high)))


def _cumulative(weights: Iterable[int]) -> list[int]:
    """Return the even whole numbers nearest below the cumulative probabilities times 2^128."""
    sums = list(accumulate(weights))
    return [(s << 127) // sums[-1] << 1 for s in sums]


@lru_cache(maxsize=8)
def _gaussian_table(sigma: float) -> _Table:
    return _tabulate(_gaussian_weights(sigma))


def _gaussian_weights(sigma: float) -> Iterator[int]:
    """Yield the weights of the magnitudes 0, 1, 2, ...: one, then 2 exp(-k^2 / (2 sigma^2))."""
    precision = 1 / Fraction(sigma) ** 2
    weight, ratio, step = 2 * _ONE, _exp(-precision / 2), _exp(-precision)
    yield _ONE
    while (weight := weight * ratio >> _BITS) > _NEGLIGIBLE:
        yield weight
        ratio = ratio * step >> _BITS


@lru_cache(maxsize=8)
def _laplace_tables(scale: float) -> tuple[_Table, _Table, int]:
    """Return the table of zero and the high digits, the table of the low digits, and their base.

    With r = exp(-1 / scale), zero has probability (1 - r) / (1 + r). Otherwise `magnitude - 1` is geometric with ratio
    r: its high digit is geometric with ratio r^base, its low digit with ratio r among the numbers below the base.
    """
    base = math.isqrt(int(89 * scale)) + 1  # balances the tables: beyond 89 * scale the tail is below 2^-128
    rate = 1 / Fraction(scale)
    ratio, base_ratio = _exp(-rate), _exp(-base * rate)
    first = 2 * ratio * (_ONE - base_ratio) >> _BITS
    zero_or_high = _tabulate([_ONE - ratio, *_geometric_weights(first, base_ratio)])
    return zero_or_high, _tabulate(islice(_geometric_weights(_ONE, ratio), base)), base


def _geometric_weights(weight: int, ratio: int) -> Iterator[int]:
    while weight > _NEGLIGIBLE:
        yield weight
        weight = weight * ratio >> _BITS


def _exp(exponent: Fraction) -> int:
    """Return exp(exponent) in fixed point, correct to its last bit."""
    with decimal.localcontext(decimal.Context(prec=80)):
        value = (decimal.Decimal(exponent.numerator) / exponent.denominator).exp()
        return int(value * _ONE)


def _by_blocks(size: int, draw: Callable[[int], NDArray[np.int64]]) -> NDArray[np.int64]:
    noise = np.empty(size, np.int64)
    for start in range(0, size, _BLOCK):
        block = noise[start : start + _BLOCK]
        block[:] = draw(len(block))
    return noise


def _words(n: int, entropy: Entropy) -> NDArray[np.uint64]:
    """Return n uniform numbers of 128 bits, shape (n, 2), low word first."""
    return np.frombuffer(entropy(16 * n), "<u8").reshape(n, 2)


def _signed(magnitude: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Take the sign from the lowest bit, on which the magnitude does not depend."""
    return np.where(words[:, 0] & np.uint64(1), -magnitude, magnitude)


def _checked(scale: float) -> float:
    if not 0 < scale <= LARGEST_SCALE:
        raise BudgetInvalid(
            f"noise of scale {scale:g} grid steps cannot be drawn: the scale must lie in (0, {LARGEST_SCALE:g}]",
            remedy="Choose the grid with grid_step(scale) and give the scale in its steps.",
        )
    return float(scale)
