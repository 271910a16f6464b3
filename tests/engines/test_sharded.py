"""Parties spread over processes: the numbers, the dropouts and the states of one process, and what happens when one ends."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import test_hidden_model as hidden
import test_parity as parity
from numpy.testing import assert_allclose, assert_array_equal
from spread import (
    counted,
    ending,
    ending_with_state,
    failing,
    first_record,
    noisy,
    norm_of_x,
    nothing,
    one_of_each,
    process,
    push,
    scaled,
    still,
)

import hedgerow as hr
from hedgerow.core.arrays import Layout
from hedgerow.core.bound import linf
from hedgerow.core.conversation import Step
from hedgerow.core.engine import Inbox
from hedgerow.engines.merging import merged
from hedgerow.engines.pipes import LARGE, Gone, Pipe, Sheet, found_on, laid_out, pair
from hedgerow.engines.processes import Processes
from hedgerow.engines.shard import split
from hedgerow.engines.sharded import Sharded
from hedgerow.errors import (
    ConfigInvalid,
    ContributionInvalid,
    NobodyAnswered,
    NotNamed,
    PartyDeclined,
    RailUnavailable,
    StateLost,
    UnlawfulChannel,
)
from hedgerow.privacy.guard import Guard
from hedgerow.store import LedgerFile, drive, load_checkpoint
from helpers import federation, kept_by, outbox, run_of, totals
from patience import until

BOUND = linf(8.0, "record")


@pytest.fixture(scope="module")
def two():
    with Processes(2) as engine:
        yield engine


@pytest.fixture(scope="module")
def three():
    with Processes(3) as engine:
        yield engine


@pytest.fixture(params=["two", pytest.param("three", marks=pytest.mark.slow)])
def engine(request):
    return request.getfixturevalue(request.param)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def end_one(engine):
    """End a process, as a system does that has no memory left, and wait until it is over."""
    worker = next(iter(engine.crew._workers.values()))
    worker.process.kill()
    worker.process.wait()


def wait_for_the_end(running):
    """Wait until processes are over."""
    until(lambda: not any(map(alive, running)), moved=lambda: list(map(alive, running)))


def pids(engine):
    return set(engine.crew.processes.values())


def settings(engine, **more):
    """The same processes, with other settings."""
    return type(engine)(engine.shards, crew=engine.crew, **more)


# ---- the same numbers -----------------------------------------------------------------------------------------------
@cache
def by_loop(program, channel):
    return parity.numbers(hr.last(parity.PROGRAMS[program](parity.federation(hr.Loop()).protect(**parity.CHANNELS[channel]))))


@pytest.mark.filterwarnings("ignore:a clip of")
@pytest.mark.parametrize("channel", parity.CHANNELS)
@pytest.mark.parametrize(
    "program", [pytest.param(name, marks=[pytest.mark.slow] * (name in parity.TRAINED)) for name in parity.PROGRAMS]
)
def test_every_program_computes_what_it_computes_in_one_process(program, channel, engine):
    if program in parity.TRAINED and channel == "record":
        pytest.skip("updates have no record-level bound")
    if program in parity.TRAINED and engine.shards == 3:
        pytest.skip("three processes that load torch take long, and two show as much")
    found = parity.numbers(hr.last(parity.PROGRAMS[program](parity.federation(engine).protect(**parity.CHANNELS[channel]))))
    one = by_loop(program, channel)
    assert one.keys() == found.keys()
    for key, value in one.items():
        scale = max(1.0, float(np.abs(value).max(initial=0.0)))
        assert_allclose(found[key], value, atol=(2e-4 if program in parity.TRAINED else 1e-9) * scale, err_msg=key)


@pytest.mark.parametrize("local", [totals, norm_of_x, noisy, first_record, one_of_each], ids=lambda local: local.__name__)
def test_sums_and_rows_are_those_of_the_loop(local, engine):
    plain, spread = federation(hr.Loop()), federation(engine)
    one, other = plain.sum(local), spread.sum(local)
    for key, value in dict(one if isinstance(one, dict) else {"": one}).items():
        assert_allclose(other[key] if key else other, value, rtol=1e-12)
    rows, others = plain.gather(local), spread.gather(local)
    assert list(rows) == list(others)
    for name, row in rows.items():
        for key in row if isinstance(row, dict) else [()]:
            assert_array_equal(others[name][key], row[key])


def test_a_cohort_is_asked_in_its_order_wherever_its_parties_are(engine):
    names = ["party 6", "party 2", "party 5", "party 1"]
    one, other = (federation(on).sample(size=4).gather(noisy) for on in (hr.Loop(), engine))
    assert list(one) == list(other)
    for found in (federation(on).pick(names).gather(noisy) for on in (hr.Loop(), engine)):
        assert set(found) == set(names)


def test_records_that_several_parties_hold_are_kept_once(engine):
    from hedgerow.data import LabelCounts, Partition

    table, names = parity.CLINIC.take(range(60)), tuple(f"party {i}" for i in range(5))
    indices = tuple(np.arange(start, start + 30) for start in (0, 10, 20, 30, 5))
    split = Partition(indices, names, LabelCounts(np.zeros((5, 0)), names, ()), "overlapping", None)
    found = [
        hr.last(
            hr.stats.centred_sums(hr.simulate(table, split, engine=on), columns=["mean_radius", "mean_texture"], cross=True)
        )
        for on in (hr.Loop(), engine)
    ]
    one, other = map(parity.numbers, found)
    for key, value in one.items():
        assert_allclose(other[key], value, rtol=1e-10, atol=1e-10, err_msg=key)


@pytest.mark.parametrize("size", [10, 1_250_000])
def test_a_broadcast_arrives_to_the_last_bit_however_large(size, engine):
    sent = np.random.default_rng(0).normal(size=size)
    assert_allclose(federation(engine).sum(scaled, sent), sent * 69, rtol=1e-13)


def test_whole_numbers_stay_whole(engine):
    noise = {"clip": hr.l2(50.0), "mechanism": hr.Gaussian(1.0, at="party")}
    one, other = (federation(on).protect(**noise).sum(one_of_each) for on in (hr.Loop(), engine))
    assert one == other


def test_each_party_keeps_what_the_next_question_finds(engine):
    found = []
    for on in (hr.Loop(), engine):
        fed = federation(on)
        fed.each(push, np.zeros(3), init=still)
        fed.sum(push, np.zeros(3))
        found.append(fed.sum(counted))
    assert found[1]["count"] == found[0]["count"] == 12
    assert_allclose(found[1]["speed"], found[0]["speed"])


def test_the_operating_system_is_a_source_of_randomness_too(two):
    fed = federation(two, seed=None)
    assert fed.sum(noisy)[0] != fed.sum(noisy)[0]
    assert_allclose(fed.sum(totals)["n"], 69)


def test_views_show_the_rows_that_a_server_sees(two):
    seen = []
    for on in (hr.Loop(), two):
        fed = federation(on, recording=True)
        fed.sum(norm_of_x)
        seen.append({one.source: one.values for one in hr.engines.view(fed, "server") if one.kind == "row"})
    assert seen[0].keys() == seen[1].keys()
    assert len(seen[0]) == 6
    for name, row in seen[0].items():
        assert_array_equal(seen[1][name], row)


def test_a_federation_moves_to_processes_and_back(two):
    fed = federation(hr.Loop())
    there = hr.engines.on(fed, two)
    assert_allclose(there.sum(noisy), hr.engines.on(fed, hr.Loop()).sum(noisy))
    assert_allclose(hr.engines.on(there, hr.InProcess()).sum(norm_of_x), fed.sum(norm_of_x))


# ---- the same dropouts ----------------------------------------------------------------------------------------------
GONE = {
    "rate": {"dropout_rate": 0.3},
    "for good": {"dropout_rate": 0.3, "returns": False},
    "named": {"dropped": ("party 2", "party 13")},
    "late": {"deadline": 1.5, "latency": (1.0, 0.8)},
    "all": {"dropout_rate": 0.2, "deadline": 2.0, "dropped": ("party 4",)},
}


@pytest.mark.parametrize("gone", GONE)
def test_the_same_parties_are_missing_as_in_one_process(gone, engine):
    told = []
    for on in (hr.InProcess(threads=1, **GONE[gone]), settings(engine, **GONE[gone])):
        fed = federation(on, n_parties=20, seed=3)
        told.append([list(fed.gather(one_of_each)) for _ in range(3)] + [list(fed.sample(size=5, spare=4).gather(one_of_each))])
    assert told[0] == told[1]
    assert any(len(names) < 20 for names in told[0][:3])


@pytest.mark.parametrize("aggregation", [hr.SecAgg(), hr.SecAgg(adversary="active"), hr.PairwiseMasks()], ids=str)
def test_hidden_totals_are_the_plain_ones(aggregation, engine):
    plain = federation(hr.Loop()).sum(totals)
    fed = federation(engine).protect(aggregation=aggregation)
    for _ in range(2):
        found = fed.sum(totals, bound=BOUND)
        for key, value in plain.items():
            assert_allclose(found[key], value, atol=1e-8)


def test_a_hidden_model_trains_as_in_one_process(two):
    found = []
    for on in (hr.InProcess(threads=1), two):
        fed = hidden.stores(engine=on).protect(aggregation=hidden.hiding())
        found.append(hidden.gradient(fed, "logistic"))
    assert_allclose(found[1], found[0], atol=1e-9)


def test_a_protocol_of_one_process_is_refused_before_anybody_is_asked(two):
    fed = federation(two)
    step = Step("step", dict.fromkeys(fed.members, b""))
    with pytest.raises(UnlawfulChannel, match=r"InProcess[\s\S]*No party was asked"):
        run_of(fed).engine.exchange(outbox(one_of_each, ids=fed.members, step=step, protocol=object()))


def test_additive_shares_are_refused_before_anybody_is_asked(two):
    with pytest.raises(UnlawfulChannel, match="take SecAgg"):
        federation(two).protect(aggregation=hr.AdditiveShares()).sum(totals, bound=BOUND)


@pytest.mark.parametrize("gone", ["rate", "for good", "late"])
def test_who_leaves_a_conversation_is_in_the_total_or_not_as_in_one_process(gone, two):
    leaving = GONE[gone] | ({"dropout_rate": 0.15} if gone == "rate" else {})
    told = []
    for on in (hr.InProcess(threads=1, **leaving), settings(two, **leaving)):
        fed = federation(on, n_parties=20, seed=1).protect(aggregation=hr.SecAgg(dropouts=0.4, corrupt=0.0))
        told.append([round(float(fed.sum(one_of_each, bound=linf(1.0)))) for _ in range(3)])
    assert told[0] == told[1]
    assert min(told[0]) < 20


def test_guards_decline_as_in_one_process(two):
    told = []
    for on in (partial(hr.InProcess, threads=1), partial(settings, two)):
        guards = {f"party {i}": Guard(hr.Budget(1.0 + i, 1e-5), trust="server") for i in range(1, 4)}
        fed = federation(on(guards=guards)).protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(3.0))
        missing = []
        for _ in range(4):
            before = fed.missing
            fed.sum(one_of_each)
            missing.append(fed.missing - before)
        told.append(missing)
    assert told[0] == told[1]
    assert told[0][-1] > 0


# ---- checkpoints ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Place:
    round: int
    at: np.ndarray


def walk(federation, *, rounds, start=None):
    state = start or Place(0, np.zeros(3))
    while state.round < rounds:
        moved = federation.sample(size=6).sum(push, 0.1 * state.at, init=still)
        state = Place(state.round + 1, state.at + moved)
        yield state


def run(folder, engine, rounds, program=walk, kind=Place):
    """Start a run in a folder, or go on with it."""
    fed, checkpoint = federation(engine, n_parties=9), folder / "checkpoint"
    fed.recorded(LedgerFile(folder / "ledger.jsonl"))
    start = load_checkpoint(checkpoint, kind, "") if checkpoint.exists() else None
    return drive(partial(program, rounds=rounds), fed, checkpoint=checkpoint, start=start, seconds=0.0).state, fed


def same(one, other):
    assert one.keys() == other.keys()
    for key, value in one.items():
        assert_array_equal(other[key], value, err_msg=key)


def kept(fed):
    return {f"{id}/{key}": value for id, state in kept_by(fed).items() for key, value in state.items()}


LOCAL = {"learning_rate": 0.3, "epochs": 2, "batch_size": 5, "path": "eager"}
MODEL = hr.learn.linear(3, 1)
STATEFUL = {
    "walk": walk,
    "scaffold": partial(hr.learn.scaffold, module=MODEL, size=6, **LOCAL),
    "feddyn": partial(hr.learn.feddyn, module=MODEL, size=6, **LOCAL),
    "ditto": partial(hr.learn.ditto, module=MODEL, size=6, **LOCAL),
}


@pytest.mark.parametrize(
    "program", ["walk", *(pytest.param(name, marks=pytest.mark.slow) for name in STATEFUL if name != "walk")]
)
def test_a_run_whose_parties_keep_something_resumes_to_the_last_bit(program, tmp_path, two):
    kind = type(next(STATEFUL[program](federation(hr.InProcess(threads=1), n_parties=9), rounds=1)))
    whole, interrupted, alone = (tmp_path / name for name in ("whole", "interrupted", "alone"))
    for folder in (whole, interrupted, alone):
        folder.mkdir()
    one, fed = run(whole, two, 4, STATEFUL[program], kind)
    run(interrupted, two, 2, STATEFUL[program], kind)
    other, resumed = run(interrupted, two, 4, STATEFUL[program], kind)
    same(parity.numbers(one), parity.numbers(other))
    same(kept(fed), kept(resumed))
    third, in_process = run(alone, hr.InProcess(threads=1), 4, STATEFUL[program], kind)
    for key, value in parity.numbers(third).items():
        assert_allclose(parity.numbers(one)[key], value, rtol=1e-5, atol=1e-6, err_msg=key)
    assert kept(in_process).keys() == kept(fed).keys()


def test_states_of_one_process_go_on_in_two(tmp_path, two):
    run(tmp_path, hr.InProcess(threads=1), 2)
    _, fed = run(tmp_path, two, 4)
    (tmp_path / "alone").mkdir()
    _, alone = run(tmp_path / "alone", hr.InProcess(threads=1), 4)
    for key, value in kept(alone).items():
        assert_allclose(kept(fed)[key], value, rtol=1e-6, err_msg=key)


def test_the_store_of_states_does_what_a_store_does(two):
    states = hr.engines.records(federation(two)).states
    assert not states
    states.propose("party 1", {"a": np.arange(3)}, 7)
    states.propose("party 6", {"a": np.arange(2)}, 7)
    assert states
    assert_array_equal(states.settle("party 1", {"party 1": 7})["a"], np.arange(3))
    assert states.settle("party 6", {"party 6": 6}) == {}
    states.restore({"party 2": {"b": np.ones(1, np.float32)}})
    found = states.committed({})
    assert list(found) == ["party 2"]
    assert found["party 2"]["b"].dtype == np.float32


# ---- what goes wrong ------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_process_that_ends_takes_its_parties_out_of_one_question(two):
    fed = federation(two)
    everybody = set(fed.gather(one_of_each))
    before = pids(two)
    found = fed.gather(ending, {"name": "party 2"})
    assert 0 < len(found) < 6
    assert "party 2" not in found
    assert "party 6" in found
    assert fed.missing == 6 - len(found)
    assert set(fed.gather(one_of_each)) == everybody
    assert len(before & pids(two)) == 1
    assert len(pids(two)) == 2


@pytest.mark.slow
def test_a_process_that_ended_between_questions_is_not_missed(two):
    fed = federation(two)
    fed.sum(one_of_each)
    end_one(two)
    assert fed.sum(one_of_each) == 6


@pytest.mark.slow
def test_when_every_process_ends_nobody_answers():
    with Processes(1) as one:
        fed = federation(one)
        with pytest.raises(NobodyAnswered, match="HR-220"):
            fed.sum(ending, {"name": "party 2"})
        assert fed.sum(one_of_each) == 6


@pytest.mark.slow
def test_what_parties_kept_is_lost_with_their_process_and_is_back_from_the_checkpoint(tmp_path, two):
    whole, again = tmp_path / "whole", tmp_path / "again"
    whole.mkdir()
    again.mkdir()
    one, _ = run(whole, two, 4)

    def losing(federation, *, rounds, start=None):
        for state in walk(federation, rounds=rounds, start=start):
            yield state
            if state.round == 2:
                end_one(two)

    with pytest.raises(StateLost, match=r"HR-615[\s\S]*shard . of 2"):
        run(again, two, 4, losing)
    same(parity.numbers(one), parity.numbers(run(again, two, 4)[0]))


@pytest.mark.slow
def test_what_depends_on_no_state_goes_on_without_it(two):
    fed = federation(two)
    fed.sum(push, np.zeros(3), init=still)
    end_one(two)
    assert_allclose(fed.sum(totals)["n"], 69)
    with pytest.raises(StateLost, match="HR-615"):
        fed.sum(push, np.zeros(3), init=still)


@pytest.mark.slow
def test_states_that_end_with_the_answer_are_missed_at_the_checkpoint(two):
    fed = federation(two)
    fed.sum(ending_with_state, {"name": "no one"}, init=nothing)
    assert fed.sum(ending_with_state, {"name": "party 1"}, init=nothing) < 6
    with pytest.raises(StateLost):
        kept_by(fed)


@pytest.mark.slow
def test_secure_sums_go_on_after_a_process_ended(two):
    fed = federation(two, n_parties=12).protect(aggregation=hr.SecAgg(dropouts=0.6, corrupt=0.0))
    assert_allclose(fed.sum(one_of_each, bound=linf(1.0)), 12)
    end_one(two)
    assert 3 < fed.sum(one_of_each, bound=linf(1.0)) <= 12


def test_a_failure_crosses_as_a_code_and_its_sentence_stays(two):
    fed = federation(two)
    with pytest.raises(PartyDeclined, match="party 5 declined: HR-221") as declined:
        fed.sum(failing, {"name": "party 5"})
    assert declined.value.codes == {"party 5": "HR-221"}
    assert "sentence that stays" not in str(declined.value)
    assert fed.sum(one_of_each) == 6


def test_a_refusal_has_the_code_that_it_has_in_one_process(two):
    told = []
    for on in (hr.InProcess(threads=1), two):
        with pytest.raises(PartyDeclined) as declined:
            federation(on).sum(scaled, np.array([np.nan]))
        told.append((declined.value.codes, declined.value.reason))
    assert told[0] == told[1]


def test_a_function_without_a_name_elsewhere_is_refused_before_anybody_is_asked(two):
    def unmarked(broadcast, party, rng):
        return np.ones(())

    with pytest.raises(NotNamed, match="HR-224"):
        federation(two).sum(unmarked)
    script = {"__name__": "__main__"}
    exec("from hedgerow import local\n@local\ndef f(b, party, rng):\n    return 1.0", script)  # as in a script
    with pytest.raises(NotNamed, match="Move it to a module"):
        federation(two).sum(script["f"])


@pytest.mark.slow
def test_an_interrupted_question_leaves_no_answer_behind(two, monkeypatch):
    fed = federation(two)
    fed.sum(one_of_each)
    real, calls = Pipe.receive, []

    def once(line):
        calls.append(line)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return real(line)

    monkeypatch.setattr(Pipe, "receive", once)
    with pytest.raises(KeyboardInterrupt):
        fed.sum(totals)
    assert fed.sum(one_of_each) == 6


def test_settings_that_make_no_sense_are_refused():
    for wrong in ({"shards": 0}, {"shards": True}, {"threads_each": 1.5}):
        with pytest.raises(ConfigInvalid, match="HR-601"):
            Processes(**wrong)
    with pytest.raises(ConfigInvalid, match="Processes"):
        Sharded()


# ---- processes come and go ------------------------------------------------------------------------------------------
def test_engines_of_one_crew_share_processes_and_forget_what_nobody_uses(two):
    one, other = federation(two, n_parties=4), federation(two, n_parties=12)
    for fed in (one, other):
        assert {int(pid) for pid in fed.gather(process).values()} == pids(two)
    number = run_of(one).engine.hosted._number
    assert number in two.crew._hosted
    del one
    import gc

    gc.collect()
    other.sum(one_of_each)
    assert number not in two.crew._hosted


@pytest.mark.slow
def test_closed_processes_have_ended_and_refuse():
    before = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    with Processes(1) as engine:
        fed = federation(engine)
        fed.sum(scaled, np.zeros(100_000))
        running = pids(engine)
        assert all(map(alive, running))
    assert not any(map(alive, running))
    if before:
        assert not {name for name in set(os.listdir("/dev/shm")) - before if "hedgerow" in name}
    with pytest.raises(RailUnavailable, match="closed"):
        fed.sum(one_of_each)


@pytest.mark.slow
def test_engines_that_nobody_holds_end_their_processes():
    import gc

    fed = federation(Processes(1))
    fed.sum(one_of_each)
    running = pids(run_of(fed).engine)
    del fed
    gc.collect()
    assert not any(map(alive, running))


PARENT = """
import sys
sys.path[:0] = {path!r}
from hedgerow.engines.processes import Processes
from helpers import federation, run_of
from spread import long, one_of_each
fed = federation(Processes(2))
fed.sum(one_of_each)
print(*run_of(fed).engine.crew.processes.values(), flush=True)
fed.sum(long)
"""


@pytest.mark.slow
def test_processes_end_with_their_parent_whatever_ends_it_and_whatever_they_do():
    here = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    parent = subprocess.Popen([sys.executable, "-c", PARENT.format(path=here)], stdout=subprocess.PIPE, text=True)
    with parent:
        running = [int(pid) for pid in parent.stdout.readline().split()]
        time.sleep(0.3)  # the parties are in the middle of it
        assert len(running) == 2
        assert all(map(alive, running))
        parent.kill()
    wait_for_the_end(running)


# ---- parts ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sizes", "shards", "bounds"),
    [
        ([1, 1, 1, 1], 2, [0, 2, 4]),
        ([10, 1, 1, 1], 2, [0, 1, 4]),
        ([1, 1, 1, 10], 2, [0, 3, 4]),
        ([5, 5], 4, [0, 1, 2]),
        ([100, 1, 1], 3, [0, 1, 2, 3]),
        ([], 2, [0, 0]),
    ],
)
def test_shards_hold_about_as_many_records_and_at_least_a_party(sizes, shards, bounds):
    assert split(np.array(sizes, np.int64), shards) == bounds


def test_inboxes_are_merged_in_the_order_asked():
    layout = Layout((("", (1,)),))
    one = Inbox(("c", "a"), layout, np.array([3.0]), np.array([[1.0], [2.0]]), codes={"e": "HR-242"})
    other = Inbox(("b",), layout, np.array([4.0]), np.array([[4.0]]))
    found = merged("question", ["a", "b", "c", "e"], [one, Inbox(()), other])
    assert (found.answered, found.codes) == (("a", "b", "c"), {"e": "HR-242"})
    assert_array_equal(found.rows, [[2.0], [4.0], [1.0]])
    assert_array_equal(found.total, [7.0])
    with pytest.raises(ContributionInvalid, match="HR-222"):
        merged("question", ["a", "b"], [one, Inbox(("b",), Layout((("x", (1,)),)), np.array([4.0]))])


def test_a_line_carries_small_and_large_bodies_and_arrays():
    here, there = map(Pipe, pair())
    large, arrays = (
        os.urandom(LARGE + 1),
        {"a": np.arange(6.0).reshape(2, 3), "b": np.array(["x", "yz"]), "none": np.zeros((0, 2))},
    )
    sheet, where = laid_out(arrays)
    here.send(7, "kind", [b"", b"small", large, sheet])
    told = there.receive()
    assert (told.number, told.kind) == (7, "kind")
    assert [bytes(body) for body in told.bodies[:3]] == [b"", b"small", large]
    for key, value in found_on(told.bodies[3], where).items():
        assert_array_equal(value, arrays[key])
    once = Sheet.of(large)
    once.close()
    here.close()
    with pytest.raises(Gone):
        there.receive()
    with pytest.raises(Gone):
        there.send(0, "kind")
    there.close()
