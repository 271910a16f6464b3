"""A party's guard has the last word: it charges what the party can know, and stops the party when its budget is spent."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pytest

from hedgerow import Budget, Gaussian, l2
from hedgerow.core import local
from hedgerow.core.channel import Shield
from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.events import Event, Sampling
from hedgerow.core.query import Query
from hedgerow.core.randomness import Streams
from hedgerow.engines import InProcess
from hedgerow.errors import BudgetExhausted, BudgetInvalid, CheckpointMismatch, MixedUnits, PartyDeclined
from hedgerow.privacy import Tree
from hedgerow.privacy.choice.sparse import SparseVector
from hedgerow.privacy.guard import Guard, entry_of, rewind_all, willing
from hedgerow.privacy.local.rappor import Permanent, report
from hedgerow.store import LedgerBase, drive
from helpers import federation, norm_of_x, totals

PER_RECORD = l2(1.0, unit="record")
BUDGET = Budget(2.0, 1e-6, unit="record", accountant="rdp")
LOOSE = Budget(100.0, 1e-6, unit="record", accountant="rdp")
SEEDED = Streams(0)


@dataclass
class Guarded:
    """An engine that lets guards decide before anybody computes."""

    inner: InProcess
    guards: dict
    declined: list = field(default_factory=list)

    @property
    def parties(self):
        return self.inner.parties

    def hosting(self, held):
        return Guarded(self.inner.hosting(held), self.guards)

    def exchange(self, outbox) -> Inbox:
        left, codes = willing(self.guards, outbox.ids, outbox.query)
        self.declined.append(codes)
        return self.inner.exchange(Outbox(left, outbox.query))


def asked(shield=None, number=1, **how):
    """A question as a party receives it."""
    return Query(number, "sum", norm_of_x, None, shield or noised(), **how)


def noised(z=5.0, at="party", unit="record"):
    return Shield(None, l2(1.0, unit=unit), Gaussian(z, at=at))


def guarded(guards, **how):
    fed = federation(Guarded(InProcess(threads=1), guards), **how)
    return fed.protect(mechanism=Gaussian(5.0, at="party"))


def affordable(budget):
    """Questions that a guard with this budget answers."""
    guard = Guard(budget)
    with suppress(BudgetExhausted):
        for number in range(1, 1000):
            guard.debit(asked(number=number))
    return len(guard.ledger)


@pytest.mark.slow
def test_a_party_stops_by_itself_and_the_others_go_on():
    guards = {f"party {i}": Guard(BUDGET) for i in range(1, 7)}
    guards["party 2"] = Guard(Budget(1.0, 1e-6, unit="record", accountant="rdp"))
    fed = guarded(guards, recording=True)
    rounds = affordable(guards["party 2"].budget)
    for _ in range(rounds + 1):
        fed.gather(totals, bound=PER_RECORD)
    assert fed.engine.declined == [{}] * rounds + [{"party 2": "HR-213"}]
    assert len(fed.gather(totals, bound=PER_RECORD)) == 5
    assert len(guards["party 2"].ledger) == rounds
    assert guards["party 2"].spent <= 1.0 < guards["party 1"].spent
    assert fed.clock.missing == 2


def test_a_run_ends_when_all_budgets_are_spent():
    guards = {f"party {i}": Guard(BUDGET) for i in range(1, 7)}
    fed = guarded(guards)

    def program(federation, start=None):
        for round in range(1, 1000):
            federation.sum(totals, bound=PER_RECORD)
            yield round

    ended = drive(program, fed)
    assert ended.stopped == "budget"
    assert ended.state == len(guards["party 1"].ledger) > 1
    assert "their own budgets are spent" in ended.reason


def test_a_guard_agrees_with_the_server_about_noise_at_the_party():
    guards = {f"party {i}": Guard(BUDGET) for i in range(1, 7)}
    fed = guarded(guards)
    fed.sum(totals, bound=PER_RECORD)
    fed.sample(records=0.3).sum(totals, bound=PER_RECORD)
    assert guards["party 4"].ledger.charges("record") == fed.ledger.charges("record")


@pytest.mark.parametrize("trust", ["nobody", "parties", "server"])
@pytest.mark.parametrize("at", ["party", "shares", "server"])
def test_noise_counts_where_the_party_trusts_who_adds_it(trust, at):
    mechanism = Gaussian(5.0) if at == "shares" else Gaussian(5.0, at=at)
    if at == "shares":
        object.__setattr__(mechanism, "at", "shares")  # what it takes to hide rows is not the guard's business
    counts = ["nobody", "parties", "server"].index(trust) >= ["party", "shares", "server"].index(at)
    guard, query = Guard(BUDGET, trust=trust), asked(Shield(None, PER_RECORD, mechanism))
    if counts:
        guard.debit(query)
        assert guard.spent > 0
    else:
        assert entry_of(query, trust).event.kind == "nonprivate"
        with pytest.raises(PartyDeclined, match="HR-221"):
            guard.debit(query)
        assert len(guard.ledger) == 0


def test_an_open_sum_is_declined_and_keeping_something_is_free():
    guard = Guard(BUDGET)
    with pytest.raises(PartyDeclined, match="without noise"):
        guard.debit(asked(Shield()))
    guard.debit(Query(1, "each", norm_of_x))
    assert guard.spent == 0
    Guard(Budget(np.inf, 1e-6, unit="record")).debit(asked(Shield()))


@dataclass(frozen=True)
class Steps:
    """Noisy steps of a party."""

    unit: str = "record"

    def event(self):
        return Event("gaussian", 2.0, rate=0.01, count=100)

    def __str__(self):
        return "100 noisy steps"


@local(private="plan")
def trained(broadcast, party, rng, *, plan):
    return np.zeros(1)


def test_a_party_that_trains_with_noise_is_charged_for_its_steps():
    guards = {f"party {i}": Guard(BUDGET) for i in range(1, 7)}
    fed = federation(Guarded(InProcess(threads=1), guards))
    fed.sum(partial(trained, plan=Steps()))
    [entry] = guards["party 1"].ledger.entries
    assert entry.event == Steps().event()
    assert entry.mechanism == "100 noisy steps at the party"


def test_a_cohort_of_parties_does_not_amplify_and_a_cohort_of_records_does():
    poisson, records = Sampling("poisson", 0.01), Sampling("records", 0.01)
    assert entry_of(asked(sampling=poisson, cohort=3)).sampling == Sampling()
    assert entry_of(asked(sampling=poisson, cohort=3)).cohort == 0
    kept = entry_of(asked(sampling=records, cohort=3))
    assert (kept.sampling, kept.cohort) == (records, 3)


def test_who_may_push_another_party_out_pays_twice_the_distance():
    fixed = Sampling("fixed", 0.5, 3)
    assert entry_of(asked(noised(at="server", unit="party"), sampling=fixed), "server").sampling == fixed
    assert entry_of(asked(noised(at="server"), sampling=fixed), "server").sampling == Sampling()
    assert entry_of(asked(noised(unit="party"), sampling=fixed)).sampling == Sampling()


@dataclass(frozen=True)
class Spanning:
    """A mechanism of which the first question pays for all."""

    name: str
    use: int
    at: str = "party"

    def event(self, bounds):
        return Event("prepaid") if self.use else Event("gaussian", 5.0)

    def __str__(self):
        return f"{self.name} at the party"


def spanning(mechanism, number, streams=SEEDED, bound=PER_RECORD, **how):
    """A question through a mechanism of which the first question pays for all."""
    return asked(Shield(None, bound, mechanism), number, streams=streams, **how)


def test_a_prepaid_question_needs_a_payment_where_the_cost_of_the_whole_is_not_said():
    guard = Guard(BUDGET)
    with pytest.raises(PartyDeclined, match="never paid"):
        guard.debit(spanning(Spanning("tree", 1), 2))
    guard.debit(spanning(Spanning("tree", 0), 1))
    spent = guard.spent
    guard.debit(spanning(Spanning("tree", 1), 2))
    with pytest.raises(PartyDeclined):
        guard.debit(spanning(Spanning("another tree", 1), 3))
    assert guard.spent == spent > 0
    assert len(guard.ledger) == 2


def tree(use, z=1.0, rounds=3, every=1):
    return replace(Tree(z, rounds, every), use=use)


def charged(guard):
    return [entry.event.kind for entry in guard.ledger.entries]


@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_party_pays_for_the_whole_tree_with_the_first_question_that_it_answers_itself(first):
    guard = Guard(LOOSE, trust="server")
    for use in range(first, 3):
        guard.debit(spanning(tree(use), use + 1))
    assert charged(guard) == ["gaussian"] + ["prepaid"] * (2 - first)
    assert guard.spent == Guard.spent.fget(paying()) > 0


def paying():
    """A guard that was charged with one tree."""
    guard = Guard(LOOSE, trust="server")
    guard.debit(spanning(tree(0), 1))
    return guard


@pytest.mark.parametrize(
    "other",
    [
        {"mechanism": tree(4)},
        {"streams": Streams()},
        {"streams": Streams(0)},
        {"bound": l2(2.0, unit="record")},
        {"sampling": Sampling("records", 0.1), "cohort": 1},
    ],
    ids=["another tree", "another federation", "another federation of the same seed", "another bound", "a sample"],
)
def test_a_payment_holds_for_nothing_else(other):
    guard = paying()
    guard.debit(spanning(**{"mechanism": tree(1), "number": 2} | other))
    assert charged(guard) == ["gaussian", "gaussian"]


def test_a_later_party_pays_for_a_whole_conversation():
    guard = Guard(LOOSE, trust="server")
    conversation = SparseVector(1.0, 2, 10.0, begun=7)
    for use in (3, 4):
        guard.debit(spanning(replace(conversation, use=use), use))
    assert [entry.event for entry in guard.ledger.entries] == [Event("pure", epsilon=1.0), Event("prepaid")]


def test_reports_about_one_column_do_not_pay_for_those_about_another():
    guard, plan = Guard(Budget(100.0, 1e-6)), Permanent(reports=10)
    for column, use in [("a", 0), ("a", 1), ("b", 1), ("b", 2)]:
        ask = partial(report, plan=replace(plan, use=use), column=column, levels=4)
        guard.debit(Query(use + 1, "sum", ask, None, Shield(plan=replace(plan, use=use)), streams=SEEDED))
    assert charged(guard) == ["pure", "prepaid", "pure", "prepaid"]


def test_a_resumed_run_without_a_seed_pays_anew_for_what_spans_questions():
    guard, streams = Guard(LOOSE, trust="server"), Streams()
    guard.debit(spanning(tree(0), 1, streams))
    guard.rewind(0, replay=False)
    guard.debit(spanning(tree(1), 2, streams))
    assert charged(guard) == ["gaussian", "gaussian"]


def test_a_simulation_that_is_resumed_within_a_tree_pays_as_before():
    guard = Guard(LOOSE, trust="server")
    for use in (1, 2, 3):  # the party comes late to the first tree, and has one question of the second
        guard.debit(spanning(tree(use), use + 1))
    kinds, spent = charged(guard), guard.spent
    assert kinds == ["gaussian", "prepaid", "gaussian"]
    for mark in (0, 1, 2, 3, 4):
        guard.rewind(mark, replay=True)
        streams = Streams(0)
        for use in range(max(mark, 1), 4):
            guard.debit(spanning(tree(use), use + 1, streams))
        assert (charged(guard), guard.spent) == (kinds, spent)
    guard.debit(spanning(tree(4), 5, streams))
    assert charged(guard)[-1] == "prepaid"


@pytest.mark.parametrize("streams", [(Streams(), Streams()), (Streams(1), Streams(2))], ids=["secrets", "seeds"])
def test_two_federations_of_one_guard_are_charged_for_their_own_samples(streams):
    guard = Guard(LOOSE)
    for one in streams:
        guard.debit(asked(sampling=Sampling("records", 0.1), cohort=1, streams=one))
    assert len(guard.ledger.charges("record")) == 2


def test_two_questions_to_one_sample_are_one_charge():
    guard = Guard(LOOSE)
    for number in (1, 2):
        guard.debit(asked(number=number, sampling=Sampling("records", 0.1), cohort=1, streams=SEEDED))
    assert [len(events) for _, events in guard.ledger.charges("record")] == [2]


def test_a_guard_does_not_write_secrets():
    streams = Streams()
    assert streams.secret.hex() not in str(entry_of(asked(streams=streams)))
    assert entry_of(asked(streams=streams)).run != entry_of(asked(streams=Streams())).run


def test_another_unit_is_declined():
    guard = Guard(Budget(2.0, 1e-6, unit="party"))
    guard.debit(asked(noised(unit="party")))
    with pytest.raises(MixedUnits, match="HR-215"):
        guard.debit(asked())


def test_the_engine_sees_the_same_sequence_where_all_answer():
    ids = ("a", "b")
    assert willing({}, ids, asked())[0] is ids
    assert willing({"a": Guard(BUDGET)}, ids, asked())[0] is ids


def test_nobody_left_for_other_reasons_is_a_decline():
    with pytest.raises(PartyDeclined, match="HR-221") as caught:
        willing({"a": Guard(BUDGET), "b": Guard(Budget(2.0, 1e-6))}, ("a", "b"), asked(Shield(None, PER_RECORD, Gaussian(1.0))))
    assert caught.value.codes == {"a": "HR-221", "b": "HR-221"}


@pytest.mark.slow
def test_a_budget_lasts_from_run_to_run(tmp_path):
    path = tmp_path / "party.sqlite"
    spent = 0.0
    for _ in range(2):
        guard = Guard(BUDGET, LedgerBase(path))
        assert guard.spent == spent
        guard.debit(asked(sampling=Sampling("records", 0.5), cohort=1))
        spent = guard.spent
    assert len(Guard(BUDGET, LedgerBase(path)).ledger.charges("record")) == 2  # two samples, though both are cohort 1


@pytest.mark.slow
def test_two_federations_stay_apart_in_a_shared_ledger(tmp_path):
    path = tmp_path / "party.sqlite"
    guard = Guard(LOOSE, LedgerBase(path, "a"))
    for seed in (1, 2):
        guard.debit(asked(sampling=Sampling("records", 0.5), cohort=1, streams=Streams(seed)))
    assert len(Guard(LOOSE, LedgerBase(path)).ledger.charges("record")) == 2
    again = Guard(LOOSE, LedgerBase(path, "a"))
    assert again.ledger.entries == guard.ledger.entries
    again.rewind(0, replay=True)
    again.debit(asked(sampling=Sampling("records", 0.5), cohort=1, streams=Streams(2)))
    assert len(again.ledger) == 2


def test_a_resumed_simulation_is_not_charged_twice():
    guard = Guard(BUDGET)
    for number in (1, 2, 3):
        guard.debit(asked(number=number, streams=SEEDED))
    before = guard.spent
    rewind_all([guard], 1, replay=True)
    guard.debit(asked(number=2, streams=SEEDED))
    assert guard.spent == before
    with pytest.raises(CheckpointMismatch, match="round 4"):
        willing({"a": guard}, ("a",), asked(number=4, streams=SEEDED))
    with pytest.raises(CheckpointMismatch):
        guard.debit(asked(noised(6.0), number=3, streams=SEEDED))
    guard.debit(asked(number=3, streams=SEEDED))
    assert (guard.spent, len(guard.ledger)) == (before, 3)
    guard.debit(asked(number=4, streams=SEEDED))
    assert guard.spent > before


def test_a_question_that_was_declined_is_declined_again_in_a_resumed_simulation():
    guard, questions = Guard(BUDGET), [asked(noised(z), n, streams=SEEDED) for n, z in ((1, 5.0), (2, 0.5), (3, 5.0))]

    def answered():
        found = []
        for query in questions:
            with suppress(BudgetExhausted):
                guard.debit(query)
                found.append(query.number)
        return found

    assert answered() == [1, 3]
    for mark in (0, 1, 2):
        entries = list(guard.ledger.entries)
        guard.rewind(mark, replay=True)
        if mark == 0:
            assert answered() == [1, 3]
        else:
            with pytest.raises(BudgetExhausted):
                guard.debit(questions[1])
            guard.debit(questions[2])
        assert guard.ledger.entries == entries


def test_a_measurement_aside_may_stay_away_from_a_resumed_simulation():
    guard = Guard(BUDGET)
    for number in (1, -3, 2, -5):
        guard.debit(asked(number=number, streams=SEEDED))
    spent = guard.spent
    guard.rewind(1, replay=True)
    for number in (2, -5):
        guard.debit(asked(number=number, streams=SEEDED))
    assert (guard.spent, len(guard.ledger)) == (spent, 4)


def test_another_federation_of_the_guard_is_not_part_of_a_replay():
    guard = Guard(LOOSE)
    for number, seed in ((1, 1), (2, 1), (1, 2), (2, 2)):
        guard.debit(asked(number=number, streams=Streams(seed)))
    guard.rewind(1, replay=True)
    guard.debit(asked(number=2, streams=Streams(2)))
    assert len(guard.ledger) == 4
    guard.debit(asked(number=3, streams=Streams(2)))
    assert len(guard.ledger) == 5


def test_a_guard_trusts_one_of_three():
    with pytest.raises(BudgetInvalid, match="HR-214"):
        Guard(BUDGET, trust="everybody")
