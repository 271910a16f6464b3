"""Ridge, lasso and elastic net equal scikit-learn, and the exact conditions of a minimum."""

import numpy as np
import pytest
from clinic import ENGINE_NAMES, ENGINES, clinic, federation
from hiding import Hiding
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, PoissonRegressor, Ridge
from sklearn.preprocessing import StandardScaler

import hedgerow as hr
from hedgerow import Gaussian, data
from hedgerow.errors import NotConverged, SettingsInvalid, UnlawfulChannel
from hedgerow.stats import (
    Design,
    NewtonState,
    design,
    linear_regression,
    logistic_regression,
    penalised,
    penalised_regression,
)
from hedgerow.stats.penalty.signs import least
from hedgerow.store import load_checkpoint, save_checkpoint

EXACT = {"tol": 1e-14, "max_iter": 1_000_000}
CANCER = "malignant ~ mean_radius + mean_texture + mean_smoothness + mean_concavity + mean_symmetry"


def rows(table, formula):
    made = design(table.columns, spec=Design.of(formula, table.schema))
    return made["X"][:, 1:], made["y"]


@pytest.mark.parametrize(
    ("penalty", "l1_ratio", "model"),
    [
        (0.05, 1.0, Lasso(0.05, **EXACT)),
        (2.0, 1.0, Lasso(2.0, **EXACT)),
        (0.05, 0.3, ElasticNet(0.05, l1_ratio=0.3, **EXACT)),
        (3 / 442, 0.0, Ridge(3.0)),
    ],
    ids=["lasso", "sparse", "elastic net", "ridge"],
)
@pytest.mark.parametrize("standardised", [False, True])
def test_diabetes_is_that_of_scikit_learn(penalty, l1_ratio, model, standardised):
    table = data.load("diabetes")
    X, y = rows(table, "progression ~ .")
    scale = StandardScaler().fit(X)
    expected = model.fit(scale.transform(X) if standardised else X, y).coef_ / (scale.scale_ if standardised else 1)
    settings = {"penalty": penalty, "l1_ratio": l1_ratio, "standardised": standardised}
    fit = penalised_regression(federation(table), "progression ~ .", **settings)
    np.testing.assert_allclose(fit.coef_[1:], expected, rtol=1e-6, atol=1e-7)
    assert fit.rounds == 2
    assert fit.n_selected == (expected != 0).sum()


@pytest.mark.parametrize(("C", "l1_ratio"), [(1.0, 0.0), (0.05, 1.0), (0.1, 0.5)])
def test_cancers_are_those_of_scikit_learn(C, l1_ratio):
    table = data.load("breast_cancer")
    X, y = rows(table, CANCER)
    scale = StandardScaler().fit(X)
    solver = "saga" if l1_ratio else "newton-cholesky"
    expected = LogisticRegression(C=C, l1_ratio=l1_ratio, solver=solver, tol=1e-12, max_iter=20_000)
    expected = expected.fit(scale.transform(X), y)
    settings = {"penalty": 1 / (C * len(y)), "l1_ratio": l1_ratio, "standardised": True}
    fit = penalised_regression(federation(table), CANCER, family="binomial", **settings)
    np.testing.assert_allclose(fit.coef_[1:], expected.coef_[0] / scale.scale_, rtol=1e-6, atol=1e-9)
    shift = (scale.mean_ / scale.scale_) @ expected.coef_[0]
    np.testing.assert_allclose(fit.coef_[0], expected.intercept_[0] - shift, rtol=1e-6)
    frame = table.to_pandas()
    np.testing.assert_allclose(fit.predict(frame), expected.predict_proba(scale.transform(X))[:, 1], atol=1e-7)


def test_visits_are_those_of_scikit_learn():
    table = data.load("hie")
    X, y = rows(table, "mdvis ~ .")
    fit = penalised_regression(federation(table), "mdvis ~ .", family="poisson", penalty=0.1, l1_ratio=0.0)
    expected = PoissonRegressor(alpha=0.1, solver="newton-cholesky", tol=1e-12).fit(X, y)
    np.testing.assert_allclose(fit.coef_, [expected.intercept_, *expected.coef_], rtol=1e-6)


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_without_a_penalty_it_is_maximum_likelihood(family):
    regression, target = {"gaussian": (linear_regression, "pain"), "binomial": (logistic_regression, "ill")}[family]
    fit = penalised_regression(federation(), f"{target} ~ age + stage", family=family, penalty=0.0)
    np.testing.assert_allclose(fit.coef_, regression(federation(), f"{target} ~ age + stage").coef_, rtol=1e-7)


@pytest.mark.parametrize("standardised", [False, True])
@pytest.mark.parametrize(
    ("family", "formula"),
    [
        ("gaussian", "pain ~ age + dose + stage"),
        ("binomial", "ill ~ age + dose + stage"),
        ("poisson", "visits ~ age + dose"),
        ("gamma", "dose ~ age + smoker"),
    ],
)
def test_hidden_sums_give_the_same_fit(family, formula, standardised):
    settings = {"family": family, "penalty": 0.02, "l1_ratio": 0.5, "standardised": standardised}
    hidden = penalised_regression(federation().protect(aggregation=Hiding()), formula, **settings)
    plain = penalised_regression(federation(), formula, **settings)
    np.testing.assert_allclose(hidden.coef_, plain.coef_, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
def test_every_engine_gives_the_same_fit(engine):
    ask = {"family": "binomial", "penalty": 0.02, "standardised": True, "weights": "copies"}
    found, expected = (penalised_regression(federation(engine=on), "ill ~ age + stage", **ask) for on in (engine, ENGINES[0]))
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-8, atol=1e-12)


def test_a_fit_resumes_from_every_state(tmp_path):
    settings = {"formula": "ill ~ age + stage", "family": "binomial", "penalty": 0.01}
    states = list(penalised(federation(), **settings))
    for state in states[:-1]:
        fed = federation()
        save_checkpoint(tmp_path / "state", state, fed, "test")
        start = load_checkpoint(tmp_path / "state", NewtonState, "test").state
        *_, found = penalised(fed, start=start, **settings)
        np.testing.assert_array_equal(found.beta, states[-1].beta)


def test_the_summary_says_what_was_penalised():
    text = penalised_regression(federation(), "pain ~ age + dose", penalty=1.0, standardised=True).summary()
    for words in ["penalised linear regression", "lasso, of standardised columns", "selected", "left each party"]:
        assert words in text


@pytest.mark.parametrize("wrong", [{"penalty": -1.0}, {"penalty": 1.0, "l1_ratio": 1.5}, {"penalty": float("nan")}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(SettingsInvalid, match="penalty is"):
        penalised_regression(federation(), "pain ~ age", **wrong)


def test_noise_is_refused():
    with pytest.raises(UnlawfulChannel):
        penalised_regression(federation().protect(mechanism=Gaussian(1.0)), "pain ~ age", penalty=1.0)


# ---- the search over signs ------------------------------------------------------------------------------------------
@settings(max_examples=80)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 12), share=st.floats(1e-4, 1.2), wide=st.booleans())
def test_what_is_found_meets_the_conditions_of_a_minimum(seed, d, share, wide):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(max(d // 2, 2) if wide else 3 * d, d)) * 10 ** rng.uniform(-3, 3, d)
    H, q = X.T @ X, X.T @ rng.normal(size=len(X))
    size = np.sqrt(np.diag(H))
    l1 = share * np.abs(q / size).max() * size
    b = least(H, q, l1, np.zeros(d))
    pull, room = (q - H @ b) / size, l1 / size
    slack = 1e-8 * np.abs(q / size).max()
    assert (np.abs(pull[b != 0] - (room * np.sign(b))[b != 0]) <= slack).all()
    assert (np.abs(pull[b == 0]) <= room[b == 0] + slack).all()


def test_an_infinite_penalty_fixes_a_coefficient_at_zero():
    H, q = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, 5.0])
    np.testing.assert_allclose(least(H, q, np.array([0.0, np.inf]), np.zeros(2)), [0.5, 0.0])


def test_a_lasso_of_one_column_is_the_shrunken_mean():
    table = clinic()
    x, y = np.asarray(table["age"]), np.asarray(table["pain"])
    x, y = x - x.mean(), y - y.mean()
    expected = np.sign(x @ y) * max(abs(x @ y) / len(x) - 5.0, 0) / (x @ x / len(x))
    fit = penalised_regression(federation(table), "pain ~ age", penalty=5.0)
    np.testing.assert_allclose(fit.coef_[1], expected, rtol=1e-9)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.0])
def test_a_penalty_that_drowns_in_rounding_is_refused(l1_ratio):
    rng = np.random.default_rng(0)
    X = 1e6 + rng.normal(size=(60, 2))
    schema = hr.data.Schema((*(hr.data.Column(name, "number") for name in "ab"), hr.data.Column("y", "number", role="target")))
    table = hr.data.Table({"a": X[:, 0], "b": X[:, 1], "y": X @ [1.0, 1.0]}, schema)
    federation = hr.simulate(table, hr.data.iid(parties=2))
    with pytest.raises(NotConverged, match="rounding of the sums"):
        hr.stats.penalised_regression(federation, "y ~ a + b", penalty=0.01, l1_ratio=l1_ratio)
