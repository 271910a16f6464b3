"""Everything that keeps something on disk: what it does step by step, and what a new process finds of it after a crash.

python users.py FOLDER KILLS     for each: steps in a process that is killed, so many times, and what is found after each
"""

import itertools
import os
import random
import signal
import sys
import time
import traceback
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from entries import entry

from hedgerow import Budget
from hedgerow.core import Ledger
from hedgerow.engines.party_states import PartyStates, keeping
from hedgerow.network.coordinator.store import Store
from hedgerow.network.station.base import Base
from hedgerow.network.station.journal import StationEntry, StationJournal
from hedgerow.privacy import Guard
from hedgerow.privacy.guard import GuardedQuestion
from hedgerow.store import Answered, LedgerBase, LedgerFile, read_arrays, record_of, write_arrays

OPEN = Budget(1e9, 1e-6, unit="record", accountant="basic")


@dataclass(frozen=True)
class User:
    """One of them.

    `steps(folder)` opens what is in a folder, and does one more step with each `next`: a step that was done cannot be lost.
    `found(folder)` opens it anew, checks all of it, and returns how many steps are there.
    """

    steps: Any
    found: Any


def lines(folder):
    ledger = Ledger(record=LedgerFile(folder / "ledger.jsonl"))
    return debits(ledger)


def shared(folder):
    return debits(Ledger(record=LedgerBase(folder / "ledger.sqlite", "run")))


def pair(folder):
    return debits(Ledger(record=record_of(folder, folder / "shared.sqlite")))


def debits(ledger):
    for number in itertools.count(len(ledger) + 1):
        ledger.debit(entry(number))
        yield


def debited(record):
    ledger = Ledger(record=record)
    assert [one.round for one in ledger.entries] == list(range(1, len(ledger) + 1))
    return len(ledger)


def found_pair(folder):
    n = debited(record_of(folder, folder / "shared.sqlite"))
    assert debited(LedgerFile(folder / "ledger.jsonl")) == n
    return n


def guard(folder):
    guard = Guard(OPEN, LedgerBase(folder / "guard.sqlite", "party"))
    for number in itertools.count(len(guard.ledger) + 1):
        guard.take(GuardedQuestion(entry(number), "life"))
        yield


def station(folder):
    """A question that is charged, kept with a value in another transaction, and its answer."""
    with closing(Base(folder / "station.sqlite")) as base:
        journal = StationJournal(base)
        for number in itertools.count(journal.verify()[0] + 1):
            base.keep("number", str(number).encode())
            journal.write(StationEntry("now", "ask", "aa" * 16, number, "asked", question=number))
            yield


def found_station(folder):
    with closing(Base(folder / "station.sqlite")) as base:
        journal = StationJournal(base)
        n, _ = journal.verify()
        assert journal.n_questions("aa" * 16) == n
        assert n <= int(base.found("number") or 0) <= n + 1
        return n


def coordinator(folder):
    """A change with its entry in one transaction, between letters that are noted lightly."""
    with closing(Store(folder, lambda: 7.0)) as store:
        id = next((kept.id for kept in store.studies()), None) or store.submit("study", "")
        for number in itertools.count(store.study(id).pauses + 1):
            store.enter(id, "asked", {"number": number})
            store.pause(id, f"{number}", due=1.0, pauses=number)
            yield


def found_coordinator(folder):
    with closing(Store(folder, lambda: 7.0)) as store:
        store.verify()
        for kept in store.studies():
            history = store.history(kept.id)
            changes = [int(one.about["reason"]) for one in history if one.event == "state" and one.about["reason"].isdigit()]
            assert changes == list(range(1, kept.pauses + 1))
            asked = [one.about["number"] for one in history if one.event == "asked"]
            assert set(changes) <= set(asked)
            return kept.pauses
        return 0


def answered(folder):
    with closing(Answered(folder / "answered")) as answers:
        for number in itertools.count(len(answers) + 1):
            answers.write(f"round {number}", b"a" * 16)
            yield


def found_answered(folder):
    with closing(Answered(folder / "answered")) as answers:
        assert all(answers.seen(f"round {number}") for number in range(1, len(answers) + 1))
        return len(answers)


def gathered(folder):
    """What three parties answered, written together."""
    with closing(Answered(folder / "answered", gather=True)) as answers:
        for number in itertools.count(len(answers) // 3 + 1):
            for party in "abc":
                answers.of(party).write(f"round {number}", b"a" * 16)
            answers.flush()
            yield


def found_gathered(folder):
    with closing(Answered(folder / "answered")) as answers:
        whole = (all(answers.of(party).seen(f"round {number}") for party in "abc") for number in itertools.count(1))
        return sum(itertools.takewhile(bool, whole))


def snapshot(folder):
    for number in itertools.count(found_snapshot(folder) + 1):
        write_arrays(folder / "checkpoint", {"x": np.full(100, number)}, {"round": number})
        yield


def found_snapshot(folder):
    if not (folder / "checkpoint").exists():
        return 0
    arrays, about = read_arrays(folder / "checkpoint")
    assert (arrays["x"] == about["round"]).all()
    return about["round"]


def party_states(folder):
    """A question to three parties, each of which went on from what it kept in the one before."""
    with closing(PartyStates(folder / "states.sqlite")) as states:
        for number in itertools.count(questions(states) + 1):
            counted = dict.fromkeys("abc", number - 1) if number > 1 else {}
            with keeping(states):
                for party in "abc":
                    assert states.settle(party, counted).get("x", np.zeros(1))[0] == number - 1
                    states.propose(party, {"x": np.full(300, number)}, number)
            yield


def found_party_states(folder):
    with closing(PartyStates(folder / "states.sqlite")) as states:
        number = questions(states)
        for last in {number - 1, number} - {0, -1}:
            kept = [states.settle(party, {party: last})["x"] for party in "abc"]
            assert (np.stack(kept) == last).all()
        return number


def questions(states):
    """The question in which all parties kept something last."""
    [number] = {one.waiting for one in states.numbers().values()} or {0}
    return number


USERS = {
    "shared": User(shared, lambda folder: debited(LedgerBase(folder / "ledger.sqlite", "run"))),
    "guard": User(guard, lambda folder: len(Guard(OPEN, LedgerBase(folder / "guard.sqlite", "party")).ledger)),
    "lines": User(lines, lambda folder: debited(LedgerFile(folder / "ledger.jsonl"))),
    "pair": User(pair, found_pair),
    "station": User(station, found_station),
    "coordinator": User(coordinator, found_coordinator),
    "answered": User(answered, found_answered),
    "gathered": User(gathered, found_gathered),
    "snapshot": User(snapshot, found_snapshot),
    "states": User(party_states, found_party_states),
}


def forked(user, folder, done):
    """A process that does steps until it is killed, and notes each."""
    child = os.fork()
    if child:
        return child
    try:
        sink = os.open(done, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for _ in user.steps(folder):
            os.write(sink, b".")
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def killed(name, folder, kills):
    user, done, rng = USERS[name], folder / "done", random.Random(name)
    folder.mkdir()
    for _ in range(kills):
        child = forked(user, folder, done)
        time.sleep(rng.uniform(0, 0.06))
        os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(name, code, done.stat().st_size if done.exists() else 0, user.found(folder), flush=True)


if __name__ == "__main__":
    for name in USERS:
        killed(name, Path(sys.argv[1]) / name, int(sys.argv[2]))
