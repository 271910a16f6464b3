"""The guard's parts by themselves: kinds of questions, budgets by history, what parties remember, who is whose party."""

import gc
import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import FunctionType, ModuleType

import numpy as np
import pytest

from hedgerow import Budget, Gaussian, l2
from hedgerow.core.aggregation import Plain
from hedgerow.core.bound import linf
from hedgerow.core.conversation import Step
from hedgerow.core.events import Event, Sampling
from hedgerow.core.ledger import Ledger
from hedgerow.core.randomness import Streams
from hedgerow.core.release import Release
from hedgerow.crypto import SecAgg
from hedgerow.data import Table
from hedgerow.engines.party_states import PartyStates, keeping
from hedgerow.errors import BudgetExhausted, HedgerowError, ProtectionRequired, QuestionUnannounced, StateLost
from hedgerow.network.station.accounts import Account
from hedgerow.network.station.aggregations import smallest_total
from hedgerow.network.station.config import GuardSection, StorePolicy, parse_config
from hedgerow.network.station.local_data import Roll, local_data
from hedgerow.network.station.memory import PartyMemory
from hedgerow.network.station.policy import admit_question, admit_rehearsed, noise_at, noise_multiplier
from hedgerow.network.station.signatures import Announced, radii_of, settled, signature_of
from hedgerow.privacy.accounting import Running
from hedgerow.privacy.accounting.costs import costs
from hedgerow.privacy.guard import Guard, GuardedQuestion
from hedgerow.store import Answered
from hedgerow.wire.question import Received
from helpers import counting, norm_of_x, outbox, totals, with_question, zeros
from station_house import COLUMNS, records

NOISE = Release(bounds=l2(2.0, unit="record"), mechanism=Gaussian(4.0, at="party"))


def query(number=1, local=norm_of_x, release=NOISE, **how):
    return outbox(local, None, release, number, ids=("a",), streams=how.pop("streams", Streams(None)), **how)


def announced(*queries, aggregation=""):
    kinds = {signature_of(one, aggregation, rows=True): radii_of(one) for one in queries}
    return Announced(kinds, dict.fromkeys(kinds, 3))


def question(one, aggregation=None):
    step = None if aggregation is None else Step("contribution", {"a": b""}, True)
    return Received(replace(one, step=step), aggregation)


def test_announced_kinds_survive_being_kept():
    kinds = announced(query(), query(local=partial(zeros, size=3)), query(release=Release()))
    assert Announced.from_json(json.loads(json.dumps(kinds.to_json()))) == kinds


OPEN = Release()


def test_what_follows_from_answers_is_free():
    kinds = announced(query(local=partial(zeros, size=3, rate=0.5), release=OPEN), query(local=partial(totals, rate=0.5)))
    kinds.refuse_other(question(query(9, local=partial(zeros, size=3, rate=0.1), release=OPEN)))
    wider = replace(NOISE, bounds=l2(3.0, unit="record"))
    kinds.refuse_other(question(query(9, local=partial(totals, rate=0.1), release=wider)))


def test_settings_are_exact_where_single_records_cannot_be_held_to_their_bound():
    kinds = announced(query(local=partial(zeros, size=3, rate=0.5)))
    kinds.refuse_other(question(query(9, local=partial(zeros, size=3, rate=0.5))))
    with pytest.raises(QuestionUnannounced):
        kinds.refuse_other(question(query(9, local=partial(zeros, size=3, rate=0.1))))


@pytest.mark.parametrize(
    "changed",
    [
        query(local=totals),
        query(local=partial(norm_of_x, column="income")),
        query(release=Release()),
        query(release=replace(NOISE, mechanism=Gaussian(3.0, at="party"))),
        query(release=replace(NOISE, mechanism=Gaussian(4.0))),
        query(release=replace(NOISE, bounds=l2(1.9, unit="record"))),
        query(release=replace(NOISE, bounds=linf(2.0, unit="record"))),
        query(release=replace(NOISE, bounds=l2(2.0))),
        query(sampling=Sampling("records", 0.1)),
        query(keep_rows=True),
        with_question(query(), verb="gather"),
    ],
    ids=["function", "setting", "open", "less noise", "noise elsewhere", "smaller", "norm", "unit", "sample", "rows", "verb"],
)
def test_what_changes_the_meaning_or_the_protection_is_not_announced(changed):
    with pytest.raises(QuestionUnannounced, match="HR-609"):
        announced(query()).refuse_other(question(changed))


def test_a_total_that_was_to_be_hidden_is_not_asked_openly():
    kinds = announced(query(), aggregation=settled(SecAgg()))
    kinds.refuse_other(question(query(), SecAgg()))
    with pytest.raises(QuestionUnannounced):
        kinds.refuse_other(question(query()))


def test_noise_is_worth_what_its_place_and_size_are():
    assert [noise_at(release) for release in (Release(), NOISE)] == ["none", "party"]
    assert noise_multiplier(NOISE) == 4.0
    assert noise_multiplier(Release()) == 0.0


def test_a_hidden_total_may_be_as_small_as_the_aggregation_allows():
    assert smallest_total(SecAgg(least=5), 9) == 5
    assert smallest_total(SecAgg(least=5), 4) == 4
    assert smallest_total(Plain(), 4) == 1


# ---- budgets --------------------------------------------------------------------------------------------------------
def ask(account, which, one):
    """Put a question to an account as a station does."""
    decision = account.decide(which, GuardedQuestion.by(one, account.trust))
    for entry, payment, places in decision.entries:
        account.add(which[places[decision.admitted[places]]], entry, payment)
    return decision


@pytest.mark.slow
@pytest.mark.parametrize("trust", ["nobody", "server"])
@pytest.mark.parametrize(
    "release", [NOISE, Release(), replace(NOISE, mechanism=Gaussian(3.0))], ids=["own", "open", "server's"]
)
def test_an_account_decides_as_a_guard_does(trust, release):
    budget = Budget(2.0, 1e-6, unit="record")
    account, guard = Account((budget,), np.zeros(1, int), trust), Guard(budget, trust=trust)
    streams = Streams(None)
    for number in range(1, 30):
        one = query(number, release=release, streams=streams)
        try:
            guard.debit(one)
            willing = True
        except HedgerowError:
            willing = False
        assert bool(ask(account, np.array([0]), one).admitted[0]) == willing
    assert account.spent()[0][1] == guard.spent


def test_each_party_pays_for_what_it_answered_alone():
    account = Account((Budget(1.2, 1e-6, unit="record"),), np.zeros(3, int), "nobody")
    number = 0
    while (number := number + 1) < 100:
        decision = ask(account, np.array([0, 1]), query(number))
        if not decision.admitted.all():
            break
    assert isinstance(decision.codes[0], BudgetExhausted)
    late = ask(account, np.array([1, 2]), query(101))
    assert late.admitted.tolist() == [False, True]
    assert [n for *_, n in account.spent()] == [2, 1]


def test_an_account_under_a_filter_admits_what_a_guard_under_it_does():
    """For Gaussian noise without sampling a filter admits as much as the exact accountant."""
    admitted = []
    for filter in (None, "gdp"):
        budget = Budget(2.0, 1e-6, unit="record", filter=filter)
        account, guard, streams = Account((budget,), np.zeros(1, int), "nobody"), Guard(budget), Streams(None)
        for number in range(1, 30):
            one = query(number, streams=streams)
            decision = ask(account, np.array([0]), one)
            if decision.admitted[0]:
                guard.debit(one)
                assert account.spent()[0][1] == pytest.approx(guard.spent)
            else:
                with pytest.raises(BudgetExhausted):
                    guard.debit(one)
        admitted.append(len(guard.ledger))
    assert admitted[0] == admitted[1] > 1


def test_stores_with_budgets_of_their_own_stop_by_themselves():
    budgets = tuple(Budget(epsilon, 1e-6, unit="record") for epsilon in (2.0, 50.0))
    account = Account(budgets, np.array([0, 1, 0, 1]), "nobody")
    admitted = [ask(account, np.arange(4), query(number)).admitted.tolist() for number in range(1, 20)]
    assert admitted[0] == [True] * 4
    assert admitted[-1] == [False, True, False, True]


@pytest.mark.slow
@pytest.mark.parametrize("n_lives", [1, 12])
def test_thousands_of_stores_with_different_histories_need_few_decisions(monkeypatch, n_lives):
    """Nothing is decided twice; stores that were charged the same by one federation, in any order, share a history."""
    account = Account((Budget(30.0, 1e-6, unit="record"),), np.zeros(5000, int), "nobody")
    rng, decided, took, lives = np.random.default_rng(0), [], [], [Streams(None) for _ in range(n_lives)]
    would = Running.would
    monkeypatch.setattr(Running, "would", lambda self, *asked: decided.append(1) or would(self, *asked))
    for number in range(1, 13):
        took.append(rng.random(5000) < 0.5)
        ask(account, np.flatnonzero(took[-1]), query(number, streams=lives[number % n_lives]))
    assert len(np.unique(np.stack(took), axis=1).T) > 2000
    assert account.n_histories == 13 if n_lives == 1 else account.n_histories > 2000
    assert len(decided) <= 12 * 13 / 2


def test_stores_charged_alike_share_a_history_and_others_do_not():
    account, one = Account((Budget(30.0, 1e-6, unit="record"),), np.zeros(4, int), "nobody"), np.array
    life = {"streams": Streams(None)}
    loud = replace(NOISE, mechanism=Gaussian(3.0, at="party"))
    ask(account, one([0, 1]), query(1, **life))
    ask(account, one([2]), query(2, release=loud, **life))
    assert account.n_histories == 3
    ask(account, one([2]), query(3, **life))
    ask(account, one([0]), query(4, release=loud, **life))
    assert account._at[0] == account._at[2]
    assert len({*account._at.tolist()}) == 3
    guards = [Guard(Budget(30.0, 1e-6, unit="record")) for _ in range(2)]
    guards[0].debit(query(1))
    guards[0].debit(query(4, release=loud))
    guards[1].debit(query(1))
    assert [spent for _, spent, _ in account.spent()] == [guards[0].spent, guards[1].spent, 0.0]


@pytest.mark.parametrize("seed", range(5))
def test_each_party_is_charged_what_a_ledger_of_its_own_would_have(seed):
    """Random parties at each question, cohorts that come back, and two kinds of noise: moved, copied and merged histories."""
    rng, account = np.random.default_rng(seed), Account((None,), np.zeros(6, int), "nobody")
    ledgers, paid = [Ledger() for _ in range(6)], [set() for _ in range(6)]
    entry = GuardedQuestion.by(query(1)).entry
    for number in range(1, 60):
        which = np.flatnonzero(rng.random(6) < rng.choice([0.3, 1.0]))
        sampling, cohort = (Sampling("records", 0.1), int(rng.integers(1, 6))) if rng.random() < 0.3 else (Sampling(), 0)
        event = Event("gaussian", float(rng.choice([4.0, 5.0])))
        one = replace(entry, round=number, cohort=cohort, sampling=sampling, event=event)
        payment = ("paid", int(rng.integers(3)))
        account.add(which, one, payment)
        for k in which:
            ledgers[k].entries.append(one)
            paid[k].add(payment)
    for at, ledger, payments in zip(account._at, ledgers, paid, strict=True):
        history = account._histories[int(at)]
        assert history.cost.costs() == costs(ledger.charges("record"))
        assert (history.paid, history.n_charges) == (payments, len(ledger))
    assert account._histories.keys() == {*account._at.tolist()}


def n_objects(root):
    """How many objects are kept alive by one, without code."""
    seen, waiting = {}, [root]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen and not isinstance(one, type | ModuleType | FunctionType):
            seen[id(one)] = one
            waiting += gc.get_referents(one)
    return len(seen)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling("records", 0.1)], ids=["all", "samples that may be asked again"])
def test_memory_of_accounts_grows_in_proportion_to_questions_at_most(sampling):
    account = Account((Budget(1e3, 1e-6, unit="record"),), np.zeros(3, int), "nobody")
    entry, sizes = GuardedQuestion.by(query(1)).entry, [n_objects(account)]
    for number in range(1, 801):
        drawn = replace(entry, round=number, cohort=number if sampling.kind == "records" else 0, sampling=sampling)
        account.add(np.arange(3), drawn, ("paid", number))
        if number in (200, 400, 800):
            sizes.append(n_objects(account))
    empty, *sizes = sizes
    assert account.n_histories == 1
    assert sizes[2] - sizes[1] <= 2.1 * (sizes[1] - sizes[0])
    assert sizes[2] <= empty + 12 * 800


# ---- memory ---------------------------------------------------------------------------------------------------------
def stateful(number, counted=None):
    return query(number, local=counting, release=Release(), init=zeros, counted={} if counted is None else {"a": counted})


def test_a_party_goes_on_from_what_it_keeps_and_from_nothing_else():
    states = PartyStates()
    memory = PartyMemory.of(states)
    for number, counted in [(1, None), (2, 1), (3, 1), (4, 3)]:  # the answer to 2 never came
        memory.refuse_lost(stateful(number, counted), ("a",))
        with keeping(states):
            states.settle("a", stateful(number, counted).counted)
            states.propose("a", {"n": np.array(number)}, number)
    for counted in (None, 1, 2):  # a server that resumed from an older checkpoint
        with pytest.raises(StateLost, match="HR-615"):
            memory.refuse_lost(stateful(5, counted), ("a",))
    for counted in (3, 4):
        memory.refuse_lost(stateful(5, counted), ("a",))
    PartyMemory().refuse_lost(stateful(5, 4), ("a",))  # who never kept anything goes on from nothing
    with pytest.raises(StateLost):
        PartyMemory(lost=True).refuse_lost(stateful(5, 4), ("a",))  # a station that lost what was kept
    PartyMemory(lost=True).refuse_lost(query(5, local=totals, counted={"a": 4}), ("a",))


# ---- answered once --------------------------------------------------------------------------------------------------
def test_what_parties_answered_is_on_the_disk_after_one_flush(tmp_path):
    answered = Answered(tmp_path / "study.journal", gather=True)
    for party in "ab":
        answered.of(party).write("round 1", party.encode())
    assert answered.of("a").seen("round 1") == b"a"
    answered.flush()
    answered.of("a").write("round 2", b"lost")
    answered.close()
    again = Answered(tmp_path / "study.journal")
    assert (again.of("b").seen("round 1"), again.of("a").seen("round 2")) == (b"b", None)
    with pytest.raises(HedgerowError, match="HR-242"):
        again.of("a").write("round 1", b"another")
    again.close()


# ---- stores ---------------------------------------------------------------------------------------------------------
def gateway(n_stores, **stores):
    columns = COLUMNS | {"store": {"kind": "integer", "range": [0, 10**6]}}
    data = {"name": "heart", "source": "csv", "path": "x.csv", "columns": columns}
    about = {"name": "gate", "coordinator": {"name": "hub", "address": "h:1"}, "data": data, "stores": {"by": "store"} | stores}
    config = parse_config(about)
    rng = np.random.default_rng(1)
    from hedgerow.network.station.data_section import schema_of

    schema = schema_of(config.data)
    found = records("gate", 4 * n_stores) | {"store": rng.permutation(np.repeat(np.arange(n_stores), 4)).astype(float)}
    return config, Table(schema.admit(found), schema)


def test_each_value_of_a_column_is_a_party_that_nobody_can_name():
    config, table = gateway(10)
    held = local_data(config, table, b"secret" * 6, {"3": StorePolicy(0.5), "4": StorePolicy(allow=False)})
    assert len(held) == 9
    assert held.sizes.tolist() == [4] * 9
    assert "store" not in held.columns
    assert "store" not in config.allowed
    assert held.roll.epsilons == (None, 0.5)
    assert held.roll.policy.sum() == 1
    fewer = local_data(config, table.take(table["store"] > 5), b"secret" * 6)
    assert set(fewer.ids) < set(held.ids)
    assert not set(local_data(config, table, b"another" * 6).ids) & set(held.ids)
    party = held.parties(["age"])[0]
    rows = table["age"][table["store"] == 0]
    assert np.array_equal(np.sort(party["age"]), np.sort(rows))
    assert Roll.unpack(held.roll.pack()).ids == held.ids


def test_a_policy_about_nobody_is_refused():
    config, table = gateway(3)
    with pytest.raises(HedgerowError, match="HR-601"):
        local_data(config, table, bytes(32), {"99": StorePolicy()})


def test_a_station_without_records_is_one_party_and_answers():
    """Otherwise its first record would show in who answers."""
    about = {"name": "alpha", "coordinator": {"name": "hub", "address": "h:1"}}
    config = parse_config(about | {"data": {"name": "heart", "source": "csv", "path": "x.csv", "columns": COLUMNS}})
    schema = config.declared
    empty = Table(schema.admit({name: column[:0] for name, column in records("alpha", 4).items()}), schema)
    held = local_data(config, empty, bytes(32))
    assert (held.ids, held.sizes.tolist()) == (("alpha",), [0])
    admit_question(config.guard, question(query()), held.sizes, datetime.now(UTC))
    (party,) = held.parties(["age"])
    assert totals_of(party).tolist() == [0.0, 0.0]


def totals_of(party):
    """Sum of ages, and records."""
    return np.array([(party.w * party["age"]).sum(), party.n])


def test_a_row_for_each_record_is_refused_unless_the_guard_allows_it():
    rows = [(replace(query(release=OPEN), rows=True), "", 3)]
    with pytest.raises(ProtectionRequired, match="follows the records"):
        admit_rehearsed(GuardSection(), rows, 1)
    admit_rehearsed(GuardSection(rows=True), rows, 1)
    admit_rehearsed(GuardSection(), [(query(release=OPEN), "", 3)], 1)
