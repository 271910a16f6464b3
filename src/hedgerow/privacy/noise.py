"""Noise on an integer grid, from uniform bytes.

    discrete Gaussian    P(k) proportional to exp(-k^2 / (2 sigma^2))    k integer
    discrete Laplace     P(k) proportional to exp(-|k| / scale)
    Skellam              P(k) = exp(-mu) I_|k|(mu), mu = sigma^2          the difference of two Poisson(mu / 2)
    Polya difference     of two Polya variables; n of them add up to the discrete Laplace

Floating-point noise leaks its input: which doubles can come out depends on what was added to the noise. Here data are
rounded to a public grid first and noise is a whole number of grid steps, so that every output is reachable from every
input. A coordinate is drawn by inverting a table of cumulative probabilities at a uniform number of 128 bits (see
`tables`): no rejection, no loop over coordinates, and a law within a total variation of 2^-100 of the stated one.
Cumulatives are even, so the lowest bit of the uniform number is independent of the magnitude and gives the sign: the law
is exactly symmetric.

Source: Mironov 2012 for what floating point gives away; Canonne, Kamath & Steinke 2020 for the privacy of the discrete
Gaussian; Agarwal, Kairouz & Liu 2021 for that of Skellam; Goryczka & Xiong 2017 for Polya shares of a Laplace.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.randomness import Entropy
from hedgerow.errors import BudgetInvalid

from .tables import BITS, NEGLIGIBLE, ONE, CumulativeTable, by_blocks, exponential, signed, tabulate, uniform

LARGEST_SCALE = 2.0**17
"""Largest `sigma` or `scale`, in grid steps, for which a table is built."""

LARGEST_POLYA_SCALE = 2.0**14
"""Largest `scale` of a Polya difference, whose table has 89 entries per unit of it."""


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
    return _symmetric(_gaussian_table(_checked(sigma)), size, entropy)


def skellam(sigma: float, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Draw from the Skellam distribution with variance sigma^2, the difference of two Poisson variables.

    The sum of n such draws of variance sigma^2 / n each has exactly this law, so it can be added in shares.

    Parameters
    ----------
    sigma : float
        Standard deviation in grid steps, in (0, 2^17].
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
    return _symmetric(_skellam_table(_checked(sigma)), size, entropy)


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
        numbers = uniform(n, entropy)
        high = zero_or_high.invert(numbers)
        magnitude = (high - 1) * base + low.invert(uniform(n, entropy)) + 1
        return signed(np.where(high == 0, 0, magnitude), numbers)

    return by_blocks(size, draw)


def polya_difference(scale: float, shares: int, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Draw the difference of two Polya variables, of which `shares` independent ones add up to the discrete Laplace.

    A Polya variable has P(k) proportional to Gamma(k + 1/n) / k! exp(-k / scale); n of them add up to a geometric one.

    Parameters
    ----------
    scale : float
        Scale, in grid steps, of the discrete Laplace that the shares add up to; in (0, 2^14].
    shares : int
        How many shares make the whole.
    size : int
        Number of coordinates.
    entropy : Entropy
        Source of uniform bytes; 32 are used for each coordinate.

    Returns
    -------
    array of shape (size,), int64
        Independent draws, in grid steps.

    Raises
    ------
    BudgetInvalid (HR-214)
        `scale` is out of range.
    """
    table = _polya_table(_checked(scale, LARGEST_POLYA_SCALE), shares)
    return by_blocks(size, lambda n: table.invert(uniform(n, entropy)) - table.invert(uniform(n, entropy)))


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


def _symmetric(table: CumulativeTable, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Draw magnitudes from a table, and their signs."""

    def draw(n: int) -> NDArray[np.int64]:
        numbers = uniform(n, entropy)
        return signed(table.invert(numbers), numbers)

    return by_blocks(size, draw)


@lru_cache(maxsize=8)
def _gaussian_table(sigma: float) -> CumulativeTable:
    return tabulate(_gaussian_weights(sigma))


def _gaussian_weights(sigma: float) -> Iterator[int]:
    """Yield the weights of the magnitudes 0, 1, 2, ...: one, then 2 exp(-k^2 / (2 sigma^2))."""
    precision = 1 / Fraction(sigma) ** 2
    weight, ratio, step = 2 * ONE, exponential(-precision / 2), exponential(-precision)
    yield ONE
    while (weight := weight * ratio >> BITS) > NEGLIGIBLE:
        yield weight
        ratio = ratio * step >> BITS


@lru_cache(maxsize=8)
def _skellam_table(sigma: float) -> CumulativeTable:
    return tabulate(_skellam_weights(sigma))


def _skellam_weights(sigma: float) -> list[int]:
    """Return the weights of the magnitudes 0, 1, 2, ...: I_0(mu), then 2 I_k(mu), all over I_0(mu).

    I_(k-1) = I_(k+1) + (2 k / mu) I_k is followed downwards, where I_k is the solution that grows and every term is
    positive. From 15 sigma + 150 on, where the probability is below 2^-140 by Chernoff's bound, a start with any value
    will do (Miller's algorithm); that value has 192 bits, so rounding down costs less than 2^-170 of each weight.
    """
    mu = Fraction(sigma) ** 2
    above, here, found = 0, ONE, []
    for k in range(math.ceil(15 * sigma) + 150, 0, -1):
        found.append(here)
        above, here = here, above + 2 * k * here * mu.denominator // mu.numerator
    return [ONE, *(w for value in reversed(found) if (w := (value << BITS + 1) // here) > NEGLIGIBLE)]


@lru_cache(maxsize=8)
def _laplace_tables(scale: float) -> tuple[CumulativeTable, CumulativeTable, int]:
    """Return the table of zero and the high digits, the table of the low digits, and their base.

    With r = exp(-1 / scale), zero has probability (1 - r) / (1 + r). Otherwise `magnitude - 1` is geometric with ratio
    r: its high digit is geometric with ratio r^base, its low digit with ratio r among the numbers below the base.
    """
    base = math.isqrt(int(89 * scale)) + 1  # balances the tables: beyond 89 * scale the tail is below 2^-128
    rate = 1 / Fraction(scale)
    ratio, base_ratio = exponential(-rate), exponential(-base * rate)
    first = 2 * ratio * (ONE - base_ratio) >> BITS
    zero_or_high = tabulate([ONE - ratio, *_geometric_weights(first, base_ratio)])
    return zero_or_high, tabulate(islice(_geometric_weights(ONE, ratio), base)), base


def _geometric_weights(weight: int, ratio: int) -> Iterator[int]:
    while weight > NEGLIGIBLE:
        yield weight
        weight = weight * ratio >> BITS


@lru_cache(maxsize=4)
def _polya_table(scale: float, shares: int) -> CumulativeTable:
    return tabulate(_polya_weights(scale, shares))


def _polya_weights(scale: float, shares: int) -> Iterator[int]:
    """Yield the weights of 0, 1, 2, ...: one, then each from the last by (k - 1 + 1/n) / k * exp(-1 / scale)."""
    weight, ratio, k = ONE, exponential(-1 / Fraction(scale)), 0
    while weight > NEGLIGIBLE:
        yield weight
        k += 1
        weight = (weight * ratio >> BITS) * (shares * (k - 1) + 1) // (shares * k)


def _checked(scale: float, largest: float = LARGEST_SCALE) -> float:
    if not 0 < scale <= largest:
        raise BudgetInvalid(
            f"noise of scale {scale:g} grid steps cannot be drawn: the scale must lie in (0, {largest:g}]",
            remedy="Choose the grid with grid_step(scale) and give the scale in its steps.",
        )
    return float(scale)
