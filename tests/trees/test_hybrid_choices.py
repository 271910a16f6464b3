"""Splits of hybrid forests: what all trees together tell of one record, exactly, and which of equal splits is taken."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core import Party
from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l1
from hedgerow.core.whole import in_steps
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import BudgetExhausted, CheckpointMismatch, SettingsInvalid
from hedgerow.privacy import Budget
from hedgerow.privacy.choice import ManyChoice, many
from hedgerow.trees import grow_hybrid_forest, grow_private_forest, hybrid_forest
from hedgerow.trees.heaps import SplitRule
from hedgerow.trees.hybrid import node_counts


def told_of_one_record(monkeypatch, trees, heaviest, rows, seed):
    """Range, and largest size, of the log-ratio of all outcomes between worlds with and without the heaviest record."""
    rule = SplitRule("max count", (2, 2), (True, True), heaviest * trees / rows, rows)
    bound, mechanism = in_steps(l1(2 * trees * heaviest, "record")), ManyChoice("exponential", 1.0, rule=rule)
    seen = []
    monkeypatch.setitem(many.DRAW, "exponential", lambda u, rate, *_: (seen.append((u, rate)), np.zeros(len(u), int))[1])
    # of the first feature, the record joins the smaller class of the right child: only the second split's score moves
    bins, y = np.zeros((15, 2), np.int16), np.ones(15)
    bins[12:, 0], y[12:14] = 1, 0
    w = np.random.default_rng(seed).uniform(heaviest / 2, heaviest, 15)
    w[12:] = heaviest
    roots = dict.fromkeys(("feature", "cut"), np.zeros((trees, 1), np.int64))
    settings = {"sizes": (2, 2), "ordered": (True, True), "n_classes": 2, "parts": False, "structure": 0}
    for k in (14, 15):
        party = Party("one", {"bins": bins[:k], "target": y[:k]}, w[:k])
        counts = node_counts(roots, party, None, level=0, leaves=False, bounds=bound, **settings)
        layout = Layout((("", counts.shape),))
        mechanism.at_server(mechanism.at_party(counts.reshape(1, -1), bound, layout, None).sum(0), bound, layout, None)
    (before, rate), (after, _) = seen
    assert (before != after).any(1).all()
    first, last = (np.array([exact_law(row, rate) for row in world]) for world in (before, after))
    of_each = np.log(last) - np.log(first)
    ratios = [of_each[range(trees), one].sum() for one in itertools.product(range(2), repeat=trees)]
    return np.ptp(ratios), np.abs(ratios).max()


def exact_law(row, rate):
    weights = [math.exp(float(rate) * int(u - row.max())) for u in row]
    return np.array(weights) / math.fsum(weights)


@pytest.mark.parametrize(("trees", "heaviest"), [(2, 0.65), (3, 0.3), (5, 0.3), (5, 0.7)])
def test_scores_that_are_rounded_in_each_tree_cost_one_epsilon(monkeypatch, trees, heaviest):
    """A record moves a row of each tree, and each of them is rounded by itself."""
    found = np.array([told_of_one_record(monkeypatch, trees, heaviest, trees, seed) for seed in range(12)])
    assert 0.99 < found[:, 0].max() <= 1.0
    assert found[:, 1].max() <= 1.0


def test_one_step_for_all_rows_is_a_broken_twin(monkeypatch):
    """With the same sensitivity said to lie in one row, five trees tell more than was charged."""
    assert max(told_of_one_record(monkeypatch, 5, 0.7, 1, seed)[0] for seed in range(12)) > 1.0001


# ---- without noise, and what is refused -----------------------------------------------------------------------------
@pytest.mark.parametrize("score", ["max count", "gini"])
def test_sums_in_another_order_choose_the_same_splits(score):
    """Every split of a category with two levels equals that of the same category in words: the first is taken."""
    rng = np.random.default_rng(0)
    codes, w = rng.integers(0, 2, 60), rng.uniform(0, 1, 60)
    rule = SplitRule(score, (2, 2), (True, True))
    chosen = set()
    for _ in range(20):
        totals = np.zeros((1, 4, 2))
        for j in range(2):
            for i in rng.permutation(60):
                totals[0, 2 * j + codes[i], i % 2] += w[i]
        chosen.add(int(rule.best(totals)[0]))
    assert chosen == {0}


def test_features_of_one_value_are_refused_before_anybody_is_asked():
    schema = Schema((Column("c", "category", levels=("a",)), Column("ill", "binary", role="target")))
    federation = hr.simulate({"one": Table(schema.admit({"c": np.zeros(9, np.int16), "ill": np.ones(9)}), schema)})
    for budget in ({}, {"epsilon": 1.0}):
        with pytest.raises(SettingsInvalid, match="two bins"):
            hybrid_forest(federation, **budget)
    assert not len(federation.ledger)


@pytest.mark.parametrize("other", [{"depth": 3}, {"trees": 3}])
def test_a_hybrid_forest_of_another_shape_is_no_start(federate, table, other):
    first, *_ = grow_hybrid_forest(federate(table), trees=2, depth=2)
    with pytest.raises(CheckpointMismatch, match="HR-103"):
        list(grow_hybrid_forest(federate(table), **{"trees": 2, "depth": 2, **other}, start=first))


def test_votes_by_counts_and_by_choice_are_not_mixed(federate, table):
    settings = {"trees": 3, "depth": 2, "epsilon": 1.0}
    [counts] = grow_private_forest(federate(table), **settings)
    one, two, _ = grow_private_forest(federate(table), **settings, vote="choice")
    [all_parts] = grow_private_forest(federate(table), **settings, vote="choice", parts=True)
    for start, more in [
        (counts, {"vote": "choice"}),
        (counts, {"vote": "choice", "parts": True}),
        (two, {}),
        (one, {"vote": "choice", "parts": True}),
        (all_parts, {"vote": "choice"}),
        (one, {"vote": "choice", "depth": 3}),
    ]:
        federation = federate(table)
        with pytest.raises(CheckpointMismatch, match="HR-103"):
            list(grow_private_forest(federation, **{**settings, **more}, start=start))
        assert not len(federation.ledger)
    for start, more, left in [(counts, {}, 0), (one, {"vote": "choice"}, 2), (all_parts, {"vote": "choice", "parts": True}, 0)]:
        assert len(list(grow_private_forest(federate(table), **settings, **more, start=start))) == left


# ---- plans in a budget ----------------------------------------------------------------------------------------------
CHOOSING = [
    (grow_hybrid_forest, {"trees": 2, "depth": 2}),
    (grow_hybrid_forest, {"trees": 2, "depth": 3, "split_share": 0.7, "delta": 1e-5}),
    (grow_private_forest, {"trees": 3, "depth": 2, "vote": "choice"}),
    (grow_private_forest, {"trees": 3, "depth": 2, "vote": "choice", "parts": True}),
]


@pytest.mark.parametrize(("grow", "settings"), CHOOSING)
def test_a_plan_with_choices_that_does_not_fit_is_refused_before_its_first_question(federate, table, grow, settings):
    federation = federate(table).within(Budget(0.6, 1e-5, unit="record"))
    with pytest.raises(BudgetExhausted, match="cost epsilon=1 at"):
        list(grow(federation, epsilon=1.0, **settings))
    assert not len(federation.ledger)


@pytest.mark.parametrize(("grow", "settings"), CHOOSING)
@pytest.mark.parametrize("epsilon", [1.0, 0.7])
def test_a_plan_that_fills_a_budget_is_asked_to_its_end(federate, table, grow, settings, epsilon):
    """Without a margin shares of pure epsilon would exceed a budget with a filter by rounding."""
    federation = federate(table).within(Budget(epsilon, 1e-5, unit="record", filter=None if "delta" in settings else "basic"))
    list(grow(federation, epsilon=epsilon, **settings))
    assert len(federation.ledger) >= 1


@pytest.mark.parametrize(("grow", "settings"), CHOOSING)
def test_a_second_forest_has_to_fit_what_the_first_one_left(federate, table, grow, settings):
    federation = federate(table).within(Budget(1.0, 1e-5, unit="record"))
    states = list(grow(federation, epsilon=0.5, **settings))
    asked = len(federation.ledger)
    with pytest.raises(BudgetExhausted, match=f"what {asked} earlier questions left"):
        list(grow(federation, epsilon=2.0, **settings))
    assert len(federation.ledger) == asked
    list(grow(federation, epsilon=0.5, **settings))
    list(grow(federation, epsilon=2.0, **settings, start=states[-1]))  # nothing of it is left to be asked
    assert len(federation.ledger) == 2 * asked


def test_a_forest_goes_on_in_a_budget_that_it_spends_itself(federate, table):
    """What was asked before the state is not planned again."""
    federation = federate(table).within(Budget(1.0, 1e-5, unit="record", filter="basic"))
    settings = {"trees": 2, "depth": 2, "epsilon": 1.0}
    growing = grow_hybrid_forest(federation, **settings)
    first = next(growing)
    growing.close()
    *_, last = grow_hybrid_forest(federation, **settings, start=first)
    assert last.round == 3
    assert len(federation.ledger) == 3
