"""Regression over one-record stores behind hidden rows, while stores drop out: equal to the pooled fit of those who stayed."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

import hedgerow as hr
from hedgerow.errors import HedgerowWarning
from helpers import run_of

FORMULA = "malignant ~ mean_radius + mean_texture"
COLUMNS = ["mean_radius", "mean_texture"]


def stores(rows, **engine):
    """One store for each of the first records."""
    table = hr.data.load("breast_cancer").take(np.arange(569) < rows)
    return table, hr.simulate(table, hr.data.stores(), seed=0, engine=hr.InProcess(**engine))


def pooled(table, stayed):
    """The fit of statsmodels on the records of these stores."""
    X = np.column_stack([np.ones(len(table)), *(table[name] for name in COLUMNS)])[stayed]
    return sm.Logit(table["malignant"][stayed], X).fit(disp=0, tol=1e-10, maxiter=100)


def stayed(federation):
    """Which stores are still there."""
    away = run_of(federation).engine._leaving
    parties = federation.names
    leaves = run_of(federation).streams.uniform(len(parties), 0, "engine", "dropout") < away.rate
    return ~leaves


@pytest.mark.slow
@pytest.mark.parametrize(
    "aggregation", [hr.SecAgg(records=1, dropouts=0.2, rounds_per_epoch=8), hr.AdditiveShares(records=1)], ids=str
)
def test_a_tenth_of_the_stores_leave_and_the_fit_is_that_of_the_others(aggregation):
    table, open_stores = stores(300, dropout_rate=0.1, returns=False)
    hidden = open_stores.protect(aggregation=aggregation)
    with pytest.warns(HedgerowWarning, match="round 2 of this fit lost about 10 records"):
        fit = hr.stats.logistic_regression(hidden, FORMULA)
    left = stayed(hidden)
    expected = pooled(table, left)
    assert fit.rounds < 10
    assert fit.n_records == left.sum() < 300
    assert_allclose(fit.coef_, expected.params, rtol=1e-8)
    assert_allclose(fit.conf_int(), expected.conf_int(), rtol=1e-7)
    assert_allclose(fit.log_likelihood, expected.llf, rtol=1e-9)


@pytest.mark.slow
def test_every_statistic_runs_where_rows_are_hidden():
    table, open_stores = stores(120)
    hidden = open_stores.protect(aggregation=hr.AdditiveShares(records=1))
    plain = hr.stats.moments(open_stores, COLUMNS)
    found = hr.stats.moments(hidden, COLUMNS)
    assert_allclose(found.mean, plain.mean, rtol=1e-9)
    assert_allclose(found.sd, plain.sd, rtol=1e-8)
    medians = [hr.stats.quantiles(federation, "mean_radius", [0.5]) for federation in (hidden, open_stores)]
    assert_allclose(*medians, rtol=1e-6)
    linear = hr.stats.linear_regression(hidden, "mean_area ~ mean_radius")
    assert_allclose(linear.coef_, hr.stats.linear_regression(open_stores, "mean_area ~ mean_radius").coef_, rtol=1e-8)
    standard = hr.stats.standardise(hidden, COLUMNS)
    assert_allclose(
        hr.stats.logistic_regression(standard, FORMULA).coef_,
        hr.stats.logistic_regression(hr.stats.standardise(open_stores, COLUMNS), FORMULA).coef_,
        rtol=1e-7,
    )
    assert len(table) == 120


@pytest.mark.slow
@pytest.mark.parametrize("law", [hr.privacy.Skellam, hr.Gaussian])
def test_noise_in_shares_makes_the_fit_private_where_nobody_sees_a_row_or_a_total_without_it(law):
    (_, others), (_, open_stores) = stores(569), stores(569)
    channel = {"mechanism": law(0.5, "shares", 500), "aggregation": hr.AdditiveShares(records=1)}
    private = open_stores.protect(**channel).within(hr.Budget(20.0, 1e-4, "record", accountant="rdp"))
    exact = hr.stats.logistic_regression(others, "malignant ~ I((mean_radius - 14) / 10)")
    fit = hr.stats.logistic_regression(private, "malignant ~ I((mean_radius - 14) / 10)", rounds=3)
    assert_allclose(fit.coef_, exact.coef_, rtol=0.5, atol=1.0)
    assert np.isnan(fit.se_).all()
    spent = private.ledger.limit.spent(private.ledger.charges("record"))
    assert 0 < spent < 20
    assert "distributed privacy" in fit.protection
