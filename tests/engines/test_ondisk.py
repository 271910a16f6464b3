"""States on disk: the same numbers as in memory, little memory, and refusals."""

import gc
import os
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from clinics import clinics, flat
from walking import ALGORITHMS, LOCAL, Place, assert_same, fresh, go, kept, look, still, walk, walkers

import hedgerow as hr
from hedgerow.engines import InProcess, Loop
from hedgerow.engines.ondisk import OnDisk
from hedgerow.engines.rows import row_bytes
from hedgerow.errors import CannotWrite, CheckpointMismatch, ContributionInvalid, PartyDeclined, StudyInvalid
from hedgerow.learn import linear
from hedgerow.store import drive, last, load_checkpoint, save_checkpoint
from helpers import federation, run_of


# ---- the same numbers ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("settings", [{}, {"dropout_rate": 0.2}], ids=["all-answer", "some-drop"])
def test_a_run_on_disk_is_the_run_in_memory(tmp_path, settings):
    one, other = walkers(**settings), walkers(tmp_path, **settings)
    np.testing.assert_array_equal(last(walk(other, rounds=8)).at, last(walk(one, rounds=8)).at)
    assert_same(kept(one), kept(other))


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithms_on_disk_are_those_in_memory(tmp_path, name, threads):
    one, other = (hr.engines.on(clinics(), InProcess(threads=threads, state_folder=folder)) for folder in (None, tmp_path))
    found = [flat(last(ALGORITHMS[name](fed, linear(4, 1), rounds=4, rate=0.6, **LOCAL))) for fed in (one, other)]
    np.testing.assert_array_equal(*found)
    assert_same(kept(one), kept(other))


def test_a_state_comes_back_as_it_was(tmp_path):
    state = {
        "weights": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "mask": np.array([True, False, True]),
        "count": np.asarray(3),
        "nothing": np.zeros((0, 4)),
        "not a number": np.array([np.nan, -0.0, np.inf]),
        "word": np.array(["heron", "wren"]),
        "half": np.ones(5, np.float16),
        "sign": np.array([1 + 2j]),
    }
    store = OnDisk(tmp_path)
    store.propose("a", state, 1)
    assert_same({"a": store.settle("a", {"a": 1})}, {"a": state})
    store.propose("b", {"nothing": np.zeros(0)}, 1)
    assert store.settle("b", {"b": 1})["nothing"].shape == (0,)


def test_what_is_no_array_is_refused(tmp_path):
    with pytest.raises(ContributionInvalid, match="no array of numbers"):
        OnDisk(tmp_path).propose("a", {"model": object()}, 1)


def test_a_state_that_was_not_counted_is_dropped(tmp_path):
    store = OnDisk(tmp_path)
    for round, counted in [(1, True), (2, False), (3, True), (4, False)]:
        store.propose("a", {"round": np.asarray(round)}, round)
        expected = round if counted else round - 1
        assert store.settle("a", {"a": round if counted else -1})["round"] == expected
    assert store.settle("b", {"a": 4}) == {}


def test_a_local_function_cannot_change_what_is_committed(tmp_path):
    store = OnDisk(tmp_path)
    store.propose("a", {"x": np.zeros(3)}, 1)
    store.settle("a", {"a": 1})["x"] += 1
    np.testing.assert_array_equal(store.settle("a", {"a": 1})["x"], np.zeros(3))


def test_many_threads_write_at_once(tmp_path):
    store, n, rounds = OnDisk(tmp_path), 40, 20
    counted = dict.fromkeys((f"party {i}" for i in range(n)), 0)

    def live(i):
        id, rng, x = f"party {i}", np.random.default_rng(i), np.zeros(1 + i % 7 * 200)
        for round in range(1, rounds):
            np.testing.assert_array_equal(store.settle(id, counted).get("x", np.zeros(len(x))), x)
            proposed, counts = rng.normal(size=len(x)), rng.random() < 0.7
            store.propose(id, {"x": proposed}, round)
            if counts:
                counted[id], x = round, proposed
        return x

    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(live, range(n)))
    for i, x in enumerate(ends):
        np.testing.assert_array_equal(store.committed(counted).get(f"party {i}", {"x": np.zeros(len(x))})["x"], x)


# ---- memory and disk -------------------------------------------------------------------------------------------------
def test_memory_does_not_grow_with_states(tmp_path):
    """40 MB of states, through memory one at a time."""
    store, size = OnDisk(tmp_path), 200_000
    tracemalloc.start()
    for i in range(200):
        store.propose(f"party {i}", {"c": np.full(size // 8, float(i))}, 1)
        store.settle(f"party {i}", {f"party {i}": 1})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * size
    assert sum(path.stat().st_blocks * 512 for path in tmp_path.glob("*.rows")) > 200 * size


def test_a_file_has_at_most_three_rows_for_a_party(tmp_path):
    fed, n, size = walkers(tmp_path / "states"), 8, row_bytes(1000)
    store = hr.engines.records(fed).states
    for round in range(1, 30):
        for i in range(n):
            store.settle(f"party {i}", run_of(fed).counted)
            store.propose(f"party {i}", {"x": np.full(125, round + i / 100)}, round)
        run_of(fed).counted.update({f"party {i}": round for i in range(n)})
        if round % 7 == 0:
            save_checkpoint(tmp_path / "c", Place(round, np.zeros(3)), fed, "")
    (path,) = (tmp_path / "states").glob("*.rows")
    assert path.stat().st_size <= 3 * n * size


def test_rows_are_at_most_a_quarter_too_long_and_of_few_sizes():
    sizes = np.arange(1, 100_000)
    rows = np.array([row_bytes(int(n)) for n in sizes])
    assert (rows >= sizes).all()
    assert (rows[sizes > 256] <= 1.25 * sizes[sizes > 256]).all()
    assert len(set(rows.tolist())) < 50
    assert row_bytes(0) == 64


def test_a_question_that_changes_nothing_writes_nothing(tmp_path, monkeypatch):
    fed = walkers(tmp_path)
    last(walk(fed, rounds=5))
    rows = [path.read_bytes() for path in tmp_path.glob("*.rows")]
    before = kept(fed)
    monkeypatch.setattr("os.pwrite", None)
    fed.aside().sum(look, init=still)
    monkeypatch.undo()
    assert_same(kept(fed), before)
    assert [path.read_bytes() for path in tmp_path.glob("*.rows")] == rows


def test_a_checkpoint_holds_no_states(tmp_path):
    store, fed = OnDisk(tmp_path / "states"), walkers()
    hr.engines.records(fed).states = store
    for i in range(20):
        store.propose(f"party {i}", {"x": np.full(25_000, float(i))}, 1)
        run_of(fed).counted[f"party {i}"] = 1
    save_checkpoint(tmp_path / "c", Place(1, np.zeros(3)), fed, "")
    assert (tmp_path / "c").stat().st_size < 5000


# ---- refusals --------------------------------------------------------------------------------------------------------
def test_a_full_disk_is_refused_and_the_run_can_go_on(tmp_path, monkeypatch):
    real, left = os.pwrite, 10

    def full(descriptor, data, offset):
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(28, "No space left on device")
        return real(descriptor, data[: max(len(data) // 2, 1)], offset)  # and never all at once

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(CannotWrite, match=r"HR-104[\s\S]*No space left[\s\S]*untouched[\s\S]*Make room") as refusal:
        go(tmp_path)
    assert refusal.value.asked
    monkeypatch.undo()
    found, fed = go(tmp_path)
    np.testing.assert_array_equal(found.at, last(walk(walkers(), rounds=5)).at)
    assert fed.asked == 5


def test_states_that_do_not_reach_the_disk_are_not_used(tmp_path, monkeypatch):
    """After a failed synchronisation nobody knows what the disk holds."""
    fed = walkers(tmp_path / "states")
    last(walk(fed, rounds=2))

    def broken(descriptor):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(CannotWrite, match="Input/output"):
        save_checkpoint(tmp_path / "c", Place(2, np.zeros(3)), fed, "")
    monkeypatch.undo()
    with pytest.raises(CannotWrite, match="could not be written"):
        save_checkpoint(tmp_path / "c", Place(2, np.zeros(3)), fed, "")
    assert not (tmp_path / "c").exists()


@pytest.mark.slow
def test_the_folder_of_another_run_is_refused(tmp_path):
    go(tmp_path)
    with pytest.raises(CannotWrite, match=r"another run, to which a checkpoint refers[\s\S]*Resume"):
        last(walk(walkers(tmp_path / "states"), rounds=1))
    found, _ = go(tmp_path, rounds=6)  # it was not touched
    np.testing.assert_array_equal(found.at, last(walk(walkers(), rounds=6)).at)


def test_a_folder_that_no_checkpoint_refers_to_is_started_afresh(tmp_path):
    last(walk(walkers(tmp_path), rounds=3))
    found = last(walk(walkers(tmp_path), rounds=4))
    np.testing.assert_array_equal(found.at, last(walk(walkers(), rounds=4)).at)


def test_rows_of_unknown_origin_are_not_removed(tmp_path):
    (tmp_path / "hedge.rows").write_text("a list of shrubs")
    with pytest.raises(CannotWrite, match="another run"):
        last(walk(walkers(tmp_path), rounds=1))
    assert (tmp_path / "hedge.rows").exists()


def resume(fed, path):
    start = load_checkpoint(path, Place, "")
    run_of(fed).ledger.entries = [None] * start.mark.entries
    start.restore(fed)


@pytest.mark.slow
def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    for name in ("one", "other"):
        go(fresh(tmp_path, name))
    with pytest.raises(CheckpointMismatch, match="another run"):
        resume(walkers(tmp_path / "one" / "states"), tmp_path / "other" / "checkpoint")
    with pytest.raises(CheckpointMismatch, match="holds no states"):
        resume(walkers(tmp_path / "nowhere"), tmp_path / "other" / "checkpoint")
    assert not (tmp_path / "nowhere").exists()


def test_a_checkpoint_that_is_not_the_newest_is_refused(tmp_path):
    go(tmp_path, rounds=3)
    (tmp_path / "old").write_bytes((tmp_path / "checkpoint").read_bytes())
    go(tmp_path, rounds=4)
    with pytest.raises(CheckpointMismatch, match="gone on to checkpoint"):
        resume(walkers(tmp_path / "states"), tmp_path / "old")


def test_states_that_were_lost_or_changed_are_refused(tmp_path):
    go(tmp_path)
    for path in (tmp_path / "states").glob("*.rows"):
        path.write_bytes(bytes(len(path.read_bytes())))
    again = walkers(tmp_path / "states")
    resume(again, tmp_path / "checkpoint")
    with pytest.raises(CheckpointMismatch, match="changed or lost"):
        kept(again)
    path.write_bytes(b"")
    with pytest.raises(CheckpointMismatch, match="lacks states"):
        resume(walkers(tmp_path / "states"), tmp_path / "checkpoint")
    (tmp_path / "states" / "states.json").write_text("{")
    with pytest.raises(CheckpointMismatch, match="cannot be read"):
        resume(walkers(tmp_path / "states"), tmp_path / "checkpoint")


def test_memory_refuses_a_checkpoint_that_refers_to_files(tmp_path):
    go(tmp_path)
    with pytest.raises(CheckpointMismatch, match="state_folder"):
        resume(walkers(), tmp_path / "checkpoint")


def test_a_run_can_move_from_memory_to_disk(tmp_path):
    fed = walkers()
    drive(partial(walk, rounds=3), fed, checkpoint=tmp_path / "c")
    again = walkers(tmp_path / "states")
    run_of(again).ledger.entries.extend(fed.ledger.entries)
    found = drive(partial(walk, rounds=5), again, start=load_checkpoint(tmp_path / "c", Place, "")).state
    np.testing.assert_array_equal(found.at, last(walk(walkers(), rounds=5)).at)


def test_a_folder_that_another_process_uses_is_refused(tmp_path):
    code = "import sys; from filelock import FileLock\nwith FileLock(sys.argv[1]): print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(CannotWrite, match="another process"):
            last(walk(walkers(tmp_path), rounds=1))
        other.kill()
    last(walk(walkers(tmp_path), rounds=1))


def test_the_later_of_two_runs_in_one_process_has_the_folder(tmp_path):
    one, other = walkers(tmp_path), walkers(tmp_path)
    first = walk(one, rounds=3)
    next(first)
    last(walk(other, rounds=2))
    with pytest.raises(CannotWrite, match="later run of this process"):
        next(first)


@pytest.mark.slow
def test_a_store_that_is_gone_leaves_nothing_open(tmp_path):
    def descriptors():
        gc.collect()
        return sum(str(tmp_path) in os.readlink(f"/proc/self/fd/{name}") for name in listed())

    def listed():
        return [name for name in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{name}")]

    store = OnDisk(tmp_path)
    store.propose("a", {"x": np.zeros(3)}, 1)
    assert descriptors() == 2
    del store
    assert descriptors() == 0


def fails(broadcast, party, rng):
    raise ValueError("a bug")


def test_a_party_that_fails_is_not_the_disk(tmp_path):
    with pytest.raises(PartyDeclined, match="HR-221"):
        walkers(tmp_path).sum(fails, init=still)


def test_loop_is_the_reference(tmp_path):
    one, other = federation(Loop(), n_parties=8), walkers(tmp_path)
    np.testing.assert_allclose(last(walk(other, rounds=4)).at, last(walk(one, rounds=4)).at, atol=1e-12)
    assert hr.InProcess(state_folder=tmp_path).state_folder == tmp_path


CHANGES = {"program.name": "scaffold", "program.rounds": 4, "baselines": False, "program.path": "eager"}


def study(**more):
    return hr.study.load("digits-fedavg", CHANGES | more)


@pytest.mark.slow
def test_a_study_keeps_states_in_its_run_folder(tmp_path):
    from hedgerow.study import run_study

    for states in ("memory", "disk"):
        run_study(study(**{"engine.states": states}), tmp_path / states)
    assert [(tmp_path / states / "states" / "states.json").exists() for states in ("memory", "disk")] == [False, True]
    one, other = ((tmp_path / states / "model.safetensors").read_bytes() for states in ("memory", "disk"))
    assert one == other
    run_study(study(**{"engine.states": "disk"}), tmp_path / "disk", resume=True)


def test_a_study_that_the_loop_runs_keeps_states_in_memory():
    with pytest.raises(StudyInvalid, match="HR-101"):
        study(**{"engine.states": "disk", "engine.name": "loop"})
