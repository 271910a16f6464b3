"""Splits: the best one by hand, by exhaustion, and under noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from hedgerow.data import Column, Schema
from hedgerow.trees import Bins
from hedgerow.trees.split import best_splits, by_feature, score

FEATURES = (Column("a", "integer", low=0, high=3), Column("b", "binary"))
CLASSED = Bins.of(Schema((*FEATURES, Column("y", "binary", role="target"))))
NUMBERED = Bins.of(Schema((*FEATURES, Column("y", "number", role="target", low=-1, high=1))))


def cells(*by_bin: list[float]) -> np.ndarray:
    """Return the histogram of one node: four bins of `a`, then two of `b`."""
    return by_feature(np.array(by_bin, float)[None], CLASSED)


def test_the_split_that_separates_the_classes_is_found():
    found = best_splits(cells([4, 0], [2, 0], [0, 3], [0, 1], [3, 2], [3, 2]), CLASSED, min_records=1)
    assert (found.feature[0], found.threshold[0]) == (0, 1)
    assert_allclose(found.gain, 2 * 6 * 4 / 10)  # n times the Gini impurity of 6 and 4, all of it removed
    assert_array_equal(found.left[0], [6, 0])
    assert_array_equal(found.right[0], [0, 4])


def test_gain_of_a_regression_is_the_fall_of_the_sum_of_squares():
    y = np.array([-0.5, -0.25, 0.5, 0.75, 0.75])
    histogram = cells([2, y[:2].sum()], [0, 0], [3, y[2:].sum()], [0, 0], [5, y.sum()], [0, 0])
    found = best_splits(histogram, NUMBERED, min_records=1)
    squares = [((part - part.mean()) ** 2).sum() for part in (y, y[:2], y[2:])]
    assert_allclose(found.gain, squares[0] - squares[1] - squares[2])


def test_ties_go_to_the_first_feature_and_the_lowest_threshold():
    found = best_splits(cells([5, 0], [0, 0], [0, 0], [0, 5], [5, 0], [0, 5]), CLASSED, min_records=1)
    assert (found.feature[0], found.threshold[0]) == (0, 0)


def test_children_below_min_records_are_not_made():
    histogram = cells([1, 0], [5, 5], [2, 3], [2, 2], [5, 5], [5, 5])
    assert best_splits(histogram, CLASSED, min_records=1).threshold[0] == 0
    assert best_splits(histogram, CLASSED, min_records=2).threshold[0] != 0
    assert best_splits(histogram, CLASSED, min_records=11).gain[0] == 0


def test_a_pure_node_has_no_gain():
    assert best_splits(cells([4, 0], [2, 0], [3, 0], [1, 0], [5, 0], [5, 0]), CLASSED, min_records=1).gain[0] == 0


@pytest.mark.parametrize("bins", [CLASSED, NUMBERED], ids=["classification", "regression"])
@given(a=arrays(int, 40, elements=st.integers(0, 3)), b=arrays(int, 40, elements=st.integers(0, 1)), seed=st.integers(0, 99))
def test_no_split_of_the_records_is_better(bins, a, b, seed):
    y = np.random.default_rng(seed).integers(0, 2, 40)
    terms = np.eye(2)[y] if bins.classes else np.stack([np.ones(40), y], axis=1)
    histogram = np.stack([terms[column == value].sum(0) for column, size in ((a, 4), (b, 2)) for value in range(size)])
    found = best_splits(by_feature(histogram[None], bins), bins, min_records=3)
    every = [column <= cut for column, size in ((a, 4), (b, 2)) for cut in range(size - 1)]
    falls = [impurity(y) - impurity(y[left]) - impurity(y[~left]) for left in every if 3 <= left.sum() <= 37]
    expected = max([0.0, *falls]) * (2 if bins.classes else 1)  # Gini is twice the variance of a class
    assert_allclose(found.gain[0], expected, atol=1e-10)


def impurity(y: np.ndarray) -> float:
    return ((y - y.mean()) ** 2).sum()


@given(arrays(float, (3, 6, 2), elements=st.floats(-50, 50)))
def test_counts_made_negative_by_noise_never_make_a_small_or_infinite_node(histogram):
    found = best_splits(by_feature(histogram, CLASSED), CLASSED, min_records=5)
    split = found.gain > 0
    assert np.isfinite(found.gain).all()
    for side in (found.left[split], found.right[split]):
        assert (np.maximum(side, 0).sum(-1) >= 5).all()


def test_nothing_scores_nothing():
    assert_array_equal(score(np.zeros((2, 2)), True), [0, 0])


def test_many_nodes_are_split_as_one_by_one(monkeypatch):
    histogram = by_feature(np.random.default_rng(0).integers(0, 9, (7, 6, 2)).astype(float), CLASSED)
    together = best_splits(histogram, CLASSED, min_records=2)
    monkeypatch.setattr("hedgerow.trees.split.AT_ONCE", 2)
    for name, found in vars(best_splits(histogram, CLASSED, min_records=2)).items():
        assert_array_equal(found, getattr(together, name))
