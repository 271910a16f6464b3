"""Hou's forest: one record moves a gain ratio by its whole range, so no scale of the choice is private."""

import math
from itertools import pairwise

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.papers.haug.gain_ratio import bins_of, drawn, gain_ratio_forest, gains, votes_of

TABLE = hr.data.load("breast_cancer").select(["malignant", "mean_radius", "mean_texture", "mean_smoothness"])


def run(epsilon, **settings):
    federation = hr.simulate(TABLE, hr.data.iid(parties=3), seed=0)
    *_, state = gain_ratio_forest(federation, epsilon=epsilon, **settings)
    votes = votes_of(state, bins_of(TABLE.schema, {"n_bins": 16}).number(TABLE.columns))
    return federation, float(np.mean(votes.argmax(-1) == TABLE["malignant"]))


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_one_record_moves_a_gain_ratio_by_its_whole_range_however_many_there_are(n):
    with_it, without = np.array([[1.0, 0], [0, n]]), np.array([[0.0, 0], [0, n]])
    assert gains(with_it)[1][0] - gains(without)[1][0] == pytest.approx(1.0)


def test_the_gain_that_it_divides_moves_ever_less():
    moved = [gains(np.array([[1.0, 0], [0, n]]))[0][0] - gains(np.array([[0.0, 0], [0, n]]))[0][0] for n in (10, 100, 1000)]
    assert all(more < less / 4 for less, more in pairwise(moved))


def test_a_gain_ratio_by_hand():
    cells = np.array([[3.0, 1.0], [1.0, 3.0]])
    information = 1 - (-(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)))
    gain, ratio = gains(cells)
    assert gain[0] == ratio[0] == pytest.approx(information)  # halves: the split's own information is one bit


def test_a_large_epsilon_takes_the_best_cut_and_a_small_one_any():
    bins = hr.trees.Bins.of(TABLE.schema, n_bins=4)
    cells = np.zeros((400, 3, 4, 2))
    cells[:, 0, 0, 0], cells[:, 0, 3, 1] = 50, 50
    cells[:, 1, :, :] = cells[:, 2, :, :] = 12.5
    allowed = np.tile(np.arange(3), (400, 1))
    feature, threshold = drawn(cells, bins, allowed, 200.0, np.random.default_rng(0))
    assert set(feature) == {0}
    feature, threshold = drawn(cells, bins, allowed, 1e-9, np.random.default_rng(0))
    counts = np.bincount(feature * 3 + threshold, minlength=9)
    assert (np.abs(counts - 400 / 9) < 5 * math.sqrt(400 / 9)).all()  # nine fair cells, five deviations each


@pytest.mark.slow
def test_without_noise_it_learns_and_the_ledger_has_no_finite_epsilon():
    (federation, small), (_, large) = run(1.0), run(1e4)
    assert federation.ledger.epsilon(delta=1e-5, unit="record") == math.inf
    assert large > 0.85 > small
    assert len(federation.ledger) == 40
