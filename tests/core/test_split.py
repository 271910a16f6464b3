"""Groups of a partition: each party is in one of them by its name alone, and all of them cost what one costs."""

from __future__ import annotations

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core import Federation, Parties
from hedgerow.core.cohort import groups_of
from hedgerow.core.events import Event, Sampling
from hedgerow.core.ledger import Entry, grouped
from hedgerow.core.randomness import Streams
from hedgerow.engines import InProcess
from hedgerow.errors import BudgetExhausted, BudgetInvalid
from helpers import federation, parties, totals

ONE = 4.377178095681
"""Epsilon of one Gaussian of multiplier 1 at delta 1e-5."""

BUDGET = hr.Budget(epsilon=4.4, delta=1e-5)


def private(n_parties: int = 40) -> Federation:
    return federation(n_parties=n_parties).protect(clip=hr.l2(5.0), mechanism=hr.Gaussian(1.0))


@pytest.mark.parametrize("groups", [1, 2, 5, 10])
def test_groups_are_disjoint_and_are_everybody(groups: int) -> None:
    fed = private()
    names = [name for group in fed.split(groups) for name in group.members]
    assert sorted(names) == sorted(fed.names)


@pytest.mark.parametrize("groups", [2, 5, 10])
def test_one_question_to_each_group_costs_what_one_question_costs(groups: int) -> None:
    """The median of groups: 6.573 and 11.480 would be charged where groups were taken for everybody, twice and five times."""
    fed = private().within(BUDGET)
    released = [group.sum(totals) for group in fed.split(groups)]
    assert len(released) == len(fed.ledger) == groups
    assert BUDGET.spent(fed.ledger.charges("party")) == pytest.approx(ONE, rel=1e-9)
    with pytest.raises(BudgetExhausted):  # a second partition is charged beside the first
        fed.split(groups)[0].sum(totals)
    with pytest.raises(BudgetExhausted):
        fed.sum(totals)


def test_a_group_without_parties_costs_what_any_group_costs() -> None:
    """It is noise alone, and one party more would be in it: a partition with it is charged once, and it alone as much."""
    fed = federation(n_parties=3).protect(clip=hr.l2(5.0), mechanism=hr.Gaussian(1.0)).within(BUDGET)
    groups = fed.split(3)
    empty = [group for group in groups if not group.members]  # the first
    assert empty
    empty[0].sum(totals)
    assert BUDGET.spent(fed.ledger.charges("party")) == pytest.approx(ONE, rel=1e-9)
    for group in groups:
        if group is not empty[0]:
            group.sum(totals)
    assert BUDGET.spent(fed.ledger.charges("party")) == pytest.approx(ONE, rel=1e-9)
    with pytest.raises(BudgetExhausted):
        empty[0].sum(totals)
    resumed = [Entry.from_json(entry.to_json()) for entry in fed.ledger.entries]
    assert BUDGET.spent(grouped(resumed, "party")) == pytest.approx(ONE, rel=1e-9)


def test_a_rate_of_zero_is_no_rate_of_a_sample() -> None:
    for kind in ("poisson", "records", "fixed", "given", "dealt"):
        with pytest.raises(BudgetInvalid, match="sampling rate 0"):
            BUDGET.spent([(Sampling(kind, 0.0), (Event("gaussian", 1.0),))])
    for rate in (-0.1, 1.5, float("nan")):
        with pytest.raises(BudgetInvalid, match="sampling rate"):
            BUDGET.spent([(Sampling("part", rate), (Event("gaussian", 1.0),))])


def test_a_group_that_is_asked_again_is_charged_again() -> None:
    fed = private().within(BUDGET)
    first, second = fed.split(2)
    first.sum(totals)
    second.sum(totals)
    with pytest.raises(BudgetExhausted):
        first.sum(totals)


@pytest.mark.parametrize("seed", range(5))
def test_one_party_more_changes_one_group_by_one_row_and_no_other(seed: int) -> None:
    """Neighbours: the group of every other party is the same, and the new party's row moves one total by at most its bound."""
    held = parties(12, seed)
    n = int(held.sizes[:-1].sum())
    fewer = Parties(held.ids[:-1], {name: column[:n] for name, column in held.columns.items()}, held.sizes[:-1])
    hosted = (InProcess(threads=1).hosting(one) for one in (held, fewer))
    both = [Federation(engine, streams=Streams(seed)).protect(clip=hr.l2(1.0)) for engine in hosted]
    with_it, without = ([group.members for group in fed.split(4)] for fed in both)
    changed = [set(one) ^ set(other) for one, other in zip(with_it, without, strict=True)]
    assert sorted(map(len, changed)) == [0, 0, 0, 1]
    assert {held.ids[-1]} in changed
    moved = []
    for group, other in zip(both[0].split(4), both[1].split(4), strict=True):
        if group.members and other.members:
            one, two = (np.concatenate([np.ravel(part) for part in asked.sum(totals).values()]) for asked in (group, other))
            moved.append(float(np.linalg.norm(one - two)))
    assert max(moved) <= 1 + 1e-3
    assert sum(length > 0 for length in moved) <= 1


@pytest.mark.parametrize(("n", "groups"), [(12, 4), (11, 3), (5, 5), (7, 1)])
def test_balanced_groups_differ_by_one_party_at_most_and_are_everybody(n: int, groups: int) -> None:
    for seed in range(5):
        dealt = [group.members for group in federation(seed=seed, n_parties=n).split(groups, balanced=True)]
        assert sorted(map(len, dealt)) == sorted(n // groups + (k < n % groups) for k in range(groups))
        assert sorted(name for names in dealt for name in names) == sorted(federation(n_parties=n).names)


def test_each_balanced_group_is_alike_likely_for_each_party_whichever_has_one_more() -> None:
    """5 parties in 3 groups of 2, 2 and 1, 3 000 times: a share's standard error is 0.009, and of pairs 1 in 5 is together."""
    names, keys = [f"party {i}" for i in range(5)], [k.to_bytes(4, "little") for k in range(3000)]
    own = np.array([groups_of(names, 3, key, balanced=True) for key in keys])
    shares = [(own == k).mean(0) for k in range(3)]
    assert np.abs(np.array(shares) - 1 / 3).max() < 0.04
    together = [(own[:, i] == own[:, j]).mean() for i in range(5) for j in range(i)]
    assert together == pytest.approx([0.2] * 10, abs=0.03)


def test_balanced_groups_cost_a_record_what_one_question_costs_and_a_party_what_a_schedule_costs() -> None:
    """Who is in a group follows from all names, so neighbours differ in what a party contributes: twice as far."""
    records = federation(n_parties=12).protect(mechanism=hr.Gaussian(1.0))
    for group in records.split(4, balanced=True):
        group.sum(totals, bound=hr.l2(1.0, unit="record"))
    per_record = hr.Budget(9.0, 1e-5, unit="record")
    assert per_record.spent(records.ledger.charges("record")) == pytest.approx(ONE, rel=1e-9)
    dealt, turns = private(), private()
    for group, turn in zip(dealt.split(4, balanced=True), (turns.sample(every=4) for _ in range(4)), strict=True):
        group.sum(totals)
        turn.sum(totals)
    costs = [BUDGET.spent(fed.ledger.charges("party")) for fed in (dealt, turns)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-9)
    assert costs[0] > 2 * ONE
    dealt.split(4, balanced=True)[0].sum(totals)
    assert BUDGET.spent(dealt.ledger.charges("party")) > costs[0]


def test_another_seed_makes_other_groups_and_a_second_partition_is_another_one() -> None:
    one, other = (federation(seed=seed, n_parties=40).split(4)[0].members for seed in (0, 1))
    fed = federation(n_parties=40)
    assert one != other
    assert fed.split(4)[0].members == one != fed.split(4)[0].members


@pytest.mark.parametrize("groups", [0, -1, 7, True, 2.0])
def test_what_is_no_number_of_groups_is_refused(groups: object) -> None:
    with pytest.raises(BudgetInvalid, match="cannot be split"):
        federation(n_parties=6).split(groups)  # type: ignore[arg-type]


def test_a_party_that_pays_by_itself_pays_for_its_own_group() -> None:
    guards = {name: hr.privacy.Guard(BUDGET, trust="server") for name in parties(8).ids}
    fed = federation(InProcess(threads=1, guards=guards), n_parties=8).protect(clip=hr.l2(5.0), mechanism=hr.Gaussian(1.0))
    for group in fed.split(3):
        if group.members:
            group.sum(totals)
    assert {round(guard.spent, 6) for guard in guards.values()} == {round(ONE, 6)}
