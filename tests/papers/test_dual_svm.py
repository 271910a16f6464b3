"""Noise on dual variables: what one record moves, and that the fit is that of scikit-learn."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from hedgerow.papers.haug.dual_svm import dual_machine, dual_variables, with_noise


def unit(rng, n, d=2):
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True), rng.choice([-1.0, 1.0], n)


def tight(X, s, C):
    return dual_variables(X, s, C, passes=4000, tol=1e-9)


def test_dual_variables_maximise_the_dual():
    X, s = unit(np.random.default_rng(3), 30, 4)
    Q = (X * s[:, None]) @ (X * s[:, None]).T
    best = minimize(lambda a: a @ Q @ a / 2 - a.sum(), np.zeros(30), jac=lambda a: Q @ a - 1, bounds=[(0, 2.0)] * 30, tol=1e-14)
    duals = tight(X, s, 2.0)
    assert duals @ Q @ duals / 2 - duals.sum() == pytest.approx(best.fun, abs=1e-7)


def test_weights_are_those_of_scikit_learn():
    X, s = unit(np.random.default_rng(4), 200, 3)
    theirs = LinearSVC(loss="hinge", C=0.7, fit_intercept=False, tol=1e-8, max_iter=100_000, random_state=0).fit(X, s)
    np.testing.assert_allclose((tight(X, s, 0.7) * s) @ X, theirs.coef_[0], atol=1e-4)


@pytest.mark.slow
def test_one_record_moves_the_dual_variables_of_the_others_by_more_than_C():
    rng, moved = np.random.default_rng(0), 0.0
    for _ in range(25):
        X, s = unit(rng, 11)
        moved = max(moved, np.abs(tight(X, s, 3.0)[1:] - tight(X[1:], s[1:], 3.0)).sum())
    assert moved > 2 * 3.0  # so that Laplace noise scaled to C = 3 hides nobody


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.5, 3.0])
def test_one_record_moves_the_weights_by_at_most_C_which_is_reached(C):
    rng, moved = np.random.default_rng(0), 0.0
    for _ in range(60):
        X, s = unit(rng, int(rng.integers(2, 9)))
        with_it, without = tight(X, s, C), tight(X[1:], s[1:], C)
        moved = max(moved, np.linalg.norm((with_it * s) @ X - (without * s[1:]) @ X[1:]))
    assert 0.99 * C < moved <= C * (1 + 1e-6)


def test_a_variable_without_a_support_vector_says_so():
    X, s = unit(np.random.default_rng(1), 40)
    duals = tight(X, s, 0.5)
    noisy = with_noise(duals, X, C=0.5, epsilon=0.1, rng=np.random.default_rng(0))
    assert (duals == 0).any()
    np.testing.assert_array_equal(noisy == 0, duals == 0)


def test_the_smaller_epsilon_the_further_the_weights():
    X, s = unit(np.random.default_rng(2), 60, 4)
    duals, signs = dual_machine(X, (s + 1) / 2, C=1.0)
    np.testing.assert_array_equal(signs, s)
    moved = [
        np.linalg.norm((with_noise(duals, X, C=1.0, epsilon=e, rng=np.random.default_rng(0)) - duals) @ X) for e in (1, 0.01)
    ]
    assert moved[1] == pytest.approx(100 * moved[0])
