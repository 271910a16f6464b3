"""The law of sums of squares of normal variables, against laws that are known and against draws."""

import numpy as np
import pytest
from scipy import stats

from hedgerow.errors import SettingsInvalid
from hedgerow.market.forecasts.interval import interval, probability, quantile


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (1.0, 1.0), (3.0, 0.1), (100.0, 0.01)])
@pytest.mark.parametrize("p", [0.001, 0.05, 0.5, 0.95])
def test_one_square_is_a_noncentral_chi_square(mean, deviation, p):
    x = deviation**2 * stats.ncx2.ppf(p, 1, (mean / deviation) ** 2)
    assert probability(x, np.array([mean]), np.array([deviation])) == pytest.approx(p, abs=1e-8)
    assert quantile(p, np.array([mean]), np.array([deviation])) == pytest.approx(x, rel=1e-7)


@pytest.mark.parametrize("d", [2, 10, 100])
def test_equal_squares_are_a_chi_square(d):
    assert quantile(0.95, np.zeros(d), np.full(d, 2.0)) == pytest.approx(4 * stats.chi2.ppf(0.95, d), rel=1e-8)


def test_two_pairs_of_equal_squares_are_two_exponentials():
    """With d^2 = 1/2 twice, the sum of a pair is exponential: P(a E1 + b E2 <= x) = 1 - (a e^(-x/a) - b e^(-x/b)) / (a - b)."""
    a, b, x = 3.0, 0.02, 2.0
    deviations = np.sqrt([a / 2, a / 2, b / 2, b / 2])
    exact = 1 - (a * np.exp(-x / a) - b * np.exp(-x / b)) / (a - b)
    assert probability(x, np.zeros(4), deviations) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_nine_draws_of_ten_lie_in_the_interval(seed):
    """Means over six and deviations over five orders of magnitude; 0.014 is 9 deviations of 20 000 draws."""
    rng = np.random.default_rng(seed)
    size = seed + 1
    means = rng.normal(size=size) * 10 ** rng.uniform(-4, 2, size)
    deviations = np.abs(rng.normal(size=size)) * 10 ** rng.uniform(-4, 1, size)
    low, high = interval(0.9, means, deviations)
    q = np.square(means + deviations * rng.standard_normal((20_000, size))).sum(1)
    assert (q < low).mean() == pytest.approx(0.05, abs=0.014)
    assert (q > high).mean() == pytest.approx(0.05, abs=0.014)


def test_without_deviation_the_law_is_a_point():
    assert interval(0.9, np.array([3.0, 4.0]), np.zeros(2)) == (25.0, 25.0)
    assert probability(24.9, np.array([3.0, 4.0]), np.zeros(2)) == 0.0
    assert probability(25.0, np.array([3.0, 4.0]), np.zeros(2)) == 1.0
    assert quantile(0.5, np.array([3.0, 0.0]), np.array([0.0, 1.0])) == pytest.approx(9 + stats.chi2.ppf(0.5, 1))
    assert probability(8.9, np.array([3.0, 0.0]), np.array([0.0, 1.0])) == 0.0


def test_what_is_no_law_is_refused():
    with pytest.raises(SettingsInvalid, match="of at least zero"):
        quantile(0.5, np.zeros(1), -np.ones(1))
    with pytest.raises(SettingsInvalid, match="between 0 and 1"):
        quantile(1.0, np.zeros(1), np.ones(1))
