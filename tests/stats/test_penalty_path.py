"""Paths of penalties and cross-validation by sums equal scikit-learn on the same folds."""

import numpy as np
import pytest
from clinic import ENGINE_NAMES, ENGINES, clinic, federation
from hiding import Hiding
from sklearn.linear_model import ElasticNetCV, LassoCV, LogisticRegression
from sklearn.preprocessing import StandardScaler

from hedgerow import data
from hedgerow.errors import SettingsInvalid
from hedgerow.stats import Design, PathState, cross_validated, design, penalised_regression, penalty_path
from hedgerow.stats.penalty.folds import first_fold
from hedgerow.store import load_checkpoint, save_checkpoint

CANCER = "malignant ~ mean_radius + mean_texture + mean_smoothness"


def pooled(fed, formula, n_folds):
    """Rows and folds of all records, in the order in which the parties hold them."""
    held = fed.engine.held
    made = design(held.columns, spec=Design.of(formula, fed.schema))
    turns = [first_fold(name, n_folds) + np.arange(size) for name, size in zip(held.ids, held.sizes, strict=True)]
    return made["X"][:, 1:], made["y"], np.concatenate(turns) % n_folds


def splits(folds):
    return [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(folds.max() + 1)]


def test_a_lasso_of_diabetes_is_that_of_scikit_learn_in_one_question():
    fed = federation(data.load("diabetes"))
    path = cross_validated(fed, "progression ~ .", n_penalties=20)
    X, y, folds = pooled(fed, "progression ~ .", 5)
    expected = LassoCV(alphas=20, eps=1e-3, cv=splits(folds), tol=1e-12, max_iter=1_000_000).fit(X, y)
    np.testing.assert_allclose(path.penalties, expected.alphas_, rtol=1e-9)
    np.testing.assert_allclose(path.by_fold, expected.mse_path_, rtol=1e-6)
    assert path.best == pytest.approx(expected.alpha_)
    np.testing.assert_allclose(path.fit().coef_[1:], expected.coef_, rtol=1e-6, atol=1e-7)
    assert len(fed.ledger) == path.rounds == 1


def test_an_elastic_net_over_given_penalties_is_that_of_scikit_learn():
    fed, given = federation(data.load("diabetes")), [3.0, 0.01, 0.3]
    path = cross_validated(fed, "progression ~ .", penalties=given, l1_ratio=0.4, folds=3)
    X, y, folds = pooled(fed, "progression ~ .", 3)
    model = ElasticNetCV(alphas=given, l1_ratio=0.4, cv=splits(folds), tol=1e-12, max_iter=1_000_000).fit(X, y)
    np.testing.assert_allclose(path.by_fold, model.mse_path_, rtol=1e-6)


def test_a_logistic_path_is_that_of_scikit_learn_on_every_fold():
    fed = federation(data.load("breast_cancer"))
    path = cross_validated(fed, CANCER, family="binomial", n_penalties=8, smallest=1e-2, folds=3, standardised=True)
    X, y, folds = pooled(fed, CANCER, 3)
    Z = StandardScaler().fit_transform(X)
    for i in (3, 7):
        for k, (rest, out) in enumerate(splits(folds)):
            settings = {"solver": "saga", "tol": 1e-11, "max_iter": 20_000, "l1_ratio": 1.0}
            model = LogisticRegression(C=1 / (len(rest) * path.penalties[i]), **settings).fit(Z[rest], y[rest])
            eta = model.decision_function(Z[out])
            deviance = 2 * np.logaddexp(0, np.where(y[out] > 0.5, -eta, eta)).mean()
            np.testing.assert_allclose(path.by_fold[i, k], deviance, rtol=1e-6)
    assert path.rounds < 20
    assert (path.coefs[0, 1:] == 0).sum() >= 2


def test_models_of_the_path_are_those_fitted_alone():
    settings = {"family": "binomial", "l1_ratio": 0.5, "standardised": True}
    path = cross_validated(federation(), "ill ~ age + dose + stage", n_penalties=5, folds=3, **settings)
    for penalty, coef in zip(path.penalties[1:], path.coefs[1:], strict=True):
        alone = penalised_regression(federation(), "ill ~ age + dose + stage", penalty=float(penalty), **settings)
        np.testing.assert_allclose(coef, alone.coef_, atol=1e-7)


def test_many_penalties_are_asked_in_parts(monkeypatch):
    ask = {"family": "binomial", "n_penalties": 4, "folds": 3}
    together = cross_validated(federation(), "ill ~ age + dose", **ask)
    monkeypatch.setattr("hedgerow.stats.penalty.path.NUMBERS_AT_ONCE", 1)
    apart = cross_validated(federation(), "ill ~ age + dose", **ask)
    np.testing.assert_allclose(apart.coefs, together.coefs, atol=1e-7)
    np.testing.assert_allclose(apart.by_fold, together.by_fold, rtol=1e-6)
    assert apart.rounds > together.rounds


def test_the_one_se_penalty_is_the_largest_that_is_nearly_as_good():
    path = cross_validated(federation(data.load("diabetes")), "progression ~ .", n_penalties=20, standardised=True)
    i = path.mean.argmin()
    nearly = path.mean <= path.mean[i] + path.standard_error[i]
    assert path.one_se == path.penalties[nearly.argmax()] > path.best
    assert path.fit(path.one_se).n_selected < path.fit().n_selected
    assert list(path.to_frame().columns) == ["deviance", "se", "selected"]


@pytest.mark.parametrize("standardised", [False, True])
@pytest.mark.parametrize(
    ("family", "formula"),
    [
        ("gaussian", "pain ~ age + dose + stage"),
        ("binomial", "ill ~ age + dose"),
        ("poisson", "visits ~ age + dose"),
        ("gamma", "dose ~ age + smoker"),
    ],
)
def test_hidden_sums_give_the_same_path(family, formula, standardised):
    ask = {"family": family, "n_penalties": 4, "folds": 3, "l1_ratio": 0.5, "standardised": standardised}
    hidden = cross_validated(federation().protect(aggregation=Hiding()), formula, **ask)
    plain = cross_validated(federation(), formula, **ask)
    np.testing.assert_allclose(hidden.coefs, plain.coefs, atol=1e-8)
    np.testing.assert_allclose(hidden.by_fold, plain.by_fold, rtol=1e-8)


@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
@pytest.mark.parametrize(("family", "target"), [("gaussian", "pain"), ("binomial", "ill")])
def test_folds_do_not_depend_on_the_engine(family, target, engine):
    ask = {"family": family, "n_penalties": 3, "folds": 3, "weights": "copies"}
    found, expected = (cross_validated(federation(engine=on), f"{target} ~ age", **ask) for on in (engine, ENGINES[0]))
    np.testing.assert_allclose(found.by_fold, expected.by_fold, rtol=1e-9)


@pytest.mark.slow
def test_stores_of_one_record_are_whole_folds():
    fed = federation(clinic(2000), n_parties=2000)
    path = cross_validated(fed, "ill ~ age + dose", family="binomial", n_penalties=4)
    _, _, folds = pooled(fed, "ill ~ age + dose", 5)
    assert np.bincount(folds).min() > 300
    assert path.n_records == 2000


def test_a_path_resumes_from_every_state(tmp_path):
    spec = Design.of("ill ~ age + dose", federation().schema)
    ask = {"family": "binomial", "n_penalties": 3, "folds": 3}
    states = list(penalty_path(federation(), spec, **ask))
    for state in states[:-1]:
        save_checkpoint(tmp_path / "state", state, federation(), "test")
        start = load_checkpoint(tmp_path / "state", PathState, "test").state
        *_, found = penalty_path(federation(), spec, start=start, **ask)
        np.testing.assert_array_equal(found.beta, states[-1].beta)
    assert list(penalty_path(federation(), spec, start=states[-1], **ask)) == []


@pytest.mark.parametrize("wrong", [{"folds": 1}, {"n_penalties": 0}, {"smallest": 2.0}, {"penalties": []}, {"folds": 299}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(SettingsInvalid):
        cross_validated(federation(), "pain ~ age", **wrong)


def test_a_penalty_that_is_not_on_the_path_is_refused():
    path = cross_validated(federation(), "pain ~ age", n_penalties=3)
    with pytest.raises(SettingsInvalid, match="is no penalty of the path"):
        path.fit(17.0)
