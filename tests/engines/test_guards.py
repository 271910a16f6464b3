"""Parties with a policy of their own: what an engine does with their refusals."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from hedgerow import Budget, Gaussian, l2
from hedgerow.engines import InProcess, Loop
from hedgerow.errors import BudgetExhausted, PartyDeclined
from hedgerow.privacy import Tree
from hedgerow.privacy.guard import Guard
from hedgerow.store import LedgerFile, drive, load_checkpoint
from helpers import federation, parties, totals, zeros

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


@pytest.mark.slow
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


def rows_of(fed, name):
    return [seen.round for seen in fed.view("server") if seen.kind == "row" and seen.source == name]


def test_a_second_tree_is_not_free_for_a_party_that_could_not_pay_for_it():
    guard = Guard(Budget(4.6, 1e-5, unit="party"), trust="server")
    fed = federation(InProcess(threads=1, guards={"party 1": guard}), recording=True)
    fed = fed.protect(clip=l2(1.0), mechanism=Tree(1.0, 3))
    for _ in range(6):
        fed.sum(partial(zeros, size=2))
    assert rows_of(fed, "party 1") == [1, 2, 3]
    assert rows_of(fed, "party 2") == [1, 2, 3, 4, 5, 6]


def test_a_tree_of_another_federation_is_not_free_either():
    guard = Guard(Budget(4.6, 1e-5, unit="party"), trust="server")
    rows = []
    for _ in range(2):
        fed = federation(InProcess(threads=1, guards={"party 1": guard}), recording=True)
        fed = fed.protect(clip=l2(1.0), mechanism=Tree(1.0, 3))
        for _ in range(3):
            fed.sum(partial(zeros, size=2))
        rows.append(rows_of(fed, "party 1"))
    assert rows == [[1, 2, 3], []]


def test_parties_that_take_turns_pay_when_it_is_theirs():
    guards = {name: Guard(LOOSE, trust="server") for name in NAMES}
    fed = federation(InProcess(threads=1, guards=guards), recording=True)
    fed = fed.protect(clip=l2(1.0), mechanism=Tree(20.0, 6, every=3))
    for _ in range(6):
        fed.sample(every=3).sum(partial(zeros, size=2))
    for name, guard in guards.items():
        first, second = rows_of(fed, name)
        assert second == first + 3
        assert [entry.event.kind for entry in guard.ledger.entries] == ["gaussian", "prepaid"]
    assert fed.clock.missing == 0


def one_by_one(federation, start=None):
    """A cheap question, a dear one and a part of a tree in each round."""
    cheap, dear, tree = (federation.protect(clip=l2(1.0), mechanism=made) for made in MECHANISMS)
    state = start or State(0, 0.0)
    while state.round < 6:
        n = sum(float(asked.sum(totals)["n"]) for asked in (cheap, dear, tree))
        state = State(state.round + 1, state.n + n)
        yield state


MECHANISMS = Gaussian(20.0, at="party"), Gaussian(6.0, at="party"), Tree(9.0, 4)


@pytest.mark.slow
@pytest.mark.parametrize("killed_at", [1, 2, 3, 5])
def test_a_killed_run_whose_parties_decline_some_questions_resumes_as_if_it_had_never_stopped(tmp_path, killed_at):
    def begin(folder):
        folder.mkdir(exist_ok=True)
        limits = {name: Budget(0.7 + 0.9 * i, 1e-5) for i, name in enumerate(NAMES)}
        kept = {
            name: Guard(limit, LedgerFile(folder / name), trust="server") for name, limit in limits.items() if name != NAMES[-1]
        }
        fed = federation(InProcess(threads=1, guards=kept))
        fed.ledger.attach(LedgerFile(folder / "server"))
        return fed

    def kill(state):
        if state.round > killed_at:
            raise Killed

    whole = begin(tmp_path / "whole")
    expected = drive(one_by_one, whole).state
    declined = {name: 18 - len(guard.ledger) for name, guard in whole.engine.guards.items()}
    assert min(declined.values()) < max(declined.values()) < 18
    with pytest.raises(Killed):
        drive(one_by_one, begin(tmp_path / "cut"), watch=kill, checkpoint=tmp_path / "c", seconds=0.0)
    again = begin(tmp_path / "cut")
    start = load_checkpoint(tmp_path / "c", State, "")
    assert start.state.round == killed_at
    assert drive(one_by_one, again, start=start).state == expected
    for name in ("server", *again.engine.guards):
        assert (tmp_path / "cut" / name).read_text() == (tmp_path / "whole" / name).read_text()


class Killed(BaseException):
    """What a test raises in the place of `kill -9`."""


@dataclass(frozen=True)
class State:
    """A round and its answer."""

    round: int
    n: float
