"""The solver of private minima: it ends at every gradient it is asked for, declines no records, and bounds its rounding."""

import math
from fractions import Fraction

import numpy as np
import pytest

from hedgerow.errors import BudgetInvalid, SettingsInvalid
from hedgerow.stats.private.minima import MOST_RECORDS, PlannedMinimum
from hedgerow.stats.private.nearest import ROWS, UNIT, _floats, _Problem, minimise, rounding
from hedgerow.stats.private.objective import MarginLoss

HINGE = MarginLoss("svm")


def corners(seed):
    """Few records on corners, where many margins are on a kink of the hinge at once."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 14))
    X = np.stack([np.ones(n), rng.integers(0, 3, n) / 2, rng.integers(0, 3, n) / 2], axis=1)
    return X / np.linalg.norm(X, axis=1)[:, None], rng.integers(0, 2, n).astype(float)


def plain_newton(X, y, penalty, steps=100):
    """A twin without a line search: Newton's whole steps in floating-point numbers; its last gradient."""
    theta = np.zeros(X.shape[1])
    for _ in range(steps):
        eta = X @ theta
        g = X.T @ HINGE.slopes(eta, y) + penalty * theta
        theta = theta - np.linalg.solve(penalty * np.eye(len(theta)) + X.T @ (X * HINGE.curves(eta, y)[:, None]), g)
    return float(np.linalg.norm(X.T @ HINGE.slopes(X @ theta, y) + penalty * theta))


def test_every_set_of_records_has_its_minimum():
    """Kinks made Newton's method stall for 8 of 250 such sets, and which ones followed from the records alone."""
    for penalty in (1e-6, 1e-3, 1.0):
        for seed in range(25):
            X, y = corners(seed)
            found = minimise(X, y, np.ones(len(X)), np.zeros(3), loss=HINGE, penalty=penalty, tolerance=1e-7)
            assert found.gradient <= 1e-7
            assert found.steps < 60


def test_a_twin_of_whole_newton_steps_is_caught():
    gradients = [plain_newton(*corners(seed), penalty=1e-3) for seed in range(20)]
    assert max(gradients) > 1e-3


@pytest.mark.parametrize("method", ["objective", "output"])
def test_a_party_of_many_or_heavy_records_answers(method):
    """Rounding once grew with the sum of the weights, and a gradient's length had to be the same at all weights."""
    for n, heaviest in ((800, 1000.0), (700_000, 1.0)):
        plan = PlannedMinimum(method, 1.0, 1e-5, 2 * heaviest, heaviest=heaviest)
        found = plan.released(np.ones((n, 1)), np.arange(n) % 2, np.full(n, heaviest), np.random.default_rng(0).bytes)
        assert np.isfinite(found).all()


def test_the_noise_covers_a_gradient_in_proportion_to_the_heaviest_weight():
    light, heavy = (PlannedMinimum("objective", 1.0, 1e-5, 2 * one, heaviest=one) for one in (1.0, 1000.0))
    assert heavy.distance == pytest.approx(light.distance)


def exact_gradient(X, y, w, b, theta, penalty):
    """In fractions, of the hinge of width 1/2."""
    theta = [Fraction(number, 2**60) for number in theta]
    total = [Fraction(penalty) * t + Fraction(v) for t, v in zip(theta, b.tolist(), strict=True)]
    for x, label, weight in zip(X.tolist(), y, w.tolist(), strict=True):
        x, sign = [Fraction(v) for v in x], 1 if label > 0.5 else -1
        eta = sum(v * t for v, t in zip(x, theta, strict=True))
        slope = -sign * min(max(Fraction(3, 2) - sign * eta, Fraction(0)), Fraction(1)) * Fraction(weight)
        total = [value + slope * v for value, v in zip(total, x, strict=True)]
    return total


@pytest.mark.parametrize("size", [1.0, 1e5, 1e12])
def test_a_gradient_is_as_near_the_exact_one_as_is_said(size):
    """Long coefficients that cancel in every row: a product of floating-point numbers would be off by 2^-53 of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[:, 2] = -X[:, 0] - X[:, 1] + 1e-13 * rng.normal(size=60)
    X = np.trunc(X / np.linalg.norm(X, axis=1)[:, None] * 2.0**ROWS) / 2.0**ROWS
    y, w, b = (rng.random(60) < 0.5).astype(float), rng.random(60), rng.normal(size=3)
    theta = [round(size * 2**60) + round(v * 2**60) for v in rng.random(3)]
    problem = _Problem(X, y, w, b, HINGE, 1e-3)
    exact = exact_gradient(X, y, w, b, theta, 1e-3)
    off = math.hypot(*(float(Fraction(v) - e) for v, e in zip(problem.gradient(theta).tolist(), exact, strict=True)))
    assert off <= problem.rounded + 1e-3 * UNIT * 2 * float(np.linalg.norm(_floats(theta)))


def test_it_ends_where_floating_point_numbers_do():
    X, y = corners(5)
    found = minimise(X, y, np.ones(len(X)), np.ones(3), loss=HINGE, penalty=1.0, tolerance=1e-30)
    assert 1e-30 < found.gradient < 1e-12


def test_settings_that_rounding_could_spoil_are_refused_by_public_numbers():
    tight = PlannedMinimum("objective", 1.0, 1e-5, 2.0, tolerance=1e-8)
    assert rounding(MOST_RECORDS, 3, MarginLoss(), 2.0) > tight.tolerance / 4
    for plan, error in (
        (tight, SettingsInvalid),
        (PlannedMinimum("output", 1.0, 1e-5, 1e15), SettingsInvalid),
        (PlannedMinimum("objective", 1e-9, 0.0, 1e9), BudgetInvalid),
        (PlannedMinimum("objective", 1e-9, 1e-14, 1e9), BudgetInvalid),
        (PlannedMinimum("output", 1e-7, 0.0, 2.0), BudgetInvalid),
    ):
        for n in (0, 5):
            with pytest.raises(error):
                plan.released(np.ones((n, 3)), np.ones(n), np.ones(n), np.random.default_rng(0).bytes)
    with pytest.raises(SettingsInvalid, match="penalty"):
        PlannedMinimum("output", 1.0, 1e-5, 1e-7)
