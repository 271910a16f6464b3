"""The law of noise from a coarse table: exact probabilities to 110 bits, chi square at any scale, twins with another law."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from candidates import entries, entropy, exact, masses, stated
from scipy.special import erf
from scipy.stats import chi2

from hedgerow.privacy import noise
from hedgerow.privacy.coarse import CoarseLaw
from hedgerow.privacy.noise import discrete_gaussian, discrete_laplace
from hedgerow.privacy.tables import BITS, exponential

FALSE_ALARM = 1e-6


def keeps(law: CoarseLaw, h: int, low: int) -> Fraction:
    """The probability of keeping a candidate, counted: how many u of 191 - bits bits are below exp(-t)."""
    unit = BITS - 191 + law.bits
    return Fraction(-(-exponential(-law.exponent(h, low)) >> unit), 1 << 191 - law.bits)


def keeps_without_a_second_look(law: CoarseLaw, h: int, low: int) -> Fraction:
    return 1 - law.exponent(h, low)


def distance(
    build: Callable[[float], CoarseLaw], scale: float, keeps: Callable[[CoarseLaw, int, int], Fraction] = keeps, zeros: int = 1
) -> mpmath.mpf:
    """Total variation between the stated law and that of the candidates that are kept, from exact probabilities.

    `zeros` is how many of the two zeros are kept.
    """
    law = build(scale)
    mass = masses(law)
    weight = [
        mass[h] * keeps(law, h, low) * (Fraction(zeros, 2) if h == low == 0 else 1)
        for h in range(entries(law))
        for low in range(1 << law.bits)
    ]
    total = sum(weight)
    with mpmath.workdps(60):
        return sum(abs(exact(w / total) - p) for w, p in zip(weight, stated(build, scale, law), strict=True)) / 2


EXACT = [(noise._gaussian_law, s) for s in (0.05, 0.3, 1.0, 3.7, 70.5, 130.2)]
EXACT += [(noise._laplace_law, s) for s in (0.05, 0.3, 1.0, 3.7, 64.5)]


@pytest.mark.slow
@pytest.mark.parametrize(("build", "scale"), EXACT)
def test_the_law_is_within_110_bits_of_the_stated_one(build, scale):
    assert distance(build, scale) < mpmath.mpf(2) ** -110


@pytest.mark.parametrize(
    ("build", "scale"), [(noise._gaussian_law, 0.3), (noise._gaussian_law, 3.7), (noise._laplace_law, 1.0)]
)
def test_the_law_at_a_small_scale_is_within_110_bits_of_the_stated_one(build, scale):
    assert distance(build, scale) < mpmath.mpf(2) ** -110
    assert distance(build, scale, zeros=2) > 1e-3  # a twin that keeps both zeros


@pytest.mark.slow
@pytest.mark.parametrize(("build", "scale"), [(noise._gaussian_law, 130.2), (noise._laplace_law, 64.5)])
def test_a_twin_without_a_second_look_has_another_law(build, scale):
    assert distance(build, scale, keeps_without_a_second_look) > 2**-30


@pytest.mark.parametrize("sigma", [70.5, 4096.0, 1.1 * 2.0**24, 2.0**45])
def test_the_table_of_a_gaussian_holds_the_law_of_high_digits_to_120_bits(sigma):
    law = noise._gaussian_law(sigma)
    with mpmath.workdps(60):
        s = mpmath.mpf(sigma) / 2**law.bits
        weights = [mpmath.exp(-(mpmath.mpf(h) ** 2) / (2 * s**2)) for h in range(entries(law) + 50)]
        total = sum(weights)
        assert all(abs(mpmath.mpf(m) / 2**128 - w / total) < 2.0**-120 for m, w in zip(masses(law), weights, strict=False))
        assert sum(weights[entries(law) :]) / total < 2.0**-120
    assert entries(law) <= 1705


def p_value(draws: np.ndarray, below: Callable[[np.ndarray], np.ndarray], scale: float) -> float:
    """Chi-square test in 200 bins, with the probability of being below a half-integer."""
    edges = np.unique(np.floor(scale * np.linspace(-4, 4, 200)).astype(np.int64))
    expected = np.diff(np.concatenate([[0.0], below(edges - 0.5), [1.0]])) * len(draws)
    observed = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(expected))
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def gaussian_below(sigma: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: 0.5 * (1 + erf(x / sigma / math.sqrt(2)))


def laplace_below(scale: float) -> Callable[[np.ndarray], np.ndarray]:
    """P(k < x) for half-integers x."""
    ends = 2 * math.cosh(0.5 / scale)
    return lambda x: np.where(x < 0, np.exp(np.minimum(x, 0) / scale) / ends, 1 - np.exp(-np.maximum(x, 0) / scale) / ends)


@pytest.mark.parametrize("scale", [150.3, 300.7, 4096.0, 2.0**17 + 0.1, 1.1 * 2.0**24, 1.1 * 2.0**40, 2.0**45])
@pytest.mark.parametrize(("sampler", "below"), [(discrete_gaussian, gaussian_below), (discrete_laplace, laplace_below)])
def test_draws_follow_the_law_at_any_scale(sampler, below, scale):
    draws = sampler(scale, 200_000, entropy())
    assert p_value(draws, below(scale), scale) > FALSE_ALARM
    assert p_value(draws, below(1.05 * scale), scale) < FALSE_ALARM
    digits = np.bincount(draws % 64, minlength=64)  # low digits are uniform: one falls by 64 / scale of itself at most
    assert chi2.sf(((digits - len(draws) / 64) ** 2 / (len(draws) / 64)).sum(), 63) > FALSE_ALARM
