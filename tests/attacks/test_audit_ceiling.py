"""Ceilings of membership attacks: by hand, and reached by the best attack on one Gaussian release."""

import math

import numpy as np
import pytest

from hedgerow.attacks import AttackCeiling, MembershipRates
from hedgerow.privacy.accounting import GaussianTradeOff, charge_of, gaussian_noise, trade_off_of


def test_of_pure_epsilon_by_hand():
    """Two lines, from (0, 0) to (1/4, 3/4) to (1, 1) at epsilon ln 3."""
    ceiling = AttackCeiling.of(math.log(3))
    assert ceiling.area == pytest.approx(0.75)
    assert ceiling.advantage == pytest.approx(0.5)
    assert [ceiling.at(rate) for rate in (0.0, 0.001, 0.1, 0.25, 0.5, 1.0)] == pytest.approx([0, 0.003, 0.3, 0.75, 5 / 6, 1])


def test_the_mechanism_is_tighter_than_its_budget():
    mu = 1 / gaussian_noise(2.0, 1e-5)
    ceiling = AttackCeiling.of(2.0, 1e-5, GaussianTradeOff(mu))
    assert (ceiling.area, ceiling.budget.area) == pytest.approx((0.639, 0.881), abs=5e-4)
    assert (ceiling.at(0.001), ceiling.budget.power(0.001)) == pytest.approx((0.0048, 0.0074), abs=5e-5)
    assert "ceiling: AUC 0.639, advantage 0.198, TPR 0.48% at FPR 0.1%, TPR 3.40% at FPR 1.0%" in str(ceiling)


@pytest.mark.slow
def test_the_best_attack_reaches_the_ceiling_and_does_not_exceed_it():
    rng = np.random.default_rng(0)
    ceiling = AttackCeiling.of(5.0, 1e-5, GaussianTradeOff(1.0))
    rates = MembershipRates.of(1 + rng.standard_normal(40000), rng.standard_normal(40000))
    assert rates.area == pytest.approx(ceiling.area, abs=0.008)
    assert rates.at(0.01, 0.999).low < ceiling.at(0.01) < rates.at(0.01, 0.999).high


@pytest.mark.slow
def test_of_sampled_noise_by_the_accountant():
    charges = [charge_of(0.8, rate=0.01)] * 100
    ceiling = AttackCeiling.of(2.0, 1e-5, trade_off_of(charges, "add-remove"))
    assert 0.5 < ceiling.area < 0.6 < ceiling.budget.area
