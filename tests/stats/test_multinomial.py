"""Multinomial logistic regression equals statsmodels."""

import numpy as np
import pytest
import statsmodels.api as sm
from clinic import ENGINE_NAMES, ENGINES, clinic, federation
from hiding import Hiding

from hedgerow import Gaussian
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import FormulaInvalid, NotIdentified, Separated, UnboundedSum
from hedgerow.stats import (
    NewtonState,
    logistic_regression,
    multinomial_regression,
    softmax_newton,
)
from hedgerow.store import load_checkpoint, save_checkpoint

FORMULA = "stage ~ age + dose + smoker"
COLUMNS = ["age", "dose", "smoker"]


@pytest.fixture(scope="module")
def expected():
    table = clinic(800)
    X = sm.add_constant(np.column_stack([np.asarray(table[name], float) for name in COLUMNS]))
    return sm.MNLogit(np.asarray(table["stage"], int), X).fit(method="newton", tol=1e-10, disp=0, maxiter=100)


@pytest.mark.parametrize("channel", [{}, {"aggregation": Hiding()}], ids=["plain", "hidden"])
def test_stages_are_those_of_statsmodels(expected, channel):
    fit = multinomial_regression(federation(clinic(800)).protect(**channel), FORMULA)
    np.testing.assert_allclose(fit.coef_, expected.params.T, atol=1e-8)
    np.testing.assert_allclose(fit.se_, expected.bse.T, rtol=1e-7)
    np.testing.assert_allclose(fit.p_values, expected.pvalues.T, rtol=1e-6)
    np.testing.assert_allclose(fit.covariance, expected.cov_params(), rtol=1e-6, atol=1e-12)
    found = [fit.log_likelihood, fit.aic, fit.bic]
    np.testing.assert_allclose(found, [expected.llf, expected.aic, expected.bic], rtol=1e-10)
    np.testing.assert_allclose([fit.null_log_likelihood, fit.r_squared], [expected.llnull, expected.prsquared], rtol=1e-6)
    assert fit.rounds < 8


def test_predictions_are_those_of_statsmodels(expected):
    frame = clinic(20, seed=4).to_pandas()
    found = multinomial_regression(federation(clinic(800)), FORMULA).predict(frame)
    new = sm.add_constant(frame[COLUMNS].to_numpy(float))
    np.testing.assert_allclose(found, expected.predict(new), rtol=1e-7)
    assert list(found.columns) == ["I", "II", "III"]


def test_two_levels_are_a_logistic_regression():
    fit, other = multinomial_regression(federation(), "arm ~ age"), logistic_regression(federation(), "arm ~ age")
    np.testing.assert_allclose(fit.coef_[0], other.coef_, rtol=1e-8)
    np.testing.assert_allclose(fit.covariance, other.covariance, rtol=1e-8)
    assert fit.log_likelihood == pytest.approx(other.log_likelihood)


def test_the_reference_is_the_one_named():
    fit = multinomial_regression(federation(), "C(stage, Treatment('II')) ~ age")
    other = multinomial_regression(federation(), "stage ~ age")
    assert fit.levels == ("II", "I", "III")
    np.testing.assert_allclose(fit.coef_[0], -other.coef_[0], atol=1e-8)
    np.testing.assert_allclose(fit.coef_[1], other.coef_[1] - other.coef_[0], atol=1e-8)


def test_weights_repeat_records():
    table = clinic()
    repeat = np.repeat(np.arange(len(table)), np.asarray(table["copies"], int))
    repeated = Table({name: column[repeat] for name, column in table.columns.items()}, table.schema)
    fit = multinomial_regression(federation(), "stage ~ age", weights="copies")
    np.testing.assert_allclose(fit.coef_, multinomial_regression(federation(repeated), "stage ~ age").coef_, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
def test_every_engine_gives_the_same_fit(engine):
    found, expected = (multinomial_regression(federation(engine=on), FORMULA, weights="copies") for on in (engine, ENGINES[0]))
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)


def test_a_fit_resumes_from_every_state(tmp_path):
    states = list(softmax_newton(federation(), formula=FORMULA))
    for state in states[:-1]:
        fed = federation()
        save_checkpoint(tmp_path / "state", state, fed, "test")
        start = load_checkpoint(tmp_path / "state", NewtonState, "test").state
        *_, found = softmax_newton(fed, formula=FORMULA, start=start)
        np.testing.assert_array_equal(found.beta, states[-1].beta)


def test_the_summary_has_a_table_for_each_level():
    text = multinomial_regression(federation(), FORMULA).summary()
    for words in ["reference: I", "\nII ", "\nIII ", "exp(coef)", "levels (3,)"]:
        assert words in text


def test_what_cannot_be_fitted_is_named():
    with pytest.raises(FormulaInvalid, match="is a number"):
        multinomial_regression(federation(), "pain ~ age")
    with pytest.raises(FormulaInvalid, match="offset"):
        multinomial_regression(federation(clinic().with_roles(offset="exposure")), "stage ~ age")
    with pytest.raises(UnboundedSum):
        multinomial_regression(federation().protect(mechanism=Gaussian(1.0)), "stage ~ age")
    with pytest.raises(NotIdentified, match="linear combinations"):
        multinomial_regression(federation(), "stage ~ age + I(2 * age)")


def test_separated_levels_are_named():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    schema = Schema((Column("x", "number"), Column("y", "category", role="target", levels=("a", "b", "c"))))
    y = np.where(x > 1, 2, rng.integers(0, 2, 300)).astype(np.int16)
    with pytest.raises(Separated, match=r"x \(c\)"):
        multinomial_regression(federation(Table({"x": x, "y": y}, schema)), "y ~ x")
    with pytest.raises(Separated, match="no record has level c"):
        multinomial_regression(federation(Table({"x": x, "y": np.minimum(y, 1)}, schema)), "y ~ x")
