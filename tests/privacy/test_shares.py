"""Shares of one budget: what is planned is what the ledger says afterwards, and never more."""

import math

import pytest

import hedgerow as hr
from hedgerow.core.events import Charge, Event, Sampling
from hedgerow.data import iid, load
from hedgerow.errors import BudgetInvalid, SlotFilled
from hedgerow.privacy import Budget, Gaussian
from hedgerow.privacy.accounting import epsilon
from hedgerow.privacy.shares import BudgetShares, Share
from hedgerow.stats import means

MU = {0.05: 0.017309814, 0.1: 0.032520784, 0.5: 0.142210559, 1.0: 0.268051123, 2.0: 0.501551689, 8.0: 1.666030598}
"""Gaussian privacy of (epsilon, 1e-5), to nine places."""
PARTS = {"gram": Share(0.3), "score": Share(0.7, 6)}


def charged(shares: BudgetShares, parts: dict[str, Share]) -> list[Charge]:
    kind = "gaussian" if shares.delta else "laplace"
    return [
        (Sampling(), (Event(kind, shares.noise(part).noise_multiplier),)) for part in parts.values() for _ in range(part.times)
    ]


@pytest.mark.parametrize("asked", MU)
def test_mu_is_the_golden_one(asked):
    assert BudgetShares(asked, 1e-5).mu == pytest.approx(MU[asked], abs=1e-9)


@pytest.mark.parametrize("asked", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-5, None])
def test_all_questions_together_cost_the_budget_and_no_more(asked, delta):
    shares = BudgetShares(asked, delta)
    spent = epsilon(charged(shares, PARTS), delta=delta or 1e-300, adjacency="add-remove")
    assert asked * (1 - 1e-6) < spent <= asked


@pytest.mark.parametrize("asked", [1e-6, 1e-5, 1e-4, 1e-3, 0.03, 1.0, 30.0, 1e3])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, None])
def test_a_budget_of_any_size_admits_its_own_plan(asked, delta):
    plan = charged(BudgetShares(asked, delta), PARTS)
    limit = Budget(asked, delta or 1e-10, unit="record")
    assert limit.admits(plan)
    assert limit.spent(plan) > 0.98 * asked or not delta


def test_a_twin_that_forgets_how_often_it_asks_costs_more():
    shares = BudgetShares(1.0, 1e-5)
    once = shares.noise(Share(0.7)).noise_multiplier
    twin = [(Sampling(), (Event("gaussian", once),))] * 6
    assert epsilon(twin, delta=1e-5, adjacency="add-remove") > 2.0


def test_the_ledger_agrees_after_the_questions():
    table = load("breast_cancer").take(range(60))
    federation = hr.simulate(table, iid(parties=3), seed=0)
    asked = BudgetShares(1.0, 1e-5).handles(federation, {"a": Share(0.4), "b": Share(0.6, 2)})
    for part in ("a", "b", "b"):
        means(asked[part], ["mean_radius"])
    assert 1 - 1e-6 < federation.ledger.epsilon(delta=1e-5, unit="record") <= 1.0


def test_a_noisy_channel_is_used_as_it_is_and_not_planned_again():
    table = load("breast_cancer").take(range(60))
    federation = hr.simulate(table, iid(parties=3), seed=0).protect(mechanism=Gaussian(5.0))
    assert set(BudgetShares().handles(federation, PARTS).values()) == {federation}
    with pytest.raises(SlotFilled, match="already adds noise"):
        BudgetShares(1.0, 1e-5).handles(federation, PARTS)


@pytest.mark.parametrize("parts", [{"a": Share(0.5)}, {"a": Share(0.5), "b": Share(0.6)}, {"a": Share(1.5), "b": Share(-0.5)}])
def test_shares_that_are_no_whole_are_refused(parts):
    table = load("breast_cancer").take(range(60))
    with pytest.raises(BudgetInvalid, match="add up to 1"):
        BudgetShares(1.0, 1e-5).handles(hr.simulate(table, iid(parties=3), seed=0), parts)


@pytest.mark.parametrize(
    "given", [(None, 1e-5), (0.0, 1e-5), (-1.0, 1e-5), (math.inf, 1e-5), (math.nan, 1e-5), (1.0, 1.0), (1.0, -0.1)]
)
def test_budgets_out_of_range_are_refused(given):
    with pytest.raises(BudgetInvalid):
        BudgetShares(*given)
