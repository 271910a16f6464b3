"""Forests in lock step: each tree is scikit-learn's with the same draws; the same on every engine; bounded behind noise."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import poisson
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import hedgerow as hr
from hedgerow.core import Party, l1
from hedgerow.crypto import SecAgg
from hedgerow.data import iid
from hedgerow.engines import InProcess, Loop, Processes, simulate
from hedgerow.errors import SettingsInvalid, UnlawfulChannel
from hedgerow.privacy import Gaussian
from hedgerow.store import last
from hedgerow.store.checkpoint import join, split
from hedgerow.trees import Bins, TreeState, binned, grow_forest, histogram, random_forest
from hedgerow.trees.bootstrap import LIMITS, MOST_DRAWS, draws, subsets
from hedgerow.trees.forest import ForestPlan, drawn_histogram, whole_histogram
from hedgerow.trees.growing import broadcast_of

TARGETS = ["ill", "arm", "days"]


def drawn_by(federation, trees: int, seed: int = 0) -> tuple[dict, np.ndarray]:
    """The records as parties hold them, and how often each tree draws each."""
    held = hr.engines.records(federation)
    sizes = dict(zip(held.ids, held.sizes, strict=True))
    return held.columns, np.concatenate([draws(seed, name, n, trees) for name, n in sizes.items()], axis=1)


# ---- equal to scikit-learn ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", TARGETS)
def test_each_tree_is_that_of_scikit_learn_with_the_same_draws(table, federate, target):
    federation = federate(table)
    forest = random_forest(federation, trees=4, depth=4, min_records=12, features_per_node=5, target=target)
    columns, drawn = drawn_by(federation, 4)
    X, y = forest.bins.number(columns), columns[target]
    found = np.zeros_like(forest.probabilities(columns))
    shares = np.zeros(5)
    for number, w in enumerate(drawn):
        kind = DecisionTreeClassifier if forest.bins.classes else DecisionTreeRegressor
        expected = kind(max_depth=4, min_weight_fraction_leaf=12 / w.sum(), min_impurity_decrease=1e-9, random_state=0).fit(
            X, y, sample_weight=w
        )
        values = expected.predict_proba(X) if forest.bins.classes else expected.predict(X)[:, None]
        tree = forest.tree(number)
        counted = w > 0  # among cuts in an empty gap ours is the first, and scikit-learn's in the middle
        assert_allclose(tree.probabilities(columns)[counted], values[counted], rtol=1e-9)
        assert tree.state.records[0] == w.sum()
        assert_allclose(list(tree.importance.values()), expected.feature_importances_, atol=1e-9)
        found, shares = found + tree.probabilities(columns) / 4, shares + expected.feature_importances_ / 4
    assert_allclose(forest.probabilities(columns), found, rtol=1e-9)
    assert_allclose(list(forest.importance.values()), shares, atol=1e-9)


def test_nodes_are_split_by_the_features_that_were_drawn_for_them(table, federate):
    federation = federate(table)
    forest = random_forest(federation, trees=6, depth=1, features_per_node=2, target="days", seed=4)
    columns, drawn = drawn_by(federation, 6, seed=4)
    X, y = forest.bins.number(columns), columns["days"]
    for number, (w, chosen) in enumerate(zip(drawn, subsets(4, 0, 6, 5, 2), strict=True)):
        expected = DecisionTreeRegressor(max_depth=1, min_weight_fraction_leaf=10 / w.sum()).fit(
            X[:, chosen], y, sample_weight=w
        )
        assert forest.state.feature[number] == chosen[expected.tree_.feature[0]]
        assert_allclose(forest.tree(number).predict(columns)[w > 0], expected.predict(X[:, chosen])[w > 0], rtol=1e-9)


def test_without_draws_and_with_all_features_every_tree_is_the_decision_tree(table, federate):
    forest = random_forest(federate(table), trees=3, depth=3, bootstrap=False, features_per_node=5)
    alone = hr.trees.decision_tree(federate(table), depth=3)
    for number in range(3):
        for name, expected in vars(alone.state).items():
            assert_allclose(getattr(forest.tree(number).state, name), expected, rtol=1e-12, err_msg=name)
    assert forest.to_text(2) == alone.to_text()
    assert_array_equal(forest.predict(table), alone.predict(table))


def test_a_forest_predicts_words_and_classes(table, federate):
    words = random_forest(federate(table), trees=3, depth=2, target="arm").predict(table)
    assert set(words) <= {"placebo", "low", "high"}
    assert set(random_forest(federate(table), trees=3, depth=2).predict(table)) <= {0.0, 1.0}


# ---- draws ----------------------------------------------------------------------------------------------------------
def test_draws_are_poisson_and_follow_from_seed_tree_party_and_place_alone():
    drawn = draws(7, "clinic 3", 4000, 5)
    assert np.searchsorted(LIMITS, np.uint64(2**64 - 1), side="right") <= MOST_DRAWS
    assert_array_equal(drawn[:3, :100], draws(7, "clinic 3", 100, 3))
    found = np.bincount(drawn.ravel().astype(int), minlength=8)[:8]
    expected = 20000 * poisson(1).pmf(np.arange(8))
    assert (np.abs(found - expected) <= 5 * np.sqrt(expected) + 1).all()  # false alarm below 1e-5
    for other in (draws(8, "clinic 3", 4000, 5), draws(7, "clinic 4", 4000, 5), drawn[::-1]):
        rows = [np.corrcoef(a, b)[0, 1] for a, b in zip(drawn, other, strict=True) if a is not b]
        assert np.abs(np.array(rows)[[0, 1, 3, 4]]).max() < 0.08  # five deviations


def test_subsets_are_ascending_and_every_feature_has_its_turn():
    chosen = subsets(0, 2, 4000, 5, 2)
    assert (chosen[:, 0] < chosen[:, 1]).all()
    assert np.abs(np.bincount(chosen.ravel()) - 1600).max() < 200
    assert_array_equal(subsets(0, 2, 10, 5, 5), np.tile(np.arange(5), (10, 1)))


# ---- engines and resuming -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("engine", [InProcess(), InProcess(collapse=False, threads=2)], ids=["collapse", "stack"])
@pytest.mark.parametrize("settings", [{}, {"bootstrap": False}], ids=["drawn", "whole"])
def test_every_engine_grows_the_same_forest(table, federate, engine, settings):
    growing = partial(grow_forest, trees=5, depth=3, n_bins=8, **settings)
    found, expected = last(growing(federate(table, engine))), last(growing(federate(table, Loop())))
    for name in vars(expected):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, err_msg=name)


def test_every_state_resumes(table, federate):
    states = list(grow_forest(federate(table), trees=4, depth=3))
    for state in states[:-1]:
        again = last(grow_forest(federate(table), trees=4, depth=3, start=join(TreeState, *split(state))))
        for name in vars(again):
            assert_array_equal(getattr(again, name), getattr(states[-1], name))


def test_a_party_without_records_answers_zeros(table):
    bins = Bins.of(table.schema, n_bins=4)
    told = broadcast_of(TreeState.root(bins, 3)) | {"chosen": subsets(0, 0, 3, 5, 2)}
    columns = binned({name: column[:0] for name, column in table.columns.items()}, bins=bins)
    found = drawn_histogram(told, Party("none", columns, np.ones(0)), None, sizes=bins.sizes, n_classes=2, trees=3, seed=0)
    assert found.shape == (np.array(bins.sizes)[told["chosen"]].sum(), 2)
    assert not found.any()


def test_records_with_missing_values_keep_the_places_of_others(table):
    schema = table.schema.allowing(missing=True)
    lost = np.arange(len(table)) % 7 == 3
    columns = table.columns | {"age": np.where(lost, np.nan, table["age"])}
    holed = simulate({"all": replace(table, schema=schema, columns=columns)}, seed=0)
    drawn = draws(0, "all", len(table), 3) * ~lost
    assert_array_equal(random_forest(holed, trees=3, depth=1).state.records[:3], drawn.sum(1))


def test_a_level_of_all_trees_is_one_question(table, federate):
    federation = federate(table)
    random_forest(federation, trees=30, depth=4)
    assert len(federation.ledger) == 4


# ---- behind noise ---------------------------------------------------------------------------------------------------
def moved(bins: Bins, plan: ForestPlan, norm: int) -> float:
    """The longest that one record adds to the first level of a forest, in l1 or l2, over records at the corners."""
    m, t = plan.drawn_features(bins), plan.trees
    told = {"feature": np.full(t, -1), "threshold": np.zeros(t, int), "left": np.zeros(t, int), "open": np.arange(t)}
    told |= {"round": np.asarray(0), "chosen": subsets(0, 0, t, len(bins.features), m)}
    ask = partial(whole_histogram, told, rng=None, sizes=bins.sizes, n_classes=len(bins.classes), trees=t)
    rng, lengths = np.random.default_rng(0), []
    for day in (-30.0, 0.0, 60.0):
        columns = hr.data.Schema(bins.features).synthetic(1, rng) | {bins.target.name: np.array([day])}
        if bins.classes:
            columns[bins.target.name] = np.array([0])
        lengths.append(np.linalg.norm(ask(Party("one", binned(columns, bins=bins), np.ones(1))).ravel(), norm))
    return max(lengths)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [1, 3, 5])
def test_the_bound_of_a_level_is_reached_and_never_exceeded(table, target, size):
    bins = Bins.of(table.schema, target=target, n_bins=6)
    plan = ForestPlan(trees=7, features_per_node=size, bootstrap=False)
    exact = hr.simulate({"one": table})
    assert moved(bins, plan, 2) == pytest.approx(plan.bound(exact, bins).radius)
    assert moved(bins, plan, 1) == pytest.approx(plan.bound(exact.protect(mechanism=hr.Laplace(1.0)), bins).radius)


def test_a_twin_that_declares_a_histogram_at_length_one_is_caught(table):
    """Each record is in one bin of *every* feature: l1(1), as code often has it, is F times too small."""
    bins = Bins.of(table.schema, n_bins=6)
    told = {"feature": np.array([-1]), "threshold": np.zeros(1, int), "left": np.zeros(1, int), "open": np.array([0])}
    columns = binned({name: column[:1] for name, column in table.columns.items()}, bins=bins)
    row = histogram(told | {"round": 0}, Party("one", columns, np.ones(1)), None, sizes=bins.sizes, n_classes=2).reshape(1, -1)
    twin = l1(1.0, "record")
    assert twin.size(row)[0, 0] == len(bins.features) > twin.radius
    assert bins.bound.size(row)[0, 0] <= bins.bound.radius


def test_little_noise_keeps_the_forest_and_a_budget_is_spent_to_its_end(table, federate):
    exact = random_forest(federate(table), trees=2, depth=2, bootstrap=False, min_records=30)
    noisy = random_forest(federate(table).protect(mechanism=Gaussian(1e-4)), trees=2, depth=2, bootstrap=False, min_records=30)
    assert_array_equal(noisy.state.feature, exact.state.feature)
    federation = federate(table)
    random_forest(federation, trees=2, depth=2, bootstrap=False, epsilon=2.0, delta=1e-5)
    assert 1.9 < federation.ledger.epsilon(delta=1e-5, unit="record") <= 2.0


def test_a_bootstrap_behind_noise_is_refused(table, federate):
    for federation, settings in (
        (federate(table).protect(mechanism=Gaussian(1.0)), {}),
        (federate(table), {"epsilon": 1.0, "delta": 1e-5}),
    ):
        with pytest.raises(UnlawfulChannel, match="private_forest"):
            random_forest(federation, trees=2, depth=1, **settings)
        assert len(federation.ledger) == 0


@pytest.mark.parametrize("settings", [{"trees": 0}, {"depth": 0}, {"min_records": 0}, {"features_per_node": 9}, {"seed": -1}])
def test_impossible_settings_are_refused(table, federate, settings):
    with pytest.raises(SettingsInvalid):
        random_forest(federate(table), **settings)


@pytest.mark.slow
def test_a_forest_of_one_party_s_records_is_the_same_however_they_are_stacked(table):
    one = simulate(table, iid(parties=1), seed=0)
    a, b = (random_forest(one, trees=20, depth=5, seed=s) for s in (1, 1))
    assert_array_equal(a.state.feature, b.state.feature)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{}, {"bootstrap": False, "epsilon": 8.0, "delta": 1e-5}], ids=["exact", "noise in shares"]
)
def test_behind_masks_the_forest_is_the_same(table, federate, settings):
    """Party totals are hidden from the hub; without noise the forest is to the last node that of open sums."""
    hidden = federate(table).protect(aggregation=SecAgg(records=1))
    if settings:
        noisy = {"noise_at": "shares", "least": 8}
        found = random_forest(hidden, trees=2, depth=2, **settings, **noisy)
        assert hidden.ledger.epsilon(delta=1e-5, unit="record") <= 8.0
        assert set(found.predict(table)) <= {0.0, 1.0}
        return
    found, expected = (random_forest(handle, trees=3, depth=3) for handle in (hidden, federate(table)))
    for name in vars(expected.state):
        assert_allclose(getattr(found.state, name), getattr(expected.state, name), atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_parties_in_other_processes_draw_the_same_records(table):
    growing = partial(grow_forest, trees=3, depth=2)
    with Processes(2) as engine:
        found = last(growing(simulate(table, iid(parties=3), seed=1, engine=engine)))
    expected = last(growing(simulate(table, iid(parties=3), seed=1)))
    for name in vars(expected):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, err_msg=name)
