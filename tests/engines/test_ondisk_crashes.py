"""Killed or without power at any moment, a run with states on disk ends as if it had never stopped."""

import os
import random
import signal
import stat
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from clinics import clinics, flat
from walking import ALGORITHMS, LOCAL, Place, assert_same, fresh, go, kept, walk, walkers

from hedgerow.engines import InProcess
from hedgerow.learn import linear
from hedgerow.store import drive, last, load_checkpoint, save_checkpoint


class Killed(BaseException):
    """What the test's disk raises in the place of a loss of power."""


@contextmanager
def losing_power(at, monkeypatch, seed=0):
    """Lose power at the n-th operation of the disk: what was not synchronised is garbage, and new names may be the old ones."""
    rng, real = random.Random(f"{at}/{seed}"), (os.pwrite, os.fsync, os.replace)
    written, renamed, done = [], [], 0

    def step():
        nonlocal done
        done += 1
        if done < at:
            return
        for descriptor, offset, size in written:
            with suppress(OSError):
                real[0](descriptor, rng.randbytes(size), offset)
        if rng.random() < 0.5:
            for path, before in reversed(renamed):
                path.write_bytes(before) if before is not None else path.unlink()
        raise Killed

    def pwrite(descriptor, data, offset):
        written.append((descriptor, offset, len(data)))
        step()
        return real[0](descriptor, data, offset)

    def fsync(descriptor):
        step()
        written[:] = [entry for entry in written if entry[0] != descriptor]
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            renamed.clear()
        return real[1](descriptor)

    def replace(source, target):
        step()
        renamed.append((Path(target), Path(target).read_bytes() if Path(target).exists() else None))
        return real[2](source, target)

    with monkeypatch.context() as patch:
        for name, function in (("pwrite", pwrite), ("fsync", fsync), ("replace", replace)):
            patch.setattr(os, name, function)
        yield


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_losing_power_at_any_write_changes_nothing(tmp_path, monkeypatch, seed):
    expected, whole = go(fresh(tmp_path, "whole"))
    ledger = (tmp_path / "whole" / "ledger.jsonl").read_text()
    in_memory = walkers()
    np.testing.assert_array_equal(last(walk(in_memory, rounds=5)).at, expected.at)
    rng, lost = random.Random(seed), 0
    for at in range(1, 1000):
        folder = fresh(tmp_path, str(at))
        try:
            with losing_power(at, monkeypatch, seed):
                go(folder)
            break  # the run has fewer operations
        except Killed:
            lost += 1
        with suppress(Killed), losing_power(rng.randrange(1, 60), monkeypatch, seed):
            go(folder)
        found, fed = go(folder)
        np.testing.assert_array_equal(found.at, expected.at)
        assert_same(kept(fed), kept(whole))
        assert_same(kept(fed), kept(in_memory))
        assert (folder / "ledger.jsonl").read_text() == ledger
    assert lost > 50


def train(folder, name, rounds=40):
    """What the process does that is killed."""
    kind = type(last(ALGORITHMS[name](clinics(), linear(4, 1), rounds=1, **LOCAL)))
    program = partial(ALGORITHMS[name], module=linear(4, 1), rate=0.6, **LOCAL)
    return go(Path(folder), rounds, program, kind, lambda states: clinics().on(InProcess(threads=2, state_folder=states)))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seed"), [("scaffold", 0), ("scaffold", 1), ("feddyn", 2), ("feddyn", 3)])
def test_a_killed_run_resumes_bit_identically(tmp_path, name, seed):
    fed = clinics().on(InProcess(threads=2))
    expected = last(ALGORITHMS[name](fed, linear(4, 1), rounds=40, rate=0.6, **LOCAL))
    rng, ledger = random.Random(seed), tmp_path / "ledger.jsonl"
    tests = Path(__file__).parents[1]
    paths = os.pathsep.join(str(tests / part) for part in ("", "learn", "engines"))
    for after in sorted(rng.sample(range(2, 38), 2)):
        command = [sys.executable, "-c", f"import test_ondisk_crashes; test_ondisk_crashes.train({str(tmp_path)!r}, {name!r})"]
        process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": paths}, stderr=subprocess.DEVNULL)
        limit = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < limit:
            if ledger.exists() and ledger.read_text().count("\n") >= after:
                break
            time.sleep(0.001)
        time.sleep(rng.random() * 0.03)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    found, again = train(tmp_path, name)
    np.testing.assert_array_equal(flat(found), flat(expected))
    assert_same(kept(again), kept(fed))
    assert ledger.read_text().count("\n") == 40


def test_without_a_seed_a_run_goes_on_from_its_states(tmp_path):
    fed = walkers(tmp_path / "states", seed=None)
    state = drive(partial(walk, rounds=3), fed, checkpoint=tmp_path / "c").state
    again = walkers(tmp_path / "states", seed=None)
    again.ledger.entries.extend(fed.ledger.entries)
    found = kept(fed)
    start = load_checkpoint(tmp_path / "c", Place, "")
    start.restore(again)
    np.testing.assert_array_equal(start.state.at, state.at)
    assert_same(kept(again), found)


def test_a_checkpoint_before_any_state_is_resumed_from(tmp_path):
    save_checkpoint(tmp_path / "checkpoint", Place(0, np.zeros(3)), walkers(tmp_path / "states"), "")
    last(walk(walkers(tmp_path / "states"), rounds=2))
    found, _ = go(tmp_path)
    np.testing.assert_array_equal(found.at, last(walk(walkers(), rounds=5)).at)
