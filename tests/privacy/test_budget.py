"""Budgets refuse before anything is asked, and never admit beyond."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.core.events import Event, Sampling
from hedgerow.errors import BudgetInvalid, HedgerowWarning
from hedgerow.privacy import accounting
from hedgerow.privacy.accounting import bounds
from hedgerow.privacy.budget import Budget, warn_if_large

ALL = Sampling()
RELEASE = (ALL, (Event("gaussian", 6.0),))
NINE = 1.993091404415  # epsilon of nine such releases at delta 1e-5: one Gaussian of multiplier 2


def test_says_what_it_is():
    assert str(Budget(8, 1e-3)) == "epsilon 8, delta 0.001 per party, add-remove"
    assert str(Budget(0.5, 1e-5, unit="record")) == "epsilon 0.5, delta 1e-05 per record, add-remove"


def test_spent_is_the_epsilon_of_the_charges():
    assert Budget(8, 1e-5).spent([RELEASE] * 9) == pytest.approx(NINE, rel=1e-6)
    assert Budget(8, 1e-5).spent([]) == 0.0


def test_admits_up_to_its_epsilon_and_no_further():
    budget = Budget(NINE * (1 + 1e-6), 1e-5)
    assert budget.admits([RELEASE] * 9)
    assert not budget.admits([RELEASE] * 10)


def test_renyi_budget_admits_less():
    assert not Budget(NINE * (1 + 1e-6), 1e-5, accountant="rdp").admits([RELEASE] * 9)


def test_admits_reads_its_charges_once():
    assert not Budget(1.9, 1e-5).admits(RELEASE for _ in range(9))


def test_finite_budget_admits_nothing_without_noise():
    nonprivate = (Sampling("poisson", 1e-6), (Event("nonprivate"),))
    assert not Budget(1e9, 1e-5).admits([nonprivate])
    assert Budget(math.inf, 1e-5).admits([nonprivate])


def test_quick_bound_settles_most_queries(monkeypatch):
    monkeypatch.setattr(bounds, "_pld", lambda *_: pytest.fail("the slow accountant was asked"))
    bounds._epsilon.cache_clear()
    assert Budget(8, 1e-5).admits([RELEASE] * 9)


SAMPLINGS = st.sampled_from([ALL, Sampling("poisson", 0.1), Sampling("fixed", 0.1, 10)])
EVENTS = st.builds(Event, st.sampled_from(["gaussian", "laplace"]), st.sampled_from([2.0, 8.0, 40.0]))
CHARGES = st.lists(st.tuples(SAMPLINGS, st.lists(EVENTS, max_size=2).map(tuple)), max_size=6)


def never_admits_beyond(admits, charges, epsilon: float) -> bool:
    """Ask charge by charge, as a federation does; what was admitted must stay within the budget."""
    admitted = []
    for charge in charges:
        if admits([*admitted, charge]):
            admitted.append(charge)
    return accounting.epsilon(admitted, delta=1e-5, adjacency="add-remove") <= epsilon


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(charges=CHARGES, epsilon=st.floats(0.05, 8))
def test_never_admits_beyond(charges, epsilon):
    assert never_admits_beyond(Budget(epsilon, 1e-5).admits, charges, epsilon)


def test_filter_that_asks_without_the_candidate_is_caught():
    budget = Budget(NINE * (1 + 1e-6), 1e-5)
    assert never_admits_beyond(budget.admits, [RELEASE] * 12, budget.epsilon)
    assert not never_admits_beyond(lambda charges: budget.admits(charges[:-1]), [RELEASE] * 12, budget.epsilon)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, -math.inf])
def test_refuses_an_epsilon_out_of_range(epsilon):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        Budget(epsilon, 1e-5)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, 2.0, math.nan])
def test_refuses_a_delta_out_of_range(delta):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        Budget(1.0, delta)


def test_refuses_an_adjacency_or_accountant_that_it_cannot_honour():
    with pytest.raises(BudgetInvalid, match="replace-one"):
        Budget(1.0, 1e-5, adjacency="replace-one")
    with pytest.raises(BudgetInvalid, match="accountant"):
        Budget(1.0, 1e-5, accountant="clt")


@pytest.mark.parametrize("delta", [0.01, 0.5])
def test_warns_of_a_delta_that_allows_publishing_somebody(delta):
    with pytest.warns(HedgerowWarning, match=r"n = 100.*whole.*well below 0\.01"):
        warn_if_large(delta, 100)


def test_small_delta_needs_no_warning():
    warn_if_large(0.0099, 100)


def test_a_budget_with_a_large_delta_is_told_where_it_is_set():
    frame = pd.DataFrame({"x": np.arange(40.0)})
    with pytest.warns(HedgerowWarning, match=r"delta 0\.05 is at least 1/n for n = 40"):
        hr.simulate(frame, hr.data.iid(parties=4)).within(Budget(1.0, 0.05, unit="record"))
    with pytest.warns(HedgerowWarning, match=r"delta 0\.3 is at least 1/n for n = 4"):
        hr.simulate(frame, hr.data.iid(parties=4)).within(Budget(1.0, 0.3))
    hr.simulate(frame, hr.data.iid(parties=4)).within(Budget(1.0, 0.02, unit="record"))
