"""Theorems 2 and 3: goldens of the printed forms, what tells them from the mended ones, and that the mended ones hold."""

import math

import numpy as np
import pytest
from recursions import runs

from hedgerow.errors import SettingsInvalid
from hedgerow.learn.queries import Steps
from hedgerow.market import PilotEstimate, propagate
from hedgerow.market.forecasts.theorems import (
    distance,
    distance_printed,
    noise_of,
    openness,
    theorem_2,
    theorem_2_printed,
    theorem_3,
    theorem_3_printed,
    travelled,
    zeta_claimed,
    zetas,
)

H = np.array([1.8, 0.9, 0.5])
ESTIMATE = PilotEstimate(np.diag(H), np.array([0.5, -0.6, 0.7]), 0.3, np.zeros((3, 3)), "made up")


def test_the_printed_theorem_2_has_the_golden_value_and_lacks_the_coordinates():
    assert theorem_2_printed(2, 1, 0.5, 3e4, [1, 1, 1]) == pytest.approx(2.133333e-07, rel=1e-6)


def test_a_gradient_has_noise_in_every_coordinate():
    """(A.1) says that E|w|^2 is 8 Xi^2 T^2 / n^2 S: draws of p coordinates have p times that."""
    rng, p = np.random.default_rng(0), 7
    w = rng.laplace(0, 2 * 2.0 * 10 / 0.5 / 300, (20_000, p))
    assert np.square(w).sum(1).mean() == pytest.approx(p * noise_of(2.0, 10, 300, [0.5]), rel=0.03)


def test_the_three_versions_of_3_8_differ_and_only_one_follows():
    found = distance_printed(2, 1, 0.5, 3e4, [1, 1, 1], slack=1e-3)
    noise = 4 / 0.5 * theorem_2_printed(2, 1, 0.5, 3e4, [1, 1, 1])
    assert found["printed"] - noise == pytest.approx(5e-4)
    assert found["appendix"] - noise == pytest.approx(5e-4)  # by luck of L = 1/2
    assert found["mended"] == pytest.approx(4 / 0.5 * (theorem_2_printed(2, 1, 0.5, 3e4, [1, 1, 1]) + 1e-3))
    other = distance_printed(2, 1, 2.0, 3e4, [1, 1, 1], slack=1e-3)
    assert len({round(value, 9) for value in other.values()}) == 3


def test_strong_convexity_gives_half_of_what_a_2_says_and_a_parabola_reaches_it():
    error = np.array([0.0, 0.0, 0.3])  # along the least curvature
    excess = float(error @ np.diag(H) @ error) / 2
    assert distance(excess, 0.5) == pytest.approx(float(error @ error))
    rng = np.random.default_rng(0)
    for error in rng.normal(size=(50, 3)):
        assert error @ error <= distance(error @ np.diag(H) @ error / 2, 0.5) * (1 + 1e-12)


def test_steps_of_the_printed_algorithm_1_add_up_to_next_to_nothing_and_less_for_longer_runs():
    """So no k_0 <= T follows: the sum that should go to minus infinity is at least -eps rho (1 + ln T) / T^2."""
    sums = [travelled(1.0, horizon) for horizon in (10, 100, 1000)]
    assert sums == sorted(sums, reverse=True)
    assert sums[1] < (1 + math.log(100)) / 100**2
    still = propagate(ESTIMATE, Steps("algorithm-1", 1.0, 50.0), 1000)
    assert still.bias == pytest.approx(ESTIMATE.best @ np.diag(H) @ ESTIMATE.best / 2, rel=1e-3)  # where it began
    assert still.bias > 1e4 * theorem_2_printed(1, 1, 0.5, 3e4, [1])


def test_the_differences_of_a_3_are_thirty_times_what_is_claimed():
    zeta = zetas(100)
    assert zeta.sum() == pytest.approx(1.0)
    assert np.diff(zeta).max() == pytest.approx(6.6e-4, rel=0.01)
    assert zeta_claimed(100) == pytest.approx(1.98e-5, rel=0.01)
    eta = 1 / math.sqrt(100)
    by_hand = [(eta + 1) / (eta + k) * math.prod((m - 1) / (eta + m) for m in range(k + 1, 101)) for k in range(1, 101)]
    np.testing.assert_allclose(zeta, by_hand)


def test_the_printed_theorem_3_vanishes_as_epsilon_grows_and_the_excess_does_not():
    bias = propagate(ESTIMATE, Steps("algorithm-2", 0.5, 2.0), 50).bias
    c2 = 1.0
    assert theorem_3_printed(c2, 2.0, 3e4, [1e9] * 3) < 1e-6 * bias
    assert theorem_3(Steps("algorithm-2", 0.5, 2.0), 50, 1.0, 0.0, 3) > bias


@pytest.mark.parametrize("variance", [0.0, 0.05, 2.0])
def test_the_mended_theorems_hold_for_runs_in_the_box(variance):
    """2 000 runs each; the bounds are far above them, and true."""
    rng = np.random.default_rng(0)
    box, horizon = 1.0, 40
    steepest = float(np.linalg.norm(H * (box + np.abs(ESTIMATE.best))))
    strong = Steps("strongly-convex", 2 / H.min(), box, convexity=float(H.min()))
    for steps, bound in (
        (strong, theorem_2(float(H.min()), horizon, steepest, variance, 3)),
        (plain := Steps("algorithm-2", 0.4, box), theorem_3(plain, horizon, steepest, variance, 3)),
    ):
        achieved = runs(ESTIMATE, steps, horizon, lambda shape: rng.normal(0, variance**0.5, shape), 2000).mean()
        assert achieved < bound


def test_without_its_factor_p_the_mended_bound_would_be_broken():
    """One noisy gradient after which nothing is left of the start: a twin with the printed variance lies below the excess."""
    rng, p, v = np.random.default_rng(0), 400, 1.0
    flat = PilotEstimate(np.eye(p), np.zeros(p), 1.0, np.zeros((p, p)), "made up")
    steps = Steps("strongly-convex", 2.0, 1e3, convexity=1.0)
    achieved = runs(flat, steps, 10, lambda shape: rng.normal(0, v**0.5, shape), 50).mean()
    assert theorem_2(1.0, 10, 0.0, v, 1) < achieved < theorem_2(1.0, 10, 0.0, v, p)


def test_theorem_3_is_for_algorithm_2():
    with pytest.raises(SettingsInvalid, match="algorithm-1"):
        theorem_3(Steps("algorithm-1"), 10, 1.0, 1.0, 2)
    with pytest.raises(SettingsInvalid, match="above zero"):
        openness([1.0, 0.0])
