"""The tree as its reader meets it: predictions, rules, frames."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hedgerow.data import Column, Schema, iid, load
from hedgerow.engines import simulate
from hedgerow.errors import MissingColumn, OutOfRange
from hedgerow.trees import Bins, DecisionTree, TreeState, decision_tree

SCHEMA = Schema(
    (
        Column("age", "number", unit="years", low=0, high=80),
        Column("stage", "category", levels=("I", "II", "III")),
        Column("arm", "category", role="target", levels=("placebo", "drug")),
    )
)
STATE = TreeState(
    round=2,
    feature=np.array([0, 1, -1, -1, -1]),
    threshold=np.array([1, 0, 0, 0, 0]),
    left=np.array([1, 3, 0, 0, 0]),
    gain=np.array([0.3, 0.1, 0, 0, 0]),
    records=np.array([100.0, 60, 40, 20, 40]),
    value=np.array([[0.5, 0.5], [0.7, 0.3], [0.2, 0.8], [1, 0], [0.55, 0.45]]),
    open=np.array([], int),
)


@pytest.fixture
def tree() -> DecisionTree:
    return DecisionTree(STATE, Bins.of(SCHEMA, n_bins=4))


def test_rules_read_in_the_units_of_the_columns(tree):
    assert tree.to_text().splitlines() == [
        "age <= 40 years",
        "    stage: I",
        "        arm = placebo    100.0% of 20 records",
        "    stage: II, III",
        "        arm = placebo    55.0% of 40 records",
        "age > 40 years",
        "    arm = drug    80.0% of 40 records",
    ]
    assert str(tree) == tree.to_text()
    assert repr(tree) == "Tree('arm', depth 2, 3 leaves)"


def test_predictions_by_hand(tree):
    columns = {"age": np.array([40.0, 40.0, 41.0]), "stage": np.array(["I", "III", "I"])}
    assert_allclose(tree.probabilities(columns), [[1, 0], [0.55, 0.45], [0.2, 0.8]])
    assert tree.predict(columns).tolist() == ["placebo", "placebo", "drug"]


def test_importance_is_the_share_of_the_gain(tree):
    assert tree.importance == pytest.approx({"age": 0.75, "stage": 0.25})


def test_frame_has_one_row_for_each_node(tree):
    frame = tree.to_frame()
    assert frame["feature"].tolist() == ["age", "stage", "", "", ""]
    assert_array_equal(frame["cut"], [40, 0.5, np.nan, np.nan, np.nan])
    assert_array_equal(frame["left"], [1, 3, -1, -1, -1])
    assert_array_equal(frame["right"], [2, 4, -1, -1, -1])
    assert_allclose(frame["probability of drug"], STATE.value[:, 1])


def test_tables_frames_and_columns_predict_the_same(table, federate):
    tree = decision_tree(federate(table), depth=3)
    expected = tree.predict(table)
    assert set(expected) == {0.0, 1.0}
    assert_array_equal(tree.predict(table.to_pandas()), expected)
    assert_array_equal(tree.predict(dict(table.columns)), expected)


def test_regression_predicts_means_in_the_units_of_the_target(table, federate):
    tree = decision_tree(federate(table), depth=3, target="days")
    assert tree.predict(table).mean() == pytest.approx(table["days"].mean())
    assert " days    " in tree.to_text()
    assert "mean" in tree.to_frame()


def test_a_tree_of_one_leaf_is_a_tree(table, federate):
    tree = decision_tree(federate(table), depth=1, min_records=300)
    assert tree.to_text() == f"ill = 0    {1 - table['ill'].mean():.1%} of 400 records"
    assert set(tree.importance.values()) == {0.0}


def test_data_that_break_the_declaration_are_refused(tree):
    with pytest.raises(MissingColumn, match="'stage'"):
        tree.predict({"age": np.array([4.0])})
    with pytest.raises(OutOfRange, match="0, 80"):
        tree.predict({"age": np.array([81.0]), "stage": np.array(["I"])})


def test_a_tree_is_printed_as_rules_with_shares_of_records():
    printed = str(decision_tree(simulate(load("breast_cancer"), iid(parties=5), seed=0), depth=1)).splitlines()
    assert [line.strip() for line in printed] == [
        "worst_perimeter <= 112.5",
        "malignant = 0    91.0% of 379 records",
        "worst_perimeter > 112.5",
        "malignant = 1    93.7% of 190 records",
    ]
