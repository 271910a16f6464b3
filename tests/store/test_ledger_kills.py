"""Killing the process, or the power, at any point never leaves more released than debited."""

import os
import random
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from disk import crashes, recording
from entries import entry
from spending import AFFORDABLE, BUDGET, spend

from hedgerow import Budget
from hedgerow.core import Ledger
from hedgerow.errors import LedgerDamaged
from hedgerow.store import LedgerBase, LedgerFile, ledgerbase, read_chain

SMALL, FITS = Budget(0.85, 1e-6, unit="record", accountant="basic"), 8
LONGER, FIT = Budget(3.25, 1e-6, unit="record", accountant="basic"), 32


def recorded(folder, monkeypatch, made=None, budget=SMALL):
    """What the system was told while a ledger's budget was spent, with a mark after each release."""
    sync = ledgerbase.sync_folder
    with recording() as log, monkeypatch.context() as patched:
        patched.setattr(ledgerbase, "sync_folder", lambda path: (sync(path), log.append(("folder",))))
        if made is not None:
            patched.setattr(ledgerbase, "durable", made)
        spend(Ledger(budget, LedgerBase(folder / "ledger.sqlite", "run")), lambda: log.append(("released",)))
    return log


def lost(log, folder, monkeypatch, count, seed):
    """After how many of so many crashes the ledger has fewer entries than were released, or cannot be read."""
    monkeypatch.setattr(ledgerbase, "sync_folder", lambda path: None)
    survivors, found = {}, 0
    with recording(lazy=True):
        for released, files in crashes(log, count, seed):
            left = tuple(files.get(name) for name in ("ledger.sqlite", "ledger.sqlite-journal"))
            if left not in survivors:
                survivors[left] = recovered(folder / "ledger.sqlite", *left)
            assert survivors[left] <= released + 1
            found += survivors[left] < released
    assert len(survivors) > count / 5
    return found


def recovered(path, base, journal):
    """How many entries a new process finds in these files; -1 where the chain does not hold."""
    put(path, base)
    put(path.with_name(path.name + "-journal"), journal)
    try:
        entries = LedgerBase(path, "run").read()
    except LedgerDamaged:
        return -1
    assert [one.round for one in entries] == list(range(1, len(entries) + 1))
    return len(entries)


def put(path, body):
    """Make a file hold these bytes, or be missing."""
    if body is None:
        path.unlink(missing_ok=True)
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, body)
    os.ftruncate(descriptor, len(body))
    os.close(descriptor)


@pytest.mark.slow
def test_ten_thousand_kills_and_power_cuts_lose_no_debit(tmp_path, monkeypatch):
    log = recorded(tmp_path, monkeypatch, budget=LONGER)
    assert sum(operation[0] == "released" for operation in log) == FIT
    assert lost(log, tmp_path, monkeypatch, 10_000, seed=1) == 0


@pytest.mark.slow
@pytest.mark.parametrize("synchronous", ["OFF", "NORMAL", "FULL"])
def test_with_fewer_syncs_a_power_cut_loses_a_debit(tmp_path, monkeypatch, synchronous):
    """The test above would notice: these settings of SQLite are not enough."""

    def careless(connection, path):
        connection.execute(f"PRAGMA synchronous = {synchronous}")

    log = recorded(tmp_path, monkeypatch, careless)
    assert lost(log, tmp_path, monkeypatch, 1_000, seed=2) > 0


@pytest.mark.slow
def test_a_file_cut_at_any_byte_loses_no_debit(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(record=LedgerFile(path))
    sizes = [0]
    for number in range(1, 5):
        ledger.debit(entry(number))
        sizes.append(path.stat().st_size)
    whole = path.read_bytes()
    rng = random.Random(0)
    for _ in range(80):
        released = rng.randrange(4)  # the debits before are synced; of the next one any part may be there, or zeros
        size = rng.randint(sizes[released], sizes[released + 1] - 1)
        put(path, whole[:size] + b"\0" * rng.choice([0, 7]))
        record = LedgerFile(path)
        assert len(Ledger(record=record)) == released
        record.write(entry(released + 1))
        assert len(read_chain(path).entries) == released + 1


def processes(tmp_path, *how):
    """Let real processes spend one budget; gives how each ended, its releases by then, and the ledger afterwards."""
    path, releases = tmp_path / "ledger.sqlite", tmp_path / "releases"
    command = [sys.executable, str(Path(__file__).with_name("spending.py")), str(path), str(releases), *how]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | ONE_THREAD)
    said = [[int(word) for word in line.split()] for line in ended.stdout.splitlines()]
    return said, len(releases.read_bytes().splitlines()), read_chain(path)


ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_three_processes_cannot_spend_a_budget_twice(tmp_path):
    [[_, *codes]], released, chain = processes(tmp_path, "together", "3")
    assert codes == [0, 0, 0]
    assert released == len(chain.entries) == AFFORDABLE
    assert len({one.run for one in chain.entries}) > 1


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_processes_that_are_killed_never_release_more_than_they_debit(tmp_path):
    said, released, chain = processes(tmp_path, "killed")
    killed = [code for _, code in said if code]
    assert set(killed) == {-9}
    assert len(killed) >= 10
    assert released <= len(chain.entries) <= AFFORDABLE  # and the chain holds
    assert released >= AFFORDABLE - len(killed)  # a kill costs one debit at most
    assert BUDGET.spent(chain.ledger().charges("record")) <= BUDGET.epsilon


@pytest.mark.slow
def test_a_record_that_does_not_look_at_others_overspends(tmp_path):
    """The tests above would notice."""

    class Deaf(LedgerBase):
        @contextmanager
        def turn(self):
            with super().turn():
                yield []

    for one in ("a", "b"):
        spend(Ledger(SMALL, Deaf(tmp_path / "deaf.sqlite", one)))
    assert len(read_chain(tmp_path / "deaf.sqlite").entries) == 2 * FITS
    for one in ("a", "b"):
        spend(Ledger(SMALL, LedgerBase(tmp_path / "ledger.sqlite", one)))
    assert len(read_chain(tmp_path / "ledger.sqlite").entries) == FITS
