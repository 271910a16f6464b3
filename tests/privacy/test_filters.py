"""Privacy filters hold where noise is chosen by answers, and rules that hold for fixed plans alone are caught there.

Adversaries are trees: after each answer another question. What a tree reveals is counted exactly, answer by answer.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm
from test_running import DRAWN, EVENTS, counting, entry, history
from test_running import fill as fill_ledger

from hedgerow import Budget
from hedgerow.core.events import Debit, Event, Sampling, charges_of
from hedgerow.core.ledger import Ledger
from hedgerow.errors import BudgetExhausted, BudgetInvalid
from hedgerow.privacy.accounting import Running, filters, renyi
from hedgerow.privacy.accounting.costs import Use

ALL, POISSON = Sampling(), Sampling("poisson", 0.1)
FILTERS = ["rdp", "zcdp", "gdp", "basic"]


def debits(*events, first=0):
    return [Debit(("q", first + n), ALL, event) for n, event in enumerate(events)]


def pure(epsilon):
    return Event("pure", epsilon=epsilon)


def gaussian(z):
    return Event("gaussian", z)


def admits(budget, *events):
    """Whether a budget lets these questions through, one by one."""
    so_far = budget.running()
    for debit in debits(*events):
        if not so_far.would(debit):
            return False
        so_far.add(debit)
    return True


# ---- adversaries that choose by answers -----------------------------------------------------------------------------
def beyond_gaussian(z, t):
    """Mass of N(1, z) above e^t times that of N(0, z), also for negative t."""
    return norm.cdf(1 / (2 * z) - t * z) - math.exp(t) * norm.cdf(-1 / (2 * z) - t * z)


def beyond_pure(epsilon, t):
    """The same of randomised response."""
    high, low = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    return max(0.0, high - math.exp(t) * low) + max(0.0, low - math.exp(t) * high)


def beyond(event, t):
    if event is None:
        return max(0.0, 1 - math.exp(t))
    return beyond_gaussian(event.noise_multiplier, t) if event.kind == "gaussian" else beyond_pure(event.epsilon, t)


FIRST, SECONDS = pure(0.5), (pure(3.0), gaussian(0.5085))
EPSILON, DELTA = 3.15, 0.1753


def two_questions(budget):
    """The delta at the budget's epsilon of: randomised response, then whichever second question tells most after its answer."""
    left = [event for event in SECONDS if admits(budget, FIRST, event)] + [None]
    high = 1 / (1 + math.exp(-FIRST.epsilon))
    chances = ((high, FIRST.epsilon), (1 - high, -FIRST.epsilon))
    return sum(chance * max(beyond(event, budget.epsilon - loss) for event in left) for chance, loss in chances)


@pytest.mark.slow
def test_a_fixed_plan_misused_as_a_filter_is_caught():
    """Each list of two questions is within the budget. To choose the second by the first answer spends 1.2 times its delta."""
    misused = Budget(EPSILON, DELTA, accountant="pld")
    for event in SECONDS:
        assert admits(misused, FIRST, event)
        high = 1 / (1 + math.exp(-0.5))
        alone = high * beyond(event, EPSILON - 0.5) + (1 - high) * beyond(event, EPSILON + 0.5)
        assert alone <= DELTA
    assert two_questions(misused) > 1.2 * DELTA
    for filter in FILTERS:
        assert two_questions(Budget(EPSILON, DELTA, filter=filter)) <= DELTA


def tree_delta(budget, policy, depth):
    """The delta of a tree of randomised responses, each of the epsilon that a policy names after the answers so far."""

    def below(so_far, answers, with_unit, without):
        event = policy(answers)
        debit = Debit(("q", len(answers)), ALL, event)
        if len(answers) == depth or not so_far.would(debit):
            return max(0.0, with_unit - math.exp(budget.epsilon) * without)
        high, total = 1 / (1 + math.exp(-event.epsilon)), 0.0
        for answer, chances in ((1, (high, 1 - high)), (0, (1 - high, high))):
            again = budget.running()
            for n in range(len(answers) + 1):
                again.add(Debit(("q", n), ALL, policy(answers[:n])))
            total += below(again, (*answers, answer), with_unit * chances[0], without * chances[1])
        return total

    return below(budget.running(), (), 1.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("seed", range(4))
def test_no_tree_of_answers_gets_beyond_a_filter(filter, seed):
    budget = Budget(1.0, 0.02, filter=filter)

    def policy(answers):
        """Larger steps where the answers so far speak for the unit: it pays to be bold there."""
        rng = np.random.default_rng([seed, 2, *answers])
        bold = 2 * sum(answers) - len(answers)
        return pure(float(rng.uniform(0.05, 0.3) * math.exp(0.4 * bold)))

    assert tree_delta(budget, policy, 8) <= budget.delta


@pytest.mark.slow
def test_an_adversary_with_gaussians_gets_to_the_budget_and_not_beyond():
    """Half of mu^2 is spent; where the answer speaks for the unit all the rest is, elsewhere a part of it."""
    budget = Budget(1.0, 1e-3, filter="gdp")
    mu2 = filters.limit(budget.measure, 1.0, 1e-3)
    z1 = (mu2 / 2) ** -0.5
    x = np.linspace(-12 * z1, 12 * z1 + 1, 4001)
    mass = norm.pdf(x, 1, z1) * (x[1] - x[0])
    losses = (2 * x - 1) / (2 * z1**2)

    def second(share):
        """One more question, for this share of the rest."""
        return gaussian((share * mu2 / 2) ** -0.5) if share else None

    def delta(policy):
        """Where the loss is so far, a policy names the share of the rest that the second question spends."""
        shares = [round(policy(loss), 2) for loss in losses]
        for share in set(shares) - {0.0}:
            assert admits(budget, gaussian(z1), second(share * (1 - 1e-8)))
        return sum(m * beyond(second(share), 1.0 - loss) for m, loss, share in zip(mass, losses, shares, strict=True))

    assert not admits(budget, gaussian(z1), second(1.001))
    assert delta(lambda loss: 1.0) == pytest.approx(1e-3, rel=1e-6)
    for policy in (lambda loss: float(loss > 0), lambda loss: float(loss < 0.5), lambda loss: min(1.0, math.exp(loss - 0.5))):
        assert delta(policy) <= 1e-3 * (1 + 1e-6)


@pytest.mark.slow
def test_an_odometer_misused_as_a_guarantee_is_caught():
    """Who stops where the loss is beyond what was used so far, and claims that, spends 1.8 delta with two questions."""
    budget = Budget(4.0, 1e-3, filter="gdp")
    z, whole = 10.0, 1.0  # the first question, and all of them together
    used = [budget.spent([(ALL, (gaussian(m),))]) for m in (z, whole)]
    rest = (1 / whole**2 - 1 / z**2) ** -0.5
    x = np.linspace(-10 * z, 10 * z + 1, 20_001)
    mass, losses = norm.pdf(x, 1, z) * (x[1] - x[0]), (2 * x - 1) / (2 * z**2)
    first = sum(m * (1 - math.exp(used[0] - loss)) for m, loss in zip(mass, losses, strict=True) if loss > used[0])
    goes_on = [(m, loss) for m, loss in zip(mass[::10] * 10, losses[::10], strict=True) if loss <= used[0]]
    second = sum(m * beyond_gaussian(rest, used[1] - loss) for m, loss in goes_on)
    assert first == pytest.approx(1e-3, rel=0.02)
    assert first + second > 1.8e-3
    everything = sum(m * beyond_gaussian(rest, used[1] - loss) for m, loss in zip(mass[::10] * 10, losses[::10], strict=True))
    assert everything <= 1e-3 * (1 + 1e-3)  # what a filter claims, whenever it was stopped: its limit


# ---- the order is fixed before the first answer ---------------------------------------------------------------------
class OrderAfterTheFact:
    """Goes on while some order is left, whichever that is: right for a fixed list, no filter."""

    def __init__(self, epsilon, delta):
        self.measures = [filters.measure("rdp", epsilon, delta, order) for order in filters.ORDERS]
        self.budgets = [Budget(epsilon, delta, filter="rdp", order=measure.order) for measure in self.measures]

    def admits(self, events):
        return any(budget.admits([(ALL, (event,)) for event in events]) for budget in self.budgets)


def fill(rule, event):
    """The first question, and then as many of one kind as a rule admits."""
    asked = [pure(0.2)]
    while rule.admits([*asked, event]):
        asked.append(event)
    return asked


def proving_orders(rule, epsilon, delta):
    """Orders whose divergence of the whole tree converts to (epsilon, delta): after one answer responses, after the other
    Gaussians."""
    high = 1 / (1 + math.exp(-0.2))
    paths = [(high, fill(rule, pure(0.19))[1:]), (1 - high, fill(rule, gaussian(12.0))[1:])]
    found = []
    for order in (2.0, 3.0, 5.0, 8.0, 12.0, 18.0, 24.0, 30.0, 40.0, 60.0, 128.0, 1024.0):
        logs = []
        for chance, later in paths:
            curve = sum(filters.cost_lost(filters.Measure("rdp", order), use_of(event)).loss for event in later)
            logs.append(order * math.log(chance) + (1 - order) * math.log(1 - chance) + (order - 1) * curve)
        if np.logaddexp(*logs) / (order - 1) <= filters.limit(filters.Measure("rdp", order), epsilon, delta):
            found.append(order)
    return found


def use_of(event):
    return Use(event.kind, event.noise_multiplier, event.epsilon)


class Filtered:
    def __init__(self, budget):
        self.budget = budget

    def admits(self, events):
        return self.budget.admits([(ALL, (event,)) for event in events])


def test_an_order_chosen_after_the_fact_is_caught():
    epsilon, delta = 0.6, 1e-4
    budget = Budget(epsilon, delta, filter="rdp", order=30.0)
    assert budget.measure.order in proving_orders(Filtered(budget), epsilon, delta)
    assert not proving_orders(OrderAfterTheFact(epsilon, delta), epsilon, delta)


def test_the_order_follows_from_the_budget_alone():
    assert filters.measure("rdp", 1.0, 1e-5) == filters.Measure("rdp", 18.0)
    assert filters.measure("rdp", 8.0, 1e-3).order == 3.0
    assert filters.measure("rdp", 1.0, 1e-5, 5).order == 5.0


# ---- closed forms ---------------------------------------------------------------------------------------------------
def most(budget, event, sampling=ALL):
    """How many questions a budget admits, each to a cohort of its own."""
    so_far, n = budget.running(), 0
    while so_far.would(debit := Debit(("cohort", n), sampling, event)):
        so_far.add(debit)
        n += 1
    return n


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_as_many_are_admitted_as_closed_forms_say(epsilon):
    z, delta, log = 30.0, 1e-5, -math.log(1e-5)
    rho = (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2
    assert most(Budget(epsilon, delta, filter="zcdp"), gaussian(z)) == math.floor(rho * 2 * z**2)
    assert most(Budget(epsilon, delta, filter="basic"), Event("laplace", z)) == math.floor(epsilon * z * (1 - 1e-9))
    order = filters.measure("rdp", epsilon, delta).order
    left = epsilon - math.log1p(-1 / order) + (math.log(delta) + math.log(order)) / (order - 1)
    assert most(Budget(epsilon, delta, filter="rdp"), gaussian(z)) == math.floor(left * 2 * z**2 / order)


def test_for_gaussians_without_sampling_a_filter_costs_nothing():
    for epsilon in (0.5, 2.0, 8.0):
        exact = most(Budget(epsilon, 1e-5), gaussian(20.0))
        assert most(Budget(epsilon, 1e-5, filter="gdp"), gaussian(20.0)) == exact


def test_a_pure_epsilon_is_dominated_by_its_gaussian():
    for epsilon in (0.01, 0.5, 3.0):
        mu = filters._gaussian_of_pure(epsilon)
        for t in np.linspace(-2 * epsilon, 2 * epsilon, 81):
            assert beyond_pure(epsilon, t) <= beyond_gaussian(1 / mu, t) + 1e-12
        assert beyond_gaussian(1.001 / mu, 0.0) < beyond_pure(epsilon, 0.0)  # and by no smaller one


@pytest.mark.parametrize("filter", FILTERS)
def test_what_is_read_off_a_filter_is_the_budget_that_just_admits_it(filter):
    used = Budget(5.0, 1e-4, filter=filter, order=6.0 if filter == "rdp" else None)
    charges = [(ALL, (Event("laplace", 8.0),))] * 5
    epsilon = used.spent(charges)
    order = 6.0 if filter == "rdp" else None
    assert Budget(epsilon * (1 + 1e-6), 1e-4, filter=filter, order=order).admits(charges)
    assert not Budget(epsilon * (1 - 1e-6), 1e-4, filter=filter, order=order).admits(charges)
    assert used.spent([]) == 0.0
    assert used.spent([(ALL, (Event("nonprivate"),))]) == math.inf


def test_renyi_filters_on_typical_runs_cost_what_the_page_says():
    """Epsilon with which a filter lets a published run through, over that of its loss distribution."""
    for rate, z, rounds, delta, pld, filtered in (
        (0.01, 4.0, 10_000, 1e-5, 0.947, 1.036),
        (256 / 60_000, 1.1, 14_062, 1e-5, 2.382, 2.600),
        (0.22, 1.251, 54, 1e-5, 7.999, 9.2),
    ):
        lost = filters.Lost(0, rounds * float(renyi.curve(Use("gaussian", z, rate=rate), filters.ORDERS)[0]))
        assert lost.loss > 0
        low, high = pld, 3 * pld
        for _ in range(40):
            epsilon = (low + high) / 2
            measure = filters.measure("rdp", epsilon, delta)
            lost = filters.cost_lost(measure, Use("gaussian", z, rate=rate))
            fits = filters.within(measure, filters.Lost().plus(lost, rounds), epsilon, delta)
            low, high = (low, epsilon) if fits else (epsilon, high)
        assert high == pytest.approx(filtered, rel=5e-3)


# ---- cohorts, parts, leaks ------------------------------------------------------------------------------------------
def lost(filter, *given):
    return filters.lost_by(filters.measure(filter, 2.0, 1e-5), charges_of(given))


@pytest.mark.parametrize("filter", ["rdp", "zcdp", "basic"])
def test_a_cohort_that_is_asked_again_counts_in_full(filter):
    event = Event("laplace", 20.0)
    once = lost(filter, Debit(1, POISSON, event))
    again = lost(filter, Debit(1, POISSON, event), Debit(1, POISSON, event))
    whole = lost(filter, Debit(0, ALL, event))
    assert once.loss < whole.loss / 2
    assert again.loss == pytest.approx(once.loss + whole.loss)


def test_whichever_question_to_a_cohort_was_first_the_sum_is_the_same_and_never_falls():
    one, two = Event("laplace", 20.0), Event("gaussian", 3.0)
    sums = [lost("rdp", *(Debit(1, POISSON, event) for event in order)) for order in ((one, two), (two, one))]
    assert sums[0] == sums[1]
    growing = [lost("rdp", *(Debit(1, POISSON, event) for event in (two, one, one, two, one)[:n])).loss for n in range(6)]
    assert all(before < after for before, after in pairwise(growing))


@pytest.mark.parametrize("filter", FILTERS)
def test_disjoint_parts_count_once(filter):
    event = Event("laplace", 20.0)
    parts = [Debit("all", ALL, event, ("partition", index)) for index in range(5)]
    assert lost(filter, *parts) == lost(filter, parts[0])
    assert lost(filter, *parts, parts[0]) == lost(filter, *parts, parts[3], parts[0])
    assert lost(filter, *parts, parts[0]).loss == pytest.approx(2 * lost(filter, parts[0]).loss)


def test_what_leaks_has_a_place_in_basic_composition_alone():
    leaks = Event("approximate", epsilon=0.1, delta=4e-6)
    for filter in ("rdp", "zcdp", "gdp"):
        assert not Budget(2.0, 1e-5, filter=filter).admits([(ALL, (leaks,))])
    assert Budget(2.0, 1e-5, filter="basic").admits([(ALL, (leaks, leaks))])
    assert not Budget(2.0, 1e-5, filter="basic").admits([(ALL, (leaks,) * 3)])


@pytest.mark.parametrize("filter", FILTERS)
def test_nothing_without_noise_is_admitted(filter):
    assert not Budget(1e6, 1e-5, filter=filter).admits([(ALL, (Event("nonprivate"),))])
    assert Budget(math.inf, 1e-5, filter=filter).admits([(ALL, (Event("nonprivate"),))])


# ---- sums that grow -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("seed", range(5))
def test_a_growing_sum_is_that_of_the_whole_list(filter, seed):
    asked, measure = history(seed, 30, EVENTS, DRAWN), filters.measure(filter, 2.0, 1e-5)
    late, early = Running(), Running()
    early.lost(measure)
    for n, debit in enumerate(asked, 1):
        early.add(debit)
        late.add(debit)
        whole = filters.lost_by(measure, charges_of(asked[:n]))
        assert early.lost(measure) == pytest.approx(whole, rel=1e-12)
    assert late.lost(measure) == pytest.approx(early.copy().lost(measure), rel=1e-12)


class Amplifying(Running):
    """Takes a cohort that is asked again for one that was asked for the first time."""

    def _lost_with(self, measure, key, cohort):
        return self._lost[measure].plus(filters.cohort_lost(measure, Running()._change(self.debit)[0]))

    def stays_within(self, debit, measure, epsilon, delta):
        self.debit = debit
        return super().stays_within(debit, measure, epsilon, delta)

    def add(self, debit):
        self.debit = debit
        super().add(debit)


def asked_again(make):
    """How often one cohort may be asked under a filter."""
    so_far, measure, n = make(), filters.measure("rdp", 1.0, 1e-5), 0
    while n < 200 and so_far.stays_within(debit := Debit(1, POISSON, gaussian(6.0)), measure, 1.0, 1e-5):
        so_far.add(debit)
        n += 1
    return n


def test_amplifying_every_question_to_one_cohort_is_caught():
    """A cohort that is kept is no sample any more: its questions cost about what they cost without sampling."""
    unsampled = most(Budget(1.0, 1e-5, filter="rdp"), gaussian(6.0))
    assert unsampled <= asked_again(Running) <= unsampled + 1
    assert asked_again(Amplifying) == 200


def test_a_ledger_refuses_by_its_filter_and_reads_nothing_of_earlier_questions(monkeypatch):
    ledger = Ledger(Budget(20.0, 1e-5, filter="rdp"))
    curves = counting(monkeypatch, renyi, "curve")
    for number in range(1, 301):
        ledger.debit(entry(number, 60.0 + number % 3, POISSON, number))
    assert len(curves) <= 20
    small = Ledger(Budget(1.0, 1e-5, filter="gdp"))
    with pytest.raises(BudgetExhausted, match="Gaussian filter"):
        fill_ledger(small)
    assert len(small) == most(Budget(1.0, 1e-5), gaussian(6.0))


def test_refusals():
    with pytest.raises(BudgetInvalid, match="no filter is called 'pld'"):
        Budget(1.0, 1e-5, filter="pld")
    with pytest.raises(BudgetInvalid, match="accountant 'pld' and the filter"):
        Budget(1.0, 1e-5, accountant="pld", filter="rdp")
    with pytest.raises(BudgetInvalid, match="has no order"):
        Budget(1.0, 1e-5, filter="gdp", order=4.0)
    with pytest.raises(BudgetInvalid, match="belongs to no filter"):
        Budget(1.0, 1e-5, order=4.0)
    with pytest.raises(BudgetInvalid, match="not above 1"):
        Budget(1.0, 1e-5, filter="rdp", order=1.0)
    assert str(Budget(8, 1e-3, filter="rdp")).endswith("Renyi filter (Feldman & Zrnic 2021), order 3")
