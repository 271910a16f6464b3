"""Killing the process, or the power, at any point loses nothing that was said to be kept, whoever keeps it."""

import gc
import itertools
import os
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
from disk import crashes, recording
from entries import entry
from spending import AFFORDABLE, BUDGET, spend
from users import USERS

from hedgerow import Budget
from hedgerow.core import Ledger
from hedgerow.errors import HedgerowError
from hedgerow.store import LedgerBase, LedgerFile, database, lines, read_chain, snapshot

SMALL, FITS = Budget(0.85, 1e-6, unit="record", accountant="basic"), 8
FOLDED = "wal_autocheckpoint = 8"
"""Fold the log into the file every few steps, so that this is crashed into as well."""


def recorded(user, folder, n):
    """What the system was told while a user did so many steps in two lives, with a mark after each."""
    with recording() as log:
        for _ in range(2):
            steps = user.steps(folder)
            for _ in itertools.islice(steps, n // 2):
                log.append(("released",))
            steps.close()
            gc.collect()  # what is open is closed
    return log


def lost(user, log, folder, count, seed):
    """After how many of so many crashes a user has fewer steps than were done, or cannot read what is left."""
    survivors, found = {}, 0
    with recording(lazy=True):
        for released, files in crashes(log, count, seed):
            left = tuple(sorted(files.items()))
            if left not in survivors:
                survivors[left] = recovered(user, folder, files)
            assert survivors[left] <= released + 1
            found += survivors[left] < released
    assert len(survivors) > min(count, 10 * len(log)) / 10
    return found


def recovered(user, folder, files):
    """How many steps a new process finds in these files; -1 where it refuses them."""
    for path in folder.iterdir():
        path.unlink()
    for name, body in files.items():
        (folder / name).write_bytes(body)
    try:
        return user.found(folder)
    except HedgerowError:
        return -1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_steps", "count"), [("shared", 32, 10_000), *((name, 12, 500) for name in USERS if name != "shared")]
)
def test_kills_and_power_cuts_lose_nothing(tmp_path, monkeypatch, name, n_steps, count):
    monkeypatch.setattr(database, "SETTINGS", (*database.SETTINGS, FOLDED))
    log = recorded(USERS[name], tmp_path, n_steps)
    assert sum(operation[0] == "released" for operation in log) == n_steps
    assert lost(USERS[name], log, tmp_path, count, seed=1) == 0


@pytest.mark.slow
@pytest.mark.parametrize("synchronous", ["OFF", "NORMAL"])
def test_with_fewer_syncs_of_sqlite_a_power_cut_loses_a_debit(tmp_path, monkeypatch, synchronous):
    """The test above would notice: these settings are not enough."""
    monkeypatch.setattr(database, "SETTINGS", (f"synchronous = {synchronous}", FOLDED))
    log = recorded(USERS["shared"], tmp_path, 12)
    assert lost(USERS["shared"], log, tmp_path, 500, seed=2) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lines", "answered", "snapshot"])
def test_without_syncs_of_its_own_a_power_cut_loses_a_step(tmp_path, monkeypatch, name):
    log = [operation for operation in recorded(USERS[name], tmp_path, 12) if operation[0] != "sync"]
    assert lost(USERS[name], log, tmp_path, 500, seed=3) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lines", "snapshot", "shared"])
def test_without_syncs_of_the_folder_a_power_cut_loses_a_name(tmp_path, monkeypatch, name):
    for module in (lines, snapshot, database):
        monkeypatch.setattr(module, "sync_folder", lambda path: None)
    log = recorded(USERS[name], tmp_path, 12)
    log = [operation for operation in log if operation != ("folder",)]
    found = lost(USERS[name], log, tmp_path, 500, seed=4)
    assert found > 0 if name != "shared" else found == 0  # SQLite syncs the folder with its log


@pytest.mark.slow
def test_a_file_cut_at_any_byte_loses_no_debit(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger, sizes = Ledger(record=LedgerFile(path)), [0]
    for number in range(1, 5):
        ledger.debit(entry(number))
        sizes.append(path.stat().st_size)
    whole = path.read_bytes()
    for released in range(4):  # the debits before are synced; of the next one any part may be there, or zeros
        for size in range(sizes[released], sizes[released + 1], 23):
            hole = b"\0" * (sizes[released + 1] - size)
            for rest in (b"", b"\0" * 7, hole + b"\n"):
                path.write_bytes(whole[:size] + rest)
                record = LedgerFile(path)
                assert len(Ledger(record=record)) == released
                record.write(entry(released + 1))
                assert len(read_chain(path).entries) == released + 1


# ---- real processes -------------------------------------------------------------------------------------------------
def run(script, *words):
    """The lines that a script prints, in words."""
    command = [sys.executable, str(Path(__file__).with_name(script)), *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | ONE_THREAD)
    assert not ended.stderr, ended.stderr
    return [line.split() for line in ended.stdout.splitlines()]


ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@pytest.mark.slow
@needs_fork
def test_a_process_that_is_killed_loses_nothing(tmp_path):
    killed, steps = Counter(), Counter()
    for name, code, done, found in run("users.py", str(tmp_path), "12"):
        killed[name] += 1
        steps[name] = int(done)
        assert code == "-9"
        assert int(done) <= int(found) <= int(done) + killed[name]  # a kill leaves one step at most that nobody heard of
    assert killed == dict.fromkeys(USERS, 12)
    assert sum(steps.values()) > 12


def spent(tmp_path, *how):
    """Let real processes spend one budget; gives how each ended, its releases by then, and the ledger afterwards."""
    path, releases = tmp_path / "ledger.sqlite", tmp_path / "releases"
    said = [[int(word) for word in line] for line in run("spending.py", str(path), str(releases), *how)]
    return said, len(releases.read_bytes().splitlines()), read_chain(path)


@pytest.mark.slow
@needs_fork
def test_three_processes_cannot_spend_a_budget_twice(tmp_path):
    [[_, *codes]], released, chain = spent(tmp_path, "together", "3")
    assert codes == [0, 0, 0]
    assert released == len(chain.entries) == AFFORDABLE
    assert len({one.run for one in chain.entries}) > 1


@pytest.mark.slow
@needs_fork
def test_processes_that_are_killed_never_release_more_than_they_debit(tmp_path):
    said, released, chain = spent(tmp_path, "killed")
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
        def transaction(self):
            with super().transaction():
                yield []

    for one in ("a", "b"):
        spend(Ledger(SMALL, Deaf(tmp_path / "deaf.sqlite", one)))
    assert len(read_chain(tmp_path / "deaf.sqlite").entries) == 2 * FITS
    for one in ("a", "b"):
        spend(Ledger(SMALL, LedgerBase(tmp_path / "ledger.sqlite", one)))
    assert len(read_chain(tmp_path / "ledger.sqlite").entries) == FITS
