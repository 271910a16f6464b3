"""Trade-off functions: exact ones, those of accountants, and their inverses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.events import Event, Sampling
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy.accounting import GaussianTradeOff, TradeOffCurve, charge_of, delta, trade_off_of
from hedgerow.privacy.accounting.costs import costs
from hedgerow.privacy.accounting.losses import ROUGH, total_loss
from hedgerow.privacy.accounting.trade_off import budget_advantage, budget_power, of_losses

RATES = (1e-6, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.9, 0.999)


@pytest.mark.slow
@given(st.floats(0, 20), st.floats(0, 1), st.floats(0, 1))
def test_the_chain_of_corners_of_a_budget_is_the_closed_form(epsilon, leak, alarms):
    curve = TradeOffCurve.of_budget(epsilon, leak)
    assert curve.power(alarms) == pytest.approx(budget_power(alarms, epsilon, leak), abs=1e-12)
    assert curve.advantage == pytest.approx(budget_advantage(epsilon, leak), abs=1e-12)


@pytest.mark.slow
@given(st.floats(0, 8), st.floats(0, 0.1), st.floats(0.001, 0.999))
def test_false_alarms_are_the_inverse_of_power(epsilon, leak, power):
    for function in (TradeOffCurve.of_budget(epsilon, leak), GaussianTradeOff(epsilon)):
        alarms = function.false_alarms(power)
        assert function.power(alarms) >= power - 1e-9
        assert alarms == 0 or function.power(alarms * (1 - 1e-6)) <= power + 1e-9


@pytest.mark.parametrize("z", [0.5, 1.0, 4.0])
def test_the_privacy_loss_distribution_of_gaussian_noise_gives_the_analytic_function(z):
    exact, found = GaussianTradeOff(1 / z), of_losses(total_loss(costs([charge_of(z)])))
    for rate in RATES:
        assert exact.power(rate) <= found.power(rate) <= exact.power(rate) * (1 + 2e-4)
        assert found.false_alarms(exact.power(rate)) == pytest.approx(rate, rel=2e-4)
    assert found.area == pytest.approx(exact.area, rel=1e-4)
    assert found.advantage == pytest.approx(exact.advantage, rel=1e-4)


def test_uncomposed_gaussian_noise_is_exact_and_laplace_noise_is_randomised_response_at_most():
    assert trade_off_of([charge_of(3.0)] * 9, "add-remove") == GaussianTradeOff(1.0)
    laplace = trade_off_of([(Sampling(), (Event("laplace", 1.0),))], "add-remove")
    exact = [min(np.e * a, 1 - np.exp(-1) / (4 * a) if a > np.exp(-1) / 2 else 1) for a in (0.01, 0.1, 0.25)]
    assert [laplace.power(a) for a in (0.01, 0.1, 0.25)] == pytest.approx(exact, rel=1e-3)
    pure = trade_off_of([(Sampling(), (Event("pure", epsilon=1.0),))], "add-remove")
    assert pure.area == pytest.approx(TradeOffCurve.of_budget(1.0).area, rel=1e-4)


@pytest.mark.slow
def test_sampled_noise_is_below_every_budget_of_its_curve_and_above_the_attack_on_it():
    charges = [charge_of(1.0, rate=0.2)] * 20
    found = trade_off_of(charges, "add-remove")
    for epsilon in (0.0, 0.5, 1.0, 3.0):
        budget = TradeOffCurve.of_budget(epsilon, delta(charges, epsilon=epsilon, adjacency="add-remove", accountant="pld"))
        assert all(found.power(rate) <= budget.power(rate) * (1 + 1e-3) for rate in RATES)
    rough = trade_off_of(charges, "add-remove", ROUGH)
    assert all(found.power(rate) <= rough.power(rate) * (1 + 1e-6) for rate in RATES)
    rng, n = np.random.default_rng(0), 4000
    seen = rng.standard_normal((2, n, 20))
    seen[0] += rng.random((n, 20)) < 0.2
    inside, outside = np.log(0.8 + 0.2 * np.exp(seen - 0.5)).sum(axis=2)
    for rate in (0.05, 0.3):
        power = (inside > np.quantile(outside, 1 - rate)).mean()
        assert found.power(rate) - 0.06 < power < found.power(rate) + 0.03


def test_nothing_released_is_the_diagonal_and_no_noise_is_everything():
    assert trade_off_of([], "add-remove").power(0.3) == pytest.approx(0.3)
    assert trade_off_of([(Sampling(), (Event("nonprivate"),))], "add-remove").power(0.0) == 1.0
    assert trade_off_of([(Sampling(), (Event("skellam", 1.0, steps=50.0),))], "add-remove").power(0.1) > GaussianTradeOff(
        1.0
    ).power(0.1)


def test_what_is_no_budget_is_refused():
    with pytest.raises(BudgetInvalid, match=r"epsilon -1"):
        TradeOffCurve.of_budget(-1.0)
    with pytest.raises(BudgetInvalid, match="mu nan"):
        GaussianTradeOff(float("nan"))
    with pytest.raises(BudgetInvalid, match="no adjacency"):
        trade_off_of([], "remove-add")
