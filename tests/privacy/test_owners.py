"""Epsilon by owner and by individual."""

import math

import numpy as np
import pytest

from hedgerow import Budget, Gaussian, l2
from hedgerow.core import Ledger
from hedgerow.core.events import Event, Sampling
from hedgerow.core.release import Release
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy import epsilon
from hedgerow.privacy.guard import Guard
from hedgerow.privacy.owners import disjoint, linked, per_owner, unknown
from helpers import norm_of_x, outbox

BUDGET = Budget(20.0, 1e-6, unit="record", accountant="rdp")
Z = {"a": 2.0, "b": 3.0, "c": 4.0}


def ledgers(at="party"):
    """Three owners; each answered once, with noise of its own strength."""
    found = {}
    for owner, z in Z.items():
        guard = Guard(BUDGET, trust="server")
        guard.debit(outbox(norm_of_x, None, Release(None, l2(1.0, unit="record"), Gaussian(z, at=at))))
        found[owner] = guard.ledger
    return found


def cost(*multipliers):
    """One Gaussian that tells as much as all of these."""
    together = 1 / math.sqrt(sum(1 / z**2 for z in multipliers))
    return epsilon([(Sampling(), (Event("gaussian", together),))], delta=1e-6, adjacency="add-remove", accountant="rdp")


def multiplier(owner):
    [(_, (event,))] = ledgers()[owner].charges("record")
    return event.noise_multiplier


def test_each_owner_loses_what_its_own_ledger_says():
    assert per_owner(ledgers(), BUDGET) == {owner: pytest.approx(cost(multiplier(owner))) for owner in Z}
    assert per_owner({"a": Ledger()}, BUDGET) == {"a": 0.0}


def test_disjoint_owners_cost_the_worst_of_them():
    found = disjoint(ledgers(), BUDGET)
    assert found.epsilon == max(per_owner(ledgers(), BUDGET).values())
    assert found.groups[0].owners == ("a",)
    assert "owners' records are assumed disjoint" in found.sentence


def test_owners_of_whom_nothing_is_known_cost_all_together():
    found = unknown(ledgers(), BUDGET)
    assert found.epsilon == pytest.approx(cost(*(multiplier(owner) for owner in Z)), rel=1e-6)
    assert max(per_owner(ledgers(), BUDGET).values()) < found.epsilon < sum(per_owner(ledgers(), BUDGET).values())
    assert "may have a record at each of 3 owners" in found.sentence


def test_linked_records_cost_what_the_owners_of_each_individual_released():
    held = {"a": np.array(["ann", "bob"]), "b": np.array(["bob", "cyd", "dan"]), "c": np.array(["eve", "bob", "dan"])}
    found = linked(ledgers(), BUDGET, held, by="name")
    expected = {("a",): 1, ("b",): 1, ("c",): 1, ("b", "c"): 1, ("a", "b", "c"): 1}
    assert {group.owners: group.individuals for group in found.groups} == expected
    for group in found.groups:
        assert group.epsilon == pytest.approx(cost(*(multiplier(owner) for owner in group.owners)), rel=1e-6)
    assert found.groups[0].owners == ("a", "b", "c")
    assert found.epsilon == found.groups[0].epsilon
    assert "linked by 'name': 2 of 5 individuals have records at several owners" in found.sentence


def test_linked_records_that_are_disjoint_cost_as_much_as_disjoint_ones():
    held = {"a": np.arange(3), "b": np.arange(3, 9), "c": np.arange(9, 10)}
    assert linked(ledgers(), BUDGET, held, by="id").epsilon == disjoint(ledgers(), BUDGET).epsilon


def test_one_noise_over_several_owners_does_not_compose():
    """Two records move such a total twice as far: dearer than two releases of one record each."""
    assert disjoint(ledgers("server"), BUDGET).epsilon > 0
    with pytest.raises(BudgetInvalid, match="twice as far"):
        unknown(ledgers("server"), BUDGET)
    z = 2.0
    assert cost(z / 2) > cost(z, z)


def test_several_records_of_one_individual_at_one_owner_are_refused():
    held = {"a": np.array([1, 1]), "b": np.array([2]), "c": np.array([3])}
    with pytest.raises(BudgetInvalid, match="a holds several records"):
        linked(ledgers(), BUDGET, held, by="id")


def test_records_and_ledgers_have_the_same_owners():
    with pytest.raises(BudgetInvalid, match="HR-214"):
        linked(ledgers(), BUDGET, {"a": np.arange(2)}, by="id")


def test_a_budget_with_a_filter_prices_nobody():
    """What was used of a filter is no epsilon that an individual could be told."""
    held = Budget(20.0, 1e-6, unit="record", filter="gdp")
    for price in (per_owner, disjoint, unknown):
        with pytest.raises(BudgetInvalid, match="priced as a plan"):
            price(ledgers(), held)
