"""Noise on an integer grid, from uniform bytes.

    discrete Gaussian    P(k) proportional to exp(-k^2 / (2 sigma^2))    k integer
    discrete Laplace     P(k) proportional to exp(-|k| / scale)
    Skellam              P(k) = exp(-mu) I_|k|(mu), mu = sigma^2          the difference of two Poisson(mu / 2)
    Polya difference     of two Polya variables; n of them add up to the discrete Laplace

Floating-point noise leaks its input: which doubles can come out depends on what was added to the noise. Here data are
rounded to a public grid first and noise is a whole number of grid steps, so that every output is reachable from every
input. There are two ways to draw it, both from uniform bytes and with a law that is exactly symmetric:

    discrete Gaussian and Laplace   of any scale, by a coarse table and a rejection (see `coarse`), within 2^-110
    Skellam, Polya difference       by inverting a table of all values (see `tables`), within 2^-100, for smaller scales

Source: Mironov 2012 for what floating point gives away; Canonne, Kamath & Steinke 2020 for the privacy of the discrete
Gaussian; Agarwal, Kairouz & Liu 2021 for that of Skellam; Goryczka & Xiong 2017 for Polya shares of a Laplace.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.randomness import Entropy
from hedgerow.errors import BudgetInvalid

from .coarse import CoarseLaw, coarse, draw
from .tables import BITS, NEGLIGIBLE, ONE, CumulativeTable, by_blocks, exponential, signed, tabulate, uniform

LARGEST_SCALE = 2.0**45
"""Largest `sigma` or `scale` of a discrete Gaussian or Laplace, in grid steps: sums of noise stay exact in float64."""

LARGEST_SKELLAM_SCALE = 2.0**15
"""Largest `sigma` of a Skellam, whose table has 13 entries per unit of it."""

LARGEST_POLYA_SCALE = 2.0**14
"""Largest `scale` of a Polya difference, whose table has 89 entries per unit of it."""


def discrete_gaussian(sigma: float, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Draw from the discrete Gaussian, P(k) proportional to exp(-k^2 / (2 sigma^2)).

    Parameters
    ----------
    sigma : float
        Scale in grid steps, in (0, 2^45]. From about 2 on it is the standard deviation to 15 digits.
    size : int
        Number of coordinates.
    entropy : Entropy
        Source of uniform bytes; 16 are used for each candidate, of which nearly all are kept.

    Returns
    -------
    array of shape (size,), int64
        Independent draws, in grid steps.

    Raises
    ------
    BudgetInvalid (HR-214)
        `sigma` is out of range.
    """
    return draw(_gaussian_law(_checked(sigma, LARGEST_SCALE)), size, entropy)


def skellam(sigma: float, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Draw from the Skellam distribution with variance sigma^2, the difference of two Poisson variables.

    The sum of n such draws of variance sigma^2 / n each has exactly this law, so it can be added in shares.

    Parameters
    ----------
    sigma : float
        Standard deviation in grid steps, in (0, 2^15].
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
    table = _skellam_table(_checked(sigma, LARGEST_SKELLAM_SCALE))

    def block(n: int) -> NDArray[np.int64]:
        numbers = uniform(n, entropy)
        return signed(table.invert(numbers), numbers)

    return by_blocks(size, block)


def discrete_laplace(scale: float, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Draw from the discrete Laplace distribution, P(k) proportional to exp(-|k| / scale).

    Parameters
    ----------
    scale : float
        Scale in grid steps, in (0, 2^45].
    size : int
        Number of coordinates.
    entropy : Entropy
        Source of uniform bytes; 16 are used for each candidate, of which nearly all are kept.

    Returns
    -------
    array of shape (size,), int64
        Independent draws, in grid steps.

    Raises
    ------
    BudgetInvalid (HR-214)
        `scale` is out of range.
    """
    return draw(_laplace_law(_checked(scale, LARGEST_SCALE)), size, entropy)


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


@lru_cache(maxsize=32)
def _gaussian_law(sigma: float) -> CoarseLaw:
    """The law of h B + l with sigma / B in [64, 128), of at most 1705 entries; B = 1 for a smaller sigma."""
    bits = max(0, math.frexp(sigma)[1] - 7)
    precision = (Fraction(1 << bits) / Fraction(sigma)) ** 2
    return coarse(_gaussian_weights(precision), bits, (Fraction(0), precision, precision / 2))


def _gaussian_weights(precision: Fraction) -> Iterator[int]:
    """Yield exp(-h^2 precision / 2) for h = 0, 1, 2, ..."""
    weight, ratio, step = ONE, exponential(-precision / 2), exponential(-precision)
    while weight > NEGLIGIBLE:
        yield weight
        weight = weight * ratio >> BITS
        ratio = ratio * step >> BITS


@lru_cache(maxsize=32)
def _laplace_law(scale: float) -> CoarseLaw:
    """The law of h B + l with scale / B in [32, 64), of at most 5700 entries; B = 1 for a smaller scale."""
    bits = max(0, math.frexp(scale)[1] - 6)
    rate = Fraction(1 << bits) / Fraction(scale)
    return coarse(_geometric_weights(exponential(-rate)), bits, (rate, Fraction(0), Fraction(0)))


def _geometric_weights(ratio: int) -> Iterator[int]:
    weight = ONE
    while weight > NEGLIGIBLE:
        yield weight
        weight = weight * ratio >> BITS


@lru_cache(maxsize=8)
def _skellam_table(sigma: float) -> CumulativeTable:
    return tabulate(_skellam_weights(sigma))


def _skellam_weights(sigma: float) -> list[int]:
    """Return the weights of the magnitudes 0, 1, 2, ...: I_0(mu), then 2 I_k(mu), over a power of two near I_0(mu).

    I_(k-1) = I_(k+1) + (2 k / mu) I_k is followed downwards, where I_k is the solution that grows and every term is
    positive. From 14 sigma + 150 on, where the probability is below 2^-140 by Chernoff's bound, a start with any value
    will do (Miller's algorithm); that value has 192 bits, so rounding down costs less than 2^-170 of each weight.
    """
    mu = Fraction(sigma) ** 2
    above, here, found, twice = 0, ONE, [], 2 * mu.denominator
    for k in range(math.ceil(14 * sigma) + 150, 0, -1):
        found.append(here)
        above, here = here, above + k * twice * here // mu.numerator
    beyond = here.bit_length() - BITS - 1
    return [here >> beyond, *(w for value in reversed(found) if (w := value << 1 >> beyond) > NEGLIGIBLE)]


@lru_cache(maxsize=4)
def _polya_table(scale: float, shares: int) -> CumulativeTable:
    return tabulate(_polya_weights(scale, shares))


def _polya_weights(scale: float, shares: int) -> Iterator[int]:
    """Yield the weights of 0, 1, 2, ...: one, then each from the last by (k - 1 + 1/n) / k * exp(-1 / scale)."""
    weight, ratio, odd, even = ONE, exponential(-1 / Fraction(scale)), 1, shares
    while weight > NEGLIGIBLE:
        yield weight
        weight = (weight * ratio >> BITS) * odd // even
        odd, even = odd + shares, even + shares


def _checked(scale: float, largest: float) -> float:
    if not 0 < scale <= largest:
        raise BudgetInvalid(
            f"noise of scale {scale:g} grid steps cannot be drawn: the scale must lie in (0, {largest:g}]",
            remedy="Choose the grid with grid_step(scale) and give the scale in its steps.",
        )
    return float(scale)
