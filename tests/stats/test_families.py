"""Poisson and gamma regressions equal statsmodels; what they cannot fit is refused."""

import numpy as np
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from clinic import ENGINE_NAMES, ENGINES, clinic, federation
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import Gaussian, data, l2
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import FormulaInvalid, NotFinite, Separated, UnboundedSum
from hedgerow.stats import Design, NewtonState, gamma_regression, newton, poisson_regression
from hedgerow.stats.linear.losses import loss_of
from hedgerow.store import load_checkpoint, save_checkpoint

VISITS = "mdvis ~ lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp"


def gamma(formula, frame, **settings):
    return smf.glm(formula, frame, family=sm.families.Gamma(sm.families.links.Log()), **settings).fit(tol=1e-14, maxiter=100)


def assert_same_estimates(fit, expected, rtol=1e-7):
    np.testing.assert_allclose(fit.coef_, expected.params, rtol=rtol)
    np.testing.assert_allclose(fit.se_, expected.bse, rtol=rtol)
    np.testing.assert_allclose(fit.p_values, expected.pvalues, rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(fit.conf_int(), expected.conf_int(), rtol=1e-6)
    np.testing.assert_allclose(fit.log_likelihood, expected.llf, rtol=1e-9)
    np.testing.assert_allclose(fit.aic, expected.aic, rtol=1e-9)


# ---- Poisson --------------------------------------------------------------------------------------------------------
def test_visits_to_a_doctor_are_those_of_statsmodels():
    table = data.load("hie")
    fit = poisson_regression(federation(table), VISITS)
    expected = smf.poisson(VISITS, table.to_pandas().astype(float)).fit(method="newton", tol=1e-10, disp=0)
    assert_same_estimates(fit, expected)
    np.testing.assert_allclose([fit.null_log_likelihood, fit.r_squared], [expected.llnull, expected.prsquared], rtol=1e-9)
    np.testing.assert_allclose(fit.bic, expected.bic, rtol=1e-10)
    assert fit.rounds < 10
    assert "hedgerow Poisson regression" in fit.summary()
    assert "ratio of means" in fit.to_frame().columns


def test_affairs_are_those_of_statsmodels():
    table = data.load("fair")
    names = [name for name in table.schema.features if name in ("rate_marriage", "age", "yrs_married", "religious")]
    formula = f"I(affairs * 10) ~ {' + '.join(names)}"
    frame = table.to_pandas().assign(tenths=lambda frame: frame["affairs"] * 10)
    frame[names] = frame[names].astype(float)
    expected = smf.poisson(formula.replace("I(affairs * 10)", "tenths"), frame).fit(method="newton", tol=1e-10, disp=0)
    fit = poisson_regression(federation(table), formula)
    np.testing.assert_allclose(fit.coef_, expected.params, rtol=1e-8)
    np.testing.assert_allclose(fit.se_, expected.bse, rtol=1e-8)


def test_an_offset_and_weights_are_those_of_statsmodels():
    frame = clinic().to_pandas()
    frame["smoker"] = frame["smoker"].astype(float)
    settings = {"offset": np.log(frame["dose"]), "freq_weights": frame["copies"].to_numpy()}
    expected = smf.glm("visits ~ age + smoker + stage", frame, family=sm.families.Poisson(), **settings).fit(tol=1e-14)
    fit = poisson_regression(federation(), "visits ~ age + smoker + stage", offset="log(dose)", weights="copies")
    order = [expected.params.index.get_loc(name) for name in fit.names]
    np.testing.assert_allclose(fit.coef_, expected.params.iloc[order], rtol=1e-7)
    np.testing.assert_allclose(fit.se_, expected.bse.iloc[order], rtol=1e-7)
    np.testing.assert_allclose([fit.deviance, fit.null_deviance], [expected.deviance, expected.null_deviance], rtol=1e-9)


@pytest.mark.parametrize("formula", ["visits ~ 0 + age", "visits ~ 0 + stage + age", "visits ~ 1"])
def test_counts_without_an_intercept_are_those_of_statsmodels(formula):
    fit = poisson_regression(federation(), formula)
    expected = smf.glm(formula, clinic().to_pandas(), family=sm.families.Poisson()).fit(tol=1e-14)
    np.testing.assert_allclose(fit.coef_, expected.params, rtol=1e-7)


def test_steep_means_take_halved_steps():
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 1, 400) ** 6 * 12
    y = rng.poisson(np.exp(-2 + 0.8 * x)).astype(float)
    table = Table({"x": x, "y": y}, Schema((Column("x", "number"), Column("y", "number", role="target"))))
    fit = poisson_regression(federation(table), "y ~ x")
    expected = sm.GLM(y, np.column_stack([np.ones(400), x]), family=sm.families.Poisson()).fit(tol=1e-14)
    np.testing.assert_allclose(fit.coef_, expected.params, rtol=1e-7)


@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
def test_every_engine_gives_the_same_counts(engine):
    found, expected = (poisson_regression(federation(engine=on), "visits ~ age + stage") for on in (engine, ENGINES[0]))
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-10)


@pytest.mark.parametrize(
    ("family", "formula"), [("poisson", "visits ~ age"), ("gamma", "dose ~ age"), ("negative binomial", "visits ~ age")]
)
def test_a_fit_resumes_from_every_state(family, formula, tmp_path):
    spec = Design.of(formula, federation().schema)
    states = list(newton(federation(), spec, family=family, alpha=0.5))
    for state in states[:-1]:
        fed = federation()
        save_checkpoint(tmp_path / "state", state, fed, "test")
        start = load_checkpoint(tmp_path / "state", NewtonState, "test").state
        *_, found = newton(fed, spec, family=family, start=start, alpha=0.5)
        np.testing.assert_array_equal(found.beta, states[-1].beta)


# ---- gamma ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("formula", ["dose ~ age + stage", "dose ~ 0 + age + smoker"])
def test_gamma_regressions_are_those_of_statsmodels(formula):
    frame = clinic().to_pandas()
    frame["smoker"] = frame["smoker"].astype(float)
    fit, expected = gamma_regression(federation(), formula), gamma(formula, frame)
    order = [expected.params.index.get_loc(name) for name in fit.names]
    for ours, theirs in [(fit.coef_, expected.params), (fit.se_, expected.bse), (fit.p_values, expected.pvalues)]:
        np.testing.assert_allclose(ours, theirs.iloc[order], rtol=1e-6, atol=1e-12)
    found = [fit.dispersion, fit.deviance, fit.log_likelihood, fit.aic]
    np.testing.assert_allclose(found, [expected.scale, expected.deviance, expected.llf, expected.aic], rtol=1e-7)
    assert "dispersion" in fit.summary()


def test_medical_visits_plus_one_are_those_of_statsmodels():
    table = data.load("hie")
    fit = gamma_regression(federation(table), "I(mdvis + 1) ~ lncoins + idp + disea")
    expected = gamma("I(mdvis + 1) ~ lncoins + idp + disea", table.to_pandas().astype(float))
    assert_same_estimates(fit, expected)


# ---- deviances, by hand ---------------------------------------------------------------------------------------------
@settings(max_examples=60)
@given(st.integers(0, 40), st.floats(-3, 4), st.floats(0.05, 5))
def test_a_deviance_is_twice_the_distance_to_a_perfect_fit(y, eta, alpha):
    from scipy.stats import nbinom, poisson

    mean, y = np.exp(eta), np.array(float(y))
    r = 1 / alpha
    for law, logpmf in [
        (loss_of("poisson"), poisson(mean).logpmf(y)),
        (loss_of("negative binomial", alpha), nbinom(r, r / (r + mean)).logpmf(y)),
    ]:
        found = law.part("saturated", y, np.array(eta)) - law.deviance(y, np.array(eta)) / 2
        np.testing.assert_allclose(found, logpmf, rtol=1e-8, atol=1e-8)


# ---- refused --------------------------------------------------------------------------------------------------------
def made(y, **columns):
    schema = Schema((*(Column(name, "number") for name in columns), Column("y", "number", role="target")))
    return federation(Table({**columns, "y": y}, schema), n_parties=4)


def test_counts_of_zero_wherever_a_column_is_one_are_named():
    rng = np.random.default_rng(0)
    carrier = (np.arange(300) < 40).astype(float)
    y = np.where(carrier == 1, 0.0, rng.poisson(2.0, 300))
    with pytest.raises(Separated, match="'carrier' separates counts of zero"):
        poisson_regression(made(y, carrier=carrier), "y ~ carrier")


def test_a_target_of_zeros_is_refused():
    with pytest.raises(Separated, match="adds up to 0 in 40 records"):
        poisson_regression(made(np.zeros(40), x=np.arange(40.0)), "y ~ x")


@pytest.mark.parametrize("regression", [poisson_regression, gamma_regression])
def test_targets_below_zero_are_refused(regression):
    y = np.where(np.arange(40) == 3, -1.0, 2.0)
    with pytest.raises(NotFinite, match="not finite"):
        regression(made(y, x=np.arange(40.0)), "y ~ x")


def test_a_declared_range_below_zero_is_refused_before_any_party_is_asked():
    fed = federation()
    with pytest.raises(FormulaInvalid, match="from -20 to 40"):
        poisson_regression(fed, "pain ~ age")
    assert len(fed.ledger) == 0


@pytest.mark.parametrize("channel", [{"mechanism": Gaussian(1.0)}, {"clip": l2(1.0)}])
@pytest.mark.parametrize(("regression", "target"), [(poisson_regression, "visits"), (gamma_regression, "dose")])
def test_counts_through_noise_are_refused(regression, target, channel):
    fed = federation().protect(**channel)
    with pytest.raises(UnboundedSum, match="no bound that holds at every coefficient"):
        regression(fed, f"{target} ~ age")
    assert len(fed.ledger) == 0
