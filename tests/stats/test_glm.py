"""Regressions equal the pooled fits of statsmodels."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from clinic import ENGINE_NAMES, ENGINES, clinic, federation

import hedgerow as hr
from hedgerow import data
from hedgerow.core import Federation
from hedgerow.engines import InProcess
from hedgerow.errors import FormulaInvalid, MissingColumn, NotBinary, OutOfRange
from hedgerow.stats import Design, NewtonState, linear_regression, logistic_regression, newton
from hedgerow.store import load_checkpoint, save_checkpoint

CANCER = "malignant ~ mean_radius + mean_texture + mean_smoothness"
AREA = "mean_area ~ mean_radius + mean_texture + mean_smoothness"


def logit(formula, frame, **settings):
    return smf.logit(formula, frame, **settings).fit(method="newton", tol=1e-10, disp=0)


def assert_same_estimates(fit, expected, rtol=1e-8):
    for ours, theirs in [
        (fit.coef_, expected.params),
        (fit.se_, expected.bse),
        (fit.statistic_, expected.tvalues),
        (fit.conf_int(0.9), expected.conf_int(0.1)),
        (fit.covariance, expected.cov_params()),
    ]:
        np.testing.assert_allclose(ours, theirs, rtol=rtol)
    np.testing.assert_allclose(fit.p_values, expected.pvalues, rtol=1e-6, atol=1e-15)


def assert_same_criteria(fit, expected):
    found = [fit.log_likelihood, fit.aic, fit.bic]
    np.testing.assert_allclose(found, [expected.llf, expected.aic, expected.bic], rtol=1e-10)


def assert_same_variance_explained(fit, expected):
    np.testing.assert_allclose(fit.r_squared, expected.rsquared, rtol=1e-10)
    np.testing.assert_allclose(fit.adjusted_r_squared, expected.rsquared_adj, rtol=1e-10)
    np.testing.assert_allclose(fit.f_test[0], expected.fvalue, rtol=1e-8)
    np.testing.assert_allclose(fit.f_test[1], expected.f_pvalue, rtol=1e-6, atol=1e-300)


@pytest.fixture(scope="module")
def cancer():
    return data.load("breast_cancer")


@pytest.fixture(scope="module")
def insurance_experiment():
    return data.load("hie")


# ---- equal to statsmodels -------------------------------------------------------------------------------------------
def test_logistic_regression_of_cancer_is_that_of_statsmodels(cancer):
    fit, expected = logistic_regression(federation(cancer), CANCER), logit(CANCER, cancer.to_pandas())
    assert_same_estimates(fit, expected)
    assert_same_criteria(fit, expected)
    np.testing.assert_allclose([fit.null_log_likelihood, fit.r_squared], [expected.llnull, expected.prsquared], rtol=1e-9)
    np.testing.assert_allclose(fit.odds_ratios()["odds ratio"], np.exp(expected.params), rtol=1e-7)
    assert fit.n_events == pytest.approx(212)
    assert fit.rounds < 10


def test_linear_regression_of_cancer_is_that_of_statsmodels(cancer):
    fit, expected = linear_regression(federation(cancer), AREA), smf.ols(AREA, cancer.to_pandas()).fit()
    assert_same_estimates(fit, expected)
    assert_same_criteria(fit, expected)
    assert_same_variance_explained(fit, expected)
    np.testing.assert_allclose(fit.dispersion, expected.scale, rtol=1e-10)
    assert fit.rounds == 2


def test_regressions_of_the_insurance_experiment_are_those_of_statsmodels(insurance_experiment):
    fed, frame = federation(insurance_experiment), insurance_experiment.to_pandas()
    formula = "mdvis ~ lncoins * idp + lpi + fmde + physlm + disea + I(disea ** 2) + hlthg + hlthf + hlthp"
    fit, expected = linear_regression(fed, formula), smf.ols(formula, frame).fit()
    order = [expected.params.index.get_loc(name) for name in fit.names]
    np.testing.assert_allclose(fit.coef_, expected.params.iloc[order], rtol=1e-8)
    np.testing.assert_allclose(fit.se_, expected.bse.iloc[order], rtol=1e-8)
    assert_same_variance_explained(fit, expected)
    formula = "I(mdvis > 0) ~ lncoins + idp + np.sqrt(disea) + hlthp"
    target = frame.assign(any_visit=(frame["mdvis"] > 0).astype(float))
    fit, expected = logistic_regression(fed, formula), logit(formula.replace("I(mdvis > 0)", "any_visit"), target)
    assert_same_estimates(fit, expected)
    assert_same_criteria(fit, expected)


@pytest.mark.parametrize(
    "formula",
    [
        "stage + age",
        "C(stage, Treatment('III')) * smoker",
        "age:stage + dose",
        "0 + stage + dose",
        "0 + age + dose",
        "np.log(dose) + visits:age",
        "1",
    ],
)
def test_formulas_mean_what_they_mean_in_statsmodels(formula):
    fed, frame = federation(), clinic().to_pandas()
    linear, expected = linear_regression(fed, f"pain ~ {formula}"), smf.ols(f"pain ~ {formula}", frame).fit()
    order = [[name.replace(" ", "") for name in expected.params.index].index(name.replace(" ", "")) for name in linear.names]
    np.testing.assert_allclose(linear.coef_, expected.params.iloc[order], rtol=1e-8)
    np.testing.assert_allclose(linear.se_, expected.bse.iloc[order], rtol=1e-8)
    np.testing.assert_allclose(
        [linear.r_squared, linear.adjusted_r_squared], [expected.rsquared, expected.rsquared_adj], atol=1e-12
    )
    logistic, expected = logistic_regression(fed, f"ill ~ {formula}"), logit(f"ill ~ {formula}", frame)
    np.testing.assert_allclose(logistic.coef_, expected.params.iloc[order], rtol=1e-7)
    np.testing.assert_allclose(logistic.log_likelihood, expected.llf, rtol=1e-10)


def test_an_offset_is_that_of_statsmodels():
    frame = clinic().to_pandas()
    fit = logistic_regression(federation(), "ill ~ age + stage", offset="exposure")
    expected = logit("ill ~ age + stage", frame, offset=frame["exposure"])
    order = [expected.params.index.get_loc(name) for name in fit.names]
    np.testing.assert_allclose(fit.coef_, expected.params.iloc[order], rtol=1e-8)
    np.testing.assert_allclose(fit.log_likelihood, expected.llf, rtol=1e-10)
    assert fit.null_log_likelihood is None
    fit = linear_regression(federation(), "pain ~ age + dose", offset="log(dose)")
    assert_same_estimates(fit, smf.ols("I(pain - np.log(dose)) ~ age + dose", frame).fit())


def test_weights_are_frequencies():
    frame = clinic().to_pandas()
    repeated = frame.loc[np.repeat(frame.index, frame["copies"].astype(int))]
    fit = logistic_regression(federation(), "ill ~ age + dose", weights="copies")
    model = smf.glm("ill ~ age + dose", frame, family=sm.families.Binomial(), freq_weights=frame["copies"].to_numpy())
    expected = model.fit(tol=1e-14)
    np.testing.assert_allclose(fit.coef_, expected.params, rtol=1e-8)
    np.testing.assert_allclose(fit.se_, expected.bse, rtol=1e-8)
    assert_same_criteria(fit, logit("ill ~ age + dose", repeated))
    fit, expected = linear_regression(federation(), "pain ~ age", weights="copies"), smf.ols("pain ~ age", repeated).fit()
    assert_same_estimates(fit, expected)
    assert_same_variance_explained(fit, expected)


def test_the_schemas_weight_and_offset_columns_are_used():
    table = clinic().with_roles(weight="copies", offset="exposure")
    found = logistic_regression(federation(table), "ill ~ age")
    expected = logistic_regression(federation(), "ill ~ age", weights="copies", offset="exposure")
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-10)


def test_ill_conditioned_columns_are_refined():
    table = clinic(400)
    year = 2000 + np.floor(table["visits"])
    shifted = data.Table({**table.columns, "open": year}, table.schema)
    fit = linear_regression(federation(shifted), "pain ~ open + I(open ** 2)")
    centred = sm.OLS(table["pain"], np.vander(year - 2006, 3)).fit()
    np.testing.assert_allclose(fit.coef_[2], centred.params[0], rtol=1e-6)
    np.testing.assert_allclose(fit.deviance, centred.ssr, rtol=1e-10)


# ---- a two-level category, prediction, text -------------------------------------------------------------------------
def test_the_second_level_is_the_event():
    frame = clinic().to_pandas()
    fit = logistic_regression(federation(), "arm ~ age")
    expected = logit("drug ~ age", frame.assign(drug=(frame["arm"] == "drug").astype(float)))
    assert_same_estimates(fit, expected)
    assert "event: arm = drug" in fit.summary()


def test_predictions_are_those_of_statsmodels():
    frame, new = clinic().to_pandas(), clinic(20, seed=5).to_pandas()
    formula = "ill ~ stage + log(dose)"
    expected = logit(formula.replace("log", "np.log"), frame).predict(new)
    np.testing.assert_allclose(logistic_regression(federation(), formula).predict(new), expected, rtol=1e-8)
    fit = linear_regression(federation(), "pain ~ age", offset="dose")
    np.testing.assert_allclose(fit.predict(new), fit.coef_[0] + fit.coef_[1] * new["age"] + new["dose"])
    np.testing.assert_allclose(linear_regression(federation(), "pain ~ 1").predict(new), np.full(20, frame["pain"].mean()))


def test_prediction_refuses_what_the_schema_refuses():
    fit = logistic_regression(federation(), "ill ~ stage")
    with pytest.raises(OutOfRange, match="'IV'"):
        fit.predict(pd.DataFrame({"stage": ["I", "IV"]}))
    with pytest.raises(MissingColumn, match="stage"):
        fit.predict(pd.DataFrame({"age": [1.0]}))


def test_the_summary_says_what_a_reader_needs(cancer):
    text = logistic_regression(federation(cancer), CANCER).summary()
    for words in [
        "hedgerow logistic regression",
        "converged in 9 rounds",
        "parties 8",
        "events 212",
        "exp(coef)",
        "95% CI of coef",
    ]:
        assert words in text
    assert "not differentially private" in " ".join(text.split())
    assert "left each party   score (4,), information (4, 4), n, deviance, y, yy, 9 times" in text
    assert max(map(len, text.splitlines())) <= 110
    text = linear_regression(federation(), "pain ~ age", weights="copies").summary(0.9)
    for words in ["hedgerow linear regression", "90% CI of coef", "adjusted R²", "repeated records", "twice"]:
        assert words in text
    assert "sum of weights" in text
    assert "     records " not in text
    assert "sum of weights" not in linear_regression(federation(), "pain ~ age").summary()


def test_the_frame_has_one_row_for_each_coefficient():
    frame = logistic_regression(federation(), "ill ~ age").to_frame()
    assert list(frame.index) == ["Intercept", "age"]
    assert list(frame.columns) == ["coef", "se", "z", "p", "low", "high", "odds ratio"]
    assert list(linear_regression(federation(), "pain ~ age").to_frame().columns) == ["coef", "se", "t", "p", "low", "high"]


# ---- parties, engines, resumption -----------------------------------------------------------------------------------
@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
@pytest.mark.parametrize(("regression", "target"), [(logistic_regression, "ill"), (linear_regression, "pain")])
def test_every_engine_gives_the_same_fit(regression, target, engine):
    found, expected = (
        regression(federation(engine=on), f"{target} ~ age + stage", weights="copies") for on in (engine, ENGINES[0])
    )
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-10)
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-10)


def test_parties_that_drop_out_leave_the_fit_of_the_others():
    whole = federation()
    gone = ["party 2", "party 7"]
    held = hr.engines.records(whole)
    stay = np.concatenate([np.full(size, name not in gone) for name, size in zip(held.ids, held.sizes, strict=True)])
    frame = pd.DataFrame({name: held.columns[name][stay] for name in ["ill", "age", "dose"]})
    fit = logistic_regression(hr.engines.on(whole, InProcess(dropped=gone)), "ill ~ age + dose")
    assert_same_estimates(fit, logit("ill ~ age + dose", frame))
    assert fit.n_records == len(frame)


@pytest.mark.parametrize(("family", "target"), [("binomial", "ill"), ("gaussian", "pain")])
def test_a_fit_resumes_from_every_state(family, target, tmp_path):
    spec = Design.of(f"{target} ~ age + stage", federation().schema)
    states = list(newton(federation(), spec, family=family))
    for state in states[:-1]:
        fed = federation()
        save_checkpoint(tmp_path / "state", state, fed, "test")
        start = load_checkpoint(tmp_path / "state", NewtonState, "test").state
        *_, found = newton(fed, spec, family=family, start=start)
        np.testing.assert_array_equal(found.beta, states[-1].beta)
        assert found.round == states[-1].round
    assert list(newton(federation(), spec, family=family, start=states[-1])) == []


def test_steps_that_raise_the_deviance_are_halved():
    spec = Design.of("ill ~ age + dose", federation().schema)
    first, *_, end = newton(federation(), spec)
    astray = replace(first, trial=first.beta + 40 * (first.trial - first.beta))
    second, *_, found = newton(federation(), spec, start=astray)
    np.testing.assert_array_equal(second.beta, astray.beta)
    np.testing.assert_allclose(second.trial, (astray.beta + astray.trial) / 2)
    np.testing.assert_allclose(found.beta, end.beta, rtol=1e-10)


def test_two_thousand_stores_of_one_record_are_quick():
    table = clinic(2000)
    fed = federation(table, n_parties=2000)
    assert_same_estimates(logistic_regression(fed, "ill ~ age + dose"), logit("ill ~ age + dose", table.to_pandas()))
    assert len(fed.ledger) < 10


# ---- refused before any party is asked ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("regression", "formula", "error", "match"),
    [
        (logistic_regression, "age ~ dose", NotBinary, "'age' is not declared binary"),
        (logistic_regression, "visits ~ dose", NotBinary, "I\\(visits > 0\\)"),
        (logistic_regression, "stage ~ dose", NotBinary, "3 levels"),
        (linear_regression, "arm ~ dose", FormulaInvalid, "is a category"),
        (linear_regression, "pain ~ doze", MissingColumn, "Did you mean 'dose'"),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_any_party_is_asked(regression, formula, error, match):
    fed: Federation = federation()
    with pytest.raises(error, match=match):
        regression(fed, formula)
    assert len(fed.ledger) == 0
