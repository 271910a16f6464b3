"""What leaves a party: bounded by one record, additive, and of use when it is noisy."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hedgerow.core import Party
from hedgerow.privacy import Budget, Gaussian, Laplace
from hedgerow.store import drive
from hedgerow.trees import Bins, DecisionTree, binned, decision_tree, grow, histogram

TARGETS = ["ill", "arm", "days"]
GROWN = {
    "root open": {"feature": [-1], "threshold": [0], "left": [0], "open": [0], "round": 0},
    "both children open": {"feature": [0, -1, -1], "threshold": [1, 0, 0], "left": [1, 0, 0], "open": [1, 2], "round": 1},
    "right child open": {"feature": [1, -1, -1], "threshold": [0, 0, 0], "left": [1, 0, 0], "open": [2], "round": 1},
}


def counting(tree: str, bins: Bins) -> Any:
    broadcast = {name: np.array(values) for name, values in GROWN[tree].items()}
    return partial(histogram, broadcast, rng=None, sizes=bins.sizes, n_classes=len(bins.classes))


# ---- bounded --------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("tree", GROWN)
@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 20), data=st.data())
def test_histogram_moves_at_most_its_declared_bound(weighted_schema, tree, target, seed, n, data):
    bins = Bins.of(weighted_schema, target=target, n_bins=5)
    columns = weighted_schema.synthetic(n, np.random.default_rng(seed))
    count = counting(tree, bins)
    of_all = count(Party("one", binned(columns, bins=bins), columns["dose"]))
    i = data.draw(st.integers(0, n - 1))
    fewer = {name: np.delete(column, i, 0) for name, column in columns.items()}
    moved = of_all - count(Party("one", binned(fewer, bins=bins), fewer["dose"]))
    assert np.linalg.norm(moved) <= bins.bound.radius * (1 + 1e-12)


@pytest.mark.parametrize("target", TARGETS)
def test_the_bound_is_reached(weighted_schema, target):
    bins = Bins.of(weighted_schema, target=target)
    columns = weighted_schema.synthetic(1, np.random.default_rng(0)) | {"dose": np.array([10.0]), "days": np.array([60.0])}
    moved = counting("root open", bins)(Party("one", binned(columns, bins=bins), columns["dose"]))
    assert np.linalg.norm(moved) == pytest.approx(bins.bound.radius)


@pytest.mark.parametrize("tree", GROWN)
@pytest.mark.parametrize("target", TARGETS)
def test_stacked_and_pooled_parties_count_the_same(table, tree, target):
    bins = Bins.of(table.schema, target=target)
    columns, w = binned(table.columns, bins=bins), np.linspace(0, 2, 400)
    stacked, weights = {name: column.reshape(4, 100, *column.shape[1:]) for name, column in columns.items()}, w.reshape(4, 100)
    count = counting(tree, bins)
    of_each = count(Party("stack", stacked, weights))
    for i in range(4):
        assert_array_equal(of_each[i], count(Party("one", {name: column[i] for name, column in stacked.items()}, weights[i])))
    assert_allclose(of_each.sum(0), count(Party("all", columns, w)), atol=1e-12)
    assert not count(Party("nobody", columns, 0 * w)).any()


@pytest.mark.parametrize("target", TARGETS)
def test_pure_noise_is_scaled_by_the_l1_length_of_a_record(table, federate, target):
    """An l2 bound would be taken times the root of all the numbers."""
    federation = federate(table).protect(mechanism=Laplace(0.1))
    decision_tree(federation, depth=1, n_bins=4, target=target)
    assert federation.ledger.entries[0].bound == f"l1({10 if target == 'days' else 5}) per record"


# ---- protected ------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mechanism", [Gaussian(30.0), Laplace(0.1)], ids=str)
def test_a_tree_of_pure_noise_still_predicts_possible_values(table, federate, target, mechanism):
    tree = decision_tree(federate(table).protect(mechanism=mechanism), depth=3, n_bins=4, target=target)
    found = tree.probabilities(table)
    assert np.isfinite(found).all()
    if tree.bins.classes:
        assert (found >= 0).all()
        assert_allclose(found.sum(1), 1)
    else:
        assert (np.abs(found - 15) <= 45).all()


def test_little_noise_keeps_the_tree(table, federate):
    exact = decision_tree(federate(table), depth=2, min_records=40)
    noisy = decision_tree(federate(table).protect(mechanism=Gaussian(1e-3)), depth=2, min_records=40)
    assert_array_equal(noisy.state.feature, exact.state.feature)
    assert_allclose(noisy.probabilities(table), exact.probabilities(table), atol=1e-3)


@pytest.mark.slow
def test_a_budget_stops_growth_between_levels(table, federate):
    federation = federate(table).protect(mechanism=Gaussian(2.0)).within(Budget(epsilon=3.0, delta=1e-5, unit="record"))
    run = drive(partial(grow, depth=20, min_records=1), federation)
    assert run.stopped == "budget"
    assert run.state.round == len(federation.ledger)
    assert DecisionTree(run.state, Bins.of(table.schema)).predict(table).shape == (400,)


def test_each_level_is_one_entry_of_the_ledger(table, federate):
    federation = federate(table)
    list(grow(federation, depth=3))
    assert [entry.query for entry in federation.ledger.entries] == 3 * ["hedgerow.trees.cart:histogram"]
    assert {entry.bound for entry in federation.ledger.entries} == {"l2(2.23607) per record"}
