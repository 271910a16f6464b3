"""Epsilon is a number of the ledger; a budget that comes too late says what to do; errors say who was asked, or nothing."""

import math

import pytest

import hedgerow as hr
from hedgerow.errors import BudgetExhausted, BudgetInvalid, CannotWrite
from hedgerow.privacy import epsilon
from hedgerow.report.figure import Figure
from hedgerow.report.intervals import Intervals
from hedgerow.stats import means


def noisy(budget=None):
    made = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=5), seed=0)
    made = made.protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(4.0))
    return made if budget is None else made.within(budget)


def count(broadcast, party, rng):
    return {"n": float(party.n > 0)}


def test_a_ledger_says_its_epsilon():
    budget = hr.Budget(epsilon=8, delta=1e-3)
    federation = noisy(budget)
    assert federation.ledger.epsilon() == 0.0
    federation.sum(count)
    ledger = federation.ledger
    charges = ledger.charges("party")
    assert ledger.epsilon() == budget.spent(charges) > 0
    assert f"{ledger.epsilon():.4g}" in str(ledger)
    assert ledger.epsilon(delta=1e-6) > ledger.epsilon()
    assert ledger.epsilon(accountant="rdp") == epsilon(charges, delta=1e-3, adjacency="add-remove", accountant="rdp")
    bare = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=5), seed=0)
    means(bare, ["mean_radius"])
    assert math.isinf(bare.ledger.epsilon())


def test_a_budget_after_the_first_question_says_to_simulate_anew():
    federation = noisy()
    federation.sum(count)
    with pytest.raises(BudgetInvalid, match=r"HR-214[\s\S]*within\(budget\) before it, or simulate\(\.\.\.\) anew"):
        federation.within(hr.Budget(epsilon=8, delta=1e-3))


def test_a_budget_that_is_spent_says_that_this_question_was_not_asked():
    federation = noisy(hr.Budget(epsilon=2.0, delta=1e-3))
    federation.sum(count)
    one = federation.ledger.charges("party")
    while federation.ledger.limit.admits([*federation.ledger.charges("party"), *one]):
        federation.sum(count)
    with pytest.raises(BudgetExhausted) as refusal:
        federation.sum(count)
    assert len(federation.ledger) > 0
    assert "This question was not asked." in str(refusal.value)
    assert "No party was asked" not in str(refusal.value)


def test_a_wrong_file_name_says_nothing_of_parties(tmp_path):
    drawn = Figure(Intervals("t", "x", ["a"], [1.0], [0.5], [1.5]))
    with pytest.raises(CannotWrite) as refusal:
        drawn.save(tmp_path / "fit.png")
    assert "asked" not in str(refusal.value)
    assert str(refusal.value).endswith("\nMore: hedgerow explain HR-104")
