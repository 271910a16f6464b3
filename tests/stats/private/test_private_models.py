"""Private models end to end: what they cost, what they refuse, and that without noise they are the pooled fit."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import hedgerow as hr
from hedgerow.errors import NotBinary, SlotFilled
from hedgerow.stats import private

FORMULA = "malignant ~ mean_radius + mean_texture + mean_smoothness"


def cancer(n=200):
    return hr.data.load("breast_cancer").take(range(n))


def parties(table=None, k=3, **settings):
    return hr.simulate(cancer() if table is None else table, hr.data.iid(parties=k), seed=1, **settings)


def rows_of(table, formula, **settings):
    rows = private.UnitRows.of(formula, table.schema, **settings)
    return rows, rows.rows(table.columns, len(table)), rows.targets(table.columns)


def test_without_noise_it_is_scikit_learns_logistic_regression():
    table = cancer()
    fit = private.logistic(parties(), FORMULA, bins=4, tol=1e-9)
    _, X, y = rows_of(table, FORMULA, bins=4)
    known = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y).coef_[0]
    np.testing.assert_allclose(fit.coef_, known, rtol=0, atol=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_ledger_has_the_epsilon_that_was_asked_for(epsilon):
    federation = parties()
    fit = private.logistic(federation, FORMULA, epsilon=epsilon, delta=1e-5)
    spent = federation.ledger.epsilon(delta=1e-5, unit="record")
    assert 0 <= epsilon - spent <= 1e-6 * epsilon
    assert fit.spent == (spent, 1e-5)
    assert fit.rounds == len(federation.ledger) == (7 if epsilon < 0.2 else 13)


def test_a_budget_beside_a_noisy_channel_is_refused():
    noisy = parties().protect(mechanism=hr.privacy.Gaussian(5.0))
    with pytest.raises(SlotFilled):
        private.logistic(noisy, FORMULA, epsilon=1.0, delta=1e-5)
    assert len(noisy.ledger) == 0


def test_a_number_is_no_class():
    with pytest.raises(NotBinary):
        private.logistic(parties(), "mean_radius ~ mean_texture")
