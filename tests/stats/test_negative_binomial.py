"""Negative binomial regressions equal statsmodels, alpha and its error included."""

import numpy as np
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from clinic import federation
from hiding import Hiding
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import Gaussian, data
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import NotIdentified, SettingsInvalid, UnboundedSum
from hedgerow.stats import Design, NegativeBinomialState, joint_newton, negative_binomial_regression
from hedgerow.stats.negative_binomial import joint_derivatives
from hedgerow.store import load_checkpoint, save_checkpoint

VISITS = "mdvis ~ lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp"
RANGES = dict.fromkeys(("mdvis", "lpi", "fmde", "disea"), (0, 100)) | {"lncoins": (0, 5), "physlm": (0, 1)}


def counts(n=400, alpha=0.7, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    mean = np.exp(0.5 + x)
    y = rng.poisson(mean * rng.gamma(1 / alpha, alpha, n) if alpha else mean).astype(float)
    schema = Schema((Column("x", "number", low=-1, high=1), Column("y", "number", role="target", low=0, high=200)))
    return Table({"x": x, "y": y}, schema)


@pytest.fixture(scope="module")
def experiment():
    table = data.load("hie").declare(**RANGES)
    expected = smf.negativebinomial(VISITS, table.to_pandas().astype(float)).fit(
        disp=0, method="newton", tol=1e-12, maxiter=200
    )
    return table, expected


@pytest.mark.slow
@pytest.mark.parametrize("channel", [{}, {"aggregation": Hiding(records=3000)}], ids=["plain", "hidden"])
def test_visits_to_a_doctor_are_those_of_statsmodels(experiment, channel):
    table, expected = experiment
    fit = negative_binomial_regression(federation(table).protect(**channel), VISITS)
    np.testing.assert_allclose([*fit.coef_, fit.alpha], expected.params, rtol=1e-7)
    np.testing.assert_allclose([*fit.se_, fit.alpha_se], expected.bse, rtol=1e-7)
    np.testing.assert_allclose(fit.p_values, expected.pvalues.iloc[:-1], rtol=1e-6, atol=1e-15)
    found = [fit.log_likelihood, fit.aic, fit.bic]
    np.testing.assert_allclose(found, [expected.llf, expected.aic, expected.bic], rtol=1e-10)
    assert fit.rounds < 15


@pytest.mark.slow
def test_a_known_alpha_is_that_of_statsmodels(experiment):
    table, _ = experiment
    fit = negative_binomial_regression(federation(table), VISITS, alpha=1.3)
    family = sm.families.NegativeBinomial(alpha=1.3)
    expected = smf.glm(VISITS, table.to_pandas().astype(float), family=family).fit(tol=1e-15, maxiter=100)
    np.testing.assert_allclose(fit.coef_, expected.params, rtol=1e-6)
    np.testing.assert_allclose(fit.se_, expected.bse, rtol=1e-6)
    np.testing.assert_allclose([fit.log_likelihood, fit.deviance, fit.aic], [expected.llf, expected.deviance, expected.aic])


def test_the_summary_shows_alpha():
    assert "alpha" in negative_binomial_regression(federation(counts()), "y ~ x").summary()


@settings(max_examples=50)
@given(st.integers(0, 30), st.floats(-2, 3), st.floats(-3, 2))
def test_derivatives_are_those_of_differences(y, eta, log_alpha):
    y, at, h = np.array(float(y)), np.array([eta, log_alpha]), 1e-5

    def derivatives(eta, log_alpha):
        return joint_derivatives(y, np.array(eta), float(np.exp(log_alpha)))

    for i, (name, seconds) in enumerate([("b", ("bb", "ba")), ("a", ("ba", "aa"))]):
        up, down = (derivatives(*(at + sign * h * np.eye(2)[i])) for sign in (1, -1))
        np.testing.assert_allclose(derivatives(*at)[name], -(up["loss"] - down["loss"]) / (2 * h), rtol=1e-4, atol=1e-4)
        for other, second in zip(("b", "a"), seconds, strict=True):
            np.testing.assert_allclose(derivatives(*at)[second], -(up[other] - down[other]) / (2 * h), rtol=1e-4, atol=1e-4)


def test_a_fit_resumes_from_every_state(tmp_path):
    table = counts()
    spec = Design.of("y ~ x", table.schema)
    states = list(joint_newton(federation(table), spec))
    for state in states[:-1]:
        save_checkpoint(tmp_path / "state", state, federation(table), "test")
        start = load_checkpoint(tmp_path / "state", NegativeBinomialState, "test").state
        *_, found = joint_newton(federation(table), spec, start=start)
        np.testing.assert_allclose(found.beta, states[-1].beta, rtol=1e-12)
    assert list(joint_newton(federation(table), spec, start=states[-1])) == []


def test_counts_that_vary_too_little_are_refused():
    rng = np.random.default_rng(1)
    table = counts(alpha=0)
    even = Table({"x": table["x"], "y": np.full(400, 3.0) + (rng.random(400) < 0.5)}, table.schema)
    with pytest.raises(NotIdentified, match="no more about their means"):
        negative_binomial_regression(federation(even), "y ~ x")


def test_an_alpha_below_zero_and_noise_are_refused():
    with pytest.raises(SettingsInvalid):
        negative_binomial_regression(federation(counts()), "y ~ x", alpha=-1.0)
    with pytest.raises(UnboundedSum):
        negative_binomial_regression(federation(counts()).protect(mechanism=Gaussian(1.0)), "y ~ x")
