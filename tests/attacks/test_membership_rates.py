"""Rates of membership attacks against scikit-learn and scipy."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from hedgerow.attacks import MembershipRates, at_threshold
from hedgerow.attacks.observers.rates import clopper_pearson
from hedgerow.attacks.observers.several_targets import TargetRates
from hedgerow.errors import SettingsInvalid


def scores(n=12000, shift=0.5):
    rng = np.random.default_rng(0)
    return np.round(rng.normal(shift, 1, n), 2), np.round(rng.normal(0, 1, n), 2)


def test_area_and_advantage_are_those_of_the_curve():
    members, others = scores()
    rates = MembershipRates.of(members, others)
    labels = np.repeat([1, 0], len(members))
    assert rates.area == pytest.approx(roc_auc_score(labels, np.concatenate([members, others])), abs=1e-12)
    false, true = rates.curve()
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(true, false) == pytest.approx(rates.area, abs=1e-12)
    best = max((members >= t).mean() - (others >= t).mean() for t in np.unique(members))
    assert rates.advantage == pytest.approx(best)


def test_true_positives_at_few_false_ones_keep_to_the_rate():
    members, others = scores()
    found = MembershipRates.of(members, others).at(0.001)
    threshold = np.sort(others)[::-1][12]
    assert (others > threshold).mean() <= 0.001
    assert found.value == (members > threshold).mean()
    assert found.low < found.value < found.high


def test_too_few_others_are_refused():
    members, others = scores(9999)
    with pytest.raises(SettingsInvalid, match="would hang on 9 of them"):
        MembershipRates.of(members, others).at(0.001)


@pytest.mark.parametrize(("hits", "n"), [(0, 50), (3, 50), (50, 50)])
def test_intervals_are_those_of_clopper_and_pearson(hits, n):
    found, wanted = clopper_pearson(hits, n), binomtest(hits, n).proportion_ci(0.95, "exact")
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))


def test_the_threshold_attack_is_a_difference_of_shares():
    assert at_threshold(np.array([0.1, 0.2, 0.9]), np.array([0.1, 0.8, 0.9, 1.0]), 0.25) == pytest.approx(2 / 3 - 1 / 4)


@pytest.mark.parametrize("rate", [0.0, 1.0, 2.0, -1.0, np.nan, np.inf, "0.1", True])
def test_rates_and_levels_outside_zero_and_one_are_refused(rate):
    rates = MembershipRates.of(np.arange(100.0), np.arange(100.0))
    with pytest.raises(SettingsInvalid, match="false_positives is"):
        rates.at(rate)
    with pytest.raises(SettingsInvalid, match="level is"):
        rates.at(0.5, rate)


def test_members_are_booleans_and_never_places():
    scores = [np.arange(4.0)] * 2
    for members in (np.array([1, 0, 1, 0]), np.array([True, False])):
        with pytest.raises(SettingsInvalid, match="members of shape"):
            TargetRates.of(scores, [members] * 2)
