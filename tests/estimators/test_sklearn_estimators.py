"""Estimators fitted on a federation are those of scikit-learn on the pooled records, and become them."""

import math
from copy import deepcopy

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import hedgerow as hr
from hedgerow import sklearn as federated
from hedgerow.errors import (
    FormulaInvalid,
    MissingExtra,
    RecordsElsewhere,
    SchemaInvalid,
    Separated,
    SettingsInvalid,
    UnlawfulChannel,
)

FORMULA = "malignant ~ mean_radius + mean_texture"


@pytest.fixture(scope="module")
def tumours():
    return hr.data.load("breast_cancer")


@pytest.fixture(scope="module")
def hospitals(tumours):
    return hr.simulate(tumours, hr.data.iid(parties=4), seed=0)


@pytest.fixture(scope="module")
def diabetes():
    table = hr.data.load("diabetes")
    return table.select([name for name in table.schema.names if name != "sex"])


LINEAR = [
    (federated.FederatedLinearRegression(), LinearRegression()),
    (federated.FederatedLinearRegression(fit_intercept=False), LinearRegression(fit_intercept=False)),
    (federated.FederatedRidge(alpha=2.0), Ridge(alpha=2.0)),
    (federated.FederatedLasso(alpha=0.2), Lasso(alpha=0.2, tol=1e-12, max_iter=100_000)),
    (federated.FederatedElasticNet(alpha=0.1), ElasticNet(alpha=0.1, tol=1e-12, max_iter=100_000)),
]


@pytest.mark.parametrize(("ours", "theirs"), LINEAR, ids=lambda one: str(one))
def test_a_linear_estimator_is_that_of_the_pooled_records(ours, theirs, diabetes):
    federation = hr.simulate(diabetes, hr.data.iid(parties=4), seed=0)
    frame = diabetes.to_pandas()
    model = clone(ours).fit(federation)
    X, y = frame[list(model.feature_names_in_)], frame["progression"]
    theirs.fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict(frame), theirs.predict(X), atol=1e-5)
    assert model.score(federation) == pytest.approx(theirs.score(X, y), abs=1e-7)
    assert model.score(frame, y) == pytest.approx(model.score(federation), abs=1e-9)
    plain = model.to_sklearn()
    assert type(plain) is type(theirs)
    np.testing.assert_allclose(plain.predict(X), model.predict(X), rtol=1e-12)
    assert plain.get_params().get("alpha") == theirs.get_params().get("alpha")
    assert len(federation.ledger) == len(model.ledger_)


@pytest.mark.parametrize("C", [1.0, math.inf])
def test_logistic_regression_is_that_of_the_pooled_records(C, tumours, hospitals):
    frame = tumours.to_pandas()
    model = federated.FederatedLogisticRegression(FORMULA, C=C).fit(hospitals)
    X = frame[["mean_radius", "mean_texture"]]
    theirs = LogisticRegression(C=C, tol=1e-10, max_iter=1000).fit(X, frame["malignant"])
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-4)
    plain = model.to_sklearn()
    assert plain.C == C
    np.testing.assert_allclose(plain.predict_proba(X), model.predict_proba(frame), atol=1e-14)
    np.testing.assert_array_equal(plain.predict(X), model.predict(frame))
    assert model.score(hospitals) == model.score(frame, frame["malignant"]) == plain.score(X, frame["malignant"])
    assert (model.n_features_in_, list(model.feature_names_in_)) == (2, ["mean_radius", "mean_texture"])
    np.testing.assert_array_equal(model.predict_proba(X.to_numpy()), model.predict_proba(frame))


def test_a_fit_without_penalty_has_its_inference(hospitals):
    model = federated.FederatedLogisticRegression(FORMULA).fit(hospitals)
    expected = hr.stats.logistic_regression(hospitals, FORMULA)
    np.testing.assert_array_equal(model.fit_.conf_int(), expected.conf_int())


def test_classes_that_columns_separate_are_told_the_penalty_of_the_estimator():
    X = pandas.DataFrame({"dose": np.linspace(0, 1, 30)})
    with pytest.raises(Separated, match="HR-321") as caught:
        federated.FederatedLogisticRegression(parties=3).fit(X, X["dose"].to_numpy() > 0.5)
    assert caught.value.remedy.endswith("Of this estimator: FederatedLogisticRegression(C=1.0).")
    assert federated.FederatedLogisticRegression(parties=3, C=1.0).fit(X, X["dose"].to_numpy() > 0.5).n_iter_[0] > 0


@pytest.mark.slow
def test_several_classes_are_those_of_scikit_learn():
    X, y = make_classification(600, 4, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.3, random_state=0)
    y = np.array(["low", "middle", "high"])[y]
    model = federated.FederatedLogisticRegression(parties=3).fit(X, y)
    theirs = LogisticRegression(C=math.inf, tol=1e-10, max_iter=5000).fit(X, y)
    np.testing.assert_array_equal(model.classes_, theirs.classes_)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(model.to_sklearn().predict_proba(X), model.predict_proba(X), atol=1e-12)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        federated.FederatedLogisticRegression(C=1.0).fit(X, y)


def test_several_classes_of_a_federation_are_not_penalised():
    table = hr.data.Table.from_pandas(pandas.DataFrame({"stage": list("abcabc") * 5, "age": range(30)}))
    with pytest.raises(SettingsInvalid, match="3 classes"):
        federated.FederatedLogisticRegression("stage ~ age", C=1.0).fit(hr.simulate(table, hr.data.iid(parties=2)))


def test_words_of_two_levels_are_the_classes():
    rng = np.random.default_rng(0)
    age, ward = rng.normal(size=200), rng.choice(["a", "b"], 200)
    died = np.where(age + rng.logistic(size=200) > 0, "yes", "no")
    table = hr.data.Table.from_pandas(pandas.DataFrame({"died": died, "age": age, "ward": ward}), target="died")
    model = federated.FederatedLogisticRegression().fit(hr.simulate(table, hr.data.iid(parties=3)))
    assert list(model.classes_) == ["no", "yes"]
    assert list(model.feature_names_in_) == ["age", "ward"]
    assert model.coef_[0, 0] > 0
    array = np.array([[2.0, "a"], [-2.0, "b"]], dtype=object)
    assert list(model.predict(array)) == ["yes", "no"]
    with pytest.raises(FormulaInvalid, match="no column of numbers"):
        model.to_sklearn()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["malignant", "mean_area"])
def test_a_tree_becomes_one_of_scikit_learn(target, tumours, hospitals):
    features = [name for name in tumours.schema.features if name != "mean_area"][:8]
    kind = federated.FederatedDecisionTreeClassifier if target == "malignant" else federated.FederatedDecisionTreeRegressor
    model = kind(max_depth=5, features=features, target=target).fit(hospitals)
    frame = tumours.to_pandas()
    plain = model.to_sklearn()
    X = frame[features]
    if target == "malignant":
        np.testing.assert_array_equal(plain.predict_proba(X), model.predict_proba(frame))
        np.testing.assert_allclose(plain.feature_importances_, model.feature_importances_, atol=1e-12)
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    assert plain.get_depth() == model.get_depth() == 5
    assert plain.tree_.n_node_samples[0] == len(tumours)
    other = federated.FederatedDecisionTreeRegressor if target == "malignant" else federated.FederatedDecisionTreeClassifier
    with pytest.raises(SchemaInvalid, match="Take FederatedDecisionTree"):
        other(max_depth=1, features=features, target=target).fit(hospitals)


def test_parties_and_a_formula_do_not_change_a_fit_of_records(diabetes):
    frame = diabetes.to_pandas()
    X, y = frame[["bmi", "bp"]], frame["progression"]
    alone = federated.FederatedLinearRegression().fit(X, y)
    assert list(alone.fit_.names) == ["Intercept", "bmi", "bp"]
    for other in (
        federated.FederatedLinearRegression(parties=5).fit(X, y),
        federated.FederatedLinearRegression("progression ~ bmi + bp").fit(X, y),
        federated.FederatedLinearRegression("progression ~ bmi + bp").fit(frame),
        federated.FederatedLinearRegression("progression ~ bmi + bp").fit(diabetes),
    ):
        np.testing.assert_allclose(other.coef_, alone.coef_, rtol=1e-9)
        np.testing.assert_allclose(other.predict(X), alone.predict(X), rtol=1e-9)


def test_a_frame_of_another_library_is_read_likewise(diabetes):
    polars = pytest.importorskip("polars")
    frame = diabetes.to_pandas()
    expected = federated.FederatedLinearRegression("progression ~ bmi + bp").fit(frame)
    given = polars.DataFrame({name: diabetes[name] for name in diabetes.schema.names})
    found = federated.FederatedLinearRegression("progression ~ bmi + bp").fit(given)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.predict(given.lazy()), expected.predict(frame))


@pytest.mark.slow
def test_models_are_selected_by_scikit_learn_on_records(diabetes):
    frame = diabetes.to_pandas()
    X, y = frame[["bmi", "bp", "s5"]], frame["progression"]
    ours = cross_val_score(federated.FederatedLinearRegression(), X, y, cv=3)
    np.testing.assert_allclose(ours, cross_val_score(LinearRegression(), X, y, cv=3), rtol=1e-8)
    grid = GridSearchCV(federated.FederatedRidge(), {"alpha": [0.1, 10.0]}, cv=3).fit(X, y)
    assert grid.best_params_ == GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=3).fit(X, y).best_params_


def test_a_pipeline_transforms_new_records_by_what_is_public(tumours, hospitals):
    frame = tumours.to_pandas()[["mean_radius", "mean_texture"]]
    model = federated.FederatedLogisticRegression(FORMULA).fit(hospitals)
    in_centimetres = FunctionTransformer(lambda X: X.assign(mean_radius=X["mean_radius"] * 10))
    ready = make_pipeline(in_centimetres, FrozenEstimator(model))
    np.testing.assert_allclose(
        ready.predict_proba(frame.assign(mean_radius=frame["mean_radius"] / 10)), model.predict_proba(frame)
    )
    scaler = StandardScaler().fit(frame)  # of records that are the caller's
    scaled = make_pipeline(scaler, federated.FederatedLogisticRegression()).fit(frame, tumours["malignant"])
    np.testing.assert_allclose(scaled.predict_proba(frame), model.predict_proba(frame), atol=1e-9)


@pytest.mark.parametrize(
    "use",
    [
        lambda model, federation: make_pipeline(StandardScaler(), model).fit(federation),
        lambda model, federation: cross_val_score(model, federation),
        lambda model, federation: model.predict(federation),
        lambda model, federation: model.predict_proba(federation),
        lambda model, federation: np.asarray(federation),
    ],
    ids=["scaler", "cross_val_score", "predict", "predict_proba", "asarray"],
)
def test_what_would_read_the_parties_records_is_refused(use, hospitals):
    asked = len(hospitals.ledger)
    with pytest.raises(RecordsElsewhere, match="cross_validated"):
        use(federated.FederatedLogisticRegression(FORMULA).fit(hospitals.aside()), hospitals)
    fits = len(hospitals.ledger) - asked
    assert all("linear_sums" in entry.query for entry in hospitals.ledger.since(asked))
    assert fits > 0


def test_a_private_federation_is_charged_and_a_penalty_refused(tumours):
    budget = hr.Budget(epsilon=50.0, delta=1e-5, unit="record")
    private = hr.simulate(tumours, hr.data.iid(parties=4), seed=0).protect(mechanism=hr.Gaussian(4.0)).within(budget)
    model = federated.FederatedLogisticRegression(FORMULA, rounds=3).fit(private)
    assert [entry.event.kind for entry in model.ledger_.entries] == ["gaussian"] * 3
    assert np.isnan(model.fit_.se_).all()
    with pytest.raises(UnlawfulChannel):
        federated.FederatedLasso(FORMULA).fit(private)


def test_a_copy_keeps_the_fit_and_not_the_ledger(hospitals, tumours):
    model = federated.FederatedLogisticRegression(FORMULA).fit(hospitals)
    again = deepcopy(model)
    frame = tumours.to_pandas()
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert not hasattr(again, "ledger_")


def test_what_cannot_be_fitted_says_why(hospitals, tumours):
    with pytest.raises(SettingsInvalid, match="y was given"):
        federated.FederatedLogisticRegression().fit(hospitals, [1])
    with pytest.raises(SettingsInvalid, match="a formula names columns"):
        federated.FederatedLogisticRegression(FORMULA).fit(np.zeros((3, 2)), [0, 1, 1])
    with pytest.raises(SettingsInvalid, match="fit_intercept"):
        federated.FederatedLogisticRegression(FORMULA, fit_intercept=False).fit(hospitals)
    with pytest.raises(SettingsInvalid, match="C is above zero"):
        federated.FederatedLogisticRegression(FORMULA, C=0.0).fit(hospitals)
    with pytest.raises(Separated):
        federated.FederatedLogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    nobody = hr.simulate(tumours.select(["mean_radius", "mean_texture"]), hr.data.iid(parties=2))
    with pytest.raises(SchemaInvalid, match="declares no target"):
        federated.FederatedLogisticRegression().fit(nobody)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *given: None if name == "sklearn" else found(name, *given))
    with pytest.raises(MissingExtra, match="scikit-learn"):
        importlib.reload(federated)
