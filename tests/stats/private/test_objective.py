"""Objective perturbation: goldens, exact densities in one dimension, and broken twins; the solver and its noise."""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from hedgerow.errors import BudgetInvalid
from hedgerow.privacy.accounting import gaussian_delta
from hedgerow.stats.private.continuous import noise_by_length, normal_numbers
from hedgerow.stats.private.nearest import ROWS, minimise
from hedgerow.stats.private.objective import (
    MarginLoss,
    objective_delta,
    objective_noise,
    objective_penalty,
    objective_scale,
    output_distance,
)

LOGISTIC = MarginLoss("logistic")
GRID = np.linspace(-60, 60, 24001)
NEIGHBOURS = [
    (data, more)
    for data in (((), ()), ((1.0,), (1,)), ((1.0,) * 20, (1,) * 10 + (0,) * 10), ((1.0,) * 5, (0,) * 5))
    for more in ((1.0, 1.0), (1.0, 0.0), (-1.0, 1.0))
]


def entropy(seed):
    return np.random.default_rng(seed).bytes


# ---- the formula --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("epsilon", "penalty", "sigma"), [(0.1, 10.125520828, 42.321905581), (1, 1.130202916, 5.058718945), (8, 1, 0.635682469)]
)
def test_sigma_is_that_of_the_note(epsilon, penalty, sigma):
    assert objective_penalty(epsilon) == pytest.approx(penalty, rel=1e-9)
    assert objective_noise(epsilon, 1e-5, objective_penalty(epsilon)) == pytest.approx(sigma, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "sigma", "penalty", "delta"),
    [(1, 5, 2, 9.558800432546767e-07), (0.5, 1, 1, 0.6076325622023149), (0.2, 2, 1, 1.0)],
)
def test_delta_is_that_of_the_note(epsilon, sigma, penalty, delta):
    assert objective_delta(epsilon, sigma, penalty) == pytest.approx(delta, rel=1e-9)


def test_the_bound_is_the_worst_loss_integrated():
    """Independently: delta is E max(0, 1 - exp(epsilon - loss)) of the loss |log det| + m |g| + m^2/2, g normal."""
    epsilon, sigma, penalty = 1.0, 2.0, 3.0
    e, m = epsilon + math.log(1 - 0.25 / penalty), 1 / sigma
    cut = max((e - m * m / 2) / m, 0.0)
    tail, _ = integrate.quad(lambda g: 2 * stats.norm.pdf(g) * -math.expm1(e - m * g - m * m / 2), cut, 30)
    assert objective_delta(epsilon, sigma, penalty) == pytest.approx(tail, rel=1e-7)


def test_the_inverse_never_gives_more_delta():
    for epsilon in (0.05, 0.5, 3.0):
        for delta in (1e-9, 1e-3):
            penalty = objective_penalty(epsilon)
            assert objective_delta(epsilon, objective_noise(epsilon, delta, penalty), penalty) <= delta * (1 + 1e-12)


def test_weights_scale_the_noise():
    assert objective_noise(1.0, 1e-5, 4.0, lipschitz=2.0, curvature=0.5) == pytest.approx(2 * objective_noise(1.0, 1e-5, 2.0))


# ---- exact densities ----------------------------------------------------------------------------------------------------
def log_density(x, y, log_law, penalty):
    """Of the minimum in one dimension: theta comes from b = -gradient, whose slope is the Jacobian."""
    x, y = np.array(x), np.array(y)
    p = special.expit(np.outer(GRID, x))
    b = -(penalty * GRID + ((p - y) * x).sum(1))
    return log_law(b) + np.log(penalty + (p * (1 - p) * x * x).sum(1))


def divergence(data, more, epsilon, log_law, penalty):
    """Exact delta between neighbours, in the worse direction."""
    (x, y), (x1, y1) = data, more
    a, b = log_density(x, y, log_law, penalty), log_density((*x, x1), (*y, y1), log_law, penalty)
    step = GRID[1] - GRID[0]
    return max(np.maximum(np.exp(p) - np.exp(epsilon + q), 0).sum() * step for p, q in ((a, b), (b, a)))


def gaussian(sigma):
    return lambda b: stats.norm.logpdf(b, scale=sigma)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "sigma", "penalty"), [(1, 5, 2), (1, 3, 2), (2, 2, 1), (2, 1, 1)])
def test_no_neighbours_are_further_apart_than_the_bound(epsilon, sigma, penalty):
    bound = objective_delta(epsilon, sigma, penalty)
    worst = max(divergence(data, more, epsilon, gaussian(sigma), penalty) for data, more in NEIGHBOURS)
    assert 0 < worst <= bound


def test_pure_epsilon_bounds_the_loss_everywhere_and_is_nearly_reached():
    epsilon, penalty = 1.0, 1.5
    scale = objective_scale(epsilon, penalty)
    worst = 0.0
    for (x, y), (x1, y1) in NEIGHBOURS[:6]:
        a = log_density(x, y, lambda b: -np.abs(b) / scale, penalty)
        b = log_density((*x, x1), (*y, y1), lambda b: -np.abs(b) / scale, penalty)
        worst = max(worst, float(np.abs(a - b).max()))
    assert 0.8 * epsilon < worst <= epsilon + 1e-9


# ---- broken twins -------------------------------------------------------------------------------------------------------
def test_a_twin_with_a_penalty_below_the_curvature_is_caught():
    """It charges the noise and forgets the determinant, which a small penalty lets one record multiply by 26."""
    epsilon, sigma, penalty, none = 1.0, 50.0, 0.01, ((), ())
    claimed = 2 * gaussian_delta(sigma, epsilon)
    assert claimed < 1e-5
    assert divergence(none, (1.0, 1.0), epsilon, gaussian(sigma), penalty) > 1e3 * claimed
    assert objective_delta(epsilon, sigma, penalty) == 1.0
    assert objective_delta(epsilon, sigma, 0.25) == 1.0
    with pytest.raises(BudgetInvalid, match="determinant"):
        objective_noise(epsilon, 1e-5, 0.25)
    with pytest.raises(BudgetInvalid, match="determinant"):
        objective_scale(0.1, 1.0)


def test_a_twin_with_laplace_numbers_at_an_l2_distance_is_caught():
    """A shift of l2 length 1 along the diagonal of d numbers costs sqrt(d) epsilon, where noise by its length costs epsilon."""
    d, epsilon = 25, 1.0
    shift, at = np.full(d, 1 / math.sqrt(d)), np.full(d, 2.0)
    twin = (np.abs(at).sum() - np.abs(at - shift).sum()) * epsilon
    ours = (np.linalg.norm(at) - np.linalg.norm(at - shift)) * epsilon
    assert twin == pytest.approx(math.sqrt(d) * epsilon)
    assert ours <= epsilon + 1e-12


def stopped_early(b, gradient, tolerance, penalty, rate=0.5):
    """Where gradient descent from zero stops with a gradient below the tolerance, for many b at once."""
    theta = np.zeros_like(b)
    for _ in range(60):
        slope = gradient(theta) + penalty * theta + b
        theta = np.where(np.abs(slope) > tolerance, theta - rate / penalty * slope, theta)
    return theta


def test_a_twin_that_stops_early_and_adds_no_noise_is_caught():
    """Its gradient never ends below rate * tolerance: minima that no b reaches, others for other records."""
    epsilon, penalty, tolerance = 1.0, 2.0, 1.0
    sigma = objective_noise(epsilon, 1e-5, penalty)
    b = np.linspace(-8 * sigma, 8 * sigma, 20001)
    with_record = stopped_early(b, lambda theta: special.expit(theta) - 1.0, tolerance, penalty)
    mass = stats.norm.pdf(b, scale=sigma) * (b[1] - b[0])
    reached = np.sort(stopped_early(b, lambda theta: 0.0 * theta, tolerance, penalty))
    nearest = reached[np.clip(np.searchsorted(reached, with_record), 0, len(reached) - 1)]
    before = reached[np.clip(np.searchsorted(reached, with_record) - 1, 0, len(reached) - 1)]
    unreached = np.minimum(np.abs(nearest - with_record), np.abs(before - with_record)) > 0.05
    assert mass[unreached].sum() > 1e3 * 1e-5  # outcomes of probability zero without the record


# ---- output perturbation ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("loss", ["logistic", "svm"])
@pytest.mark.parametrize("penalty", [0.1, 3.0])
def test_one_record_moves_the_minimum_by_less_than_the_bound(loss, penalty):
    rng, law, worst = np.random.default_rng(1), MarginLoss(loss), 0.0
    for n in (0, 1, 4, 30):
        X = rng.normal(size=(n + 1, 3))
        X /= np.linalg.norm(X, axis=1)[:, None]
        y = (rng.random(n + 1) < 0.5).astype(float)
        found = [
            minimise(X[:k], y[:k], np.ones(k), np.zeros(3), loss=law, penalty=penalty, tolerance=1e-9).theta for k in (n, n + 1)
        ]
        worst = max(worst, float(np.linalg.norm(found[1] - found[0])))
    assert 0.01 * output_distance(penalty) < worst <= output_distance(penalty)
    assert output_distance(penalty, neighbours="replace-one") == 2 * output_distance(penalty)


# ---- the solver ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("loss", ["logistic", "svm"])
def test_the_solver_is_deterministic_and_knows_how_near_it_is(loss):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 6))
    X = np.trunc(X / np.linalg.norm(X, axis=1)[:, None] * 2.0**ROWS) / 2.0**ROWS
    y, b, w = (X[:, 0] > 0).astype(float), 5 * rng.normal(size=6), rng.random(3000)
    law = MarginLoss(loss)
    first = minimise(X, y, w, b, loss=law, penalty=1.5, tolerance=1e-7)
    again = minimise(X, y, w, b, loss=law, penalty=1.5, tolerance=1e-7)
    slope = X.T @ (w * law.slopes(X @ first.theta, y)) + 1.5 * first.theta + b
    assert (first.theta == again.theta).all()
    assert np.linalg.norm(slope) <= first.gradient <= 1e-7


@pytest.mark.parametrize("loss", ["logistic", "svm"])
def test_slopes_and_curves_are_derivatives_within_their_bounds(loss):
    law, eta, h = MarginLoss(loss), np.linspace(-4, 4, 801) + 1e-4, 1e-6
    for y in (np.zeros(801), np.ones(801)):
        numeric = (law.slopes(eta + h, y) - law.slopes(eta - h, y)) / (2 * h)
        assert np.allclose(law.curves(eta, y), numeric, atol=1e-4)
        assert np.abs(law.slopes(eta, y)).max() <= 1
        assert law.curves(eta, y).max() <= law.curvature <= 1.001 * law.curves(eta, y).max()


# ---- noise --------------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_noise_has_the_declared_laws():
    """Kolmogorov and Smirnov's test at a level of 1e-3, at fixed seeds."""
    assert stats.kstest(normal_numbers(20000, entropy(1)), "norm").pvalue > 1e-3
    drawn = np.array([noise_by_length(2.0, 5, source) for source in [entropy(2)] for _ in range(3000)])
    assert stats.kstest(np.linalg.norm(drawn, axis=1), stats.gamma(5, scale=2.0).cdf).pvalue > 1e-3
    assert stats.kstest(drawn[:, 0] / np.linalg.norm(drawn, axis=1), lambda t: stats.beta(2, 2).cdf((t + 1) / 2)).pvalue > 1e-3
