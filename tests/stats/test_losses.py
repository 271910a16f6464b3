"""Every loss keeps what the core expects of it: slopes are derivatives, and no record exceeds the limits of its ranges."""

from typing import get_args

import numpy as np
import pytest
from clinic import clinic, federation
from hiding import Hiding
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.formula.api import glm
from statsmodels.genmod.families import Binomial, Tweedie
from statsmodels.genmod.families.links import CLogLog, Log

from hedgerow import Gaussian
from hedgerow.data import Column, Schema, Table, load
from hedgerow.errors import Separated, SettingsInvalid, UnboundedSum
from hedgerow.stats import binary_metrics, fit_of, regression
from hedgerow.stats.linear.loss import Loss, exponential
from hedgerow.stats.linear.losses import FIXED, LOSSES, SHAPED, FamilyName, LossName, family_of, loss_of
from hedgerow.stats.linear.sums import kind_of, limits_of
from hedgerow.stats.regression import fitted
from hedgerow.stats.results import show_regression, spec_of
from hedgerow.stats.scores import explained, over_parties, reading


def targets(loss, rng, n=60):
    """Targets of the kind that a loss reads."""
    if loss.binary or loss.counts:
        return rng.integers(0, 2 if loss.binary else 10, n).astype(float)
    return rng.uniform(*((0.5, 8.0) if loss.positive else (-4.0, 4.0)), n)


def change_of_slope(loss, y, eta, width, h=1e-6):
    """Derivative of the slope by the linear predictor."""
    up, down = (loss.parts(y, eta + shift, width)["slope"]() for shift in (h, -h))
    return (up - down) / (2 * h)


def expected_change_of_slope(loss, eta, width):
    """Its mean over targets that follow the loss; slopes are linear in a target that is not binary."""
    mean = loss.mean(eta)
    if not loss.binary:
        return change_of_slope(loss, mean, eta, width)
    event, none = (change_of_slope(loss, np.full_like(eta, y), eta, width) for y in (1.0, 0.0))
    return mean * event + (1 - mean) * none


def is_near(found, expected):
    return np.allclose(found, expected, rtol=1e-4, atol=1e-4)


def keeps_its_derivatives(loss, width=0.4, h=1e-6):
    """The slope is the derivative of the value, the curvature that of the slope, or of a likelihood its expectation."""
    rng = np.random.default_rng(1)
    y, eta = targets(loss, rng), rng.normal(size=60)
    at, up, down = (loss.parts(y, eta + shift, width) for shift in (0, h, -h))
    value = "smooth" if loss.has("smooth") else "value"
    np.testing.assert_allclose(at["slope"](), (up[value]() - down[value]()) / (2 * h), atol=1e-6, rtol=1e-6)
    observed = is_near(at["curvature"](), change_of_slope(loss, y, eta, width))
    assert observed or (not loss.reads and is_near(at["curvature"](), expected_change_of_slope(loss, eta, width)))


@pytest.mark.parametrize("name", LOSSES)
def test_slopes_and_curvatures_are_derivatives(name):
    keeps_its_derivatives(loss_of(name, 0.3))


@pytest.mark.parametrize("name", ["gamma", "negative binomial"])
def test_some_curvatures_are_the_expected_ones(name):
    eta, loss = np.random.default_rng(2).normal(size=60), loss_of(name, 0.3)
    found = loss.parts(loss.mean(eta), eta, 0.0)["curvature"]()
    np.testing.assert_allclose(found, expected_change_of_slope(loss, eta, 0.0), rtol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=40, deadline=None)
@given(
    ends=st.tuples(st.floats(-6, 6), st.floats(0, 6)),
    where=st.floats(0, 1),
    shape=st.floats(0.05, 0.95),
    width=st.floats(0.01, 3),
)
def test_no_record_exceeds_the_limits_of_its_ranges(name, ends, where, shape, width):
    keeps_its_limits(loss_of(name, shape), *ends, where, width)


def keeps_its_limits(loss, low, size, where, width):
    """No part of a record exceeds its limit where targets and predictors keep to their ranges."""
    rng = np.random.default_rng(3)
    y = targets(loss, rng)
    eta = np.concatenate([low + size * rng.random(len(y) - 1), [low + size * where]])
    limits = limits_of(loss, (y.min(), y.max()), (low, low + size), width=width)
    for part, make in loss.parts(y, eta, width).items():
        assert np.abs(make()).max() <= limits[part] * (1 + 1e-9) + 1e-12, part


def tweedie_parts(y, eta, width):
    """Targets of zero or more whose variance is the mean to the power 1.5."""
    root = np.sqrt(exponential(eta))
    return {
        "value": lambda: 2 * (root + y / root) - 4 * np.sqrt(y),
        "slope": lambda: root - y / root,
        "curvature": lambda: root,
        "pearson": lambda: (y - root**2) ** 2 / root**3,
    }


@pytest.fixture
def tweedie(monkeypatch):
    loss = Loss("tweedie", tweedie_parts, mean=exponential, title="Tweedie regression", ratio="ratio of means", counts=True,
                log_link=True, free_dispersion=True)  # fmt: skip
    monkeypatch.setitem(FIXED, "tweedie", loss)


@pytest.mark.slow
def test_a_new_loss_is_a_function_of_its_parts(tweedie):
    formula = "visits ~ age + dose + smoker"
    found = fitted(federation(), formula, "tweedie")
    frame = clinic().to_pandas()
    frame["smoker"] = frame["smoker"].astype(float)
    expected = glm(formula, frame, family=Tweedie(var_power=1.5, link=Log())).fit(tol=1e-12)
    order = [expected.params.index.get_loc(name) for name in found.names]
    np.testing.assert_allclose(found.coef_, expected.params.iloc[order], rtol=1e-6)
    np.testing.assert_allclose(found.se_, expected.bse.iloc[order], rtol=1e-6)
    assert found.log_likelihood is None
    assert "Tweedie regression" in found.summary()
    hidden = fitted(federation().protect(aggregation=Hiding()), formula, "tweedie")
    np.testing.assert_allclose(hidden.coef_, found.coef_, rtol=1e-8)
    with pytest.raises(UnboundedSum):
        fitted(federation().protect(mechanism=Gaussian(1.0)), formula, "tweedie")


def cloglog_parts(y, eta, width):
    """Binary targets, of which one is the event that a Poisson count of mean exp(eta) is above zero."""
    rate = exponential(eta)
    return {
        "value": lambda: np.where(y > 0.5, -np.log(-np.expm1(-rate)), rate),
        "slope": lambda: np.where(y > 0.5, -rate / np.expm1(rate), rate),
        "curvature": lambda: rate**2 / np.expm1(rate),  # the expected one
    }


@pytest.fixture
def cloglog(monkeypatch):
    loss = Loss(
        "cloglog",
        cloglog_parts,
        most=lambda eta, residual, width: {"curvature": 0.648},
        mean=lambda eta: -np.expm1(-exponential(eta)),
        link=lambda mean: np.log(-np.log1p(-mean)),
        title="complementary log-log regression",
        ratio="hazard ratio",
        binary=True,
    )
    monkeypatch.setitem(FIXED, "cloglog", loss)
    return loss


def test_a_loss_of_somebody_else_keeps_the_same_promises(cloglog):
    keeps_its_derivatives(cloglog)
    for low in (-4.0, -1.0, 0.0, 0.4):
        keeps_its_limits(cloglog, low, 1.5, 0.5, 0.0)


@pytest.mark.parametrize("column", ["mean_texture", "mean_smoothness"])
def test_slow_scoring_of_another_link_is_not_taken_for_separation(cloglog, column):
    table, formula = load("breast_cancer").take(range(300)), f"malignant ~ {column}"
    found = fitted(federation(table), formula, "cloglog", max_rounds=100)
    frame = table.to_pandas().astype({"malignant": float})
    expected = glm(formula, frame, family=Binomial(CLogLog())).fit(tol=1e-14, maxiter=200)
    np.testing.assert_allclose(found.coef_, expected.params, rtol=1e-5)
    np.testing.assert_allclose(found.se_, expected.bse, rtol=1e-5)
    assert found.log_likelihood == pytest.approx(expected.llf)
    y, eta = frame["malignant"].to_numpy(), expected.predict(which="linear")
    assert explained("cloglog")({}, None, y, eta, np.ones(300)) == pytest.approx(1 - expected.deviance / expected.null_deviance)


def test_what_is_shown_of_another_link_is_asked_of_the_loss(cloglog):
    fed, formula = federation(load("breast_cancer").take(range(100))), "malignant ~ mean_smoothness"
    *_, state = regression(fed, formula=formula, family="cloglog", max_rounds=100)
    settings = {"family": "cloglog", "formula": formula}
    assert list(show_regression(fed, settings, state).tables) == ["Coefficients", "Hazard ratios"]
    asked = len(fed.ledger)
    assert over_parties(reading())(fed, settings, state) == {}
    with pytest.raises(SettingsInvalid, match="no log-odds"):
        binary_metrics(fed, fit_of(fed, spec_of(fed, settings, "cloglog"), "cloglog", state))
    assert len(fed.ledger) == asked


@pytest.mark.parametrize("name", LOSSES)
def test_a_link_leads_back_from_the_mean(name):
    eta, loss = np.random.default_rng(4).normal(size=60), loss_of(name)
    np.testing.assert_allclose(loss.link(loss.mean(eta)), eta, rtol=1e-9)


@pytest.mark.parametrize("flipped", [False, True])
def test_separation_behind_another_link_is_named(cloglog, flipped):
    x = np.sort(np.random.default_rng(5).normal(size=200))
    schema = Schema((Column("x", "number"), Column("y", "binary", role="target")))
    table = Table(schema.admit({"x": x, "y": ((x > x[70]) != flipped).astype(float)}), schema)
    with pytest.raises(Separated, match="'x' separates"):
        fitted(federation(table), "y ~ x", "cloglog", max_rounds=200)


def test_every_loss_has_a_family_and_a_shape_where_it_needs_one():
    assert set(get_args(LossName)) == set(LOSSES)
    assert {family_of(name) for name in LOSSES} == set(get_args(FamilyName))
    assert all(LOSSES[name].title and not LOSSES[name].reads for name in get_args(FamilyName))
    for name, make in SHAPED.items():
        assert loss_of(name, 0.25) is make(0.25)
    assert kind_of("pearson").part == "pearson"
