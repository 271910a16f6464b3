"""Forests whose leaves vote: what a record moves, by brute force; accounting; and twins that tests catch by name."""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import hedgerow as hr
from hedgerow.core import Party
from hedgerow.core.events import Event
from hedgerow.data import Schema, Table
from hedgerow.errors import BudgetInvalid, SchemaInvalid, SettingsInvalid, SlotFilled, UnlawfulChannel
from hedgerow.privacy import Gaussian
from hedgerow.privacy.choice import ManyChoice
from hedgerow.privacy.shares import UP
from hedgerow.trees import Bins, binned, grow_hybrid_forest, grow_private_forest, hybrid_forest, private_forest
from hedgerow.trees.heaps import HeapTrees, SplitRule
from hedgerow.trees.hybrid import node_counts
from hedgerow.trees.private_forest import leaf_votes
from hedgerow.trees.structures import RandomStructure, part_of
from hedgerow.trees.votes import shares_of
from hedgerow.wire.values import pack, unpack

LARGE = 40


# ---- scores of splits: brute force ----------------------------------------------------------------------------------
def moves(rule: SplitRule, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """How one record more, of each class in each child, moves the score of a split (nodes are the worlds)."""
    worlds = np.stack([left, right], axis=1)
    before = rule.scores(worlds)[:, 0]
    classes = left.shape[-1]
    found = []
    for side, one in itertools.product(range(2), range(classes)):
        more = worlds.copy()
        more[:, side, one] += 1
        found.append(rule.scores(more)[:, 0] - before)
    return np.stack(found)


def all_counts(most: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    every = np.array(list(itertools.product(range(most), repeat=2 * classes)), float)
    return every[:, :classes], every[:, classes:]


@pytest.mark.parametrize(("classes", "most"), [(2, 12), (3, 5)])
def test_max_count_moves_by_zero_or_one(classes, most):
    rule = SplitRule("max count", (2,), (True,))
    found = moves(rule, *all_counts(most, classes))
    assert set(np.unique(found)) == {0.0, 1.0}
    assert rule.sensitivity == found.max()
    assert rule.monotonic


@pytest.mark.parametrize(("classes", "most"), [(2, 12), (3, 5)])
def test_gini_moves_by_less_than_two_up_and_down(classes, most):
    rule = SplitRule("gini", (2,), (True,))
    found = moves(rule, *all_counts(most, classes))
    assert np.abs(found).max() < rule.sensitivity == 2.0
    assert found.min() < 0 < found.max()
    assert not rule.monotonic


def test_gini_reaches_the_golden_and_tends_to_its_sensitivity():
    """1.456 is the most within 39 records in each child; a pure child beside many records of the other class tends to 2."""
    rule = SplitRule("gini", (2,), (True,))
    a, c = (one.ravel().astype(float) for one in np.mgrid[0:LARGE, 0:LARGE])
    worst = 0.0
    for n in (5, 20, 39):
        inside = (a <= n) & (c <= n)
        left, right = (np.stack([one[inside], n - one[inside]], axis=-1) for one in (a, c))
        worst = max(worst, float(np.abs(moves(rule, left, right)).max()))
    assert worst == pytest.approx(1.456, abs=5e-4)
    sizes = [1e2, 1e4, 1e6]
    near = [float(moves(rule, np.array([[math.sqrt(n), 0.0]]), np.array([[0.0, n]])).max()) for n in sizes]
    assert near == sorted(near)
    assert 1.995 < near[-1] < 2


def test_gain_ratio_is_a_broken_twin():
    """One record moves it by its whole range, whatever the number of records: no sensitivity would do."""

    def entropy(counts):
        p = counts[counts > 0] / counts.sum()
        return float(-(p * np.log2(p)).sum())

    def ratio(left, right):
        both, n = left + right, (left + right).sum()
        gain = entropy(both) - sum(one.sum() / n * entropy(one) for one in (left, right) if one.sum())
        split = entropy(np.array([left.sum(), right.sum()]))
        return gain / split if split > 0 else 0.0

    for n in (10, 100, 1000):
        assert abs(ratio(np.array([1, 0]), np.array([0, n])) - ratio(np.array([0, 0]), np.array([0, n]))) == pytest.approx(1)


def test_information_gain_needs_the_number_of_records():
    """n times the gain moves by more the more records there are, beyond any sensitivity that was declared before."""

    def gain(left, right):
        def bits(c):
            n = c.sum()
            return float(-(c[c > 0] * np.log2(c[c > 0] / n)).sum()) if n else 0.0

        return bits(left + right) - bits(left) - bits(right)

    moved = [
        abs(gain(np.array([1, 0]), np.array([0, n])) - gain(np.array([0, 0]), np.array([0, n]))) for n in (10, 1000, 10**5)
    ]
    assert moved == sorted(moved)
    for n, one in zip((10, 1000, 10**5), moved, strict=True):
        assert one <= math.log2(n + 2) + 1 / math.log(2)
    assert moved[-1] > 15


def test_candidates_are_cuts_of_numbers_and_single_levels_of_categories():
    rule = SplitRule("max count", (3, 4, 2), (True, False, True))
    assert rule.candidates == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (1, 3), (2, 0)]
    counts = np.random.default_rng(0).integers(0, 9, (5, 9, 2)).astype(float)
    found = rule.scores(counts)
    assert found.shape == (5, 7)
    left, right = counts[0, 3 + 2], counts[0, 3:7].sum(0) - counts[0, 3 + 2]
    assert found[0, 4] == left.max() + right.max()
    assert not rule.scores(np.zeros((2, 9, 2))).any()


# ---- what parties add -----------------------------------------------------------------------------------------------
def hybrid_counting(bins: Bins, broadcast: dict[str, np.ndarray], party: Party, *, level: int, leaves: bool, parts: bool):
    ordered = tuple(column.kind != "category" for column in bins.features)
    settings = {"sizes": bins.sizes, "ordered": ordered, "n_classes": len(bins.classes), "structure": 5}
    return node_counts(broadcast, party, None, level=level, leaves=leaves, parts=parts, **settings)


@pytest.mark.parametrize("parts", [True, False])
def test_one_record_touches_one_node_of_each_tree_it_is_in(table, parts):
    """One row in parts, so that all nodes cost one event; one of each tree else. Counts at l1 of one are a broken twin."""
    bins = Bins.of(table.schema, n_bins=4)
    rng = np.random.default_rng(0)
    told = {"feature": rng.integers(0, 5, (3, 3)), "cut": rng.integers(0, 3, (3, 3))}
    for i in range(40):
        party = Party("one", binned(table.take([i]).columns, bins=bins), np.ones(1))
        counts = hybrid_counting(bins, told, party, level=2, leaves=False, parts=parts)
        assert counts.shape == (12, sum(bins.sizes), 2)
        touched = counts.any((1, 2))
        assert touched.sum() == (1 if parts else 3)
        assert counts.sum() == len(bins.features) * touched.sum() > 1.0
        at_leaves = hybrid_counting(bins, told, party, level=2, leaves=True, parts=parts)
        assert_array_equal(at_leaves.any(1), touched)
        assert at_leaves.sum() == touched.sum()


def test_counts_are_those_of_a_naive_loop(table):
    bins = Bins.of(table.schema, n_bins=4)
    rng = np.random.default_rng(1)
    told = {"feature": rng.integers(0, 5, (3, 3)), "cut": rng.integers(0, 3, (3, 3))}
    columns, w = binned(table.columns, bins=bins), np.linspace(0, 2, 400)
    ordered = [column.kind != "category" for column in bins.features]
    whose = part_of(columns["bins"], 3, 5)
    expected = np.zeros((12, sum(bins.sizes), 2))
    starts = np.cumsum([0, *bins.sizes])
    for row, y, weight, tree in zip(columns["bins"], columns["target"].astype(int), w, whose, strict=True):
        place = 0
        for level in range(2):
            node = 2**level - 1 + place
            j, cut = told["feature"][tree, node], told["cut"][tree, node]
            place = 2 * place + int(row[j] > cut if ordered[j] else row[j] != cut)
        for j, b in enumerate(row):
            expected[tree * 4 + place, starts[j] + b, y] += weight
    found = hybrid_counting(bins, told, Party("one", columns, w), level=2, leaves=False, parts=True)
    assert_allclose(found, expected, atol=1e-12)
    stacked = {name: column.reshape(4, 100, *column.shape[1:]) for name, column in columns.items()}
    of_each = hybrid_counting(bins, told, Party("s", stacked, w.reshape(4, 100)), level=2, leaves=False, parts=True)
    assert_allclose(of_each.sum(0), expected, atol=1e-12)
    trees = HeapTrees(told["feature"], told["cut"], tuple(ordered))
    assert trees.leaves_of(0, columns["bins"]).max() < 4


@pytest.mark.parametrize("parts", [True, False])
def test_votes_of_one_record_are_in_one_leaf_of_each_tree_it_is_in(table, parts):
    bins = Bins.of(table.schema, n_bins=4)
    drawn = RandomStructure.draw(bins, trees=3, depth=2, seed=0)
    columns = binned(table.columns, bins=bins)
    ask = partial(leaf_votes, drawn.broadcast, rng=None, n_classes=2, parts=parts, structure=0)
    together = ask(Party("all", columns, np.ones(400)))
    assert together.sum() == (400 if parts else 1200)
    one_by_one = [ask(Party("one", {k: v[i : i + 1] for k, v in columns.items()}, np.ones(1))) for i in range(400)]
    assert_array_equal(sum(one_by_one), together)
    assert {one.sum() for one in one_by_one} == {1.0 if parts else 3.0}
    stacked = {name: column.reshape(4, 100, *column.shape[1:]) for name, column in columns.items()}
    assert_array_equal(ask(Party("s", stacked, np.ones((4, 100)))).sum(0), together)


# ---- forests --------------------------------------------------------------------------------------------------------
def accuracy(model, table):
    return float((model.predict(table) == table["ill"]).mean())


def test_without_noise_the_first_split_is_the_best_and_leaves_are_shares(federate, table):
    *_, state = grow_hybrid_forest(federate(table), trees=1, depth=1, n_bins=4, parts=False)
    bins = Bins.of(table.schema, n_bins=4)
    numbers, y = binned(table.columns, bins=bins)["bins"], table["ill"].astype(int)
    best = 0
    for j, column in enumerate(bins.features):
        for cut in range(bins.sizes[j]):
            left = numbers[:, j] == cut if column.kind == "category" else numbers[:, j] <= cut
            best = max(best, np.bincount(y[left], minlength=2).max() + np.bincount(y[~left], minlength=2).max())
    j, cut = int(state.feature[0, 0]), int(state.cut[0, 0])
    left = numbers[:, j] == cut if bins.features[j].kind == "category" else numbers[:, j] <= cut
    assert np.bincount(y[left], minlength=2).max() + np.bincount(y[~left], minlength=2).max() == best
    assert_allclose(state.value[0, 0], [1 - y[left].mean(), y[left].mean()], atol=1e-9)


@pytest.mark.parametrize("score", ["max count", "gini"])
def test_a_large_budget_gives_the_exact_forest(federate, table, score):
    settings = {"trees": 2, "depth": 3, "n_bins": 4, "score": score}
    exact = hybrid_forest(federate(table), **settings)
    rich = hybrid_forest(federate(table), epsilon=1e5, **settings)
    assert accuracy(exact, table) > 0.75
    assert accuracy(rich, table) == pytest.approx(accuracy(exact, table), abs=0.03)  # equal scores are chosen among by chance


def test_a_hybrid_forest_costs_one_choice_a_level_and_its_leaves(federate, table):
    federation = federate(table)
    model = hybrid_forest(federation, trees=3, depth=4, epsilon=2.0)
    *choices, leaves = federation.ledger.entries
    assert [entry.event for entry in choices] == 4 * [Event("exponential", epsilon=1.0 / (4 * UP))]
    assert leaves.event.kind == "laplace"
    assert sum(entry.event.epsilon for entry in choices) + 1 / leaves.event.noise_multiplier == pytest.approx(2.0)
    assert str(model).startswith("VotingForest(hybrid")


def test_trees_that_share_records_add_up(federate, table):
    """A record moves one node of each tree: scores of two trees together move by twice the sensitivity."""
    federation = federate(table)
    hybrid_forest(federation, trees=2, depth=2, epsilon=1.0, parts=False)
    assert "2)" in federation.ledger.entries[-1].bound
    assert SplitRule("gini", (2,), (True,), 2.0).sensitivity == 4.0


def test_empty_nodes_are_split_like_all_others(federate, table):
    """Growth that stops where a node is exactly empty would tell so: a twin. Every tree has all its splits and leaves."""
    one = table.take([0, 1])
    federation = hr.simulate({"one": one})
    *_, state = grow_hybrid_forest(federation, trees=3, depth=3, epsilon=1.0)
    assert state.round == 4
    assert state.feature.shape == (3, 7)
    assert len({tuple(row) for row in state.feature}) > 1
    assert len(federation.ledger) == 4
    assert (state.value > 0).all()


def test_a_choice_by_a_rule_travels_to_parties():
    mechanism = ManyChoice("exponential", 0.5, rule=SplitRule("gini", (3, 2), (True, False), 2.0))
    assert unpack(pack(mechanism)) == mechanism


@pytest.mark.parametrize("law", ["exponential", "permute and flip", "noisy max"])
def test_votes_by_choice_cost_one_epsilon_in_parts_and_add_up_over_trees_else(federate, table, law):
    kind = "exponential" if law == "exponential" else "pure"
    federation = federate(table)
    private_forest(federation, trees=3, depth=2, vote="choice", parts=True, epsilon=1.5, law=law)
    assert [entry.event for entry in federation.ledger.entries] == [Event(kind, epsilon=1.5 / UP)]
    federation = federate(table)
    model = private_forest(federation, trees=3, depth=2, vote="choice", epsilon=1.5, law=law)
    assert [entry.event for entry in federation.ledger.entries] == 3 * [Event(kind, epsilon=1.5 / (3 * UP))]
    assert set(np.unique(model.value)) == {0.0, 1.0}


@pytest.mark.slow
def test_votes_by_counts_are_one_question(federate, table):
    federation = federate(table)
    model = private_forest(federation, trees=4, depth=3, epsilon=2.0, delta=1e-5)
    [entry] = federation.ledger.entries
    assert entry.bound.startswith("l2(2) per record")
    assert 2.0 - 1e-6 < federation.ledger.epsilon(delta=1e-5, unit="record") <= 2.0
    assert_allclose(model.probabilities(table).sum(1), 1)
    federation = federate(table)
    private_forest(federation, trees=4, depth=3, epsilon=2.0, parts=True)
    assert federation.ledger.entries[0].bound.startswith("l1(1) per record")


def test_leaves_vote_as_the_counts_say(federate, table):
    exact = private_forest(federate(table), trees=20, depth=4)
    assert accuracy(exact, table) > 0.7
    assert_allclose(
        shares_of(np.array([[3.0, 1.0], [0.0, 0.0], [-2.0, 1.0]]), 0.0), [[0.75, 0.25], [0.5, 0.5], [0, 1]], atol=1e-8
    )


def test_forests_go_on_from_a_state(federate, table):
    *_, whole = grow_hybrid_forest(federate(table), trees=2, depth=3)
    first, *_ = grow_hybrid_forest(federate(table), trees=2, depth=3)
    *_, resumed = grow_hybrid_forest(federate(table), trees=2, depth=3, start=first)
    assert_array_equal(whole.feature, resumed.feature)
    assert_array_equal(whole.value, resumed.value)
    states = list(grow_private_forest(federate(table), trees=3, depth=2, vote="choice", epsilon=1e5))
    *_, again = grow_private_forest(federate(table), trees=3, depth=2, vote="choice", epsilon=1e5, start=states[0])
    assert again.value.shape == states[-1].value.shape == (3, 4, 2)


@pytest.mark.parametrize("fit", [hr.trees.additive, hr.trees.random_trees, private_forest, hybrid_forest])
def test_missing_values_are_left_out_and_not_counted_beside_a_budget(federate, table, fit):
    """An exact count of complete records would be a release without any epsilon."""
    schema = Schema(tuple(replace(column, optional=column.name == "dose") for column in table.schema))
    dose = np.where(np.arange(len(table)) % 7 == 0, np.nan, table["dose"])
    lacking = Table({**table.columns, "dose": dose}, schema)
    federation = federate(lacking)
    small = {"rounds": 2} if fit is hr.trees.additive else {"trees": 2, "depth": 2}
    fit(federation, epsilon=1.0, **small, **({"batch": 1} if fit is hr.trees.random_trees else {}))
    assert {entry.event.kind for entry in federation.ledger.entries} <= {"laplace", "pure", "exponential"}


def test_classes_of_a_category_are_words(federate, table):
    model = hybrid_forest(federate(table), trees=1, depth=2, target="arm")
    assert set(model.predict(table)) <= {"placebo", "low", "high"}


def test_what_cannot_be_is_refused(federate, table):
    noisy = federate(table).protect(mechanism=Gaussian(1.0))
    with pytest.raises(SlotFilled):
        hybrid_forest(noisy, epsilon=1.0)
    with pytest.raises(SchemaInvalid, match="vote for classes"):
        hybrid_forest(federate(table), target="days")
    with pytest.raises(SettingsInvalid, match="share between"):
        hybrid_forest(federate(table), split_share=1.0)
    with pytest.raises(SettingsInvalid, match="depth"):
        private_forest(federate(table), depth=0)
    with pytest.raises(BudgetInvalid, match="no delta"):
        private_forest(federate(table), vote="choice", epsilon=1.0, delta=1e-5)
    assert hybrid_forest(noisy, trees=1, depth=2).value.shape == (1, 4, 2)


DATA = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "tabular").exists(), reason="needs the data folder")
def test_adult_at_epsilon_one(monkeypatch):
    """82 percent with four trees of depth four, where the larger class has 76.4."""
    monkeypatch.setenv("HEDGEROW_DATA", str(DATA))
    adult = hr.data.load("adult")
    federation = hr.simulate(adult, hr.data.iid(parties=5), seed=0)
    model = hybrid_forest(federation, trees=2, depth=3, epsilon=1.0, log=("capital_gain", "capital_loss"))
    assert (model.predict(adult.test) == adult.test["income_over_50k"]).mean() > 0.79


@pytest.mark.parametrize("where", [{"noise_at": "party"}, {"noise_at": "shares", "least": 2}])
@pytest.mark.parametrize(("fit", "settings"), [(hybrid_forest, {}), (private_forest, {"vote": "choice"})])
def test_choices_need_a_server_that_sees_counts(federate, table, fit, settings, where):
    federation = federate(table)
    with pytest.raises(UnlawfulChannel, match="has to see"):
        fit(federation, epsilon=1.0, **settings, **where)
    assert not len(federation.ledger)
