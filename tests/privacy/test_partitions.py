"""Disjoint parts of the parties cost what the dearest of them costs, and no more is claimed than neighbours bear out."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from attack import epsilon_lower_bound
from hedgerow import Budget, Gaussian, l2
from hedgerow.core import Federation, Ledger
from hedgerow.core.events import Debit, Event, Part, Parts, Sampling, charges_of
from hedgerow.core.ledger import Entry
from hedgerow.core.rules import covered_by_a_charge
from hedgerow.engines import InProcess
from hedgerow.errors import BudgetExhausted, BudgetInvalid, UnlawfulChannel
from hedgerow.privacy import accounting
from hedgerow.privacy.accounting import Running, costs, gaussian_epsilon
from hedgerow.privacy.accounting.costs import Batch, Use
from hedgerow.store import LedgerFile
from helpers import federation, parties

ALL, GIVEN, POISSON = Sampling(), Sampling("given", 0.2, 4), Sampling("poisson", 0.1)
ONE = 4.377178095681  # epsilon of one Gaussian of multiplier 1 at delta 1e-5
TWO = 6.573  # of two
BUDGET = Budget(100.0, 1e-5)


def entry(number, part=None, z=1.0, sampling=ALL, cohort=0):
    asked = (number, cohort, "sum", "m:f", 4.0, 1, "x", 4.0, 0.0, "l2(1)", "none", "none", "Gaussian", "plain", "party")
    return Entry(*asked, Event("gaussian", z), sampling, "seeded", part=part)


def ledger_of(*entries, limit=None):
    ledger = Ledger(limit)
    for one in entries:
        ledger.debit(one)
    return ledger


def spent(*entries):
    """What a list of entries costs, which is what a growing sum of them says too."""
    ledger, so_far = ledger_of(*entries), Running()
    for one in entries:
        so_far.add(one.debit("party"))
    found = BUDGET.spent(ledger.charges("party"))
    assert so_far.epsilon(1e-5) == found
    return found


# ---- the example ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n_groups", [1, 2, 5, 10])
@pytest.mark.parametrize("sampling", [ALL, replace(GIVEN, size=2)], ids=["all", "public schedule"])
def test_disjoint_groups_cost_what_one_question_costs(n_groups, sampling):
    z = 1.0 if sampling.kind == "all" else 2.0  # at a schedule neighbours are twice as far apart
    asked = [(Part(1, g, n_groups), z, replace(sampling, size=2 + g), g + 1) for g in range(n_groups)]
    entries = [entry(number, *one) for number, one in enumerate(asked, 1)]
    assert spent(*entries) == pytest.approx(ONE, rel=1e-9)
    if n_groups == 2:
        assert spent(*(replace(one, part=None) for one in entries)) == pytest.approx(TWO, rel=1e-3)
        assert spent(*entries, replace(entries[0], round=9)) == pytest.approx(TWO, rel=1e-3)  # a part is asked again


def test_a_budget_for_one_question_admits_one_of_each_part():
    ledger = ledger_of(limit=Budget(ONE * (1 + 1e-6), 1e-5))
    for group in range(5):
        ledger.debit(entry(group + 1, Part(1, group, 5)))
    for other in (Part(1, 0, 5), Part(2, 0, 5), Part(1, 0, 4), None):
        with pytest.raises(BudgetExhausted):
            ledger.debit(entry(9, other))
    assert len(ledger) == 5


def test_two_partitions_compose():
    """A new random partition each round: a party is in one part of each."""
    entries = [entry(10 * number + g, Part(number, g, 3)) for number in (1, 2) for g in range(3)]
    assert spent(*entries) == pytest.approx(TWO, rel=1e-3)
    assert spent(*entries, entry(99)) == spent(*(entry(number) for number in (1, 2, 3)))


def test_partitions_of_different_runs_are_different():
    mine, other = entry(1, Part(1, 0, 2)), replace(entry(1, Part(1, 1, 2)), run="other")
    assert spent(mine, other) == pytest.approx(TWO, rel=1e-3)


def test_parts_of_a_sampled_cohort_stay_in_its_sampling_event():
    whole, parts = entry(1, None, 2.0, POISSON, 7), [entry(2 + g, Part(8, g, 3), 2.0, POISSON, 7) for g in range(3)]
    one = [(POISSON, (Event("gaussian", 2.0),) * 2)]
    assert spent(whole, *parts) == BUDGET.spent(one)
    elsewhere = entry(9, Part(8, 0, 3), 2.0, POISSON, 10)
    assert spent(whole, *parts, elsewhere) == BUDGET.spent([*one, (POISSON, (Event("gaussian", 2.0),))])


@pytest.mark.parametrize("kind", ["fixed", "replace-one"])
def test_where_two_units_change_at_once_parts_are_charged_as_if_they_overlapped(kind):
    """A party more pushes another out, who may be in another part; so may the unit that takes another's place."""
    entries = [entry(1 + g, Part(1, g, 3), 4.0, Sampling("fixed", 0.2, 4) if kind == "fixed" else ALL, 1) for g in range(3)]
    adjacency = "replace-one" if kind == "replace-one" else "add-remove"
    parted, plain = (ledger_of(*some).charges("party") for some in (entries, [replace(one, part=None) for one in entries]))
    assert costs.costs(parted, adjacency) == costs.costs(plain, adjacency)


def test_of_records_a_cohort_of_any_fixed_size_has_parts():
    """A record pushes no party out, and it is at one party."""
    entries = [replace(entry(1 + g, Part(1, g, 3), 1.0, Sampling("fixed", 0.2, 4), g), unit="record") for g in range(3)]
    assert Budget(9.0, 1e-5, unit="record").spent(ledger_of(*entries).charges("record")) == pytest.approx(ONE, rel=1e-9)


def test_entries_with_parts_survive_the_file_and_count_their_partitions(tmp_path):
    ledger = Ledger(record=LedgerFile(tmp_path / "ledger.jsonl"))
    for one in (entry(1), entry(2, Part(5, 1, 3))):
        ledger.debit(one)
    assert Ledger(record=LedgerFile(tmp_path / "ledger.jsonl")).entries == ledger.entries
    assert "part" not in ledger.entries[0].to_json()
    assert ledger.numbers() == (2, 5)


@pytest.mark.parametrize("index", [-1, 3])
def test_there_is_no_part_beyond_the_last(index):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        Part(1, index, 3)


def test_what_one_part_paid_for_covers_no_other_part():
    """Its charge is part of the dearest part's, and another part may have been asked for as much beside it."""
    ledger = ledger_of(replace(entry(1, Part(1, 0, 2)), key="tree"))
    cites = replace(entry(2, Part(1, 0, 2)), key="tree", cites=1)
    covered_by_a_charge(SimpleNamespace(entry=cites, ledger=ledger))
    for other in (Part(1, 1, 2), Part(2, 0, 2), None):
        with pytest.raises(UnlawfulChannel):
            covered_by_a_charge(SimpleNamespace(entry=replace(cites, part=other), ledger=ledger))
    with pytest.raises(UnlawfulChannel):
        covered_by_a_charge(SimpleNamespace(entry=replace(cites, cites=7), ledger=ledger))


# ---- the dearest part -----------------------------------------------------------------------------------------------
EVENTS = [
    *(Event("gaussian", z) for z in (3.0, 5.0, 8.0)),
    Event("gaussian", 5.0, rate=0.3),
    *(Event("laplace", scale) for scale in (4.0, 9.0)),
    *(Event("pure", epsilon=epsilon) for epsilon in (0.1, 0.3)),
    *(Event("exponential", epsilon=epsilon) for epsilon in (0.1, 0.2)),
    Event("approximate", epsilon=0.1, delta=1e-8),
    *(Event("skellam", z, steps=500.0) for z in (3.0, 6.0)),
]
SLACK = 1e-9


def random_parts(rng, n_parts):
    return tuple(tuple(EVENTS[i] for i in rng.integers(len(EVENTS), size=rng.integers(4))) for _ in range(n_parts))


def shortfall(seed, accountant, sampling=ALL):
    """By how much the worst way through two partitions costs more than what is charged for both, and something common."""
    rng = np.random.default_rng(seed)
    one, two, common = random_parts(rng, 3), random_parts(rng, 2), (Event("gaussian", 6.0),)

    def price(*events):
        return accounting.epsilon([(sampling, events)], delta=1e-5, adjacency="add-remove", accountant=accountant)

    charged = price(*common, Parts(one), Parts(two))
    return max(price(*common, *a, *b) / charged - 1 for a in one for b in two)


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [ALL, GIVEN, POISSON], ids=str)
@pytest.mark.parametrize("accountant", ["basic", "advanced", "zcdp", "rdp", "moments"])
def test_no_unit_loses_more_than_is_charged(accountant, sampling):
    assert max(shortfall(seed, accountant, sampling) for seed in range(25)) <= SLACK


@pytest.mark.slow
def test_no_unit_loses_more_than_is_charged_by_loss_distributions():
    assert max(shortfall(seed, "tightest") for seed in range(6)) <= SLACK


def test_of_parts_that_were_asked_alike_one_is_charged():
    rng = np.random.default_rng(0)
    for _ in range(20):
        [part] = random_parts(rng, 1)
        shuffled = tuple(part[i] for i in rng.permutation(len(part)))
        assert costs.costs([(ALL, (Parts((part, shuffled, part[:1])),))]) == costs.costs([(ALL, part)])


def test_the_dearest_part_by_hand():
    loud, mid, soft = (Use("gaussian", z) for z in (1.0, 2.0, 3.0))
    other = Use("laplace", 2.0)
    assert costs.dearest([Counter({loud: 1, soft: 2}), Counter({mid: 2})]) == {loud: 1, mid: 1, soft: 1}
    assert costs.dearest([Counter({mid: 3}), Counter({loud: 1, other: 2})]) == {loud: 1, mid: 2, other: 2}
    assert costs.dearest([Counter(), Counter({soft: 1})]) == {soft: 1}
    assert costs.dearest([]) == {}


def test_a_growing_cost_of_parts_is_that_of_the_whole_list():
    rng, debits, so_far = np.random.default_rng(1), [], Running()
    for _ in range(80):
        sampling = [ALL, GIVEN, POISSON, Sampling("fixed", 0.1, 3)][rng.integers(4)]
        part = (int(rng.integers(2)), int(rng.integers(3))) if rng.random() < 0.8 else None
        debits.append(Debit((sampling, int(rng.integers(3))), sampling, EVENTS[rng.integers(len(EVENTS))], part))
        so_far.add(debits[-1])
        assert so_far.costs() == costs.costs(charges_of(debits))
        assert so_far.copy().same(so_far)
        assert so_far.would(debits[-1], 3.0, 1e-5, "rdp") == Budget(3.0, 1e-5, accountant="rdp").admits(
            charges_of([*debits, debits[-1]])
        )


@pytest.mark.parametrize(
    "twin",
    [lambda parts: parts[-1], lambda parts: max(parts, key=Counter.total), lambda parts: +(parts[0] & parts[-1])],
    ids=["the last part", "the part asked most often", "what parts have in common"],
)
def test_a_twin_that_charges_the_wrong_part_is_caught(monkeypatch, twin):
    assert max(shortfall(seed, "rdp") for seed in range(6)) <= SLACK
    monkeypatch.setattr(costs, "dearest", lambda parts: twin([*parts]))
    assert max(shortfall(seed, "rdp") for seed in range(6)) > 0.01


def test_a_twin_that_amplifies_parts_apart_from_their_cohort_is_cheaper_than_the_truth():
    """What is told of one sample twice is less protected than what is told of two samples."""
    both = (Event("gaussian", 1.0),) * 2
    true, apart = BUDGET.spent([(POISSON, both)]), BUDGET.spent([(POISSON, both[:1])] * 2)
    assert apart < true == BUDGET.spent([(POISSON, (both[0], Parts((both[1:], both[1:]))))])
    [(cost, _)] = costs.costs([(POISSON, (both[0], Parts((both[1:], both[1:]))))])
    assert not isinstance(cost, Batch)
    assert cost.noise_multiplier == pytest.approx(2**-0.5)


# ---- neighbours -----------------------------------------------------------------------------------------------------
def far_away(broadcast, party, rng):
    """Longer than the clip in the direction of the party's x."""
    return 1e3 * party["x"].sum(0)


def totals_of(data, groups):
    """Sums over groups before noise, one after the other."""
    asked = Federation(InProcess(threads=1).hosting(data)).protect(clip=l2(1.0))
    return np.concatenate([asked.pick(group).sum(far_away) for group in groups])


def worst_epsilon(groups, z=2.0):
    """Epsilon at delta 1e-5 of all sums together, with noise of z times the clip, for the party whose other records tell most.

    They are normal with means that differ by a vector, so they tell as much as one Gaussian of its length.
    """
    found = []
    for party in range(10):
        here, there = parties(10), parties(10)
        begin = sum(there.sizes[:party])
        there.columns["x"][begin : begin + there.sizes[party]] *= -1.0
        apart = np.linalg.norm(totals_of(here, groups) - totals_of(there, groups)) / z
        found.append(gaussian_epsilon(1 / apart, 1e-5))
    return max(found)


def charged_for(groups):
    """What a ledger charges for a question to each of these groups, said to be parts of one partition."""
    fed = federation(n_parties=10).protect(clip=l2(1.0), mechanism=Gaussian(2.0))
    for group in groups:
        fed.pick(group).sum(far_away)
    ledger = Ledger()
    ledger.entries = [replace(one, part=Part(1, g, len(groups))) for g, one in enumerate(fed.ledger.entries)]
    return BUDGET.spent(ledger.charges("party"))


NAMES = [f"party {k + 1}" for k in range(10)]


@pytest.mark.parametrize("n_groups", [1, 2, 5, 10])
def test_neighbours_of_disjoint_groups_lose_what_is_charged(n_groups):
    groups = [NAMES[g::n_groups] for g in range(n_groups)]
    assert worst_epsilon(groups) == pytest.approx(ONE, rel=1e-6)  # the bound is reached
    assert worst_epsilon(groups) * (1 - 1e-9) <= charged_for(groups) <= ONE * 1.001


def test_groups_that_overlap_and_are_called_a_partition_are_caught():
    """The twin: a party in two groups loses more than a partition is charged."""
    groups = [NAMES[:6], NAMES[5:]]
    assert worst_epsilon(groups) > 1.4 * charged_for(groups)
    assert worst_epsilon(groups) == pytest.approx(TWO, rel=1e-3)


def adaptively(rng, in_one, in_two, trials=400_000):
    """Two noisy sums of one coordinate; what the second part is asked follows from the answer of the first."""
    first = in_one + rng.laplace(size=trials)
    sign = np.where(first > 0.5, 1.0, -1.0)
    return first, sign * in_two + rng.laplace(size=trials), sign


@pytest.mark.slow
def test_questions_that_follow_from_answers_of_other_parts_tell_no_more():
    event = (Event("laplace", 1.0),)
    claimed = accounting.epsilon([(ALL, (Parts((event, event)),))], delta=1e-5, adjacency="add-remove", accountant="basic")
    assert claimed == pytest.approx(1.0)
    rng = np.random.default_rng(0)

    def lower(here, there):
        """By the likelihood ratio of both answers, which is the most telling statistic."""
        told = []
        for sums in (here, there):
            first, second, sign = adaptively(rng, *sums)
            far = [abs(first - one) + abs(second - sign * two) for one, two in (here, there)]
            told.append(np.round(far[0] - far[1], 9))  # low bits of floats tell more than the law of the noise
        return epsilon_lower_bound(*told)

    assert 0.8 < lower((1.0, 1.0), (1.0, 0.0)) < claimed
    assert 0.8 < lower((1.0, 1.0), (0.0, 1.0)) < claimed
    assert lower((1.0, 1.0), (0.0, 0.0)) > 1.5 * claimed  # the twin: a unit in both parts
