"""Boosting: equal to scikit-learn on the same bins, resumable, the same on every engine, bounded by brute force."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from tree_patients import patients

from hedgerow.core import Party
from hedgerow.data import iid
from hedgerow.engines import InProcess, Loop, simulate
from hedgerow.errors import HedgerowWarning, SettingsInvalid, UnboundedSum
from hedgerow.privacy import Gaussian, Laplace
from hedgerow.store import last
from hedgerow.store.checkpoint import join, split
from hedgerow.trees import Bins, BoostingState, binned, boosted_trees, grow_boosted
from hedgerow.trees.boosted import CURVED, MOST, SQUARES, gradient_bound, gradient_histogram

TOLD = {"feature": [-1, -1], "threshold": [0, 0], "left": [0, 0], "open": [1], "roots": [0, 1], "round": 1}
PHI = (1 + np.sqrt(5)) / 2


# ---- equal to scikit-learn ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("regularisation", [0.0, 1.0])
@pytest.mark.parametrize("target", ["ill", "days"])
def test_boosting_equals_scikit_learn_on_the_pooled_bins(target, regularisation):
    """scikit-learn's smallest sum of second derivatives is 1e-3, and its histograms add up float32."""
    table = patients(1200)
    federation = simulate(table, iid(parties=7), seed=0)
    found = boosted_trees(
        federation, trees=6, depth=3, n_bins=20, min_curvature=1e-3, regularisation=regularisation, target=target
    )
    X, y = found.bins.number(table.columns), table[target]
    kind = HistGradientBoostingClassifier if target == "ill" else HistGradientBoostingRegressor
    expected = kind(
        max_iter=6,
        max_depth=3,
        max_leaf_nodes=None,
        learning_rate=0.3,
        l2_regularization=regularisation,
        min_samples_leaf=1,
        early_stopping=False,
    ).fit(X, y)
    scores = expected.decision_function(X) if target == "ill" else expected.predict(X)
    assert_allclose(found.scores(table), scores, rtol=1e-6, atol=1e-6)
    if target == "ill":
        assert_allclose(found.probabilities(table), expected.predict_proba(X), atol=1e-6)
        assert_array_equal(found.predict(table), expected.predict(X))


def test_a_category_of_two_levels_is_boosted_and_one_of_three_is_not(table, federate):
    schema = table.schema.replace(replace(table.schema["ill"], kind="category", levels=("well", "ill"), low=None, high=None))
    codes = {name: column.astype(np.int16) if name == "ill" else column for name, column in table.columns.items()}
    words = boosted_trees(federate(replace(table, schema=schema, columns=codes)), trees=3)
    numbers = boosted_trees(federate(table), trees=3)
    assert_array_equal(words.predict(table.columns) == "ill", numbers.predict(table) == 1)
    with pytest.raises(SettingsInvalid, match="3 classes"):
        boosted_trees(federate(table), target="arm")


def test_a_number_without_a_range_is_boosted_without_noise_only(table, federate):
    schema = table.schema.replace(replace(table.schema["days"], low=None, high=None))
    free = replace(table, schema=schema)
    found, expected = (boosted_trees(federate(t), trees=3, target="days", min_curvature=5) for t in (free, table))
    assert_allclose(found.predict(table), expected.predict(table), rtol=1e-9)
    with pytest.raises(UnboundedSum):
        boosted_trees(federate(free).protect(mechanism=Gaussian(1.0)), trees=1, target="days")


def test_importances_and_rules(table, federate):
    found = boosted_trees(federate(table), trees=4, depth=2)
    assert sum(found.importance.values()) == pytest.approx(1)
    assert found.to_text(0).splitlines()[0].startswith("age <= ")
    with pytest.raises(SettingsInvalid):
        found.to_text(4)


# ---- resumed, on every engine ---------------------------------------------------------------------------------------
def test_every_state_resumes(table, federate):
    states = list(grow_boosted(federate(table), trees=4, depth=2))
    assert [state.round for state in states] == [1, 2, 3, 4]
    for state in states[:-1]:
        again = last(grow_boosted(federate(table), trees=4, depth=2, start=join(BoostingState, *split(state))))
        for name in vars(again):
            assert_array_equal(getattr(again, name), getattr(states[-1], name))


@pytest.mark.parametrize("engine", [InProcess(), InProcess(collapse=False, threads=2)], ids=["collapse", "stack"])
@pytest.mark.parametrize("mechanism", [None, Gaussian(0.5)], ids=["plain", "noise"])
def test_every_engine_boosts_the_same_trees(table, federate, engine, mechanism):
    handles = [federate(table, one) for one in (engine, Loop())]
    handles = handles if mechanism is None else [handle.protect(mechanism=mechanism) for handle in handles]
    found, expected = (last(grow_boosted(handle, trees=2, depth=2, n_bins=8)) for handle in handles)
    for name in vars(expected):
        assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-14, err_msg=name
        )  # the first root gains nothing: zero, but for rounding


# ---- bounds ---------------------------------------------------------------------------------------------------------
def added(bins: Bins, score: float, columns: dict) -> np.ndarray:
    told = {name: np.array(values) for name, values in TOLD.items()} | {"base": np.asarray(score), "value": np.zeros((2, 1))}
    party = Party("one", binned(columns, bins=bins), np.ones(1))
    return gradient_histogram(told, party, None, sizes=bins.sizes, loss="logistic" if bins.classes else "squared")


@settings(max_examples=30, deadline=None)
@given(score=st.floats(-40, 40), ill=st.integers(0, 1), seed=st.integers(0, 99))
def test_one_record_moves_a_logistic_level_by_its_bound_at_most(score, ill, seed):
    table = patients(1, seed)
    bins = Bins.of(table.schema, n_bins=4)
    row = added(bins, score, table.columns | {"ill": np.array([float(ill)])})
    exact = simulate({"one": table})
    assert np.linalg.norm(row) <= gradient_bound(exact, bins).radius * (1 + 1e-12)
    assert np.abs(row).sum() <= gradient_bound(exact.protect(mechanism=Laplace(1.0)), bins).radius * (1 + 1e-12)


def test_bounds_are_reached():
    table = patients(1)
    exact = simulate({"one": table})
    pure = exact.protect(mechanism=Laplace(1.0))
    for target, score, value, squares in (("ill", 40.0, 0.0, 1), ("days", 1.0, -30.0, 5)):
        bins = Bins.of(table.schema, n_bins=4, target=target)
        row = added(bins, score, table.columns | {target: np.array([value])})
        assert np.linalg.norm(row) == pytest.approx(gradient_bound(exact, bins).radius)
        assert gradient_bound(exact, bins).radius == pytest.approx(np.sqrt(squares * len(bins.features)))
    for target, score, value, most in (("ill", np.log(17 / 9), 0.0, 289 / 208), ("days", 1.0, -30.0, 3)):
        bins = Bins.of(table.schema, n_bins=4, target=target)
        row = added(bins, score, table.columns | {target: np.array([value])})
        assert np.abs(row).sum() == pytest.approx(gradient_bound(pure, bins).radius)
        assert gradient_bound(pure, bins).radius == pytest.approx(most * len(bins.features))


def test_the_largest_sum_of_derivatives_is_at_17_of_26():
    """q + c q (1 - q) over all probabilities: (1 + c)^2 / (4 c), and never more."""
    q, c = np.append(np.linspace(0, 1, 200001), 17 / 26), CURVED["logistic"]
    assert (q + c * q * (1 - q)).max() == pytest.approx(float(MOST["logistic"]), rel=1e-15)
    assert MOST["logistic"] == (1 + Fraction(13, 4)) ** 2 / 13


def test_the_largest_factor_of_second_derivatives_is_that_of_the_golden_section():
    """g^2 + (c h)^2 <= 1 for all probabilities as long as c^2 <= phi^5; ours is below, and a twin above it is caught."""
    q = np.linspace(0, 1, 200001)
    longest = {c: (q**2 + (c * q * (1 - q)) ** 2).max() for c in (CURVED["logistic"], np.sqrt(PHI**5), 3.4, 4.0)}
    assert longest[CURVED["logistic"]] == SQUARES["logistic"] == 1
    assert longest[np.sqrt(PHI**5)] == pytest.approx(1, abs=1e-9)
    assert longest[3.4] > 1.005
    assert longest[4.0] == pytest.approx(1.2861517, abs=1e-6)  # at 32 q^2 - 48 q + 17 = 0


def test_the_separate_bounds_of_g_and_h_are_loose():
    """sqrt(1 + 1/16) is never reached: where |g| is 1, h is 0."""
    p = expit(np.linspace(-40, 40, 100001))
    assert (p**2 + (p * (1 - p)) ** 2).max() <= 1 < 1 + 1 / 16


# ---- behind noise ---------------------------------------------------------------------------------------------------
def test_a_budget_is_spent_to_its_end_and_little_noise_keeps_the_trees(table, federate):
    federation = federate(table)
    with pytest.warns(HedgerowWarning, match="additive, or random_trees"):
        boosted_trees(federation, trees=3, depth=2, epsilon=1.0, delta=1e-5)
    assert federation.ledger.epsilon(delta=1e-5, unit="record") <= 1.0
    exact, noisy = federate(table), federate(table).protect(mechanism=Gaussian(1e-5))
    exact, noisy = (last(grow_boosted(handle, trees=2, depth=2, min_curvature=6)) for handle in (exact, noisy))
    assert_array_equal(noisy.feature, exact.feature)
    assert_allclose(noisy.value, exact.value, atol=1e-3)


@pytest.mark.parametrize("target", ["ill", "days"])
def test_trees_of_pure_noise_are_finite(table, federate, target):
    found = boosted_trees(federate(table).protect(mechanism=Gaussian(300.0)), trees=2, depth=2, n_bins=4, target=target)
    assert np.isfinite(found.scores(table)).all()


def test_leaves_have_their_least_curvature_and_so_their_records(table, federate):
    state = last(grow_boosted(federate(table), trees=3, depth=4, min_curvature=5.0))
    split_, bins = state.feature >= 0, Bins.of(table.schema)
    children = np.concatenate([state.left[split_], state.left[split_] + 1])
    assert (state.records[children] >= 5.0).all()
    assert bins.classes


@pytest.mark.parametrize("settings", [{"trees": 0}, {"depth": 0}, {"learning_rate": 0}, {"min_curvature": 0}])
def test_impossible_settings_are_refused(table, federate, settings):
    with pytest.raises(SettingsInvalid):
        boosted_trees(federate(table), **settings)


def test_weights_count_as_repeated_records(table, federate):
    weighted = replace(table, schema=table.schema.replace(replace(table.schema["visits"], role="weight")))
    repeated = table.take(np.repeat(np.arange(len(table)), table["visits"].astype(int)))
    growing = partial(grow_boosted, trees=2, depth=2, features=["age", "dose", "smoker", "stage"])
    found, expected = last(growing(federate(weighted))), last(growing(simulate(repeated, iid(parties=3))))
    assert_array_equal(found.feature, expected.feature)
    assert_allclose(found.value, expected.value, rtol=1e-9, atol=1e-14)
