"""Without noise a private model is the minimum that a trusted implementation finds on the same rows."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

import hedgerow as hr
from hedgerow.core import Party
from hedgerow.errors import NotConverged
from hedgerow.stats import private
from hedgerow.stats.linear.losses import loss_of
from hedgerow.stats.private.sums import class_score

CANCER = "malignant ~ mean_radius + mean_texture + mean_smoothness"
DIABETES = "progression ~ bmi + bp + sex"


def dealt(table, k=3):
    return hr.simulate(table, hr.data.iid(parties=k), seed=1)


def cancer(n=200):
    return hr.data.load("breast_cancer").take(range(n))


def diabetes(n=200):
    return hr.data.load("diabetes").take(range(n)).declare(progression=(0, 400))


def rows_of(table, formula, **settings):
    rows = private.UnitRows.of(formula, table.schema, **settings)
    return rows, rows.rows(table.columns, len(table)), rows.targets(table.columns)


def minimum(X, y, loss, width, penalty, w=None):
    """By scipy, of the sum of losses and the penalty."""
    w = np.ones(len(y)) if w is None else w

    def objective(beta):
        return w @ loss.part("smooth" if loss.has("smooth") else "value", y, X @ beta, width) + penalty / 2 * beta @ beta

    def slope(beta):
        return X.T @ (w * loss.part("slope", y, X @ beta, width)) + penalty * beta

    found = minimize(objective, np.zeros(X.shape[1]), jac=slope, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    return found.x, objective


SLOW = [pytest.param(method, 0.3, marks=pytest.mark.slow) for method in ("majorised", "gradient")]


@pytest.mark.parametrize(("method", "penalty"), [("majorised", 1.0), ("gradient", 10.0), *SLOW])
def test_logistic_is_scikit_learns(method, penalty):
    fit = private.logistic(dealt(cancer()), CANCER, bins=4, tol=1e-9, penalty=penalty, method=method)
    _, X, y = rows_of(cancer(), CANCER, bins=4)
    known = LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y).coef_[0]
    np.testing.assert_allclose(fit.coef_, known, rtol=0, atol=1e-6)


def test_without_a_penalty_it_is_scikit_learns_line():
    table = cancer()
    fit = private.logistic(dealt(table), "malignant ~ mean_texture + mean_smoothness", penalty=0.0, tol=1e-9)
    _, X, y = rows_of(table, "malignant ~ mean_texture + mean_smoothness")
    known = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y).coef_[0]
    np.testing.assert_allclose(fit.coef_, known, rtol=0, atol=1e-6 * np.abs(known).max())


def test_separated_classes_without_a_penalty_have_no_minimum():
    with pytest.raises(NotConverged, match="penalty"):
        private.logistic(dealt(cancer(60).take([0, 1, 19, 20])), CANCER, penalty=0.0, max_rounds=50)


@pytest.mark.slow
def test_multinomial_is_scikit_learns():
    table = hr.data.load("fair").take(range(0, 6000, 20))
    fit = private.multinomial(dealt(table), "occupation ~ educ + age", tol=1e-10, bins=3)
    _, X, y = rows_of(table, "occupation ~ educ + age", classes=True, bins=3)
    known = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y)
    absent = [k for k in range(len(fit.classes_)) if k not in known.classes_]
    assert not absent
    np.testing.assert_allclose(fit.coef_, known.coef_, rtol=0, atol=1e-6)
    frame = table.to_pandas()
    np.testing.assert_allclose(fit.predict_proba(frame), known.predict_proba(X), rtol=0, atol=1e-6)
    assert fit.score(frame) == pytest.approx(known.score(X, y))
    assert (fit.classify(frame) == np.array(fit.classes_)[known.predict(X).astype(int)]).all()


@pytest.mark.parametrize("threshold", [20.0, 80.0])
def test_huber_is_the_minimum_of_its_loss(threshold):
    table = diabetes()
    fit = private.huber(dealt(table), DIABETES, threshold=threshold, tol=1e-9)
    _, X, y = rows_of(table, DIABETES)
    known, _ = minimum(X, y, loss_of("huber"), threshold / 200, 1.0)
    np.testing.assert_allclose(fit.coef_, known, rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, 0.8])
def test_quantile_is_the_minimum_of_its_smoothed_loss(share):
    table = diabetes()
    fit = private.quantile(dealt(table), DIABETES, share=share, corner=10.0, tol=1e-10)
    _, X, y = rows_of(table, DIABETES)
    known, objective = minimum(X, y, loss_of("smoothed check", share), 10.0 / 200, 1.0)
    assert objective(fit.coef_) <= objective(known) + 1e-9
    np.testing.assert_allclose(fit.coef_, known, rtol=0, atol=2e-6)


def test_a_support_vector_machine_is_the_minimum_of_its_rounded_hinge():
    fit = private.svm(dealt(cancer()), CANCER, corner=0.5, tol=1e-10)
    _, X, y = rows_of(cancer(), CANCER)
    known, objective = minimum(X, y, loss_of("hinge"), 0.5, 1.0)
    assert objective(fit.coef_) <= objective(known) + 1e-9
    np.testing.assert_allclose(fit.coef_, known, rtol=0, atol=2e-6)


def test_weights_count_as_repeated_records():
    table = cancer(80)
    twice = table.take([*range(80), *range(40)])
    weight = np.where(np.arange(80) < 40, 2.0, 1.0)
    weighted = table.to_pandas().assign(w=weight)
    one = private.logistic(
        dealt(hr.data.Table.from_frame(weighted, schema=_with_weight(table))), CANCER, weights="w", tol=1e-10
    )
    other = private.logistic(dealt(twice), CANCER, tol=1e-10)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=0, atol=1e-6)


def _with_weight(table):
    return table.schema.with_columns([hr.data.Column("w", "integer", low=0, high=2, role="ignore")])


def test_softmax_agrees_with_its_log_likelihood():
    table = hr.data.load("fair").take(range(0, 6000, 60))
    rows, X, y = rows_of(table, "occupation ~ educ", classes=True)
    K = len(rows.spec.response.names) + 1
    W = np.random.default_rng(0).normal(size=(K, X.shape[1]))
    found = class_score({"coef": W}, Party("a", {"X": X, "y": y}, np.ones(len(y))), None)

    def log_likelihood(flat):
        eta = X @ flat.reshape(K, -1).T
        return (eta[np.arange(len(y)), y.astype(int)] - logsumexp(eta, axis=1)).sum()

    step = 1e-6 * np.eye(W.size)
    slope = [(log_likelihood(W.ravel() + e) - log_likelihood(W.ravel() - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(found.ravel(), slope, rtol=0, atol=1e-5)
