"""Similarities of columns and pairs: goldens by hand, ties, missing values, and a twin without the half."""

import numpy as np
import pytest

from hedgerow.errors import SettingsInvalid
from hedgerow.synth import correlation_similarity, ks_complement, ks_of_counts, metrics, tv_complement, tv_of_counts

TENTHS = np.arange(10) / 10


def half_holds(tv):
    """The golden that tells the total variation from its double."""
    return tv([0.5, 0.25, 0.25], [0.25, 0.75, 0.0]) == pytest.approx(0.5)


def test_ks_complement_by_hand():
    assert ks_complement(TENTHS, TENTHS + 0.25) == pytest.approx(0.7)
    assert ks_complement(TENTHS, TENTHS) == 1
    assert ks_complement([0, 1], [2, 3]) == 0


def test_ties_are_counted_at_once():
    assert ks_complement([1, 1, 1, 2], [1, 2, 2, 2]) == pytest.approx(0.5)
    assert ks_complement([0, 0, 0], [0, 0, 0, 0, 0]) == 1


def test_ks_complement_is_that_of_a_naive_loop():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=300).round(1), rng.normal(0.2, 1.3, size=170).round(1)
    widest = max(abs((a <= x).mean() - (b <= x).mean()) for x in [*a, *b])
    assert ks_complement(a, b) == pytest.approx(1 - widest, abs=1e-12)


def test_a_missing_number_stands_above_all_others():
    assert ks_complement([1, 2, np.nan, np.nan], [1, 2, 3, 3]) == pytest.approx(0.5)
    assert ks_complement([1, 2, np.nan], [1, 2, np.nan]) == 1


def test_tv_complement_by_hand():
    assert tv_complement(list("aabc"), list("abbb")) == pytest.approx(0.5)
    assert tv_complement(["a"], ["b"]) == 0
    assert half_holds(tv_of_counts)


def test_a_total_variation_without_its_half_is_caught():
    def without_the_half(p, q):
        return 1 - np.abs(np.subtract(p, q)).sum()

    assert without_the_half([0.5, 0.25, 0.25], [0.25, 0.75, 0.0]) == 0  # as Sempere's text has it
    assert not half_holds(without_the_half)


def test_fine_bins_give_the_ks_complement_of_the_values():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 40, 500), rng.integers(5, 40, 400)
    counts = (np.bincount(a, minlength=40), np.bincount(b, minlength=40))
    assert ks_of_counts(*counts) == pytest.approx(ks_complement(a, b), abs=1e-12)
    coarse = (c.reshape(8, 5).sum(1) for c in counts)
    assert ks_of_counts(*coarse) >= ks_complement(a, b) - 1e-12


def test_correlations_by_hand():
    assert correlation_similarity(0.5, 0.5) == 1
    assert correlation_similarity([1, 0.2], [-1, 0.5]) == pytest.approx([0, 0.85])
    rng = np.random.default_rng(2)
    x = rng.integers(0, 6, 400)
    y = (x + rng.integers(0, 4, 400)) % 8
    codes = np.stack([x, y], 1)
    table = metrics.pair_table(codes, 0, 1, (6, 8))
    assert metrics.correlation_of_counts(table, range(6), range(8)) == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-12)
    assert np.isnan(metrics.correlation_of_counts(np.eye(3)[:1], [0], [1, 2, 3]))


def test_the_area_is_that_of_ranks_with_ties_half():
    rng = np.random.default_rng(3)
    near, far = rng.integers(0, 6, 200), rng.integers(1, 8, 150)
    found = metrics.auc_of_counts(np.bincount(near, minlength=8), np.bincount(far, minlength=8))
    pairs = (near[:, None] < far).mean() + (near[:, None] == far).mean() / 2
    assert found == pytest.approx(pairs, abs=1e-12)
    assert metrics.auc_of_counts([0, 0], [0, 0]) == 0.5


def test_an_empty_column_is_refused():
    with pytest.raises(SettingsInvalid):
        ks_complement([], [1.0])
    with pytest.raises(SettingsInvalid):
        tv_complement([1.0], [])
