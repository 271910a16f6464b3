"""A cost that grows debit by debit decides as the whole list would, and what a debit costs does not grow with the list."""

import math
from dataclasses import replace

import numpy as np
import pytest

from hedgerow import Budget
from hedgerow.core.events import Debit, Event, Sampling, charges_of
from hedgerow.core.ledger import Entry, Ledger
from hedgerow.errors import BudgetExhausted, MixedUnits
from hedgerow.privacy import accounting
from hedgerow.privacy.accounting import Running, bounds, losses, renyi, running
from hedgerow.privacy.accounting.costs import costs

ALL = Sampling()
EVENTS = [
    Event("gaussian", 6.0),
    Event("gaussian", 9.0),
    Event("gaussian", 4.0, rate=0.2),
    Event("laplace", 20.0),
    Event("pure", epsilon=0.05),
    Event("exponential", epsilon=0.1),
    Event("approximate", epsilon=0.05, delta=1e-8),
]
DRAWN = [ALL, Sampling("poisson", 0.1), Sampling("records", 0.2), Sampling("fixed", 0.1, 10), Sampling("given", 0.3, 3)]


def history(seed, n, events=EVENTS, drawn=DRAWN):
    """Debits of random cohorts, some of which come back later."""
    rng, found = np.random.default_rng(seed), []
    for number in range(n):
        sampling = drawn[rng.integers(len(drawn))]
        old = [debit for debit in found if debit.sampling == sampling]
        again = old and rng.random() < 0.3
        cohort = old[rng.integers(len(old))].cohort if again else number
        found.append(Debit(cohort, sampling, events[rng.integers(len(events))]))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_a_growing_cost_has_the_mechanisms_of_the_whole_list(seed):
    debits, so_far = history(seed, 40), Running()
    for n, debit in enumerate(debits, 1):
        so_far.add(debit)
        assert so_far.costs() == costs(charges_of(debits[:n]))
    assert so_far.copy().costs() == so_far.costs()


def disagreements(budget_of, debits, accountant, make=Running, delta=1e-5):
    """Compare decisions with those of the whole list, also at the very epsilon of the list and just beside it."""
    found, so_far = 0, make()
    for n, debit in enumerate(debits):
        charges = charges_of([*debits[:n], debit])
        true = accounting.epsilon(charges, delta=delta, adjacency="add-remove", accountant=accountant)
        for epsilon in budget_of(true):
            said = so_far.would(debit, epsilon, delta, accountant)
            found += said != Budget(epsilon, delta, accountant=accountant).admits(charges)
        so_far.add(debit)
    return found


def near(true):
    if true in (0.0, math.inf):
        return (1.0, math.inf)
    return (true, math.nextafter(true, 0), math.nextafter(true, 99), true * (1 - 1e-8), true * (1 + 1e-8), true / 2, true * 2)


@pytest.mark.slow
@pytest.mark.parametrize("accountant", ["rdp", "moments", "zcdp", "advanced", "basic"])
@pytest.mark.parametrize("seed", range(3))
def test_decisions_are_those_of_the_whole_list(accountant, seed):
    assert disagreements(near, history(seed, 12), accountant) == 0


@pytest.mark.parametrize("accountant", ["pld", "tightest"])
def test_decisions_about_gaussians_are_those_of_the_whole_list(accountant):
    assert disagreements(near, history(0, 30, EVENTS[:2], DRAWN[:1] + DRAWN[3:]), accountant) == 0


@pytest.mark.slow
@pytest.mark.parametrize("accountant", ["pld", "tightest"])
@pytest.mark.parametrize("seed", range(3))
def test_decisions_by_loss_distributions_are_those_of_the_whole_list(accountant, seed):
    def beside(true):
        return (true, true * (1 - 1e-5), true * (1 + 1e-5), true * 0.9)

    assert disagreements(beside, history(seed, 8), accountant) == 0


def test_a_sum_that_claims_too_little_error_is_caught(monkeypatch):
    monkeypatch.setattr(running, "SLACK", -1e-6)
    assert disagreements(near, history(0, 12), "rdp") > 0


class Forgetful(Running):
    """Forgets what a growing cohort loses: its first event stays in the sum."""

    def _change(self, debit):
        cohort, change = super()._change(debit)
        return cohort, change._replace(lost=type(change.lost)())


def test_a_cost_that_keeps_what_a_cohort_loses_is_caught():
    cohort = [Debit(1, Sampling("poisson", 0.1), event) for event in EVENTS[:2]]
    assert disagreements(near, cohort, "rdp") == 0
    assert disagreements(near, cohort, "rdp", Forgetful) > 0


def test_what_is_left_of_many_sums_is_within_their_error():
    so_far, whole = Running(), []
    for debit in history(3, 60, EVENTS[:3]):
        so_far.would(debit, 1e3, 1e-5, "rdp")
        so_far.add(debit)
        whole.append(debit)
    exact = renyi.total_curve(costs(charges_of(whole)))
    np.testing.assert_allclose(so_far._curves[renyi.ORDERS].values, exact, rtol=1e-12)


@pytest.mark.slow
def test_distributions_composed_one_by_one_are_within_their_error():
    """The two ways differ in how often they cut tails and transform; delta by less than a hundredth of what is allowed."""
    event, delta = Debit(0, Sampling("poisson", 0.02), Event("gaussian", 1.0)), 1e-5
    so_far = Running()
    for n in range(20):
        so_far.add(event._replace(cohort=n))
        so_far.would(event._replace(cohort=-1), 1.0, delta, "pld")
    total = losses.total_loss(so_far.costs())
    one_by_one = so_far._composed(so_far._settled(), so_far._last_costs)
    assert one_by_one.n == 20
    at = total.epsilon(delta)
    assert abs(one_by_one.found.delta(at) - delta) < 20 * running._FOURIER / 100


# ---- ledgers --------------------------------------------------------------------------------------------------------
def entry(number, z=6.0, sampling=ALL, cohort=0, unit="party", mechanism="Gaussian", key=""):
    asked = (number, cohort, "sum", "m:f", 10.0, 1, "x", 4.0, 0.0, "l2(1)", "none", "none", mechanism, "plain", unit)
    return Entry(*asked, Event("gaussian", z), sampling, "seeded", key=key)


def fill(ledger):
    """Ask until the budget is spent."""
    while True:
        ledger.debit(entry(len(ledger) + 1))


def counting(monkeypatch, module, name):
    """Count calls of a function from now on."""
    calls, original = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given, **more: calls.append(given) or original(*given, **more))
    return calls


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [lambda n: entry(n, 60.0), lambda n: entry(n, 2.0, Sampling("poisson", 0.01), n), lambda n: entry(n, 600.0 + n)],
    ids=["all", "sampled", "different mechanisms"],
)
def test_a_debit_reads_nothing_of_earlier_questions(monkeypatch, make):
    """No whole list is priced, and as many curves and entries are read by the last debits as by the first."""
    ledger = Ledger(Budget(20.0, 1e-5))
    priced = counting(monkeypatch, bounds, "_epsilon")
    curves, read = counting(monkeypatch, renyi, "curve"), counting(monkeypatch, Entry, "debit")
    counts = []
    for number in range(1, 401):
        if number % 100 == 1:
            curves.clear()
            read.clear()
        ledger.debit(make(number))
        if number % 100 == 0:
            counts.append((len(curves), len(read)))
            ledger.uses("Gaussian", since_start=False), ledger.payment("Gaussian"), ledger.numbers
    assert len(set(counts[1:])) == 1
    assert not priced


@pytest.mark.slow
@pytest.mark.parametrize("per_round", [1, 2])
def test_once_renyi_divergences_are_spent_a_question_composes_one_loss(monkeypatch, per_round):
    """Also where each cohort is asked twice, so that its second question replaces what the first one cost."""
    event, n = Event("gaussian", 2.0), 40 // per_round
    rounds = [(Sampling("poisson", 0.2), (event,) * per_round)] * n
    limit = accounting.epsilon(rounds, delta=1e-5, adjacency="add-remove", accountant="rdp")
    ledger, numbers = Ledger(Budget(limit, 1e-5)), []
    composed = counting(monkeypatch, losses, "loss")
    for number in range(per_round * n + 6):
        composed.clear()
        ledger.debit(entry(number + 1, 2.0, Sampling("poisson", 0.2), number // per_round + 1))
        numbers.append(len(composed))
    assert not any(numbers[: per_round * n - 1])
    assert max(numbers[-5:]) <= 2


def test_counts_are_those_of_the_entries():
    ledger = Ledger()
    for number in range(1, 8):
        ledger.debit(entry(number, key="ab"[number % 2], cohort=2 * number))
        if number == 3:
            assert (ledger.uses("a", since_start=False), ledger.uses("b", since_start=False)) == (1, 2)
    assert ledger.numbers() == (7, 14)
    assert ledger.payment("a").round == 6
    assert ledger.payment("c") is None
    ledger.entries = ledger.entries[:2]
    assert ledger.numbers() == (2, 4)
    assert ledger.payment("a").round == 2
    assert ledger.uses("b", since_start=False) == 1


def test_a_ledger_whose_entries_were_replaced_is_priced_anew():
    ledger = Ledger(Budget(2.0, 1e-5))
    with pytest.raises(BudgetExhausted):
        fill(ledger)
    spent = len(ledger)
    ledger.entries = ledger.entries[:-2]
    ledger.debit(entry(100))
    ledger.debit(entry(101))
    with pytest.raises(BudgetExhausted):
        ledger.debit(entry(102))
    assert len(ledger) == spent
    ledger.rewind(spent - 3, replay=True)
    for number in (spent - 2, 100, 101):
        ledger.debit(entry(number))
    with pytest.raises(BudgetExhausted):
        ledger.debit(entry(103))
    ledger.others.append(entry(1))
    del ledger.entries[-1]
    with pytest.raises(BudgetExhausted):
        ledger.debit(entry(104))


def test_a_new_limit_counts_what_was_asked_before():
    ledger = Ledger()
    for number in range(1, 10):
        ledger.debit(entry(number))
    ledger.limit = Budget(1.9, 1e-5)
    with pytest.raises(BudgetExhausted):
        ledger.debit(entry(10))
    ledger.limit = Budget(3.0, 1e-5)
    ledger.debit(entry(10))


def test_units_that_are_mixed_are_refused_each_time():
    ledger = Ledger(Budget(9.0, 1e-5))
    ledger.debit(entry(1))
    ledger.others.append(entry(2, unit="record"))
    for number in (3, 4):
        with pytest.raises(MixedUnits, match="round 2"):
            ledger.debit(entry(number))
    ledger.others.clear()
    with pytest.raises(MixedUnits, match="round 5"):
        ledger.debit(replace(entry(5), unit="record"))
    ledger.debit(entry(6))
