"""The level of noise that programs correct for is the one in the release, whatever bound, law and place."""

import numpy as np
import pytest
from scipy.stats import chi2

from hedgerow import Gaussian, Laplace, l1, l2, linf
from hedgerow.core.federation import Federation
from hedgerow.core.question import local
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy.choice import Exponential
from hedgerow.privacy.level import noise_level
from hedgerow.privacy.mechanisms import Geometric, Skellam
from hedgerow.privacy.simulated_gaussian import SimulatedGaussian
from helpers import federation

FALSE_ALARM = 1e-6


@local(additive=True)
def nothing(broadcast, party, rng):
    """Zeros under two keys of different sizes."""
    return {"a": np.zeros(30), "b": np.zeros((30, 20))}


def residuals(fed: Federation, bound, key, size, others):
    return fed.sum(nothing, bound=bound)[key].ravel() / noise_level(fed, bound, key, size, others)


SLOW = pytest.mark.slow  # for its tables
MECHANISMS = [Gaussian(2.0), Laplace(2.0), pytest.param(Skellam(2.0), marks=SLOW)]
MECHANISMS += [Gaussian(2.0, at="party"), SimulatedGaussian(2.0), Geometric(2.0)]
BOUNDS = [linf(3.0), pytest.param(l2(3.0), marks=SLOW), l1(3.0), linf(3.0, unit="record")]
BOUNDS += [pytest.param({"a": linf(3.0), "b": l2(5.0)}, marks=SLOW)]


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize(("key", "size", "others"), [("a", 30, 600), ("b", 600, 30)])
def test_the_level_is_that_of_the_release(mechanism, bound, key, size, others):
    """Squares of the release over the level: chi-square for Gaussian noise, of eight times less weight for Laplace."""
    fed = federation().protect(mechanism=mechanism)
    found = (residuals(fed, bound, key, size, others) ** 2).sum()
    laplace = "laplace" in str(mechanism).lower() or "geometric" in str(mechanism).lower()
    size = size // 8 if laplace else size
    low, high = chi2.interval(1 - FALSE_ALARM, size)
    assert low < found / (8 if laplace else 1) < high


def test_one_bound_over_several_keys_has_noise_that_grows_with_all_of_them():
    """The mended error: the level of `a` was that of a release of `a` alone, 4.6 times too small."""
    fed = federation().protect(mechanism=Gaussian(2.0))
    alone, among = noise_level(fed, linf(3.0), "a", 30), noise_level(fed, linf(3.0), "a", 30, 600)
    assert among / alone == pytest.approx(np.sqrt(630 / 30))


def test_a_small_scale_has_the_deviation_of_the_geometric_law():
    fed = federation().protect(mechanism=Geometric(0.5))
    r = np.exp(-2.0)
    assert noise_level(fed, linf(1.0, unit="record"), "n", 1) == pytest.approx(np.sqrt(2 * r) / (1 - r))


def test_there_is_no_level_without_a_mechanism_and_none_known_of_a_choice():
    assert noise_level(federation(), linf(1.0), "a", 3) == 0.0
    with pytest.raises(BudgetInvalid, match="no noise of a known size"):
        noise_level(federation().protect(mechanism=Exponential(1.0)), linf(1.0), "a", 3)
