"""Splits of hybrid forests: what all trees together tell of one record, exactly, and which of equal splits is taken."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from hedgerow.core import Party
from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l1
from hedgerow.core.whole import in_steps
from hedgerow.privacy.choice import ManyChoice, many
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
