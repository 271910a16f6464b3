"""Distributions of privacy losses against dp_accounting, exact curves and sums with four hundred digits."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as library
from numpy.testing import assert_array_equal

from hedgerow.privacy.accounting import gaussian_delta, losses, renyi
from hedgerow.privacy.accounting.costs import Use
from hedgerow.privacy.accounting.distribution import TAIL, Distribution, _convolved

AT = (0.0, 0.05, 0.3, 1.0, 2.5)
MADE = {
    "gaussian": (Use("gaussian", 1.3), lambda q, grid: library.from_gaussian_mechanism(1.3, **grid)),
    "quiet gaussian": (Use("gaussian", 40.0), lambda q, grid: library.from_gaussian_mechanism(40.0, **grid)),
    "sampled gaussian": (Use("gaussian", 0.9, rate=0.1), lambda q, grid: library.from_gaussian_mechanism(0.9, **q, **grid)),
    "laplace": (Use("laplace", 1.5), lambda q, grid: library.from_laplace_mechanism(1.5, **grid)),
    "sampled laplace": (Use("laplace", 0.7, rate=0.1), lambda q, grid: library.from_laplace_mechanism(0.7, **q, **grid)),
}


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 50])
@pytest.mark.parametrize("name", MADE)
def test_losses_are_those_of_dp_accounting(name, n):
    use, make = MADE[name]
    theirs = make({"sampling_prob": 0.1}, {"value_discretization_interval": 1e-3})
    theirs = theirs if n == 1 else theirs.self_compose(n)
    ours = losses.loss(use, 1, 1e-3)
    ours = ours if n == 1 else ours.times(n)
    assert [ours.delta(e) for e in AT] == pytest.approx([theirs.get_delta_for_epsilon(e) for e in AT], rel=1e-7, abs=1e-11)
    assert [ours.epsilon(10**-k) for k in (1, 4, 7)] == pytest.approx(
        [theirs.get_epsilon_for_delta(10**-k) for k in (1, 4, 7)], rel=1e-7
    )


@pytest.mark.parametrize("z", [0.6, 3.0, 25.0])
def test_between_points_of_the_grid_a_distribution_is_above_its_curve_and_on_them_equal(z):
    made = losses.loss(Use("gaussian", z), 1, 0.01)
    on, between = np.arange(0, 1.5, 0.01), np.arange(0.005, 1.5, 0.01)
    exact, above, below = ([gaussian_delta(z, e) for e in at.tolist()] for at in (on, between, between - 0.005))
    assert made.remove.delta(on) == pytest.approx(exact, rel=1e-9, abs=1e-13)
    assert (made.remove.delta(between) >= np.array(above) - 1e-13).all()
    assert (made.remove.delta(between) <= np.array(below) + 1e-13).all()


def exact(atoms, n, epsilon):
    """Delta of n times a few losses, summed over all sequences."""
    total = {0.0: 1.0}
    for _ in range(n):
        longer = {}
        for loss, p in total.items():
            for one, q in atoms.items():
                longer[loss + one] = longer.get(loss + one, 0.0) + p * q
        total = longer
    return sum(p * max(0.0, -math.expm1(epsilon - loss)) for loss, p in total.items())


@pytest.mark.parametrize("n", [1, 2, 7])
def test_atoms_compose_as_their_sums(n):
    probability = np.array([0.2, 0.5, 0.3])
    atoms = dict(zip((-0.31, 0.12, 0.47), probability.tolist(), strict=True))
    one = Distribution.from_atoms(np.array([*atoms]), probability, 0.0, 1e-3)
    assert one.probabilities.sum() == pytest.approx(1.0)
    assert one.probabilities @ np.exp(-one.losses) == pytest.approx(sum(p * math.exp(-x) for x, p in atoms.items()))
    step_by_step = one
    for _ in range(n - 1):
        step_by_step = step_by_step.compose(one)
    for epsilon in (0.0, 0.2, 0.9):
        for found in (one.times(n), step_by_step):
            assert exact(atoms, n, epsilon) - 1e-12 <= found.delta(epsilon) <= exact(atoms, n, epsilon) + 1e-6 * n
    assert step_by_step.infinite <= n * TAIL


def test_what_is_infinite_adds_up():
    one = Distribution.from_atoms(np.array([0.1]), np.ones(1), 0.01, 1e-3)
    for found in (one.compose(one).compose(one), one.times(3)):
        assert found.infinite == pytest.approx(1 - 0.99**3, rel=1e-9)
        assert found.epsilon(0.02) == math.inf
        assert found.epsilon(0.03) == pytest.approx(0.3, abs=0.01)


def test_epsilon_is_the_least_whose_delta_is_small_enough():
    made = losses.loss(Use("gaussian", 0.8, rate=0.3), 1, 1e-3)
    for delta in (0.2, 1e-2, 1e-5, 1e-9):
        epsilon = made.epsilon(delta)
        assert made.delta(epsilon) == pytest.approx(delta, rel=1e-6) or (epsilon == 0 and made.delta(0.0) <= delta)
        assert made.delta(epsilon + 1e-6) <= delta
        assert epsilon == 0 or made.delta(epsilon - 1e-6) > delta


@pytest.mark.parametrize("z", [0.5, 2.5, 30.0, 200.0])
def test_moments_of_a_likelihood_ratio_have_all_their_digits(z):
    """The alternating sum of the theorem, with four hundred digits; with sixteen it has none left at z = 30."""
    found = renyi._log_moments(z, 128)
    with mpmath.workdps(400):
        values = [mpmath.e ** (mpmath.mpf(i * (i - 1)) / (2 * mpmath.mpf(z) ** 2)) for i in range(129)]
        for k in (2, 8, 40, 128):
            moment = mpmath.fsum((-1) ** (k - i) * mpmath.binomial(k, i) * values[i] for i in range(k + 1))
            assert found[k] == pytest.approx(float(mpmath.log(moment)), rel=1e-12)
    in_floats = sum((-1) ** i * math.comb(40, i) * math.exp(i * (i - 1) / (2 * 30.0**2)) for i in range(41))
    assert abs(math.log(abs(in_floats)) - renyi._log_moments(30.0, 40)[40]) > 10


@pytest.mark.parametrize("sizes", [(1, 1), (1, 7), (5, 3), (1000, 17), (4097, 4097), (7, 3001)])
def test_a_convolution_is_bit_for_bit_that_of_scipy(sizes):
    from scipy.signal import fftconvolve

    one, other = (np.random.default_rng(k).random(n) for k, n in enumerate(sizes))
    assert_array_equal(_convolved(one, other), fftconvolve(one, other))
