"""Checkpoints: a run that was cut short ends as if it had never stopped."""

import json
import os
import signal
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import hedgerow as hr
from hedgerow import Budget, Gaussian, l2
from hedgerow.errors import CannotWrite, CheckpointMismatch
from hedgerow.store import LedgerFile, drive, last, load_checkpoint, save_checkpoint
from hedgerow.store.snapshot import read_arrays, write_arrays
from helpers import counting, federation, noisy, one_count, run_of


@dataclass(frozen=True)
class Walk:
    """A state with every kind of field."""

    round: int
    place: np.ndarray
    parts: dict
    name: str = "walk"


def walk(federation, *, rounds, start=None):
    """A program that uses the parties' state, their randomness, cohorts and noise."""
    state = start or Walk(0, np.zeros(2), {"a": np.zeros(1)})
    while state.round < rounds:
        cohort = federation.sample(rate=0.6)
        step = cohort.sum(noisy)
        count = cohort.sum(counting, init=one_count)
        state = Walk(state.round + 1, state.place + step, {"a": state.parts["a"] + count})
        yield state


def private(path=None, seed=0):
    fed = federation(seed=seed, n_parties=20).protect(clip=l2(1.0), mechanism=Gaussian(0.5))
    if path:
        fed.recorded(LedgerFile(path))
    return fed


class Killed(BaseException):
    """What a test raises in the place of `kill -9`."""


@pytest.mark.parametrize("killed_at", [1, 2, 5, 7])
@pytest.mark.parametrize("every", [0.0, 1e9], ids=["checkpoint-each-round", "never-but-at-the-end"])
def test_a_killed_run_resumes_bit_identically(tmp_path, killed_at, every):
    whole = private(tmp_path / "whole.jsonl")
    expected = drive(partial(walk, rounds=8), whole).state

    def kill(state):
        if state.round == killed_at:
            raise Killed

    ledger, checkpoint = tmp_path / "ledger.jsonl", tmp_path / "checkpoint.safetensors"
    with pytest.raises(Killed):
        drive(partial(walk, rounds=8), private(ledger), watch=kill, checkpoint=checkpoint, seconds=every)
    start = load_checkpoint(checkpoint, Walk, "") if checkpoint.exists() else None
    again = private(ledger)
    if start is None:
        run_of(again).ledger.rewind(0, replay=True)
    found = drive(partial(walk, rounds=8), again, checkpoint=checkpoint, start=start).state
    np.testing.assert_array_equal(found.place, expected.place)
    np.testing.assert_array_equal(found.parts["a"], expected.parts["a"])
    assert ledger.read_text() == (tmp_path / "whole.jsonl").read_text()
    assert [json.loads(line)["round"] for line in ledger.read_text().splitlines()] == list(range(1, 17))


@pytest.mark.slow
def test_the_budget_ends_the_program_with_its_last_state(tmp_path):
    fed = private().within(Budget(3.0, 1e-3))
    ended = drive(partial(walk, rounds=1000), fed, checkpoint=tmp_path / "c")
    assert ended.stopped == "budget"
    assert "would exceed the budget" in ended.reason
    assert ended.state is None or ended.state.round < 1000
    assert fed.ledger.limit.spent(fed.ledger.charges("party")) <= 3.0


def test_ctrl_c_leaves_a_checkpoint(tmp_path):
    def interrupt(state):
        if state.round == 3:
            os.kill(os.getpid(), signal.SIGINT)

    checkpoint, ledger = tmp_path / "checkpoint.safetensors", tmp_path / "ledger.jsonl"
    ended = drive(partial(walk, rounds=8), private(ledger), watch=interrupt, checkpoint=checkpoint)
    assert (ended.stopped, ended.state.round) == ("interrupted", 3)
    found = drive(partial(walk, rounds=8), private(ledger), start=load_checkpoint(checkpoint, Walk, "")).state
    np.testing.assert_array_equal(found.place, last(walk(private(), rounds=8)).place)


@pytest.mark.parametrize(("study", "kind"), [("another", Walk), ("", int)], ids=["study", "state"])
def test_a_checkpoint_of_another_study_is_refused(tmp_path, study, kind):
    path = tmp_path / "checkpoint.safetensors"
    drive(partial(walk, rounds=2), private(), checkpoint=path)
    with pytest.raises(CheckpointMismatch, match="HR-103"):
        load_checkpoint(path, kind, study)


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(CheckpointMismatch, match="not a checkpoint"):
        load_checkpoint(path, Walk, "")


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    fed, path = private(), tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, Walk(1, np.ones(2), {"a": np.ones(1)}), fed, "s")
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(CannotWrite, match=r"No space left[\s\S]*untouched"):
        save_checkpoint(path, Walk(2, np.zeros(2), {"a": np.ones(1)}), fed, "s")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_arrays_and_facts_survive_a_file(tmp_path):
    arrays = {"a": np.arange(3), "b.c": np.ones((2, 2), np.float32), "empty": np.zeros(0)}
    write_arrays(tmp_path / "f", arrays, {"x": 1.5})
    found, about = read_arrays(tmp_path / "f")
    assert about == {"x": 1.5}
    np.testing.assert_array_equal(found["b.c"], arrays["b.c"])


def test_without_a_seed_a_resumed_run_uses_new_numbers(tmp_path):
    """Two samples of their own right are two sampling events, whichever process drew them."""

    def kill(state):
        if state.round == 3:
            raise Killed

    ledger, checkpoint = tmp_path / "ledger.jsonl", tmp_path / "checkpoint"
    with pytest.raises(Killed):
        drive(partial(walk, rounds=5), private(ledger, seed=None), watch=kill, checkpoint=checkpoint, seconds=1e9)
    again = private(ledger, seed=None)
    drive(partial(walk, rounds=5), again)
    cohorts = [entry.cohort for entry in again.ledger.entries]
    assert len(cohorts) == 2 * (3 + 5)
    assert len(again.ledger.charges("party")) == len(set(cohorts)) == 3 + 5
    assert len({entry.round for entry in again.ledger.entries}) == len(cohorts)


def test_answers_that_never_came_are_remembered(tmp_path):
    engine = hr.InProcess(dropout_rate=0.3)
    first = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=20), seed=0, engine=engine)
    *_, state = hr.stats.centred_sums(first, ["mean_radius"])
    save_checkpoint(tmp_path / "state", state, first, "a study")
    again = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=20), seed=0, engine=engine)
    run_of(again).ledger.entries = list(first.ledger.entries)
    load_checkpoint(tmp_path / "state", type(state), "a study").restore(again)
    assert again.missing == first.missing > 0
