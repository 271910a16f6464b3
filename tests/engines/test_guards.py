"""Parties with a policy of their own: what an engine does with their refusals."""

import numpy as np
import pytest

from hedgerow import Budget, Gaussian, l2
from hedgerow.engines import InProcess, Loop
from hedgerow.errors import BudgetExhausted, PartyDeclined
from hedgerow.privacy.guard import Guard
from hedgerow.runs import drive
from helpers import federation, parties, totals

NAMES = parties().ids
LOOSE, TIGHT = Budget(100.0, 1e-5), Budget(1.5, 1e-5)


def guards(tight=("party 2", "party 5"), trust="nobody", unguarded=()):
    return {name: Guard(TIGHT if name in tight else LOOSE, trust=trust) for name in NAMES if name not in unguarded}


def engines(**kwargs):
    return [
        Loop(guards=guards(**kwargs)),
        InProcess(threads=1, guards=guards(**kwargs)),
        InProcess(threads=2, guards=guards(**kwargs)),
    ]


def asked(fed, rounds):
    fed = fed.protect(clip=l2(1.0), mechanism=Gaussian(20.0, at="party"))
    return [fed.sum(totals)["n"] for _ in range(rounds)], fed


def test_parties_stop_by_themselves_and_every_engine_agrees():
    found = [asked(federation(engine), 40) for engine in engines()]
    for values, fed in found:
        np.testing.assert_array_equal(values, found[0][0])
        assert fed.clock.missing > 0
    spent = {name: guard.spent for name, guard in found[0][1].engine.guards.items()}
    assert spent["party 2"] <= 1.5 < spent["party 1"]


def test_a_party_without_a_guard_answers_everything():
    fed = federation(InProcess(threads=1, guards={"party 3": Guard(TIGHT)}))
    _, fed = asked(fed, 40)
    assert fed.clock.missing == 40 - len(fed.engine.guards["party 3"].ledger)


def test_pooled_records_do_not_go_round_a_guard():
    """An open sum is answered from pooled records; guards decline it, and the pool is that of the others."""
    willing = [name for name in NAMES if name not in ("party 1", "party 4")]
    for engine in engines(unguarded=willing):
        held = parties()
        n = federation(engine).sum(totals)["n"]
        assert n == sum(len(held[held.position[name]].w) for name in willing)


def test_where_everybody_declines_nothing_is_released():
    for engine in engines():
        with pytest.raises(PartyDeclined):
            federation(engine).sum(totals)


def test_a_program_ends_when_all_budgets_are_spent():
    def forever(federation, start=None):
        for round in range(10_000):
            yield State(round + 1, federation.sum(totals)["n"])

    fed = federation(InProcess(threads=1, guards=guards(tight=NAMES)))
    run = drive(forever, fed.protect(clip=l2(1.0), mechanism=Gaussian(20.0, at="party")))
    assert run.stopped == "budget"
    assert 1 < run.state.round < 100


def test_guards_that_do_not_trust_the_server_decline_its_noise():
    fed = federation(Loop(guards=guards())).protect(clip=l2(1.0), mechanism=Gaussian(20.0))
    with pytest.raises((PartyDeclined, BudgetExhausted)):
        fed.sum(totals)
    trusting = federation(Loop(guards=guards(trust="server"))).protect(clip=l2(1.0), mechanism=Gaussian(20.0))
    assert np.isfinite(trusting.sum(totals)["n"])


class State:
    """A round and its answer."""

    def __init__(self, round, n):
        self.round, self.n = round, n
