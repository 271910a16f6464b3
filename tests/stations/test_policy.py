"""The guard's parts by themselves: kinds of questions, budgets by history, what parties remember, who is whose party."""

import json
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from hedgerow import Budget, Gaussian, l2
from hedgerow.core.aggregation import Plain
from hedgerow.core.bound import linf
from hedgerow.core.conversation import Step
from hedgerow.core.events import Sampling
from hedgerow.core.randomness import Streams
from hedgerow.core.release import Release
from hedgerow.crypto import SecAgg
from hedgerow.data import Table
from hedgerow.errors import BudgetExhausted, HedgerowError, QuestionUnannounced, StateLost
from hedgerow.privacy.guard import Asked, Guard
from hedgerow.stations.accounts import Account
from hedgerow.stations.config import StorePolicy, parse_config
from hedgerow.stations.holdings import Roll, holdings
from hedgerow.stations.kinds import Announced, kind_of, radii_of, settled
from hedgerow.stations.memory import Memory
from hedgerow.stations.once import Answered
from hedgerow.stations.policy import noise_at, noise_multiplier, smallest_total
from hedgerow.wire.question import Received
from helpers import counting, norm_of_x, outbox, totals, zeros
from station_house import COLUMNS, records

OPEN = Release()
NOISE = Release(bounds=l2(2.0, unit="record"), mechanism=Gaussian(4.0, at="party"))


def asked(number=1, local=norm_of_x, release=NOISE, **how):
    return outbox(local, None, release, number, **{"ids": ("a",)} | how)


def announced(*boxes, aggregation=""):
    kinds = {kind_of(one, aggregation, rows=True): radii_of(one) for one in boxes}
    return Announced(kinds, dict.fromkeys(kinds, 3))


def question(one, aggregation=None):
    step = None if aggregation is None else Step("contribution", {"a": b""}, True)
    return Received(replace(one, step=step), aggregation)


def test_announced_kinds_survive_being_kept():
    kinds = announced(asked(), asked(local=partial(zeros, size=3)), asked(release=OPEN))
    assert Announced.from_json(json.loads(json.dumps(kinds.to_json()))) == kinds


def test_what_follows_from_answers_is_free():
    kinds = announced(asked(local=partial(zeros, size=3, rate=0.5), release=OPEN), asked(local=partial(totals, rate=0.5)))
    kinds.refuse_other(question(asked(9, local=partial(zeros, size=3, rate=0.1), release=OPEN)))
    wider = replace(NOISE, bounds=l2(3.0, unit="record"))
    kinds.refuse_other(question(asked(9, local=partial(totals, rate=0.1), release=wider)))


def test_settings_are_exact_where_single_records_cannot_be_held_to_their_bound():
    kinds = announced(asked(local=partial(zeros, size=3, rate=0.5)))
    kinds.refuse_other(question(asked(9, local=partial(zeros, size=3, rate=0.5))))
    with pytest.raises(QuestionUnannounced):
        kinds.refuse_other(question(asked(9, local=partial(zeros, size=3, rate=0.1))))


@pytest.mark.parametrize(
    "changed",
    [
        asked(local=totals),
        asked(local=partial(norm_of_x, column="income")),
        asked(release=OPEN),
        asked(release=replace(NOISE, mechanism=Gaussian(3.0, at="party"))),
        asked(release=replace(NOISE, mechanism=Gaussian(4.0))),
        asked(release=replace(NOISE, bounds=l2(1.9, unit="record"))),
        asked(release=replace(NOISE, bounds=linf(2.0, unit="record"))),
        asked(release=replace(NOISE, bounds=l2(2.0))),
        asked(sampling=Sampling("records", 0.1)),
        asked(keep_rows=True),
        asked(verb="gather"),
    ],
    ids=["function", "setting", "open", "less noise", "noise elsewhere", "smaller", "norm", "unit", "sample", "rows", "verb"],
)
def test_what_changes_the_meaning_or_the_protection_is_not_announced(changed):
    with pytest.raises(QuestionUnannounced, match="HR-609"):
        announced(asked()).refuse_other(question(changed))


def test_a_total_that_was_to_be_hidden_is_not_asked_openly():
    kinds = announced(asked(), aggregation=settled(SecAgg()))
    kinds.refuse_other(question(asked(), SecAgg()))
    with pytest.raises(QuestionUnannounced):
        kinds.refuse_other(question(asked()))


def test_noise_is_worth_what_its_place_and_size_are():
    assert [noise_at(release) for release in (OPEN, NOISE)] == ["none", "party"]
    assert noise_multiplier(NOISE) == 4.0
    assert noise_multiplier(OPEN) == 0.0


def test_a_hidden_total_may_be_as_small_as_the_aggregation_allows():
    assert smallest_total(SecAgg(least=5), 9) == 5
    assert smallest_total(SecAgg(least=5), 4) == 4
    assert smallest_total(Plain(), 4) == 1


# ---- budgets --------------------------------------------------------------------------------------------------------
def ask(account, which, one):
    """Put a question to an account as a station does."""
    decision = account.decide(which, Asked.by(one, account.trust))
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
        one = asked(number, release=release, streams=streams)
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
        decision = ask(account, np.array([0, 1]), asked(number))
        if not decision.admitted.all():
            break
    assert isinstance(decision.codes[0], BudgetExhausted)
    late = ask(account, np.array([1, 2]), asked(101))
    assert late.admitted.tolist() == [False, True]
    assert [n for *_, n in account.spent()] == [2, 1]


def test_stores_with_budgets_of_their_own_stop_by_themselves():
    budgets = tuple(Budget(epsilon, 1e-6, unit="record") for epsilon in (2.0, 50.0))
    account = Account(budgets, np.array([0, 1, 0, 1]), "nobody")
    admitted = [ask(account, np.arange(4), asked(number)).admitted.tolist() for number in range(1, 20)]
    assert admitted[0] == [True] * 4
    assert admitted[-1] == [False, True, False, True]


@pytest.mark.slow
def test_thousands_of_stores_with_different_histories_are_decided_quickly():
    account = Account((Budget(30.0, 1e-6, unit="record"),), np.zeros(5000, int), "nobody")
    rng = np.random.default_rng(0)
    slowest = 0.0
    for number in range(1, 13):
        started = time.perf_counter()
        ask(account, np.flatnonzero(rng.random(5000) < 0.5), asked(number))
        slowest = max(slowest, time.perf_counter() - started)
    assert account.n_histories > 2000
    assert slowest < 2.0  # measured: 0.2 s


# ---- memory ---------------------------------------------------------------------------------------------------------
def stateful(number, counted=None):
    return asked(number, local=counting, release=OPEN, init=zeros, counted={} if counted is None else {"a": counted})


def test_a_party_goes_on_from_what_it_keeps_and_from_nothing_else():
    memory = Memory()
    for number, counted in [(1, None), (2, 1), (3, 1), (4, 3)]:  # the answer to 2 never came
        memory.refuse_lost(stateful(number, counted), ("a",))
        memory.take(stateful(number, counted), ("a",))
    for counted in (None, 1, 2):  # a server that resumed from an older checkpoint
        with pytest.raises(StateLost, match="HR-615"):
            memory.refuse_lost(stateful(5, counted), ("a",))
    with pytest.raises(StateLost):
        Memory().refuse_lost(stateful(5, 4), ("a",))  # a station that was restarted
    Memory().refuse_lost(asked(5, local=totals, counted={"a": 4}), ("a",))


# ---- answered once --------------------------------------------------------------------------------------------------
def test_what_parties_answered_is_on_the_disk_after_one_flush(tmp_path):
    answered = Answered(tmp_path / "study.journal")
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
    from hedgerow.stations.data_section import schema_of

    schema = schema_of(config.data)
    found = records("gate", 4 * n_stores) | {"store": rng.permutation(np.repeat(np.arange(n_stores), 4)).astype(float)}
    return config, Table(schema.admit(found), schema)


def test_each_value_of_a_column_is_a_party_that_nobody_can_name():
    config, table = gateway(10)
    held = holdings(config, table, b"secret" * 6, {"3": StorePolicy(0.5), "4": StorePolicy(allow=False)})
    assert len(held) == 9
    assert held.sizes.tolist() == [4] * 9
    assert "store" not in held.columns
    assert "store" not in config.allowed
    assert held.roll.epsilons == (None, 0.5)
    assert held.roll.policy.sum() == 1
    fewer = holdings(config, table.take(table["store"] > 5), b"secret" * 6)
    assert set(fewer.ids) < set(held.ids)
    assert not set(holdings(config, table, b"another" * 6).ids) & set(held.ids)
    party = held.parties(["age"])[0]
    rows = table["age"][table["store"] == 0]
    assert np.array_equal(np.sort(party["age"]), np.sort(rows))
    assert Roll.unpack(held.roll.pack()).ids == held.ids


def test_a_policy_about_nobody_is_refused():
    config, table = gateway(3)
    with pytest.raises(HedgerowError, match="HR-601"):
        holdings(config, table, bytes(32), {"99": StorePolicy()})
