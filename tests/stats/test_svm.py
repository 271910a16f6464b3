"""Support vector machines reach the objective of scikit-learn's, and say how far they may be from the least one."""

import numpy as np
import pytest
from clinic import clinic, federation
from sklearn.svm import SVC

from hedgerow import data
from hedgerow.crypto import SecAgg
from hedgerow.errors import NotBinary, NotConverged, NotFinite, SettingsInvalid, UnboundedSum, UnlawfulChannel
from hedgerow.privacy import Gaussian
from hedgerow.stats import SmoothState, design_of, gradient_descent, margin_of, margins, standardise, svm
from hedgerow.stats.losses.sums import Asking, loss_sums
from hedgerow.store import load_checkpoint, save_checkpoint

COLUMNS = ["mean_radius", "mean_texture", "mean_smoothness", "mean_concavity"]
CANCER = "malignant ~ " + " + ".join(COLUMNS)
ILL = "ill ~ age + dose"


@pytest.fixture(scope="module")
def cancer():
    table = data.load("breast_cancer")
    frame = table.to_pandas()
    Z = (frame[COLUMNS] - frame[COLUMNS].mean()) / frame[COLUMNS].std()
    return standardise(federation(table), COLUMNS), Z.to_numpy(), np.where(frame["malignant"].astype(float) > 0.5, 1.0, -1.0)


def objective(w, Z, sign, C):
    return w[1:] @ w[1:] / 2 + C * np.maximum(0, 1 - sign * (w[0] + Z @ w[1:])).sum()


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_the_objective_is_that_of_scikit_learn(cancer, C):
    fed, Z, sign = cancer
    found, theirs = svm(fed, CANCER, C=C), SVC(kernel="linear", C=C, tol=1e-6).fit(Z, sign)
    expected = objective(np.r_[theirs.intercept_, theirs.coef_[0]], Z, sign, C)
    ours = objective(found.coef_, Z, sign, C)
    assert expected * (1 - 1e-6) <= ours <= expected * (1 + 1e-3)
    np.testing.assert_allclose(found.objective * C * len(sign), ours, rtol=1e-10)
    assert found.gap <= 5e-4 * found.objective
    assert found.cost == pytest.approx(C)
    assert found.rounds <= 40


def test_the_penalty_of_the_thesis_is_a_cost(cancer):
    fed, Z, sign = cancer
    found = svm(fed, CANCER, penalty=1.0)
    theirs = SVC(kernel="linear", C=1 / (2 * len(sign)), tol=1e-8).fit(Z, sign)
    w = np.r_[theirs.intercept_, theirs.coef_[0]]
    thesis = w[1:] @ w[1:] + np.maximum(0, 1 - sign * (w[0] + Z @ w[1:])).mean()
    assert found.objective == pytest.approx(thesis, rel=1e-3)


@pytest.mark.slow
def test_subgradient_descent_of_the_thesis_approaches_the_same_objective(cancer):
    fed, *_ = cancer
    *_, state = gradient_descent(
        fed, formula=CANCER, family="hinge", penalty=1.0, learning_rate=0.01, rounds=1000, with_loss=True
    )
    assert state.loss == pytest.approx(svm(fed, CANCER, penalty=1.0).objective, rel=0.01)


def test_the_gap_bounds_what_is_left(cancer):
    fed, *_ = cancer
    states = list(margins(fed, formula=CANCER, C=1.0, tol=1e-5))
    best = min(state.value for state in states)
    for state in states:
        if state.decrease < state.gap / 10:
            assert state.value - best <= 1.2 * state.gap


def test_decisions_are_the_linear_predictor():
    fed, frame = federation(), clinic(20, seed=3).to_pandas()
    found = svm(fed, ILL, C=0.1)
    expected = found.coef_[0] + found.coef_[1] * frame["age"] + found.coef_[2] * frame["dose"]
    np.testing.assert_allclose(found.decide(frame), expected)
    assert found.names == ("Intercept", "age", "dose")


def test_one_question_about_several_points_is_several_questions_about_one():
    spec = design_of(federation().schema, ILL, "binomial")
    asking, points = Asking.of(federation(), spec, "hinge"), np.array([[0.1, 0.01, -0.2], [0.0, 0.02, 0.1]])
    together = asking.sums(points, ("gradient", "curvature", "loss", "gap"), 0.5)
    for i, point in enumerate(points):
        for key, found in asking.sums(point, ("gradient", "curvature", "loss", "gap"), 0.5).items():
            np.testing.assert_allclose(together[key][i], found, rtol=1e-12)


@pytest.mark.slow
def test_a_machine_resumes_from_every_state(tmp_path):
    states = list(margins(federation(), formula=ILL, C=1.0, tol=1e-2))
    for state in states[:-1]:
        save_checkpoint(tmp_path / "state", state, federation(), "test")
        start = load_checkpoint(tmp_path / "state", SmoothState, "test").state
        *_, found = margins(federation(), formula=ILL, C=1.0, tol=1e-2, start=start)
        np.testing.assert_array_equal(found.beta, states[-1].beta)
    spec = design_of(federation().schema, ILL, "binomial")
    assert margin_of(spec, states[-1], C=1.0).objective == states[-1].value


def test_hidden_rows_give_the_same_machine():
    hidden = federation().protect(aggregation=SecAgg(records=1000))
    found, expected = svm(hidden, ILL, C=0.1), svm(federation(), ILL, C=0.1)
    assert found.objective == pytest.approx(expected.objective, rel=1e-3)
    assert all(entry.bound != "none" for entry in hidden.ledger.entries)
    with pytest.raises(UnboundedSum, match="open declares no range"):
        svm(federation().protect(aggregation=SecAgg()), "ill ~ open")


def test_a_machine_that_has_no_rounds_left_says_what_it_knows():
    with pytest.raises(NotConverged, match="known to"):
        svm(federation(), ILL, C=1.0, max_rounds=3)


def test_an_undefined_expression_is_refused():
    with pytest.raises(NotFinite, match="log of zero"):
        svm(federation(), "ill ~ log(visits)")


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"C": 0.0}, SettingsInvalid),
        ({"C": 1.0, "penalty": 1.0}, SettingsInvalid),
        ({"penalty": float("inf")}, SettingsInvalid),
        ({"tol": 0.0}, SettingsInvalid),
        ({"formula": "pain ~ age"}, NotBinary),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_any_party_is_asked(wrong, error):
    fed = federation()
    with pytest.raises(error):
        svm(fed, **({"formula": ILL} | wrong))
    assert len(fed.ledger) == 0


def test_noise_is_refused_with_another_way():
    with pytest.raises(UnlawfulChannel, match="gradient_descent"):
        svm(federation().protect(mechanism=Gaussian(1.0)), ILL)


def test_the_local_function_may_be_pooled_and_stacked():
    assert loss_sums.additive
    assert loss_sums.stackable
