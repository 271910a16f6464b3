"""Parties in actors of a Ray cluster: the same numbers, dropouts and states, and no cluster without a token."""

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import test_parity as parity
from numpy.testing import assert_allclose, assert_array_equal
from spread import counted, ending, failing, one_of_each, process, push, scaled, still

import hedgerow as hr
from hedgerow.core.bound import linf
from hedgerow.engines.ray import Ray
from hedgerow.errors import ConfigInvalid, MissingExtra, NobodyAnswered, PartyDeclined, RailUnavailable, StateLost
from hedgerow.store import LedgerFile, drive, load_checkpoint
from helpers import federation, totals

BOUND = linf(8.0, "record")


@pytest.fixture(scope="module")
def ray():
    """Two actors of a cluster that is started here; only where Ray is installed."""
    pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_AUTH_MODE", raising=False)
        patch.delenv("RAY_AUTH_TOKEN", raising=False)
        with Ray(2) as engine:
            yield engine


def settings(engine, **more):
    """The same actors, with other settings."""
    return Ray(engine.shards, crew=engine.crew, **more)


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"HR-105[\s\S]*hedgerow\[ray\]"):
        Ray(2)


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ConfigInvalid, match="HR-601"):
        Ray(0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:a clip of")
@pytest.mark.parametrize("channel", parity.CHANNELS)
@pytest.mark.parametrize("program", parity.PROGRAMS)
def test_every_program_computes_what_it_computes_in_one_process(program, channel, ray):
    if program in parity.TRAINED and channel == "record":
        pytest.skip("updates have no record-level bound")
    one, other = (
        parity.numbers(hr.last(parity.PROGRAMS[program](parity.federation(on).protect(**parity.CHANNELS[channel]))))
        for on in (hr.Loop(), ray)
    )
    assert one.keys() == other.keys()
    for key, value in one.items():
        scale = max(1.0, float(np.abs(value).max(initial=0.0)))
        assert_allclose(other[key], value, atol=(2e-4 if program in parity.TRAINED else 1e-9) * scale, err_msg=key)


@pytest.mark.slow
def test_a_large_broadcast_arrives_to_the_last_bit(ray):
    sent = np.random.default_rng(0).normal(size=1_250_000)
    assert_allclose(federation(ray).sum(scaled, sent), sent * 69, rtol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(
    "gone",
    [{"dropout_rate": 0.3}, {"dropout_rate": 0.3, "returns": False}, {"deadline": 1.5, "latency": (1.0, 0.8)}],
    ids=["rate", "for good", "late"],
)
def test_the_same_parties_are_missing_as_in_one_process(gone, ray):
    told = []
    for on in (hr.InProcess(threads=1, **gone), settings(ray, **gone)):
        fed = federation(on, n_parties=20, seed=3)
        told.append([list(fed.gather(one_of_each)) for _ in range(3)] + [list(fed.sample(size=5, spare=4).gather(one_of_each))])
    assert told[0] == told[1]
    assert any(len(names) < 20 for names in told[0][:3])


@pytest.mark.slow
@pytest.mark.parametrize("aggregation", [hr.SecAgg(), hr.SecAgg(adversary="active"), hr.PairwiseMasks()], ids=str)
def test_hidden_totals_are_the_plain_ones(aggregation, ray):
    plain = federation(hr.Loop()).sum(totals)
    fed = federation(ray).protect(aggregation=aggregation)
    for _ in range(2):
        found = fed.sum(totals, bound=BOUND)
        for key, value in plain.items():
            assert_allclose(found[key], value, atol=1e-8)


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


def run(folder, engine, rounds, program, kind):
    """Start a run in a folder, or go on with it."""
    folder.mkdir(exist_ok=True)
    fed, checkpoint = federation(engine, n_parties=9), folder / "checkpoint"
    fed.ledger.attach(LedgerFile(folder / "ledger.jsonl"))
    start = load_checkpoint(checkpoint, kind, "") if checkpoint.exists() else None
    return parity.numbers(drive(partial(program, rounds=rounds), fed, checkpoint=checkpoint, start=start, seconds=0.0).state)


LOCAL = {"learning_rate": 0.3, "epochs": 2, "batch_size": 5, "path": "eager", "size": 6}
STATEFUL = {
    "walk": walk,
    **{
        name: partial(getattr(hr.learn, name), module=hr.learn.linear(3, 1), **LOCAL)
        for name in ("scaffold", "feddyn", "ditto")
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("program", STATEFUL)
def test_a_run_whose_parties_keep_something_resumes_to_the_last_bit(program, tmp_path, ray):
    one_process = hr.InProcess(threads=1)
    kind = type(next(STATEFUL[program](federation(one_process, n_parties=9), rounds=1)))
    whole = run(tmp_path / "whole", ray, 4, STATEFUL[program], kind)
    run(tmp_path / "interrupted", ray, 2, STATEFUL[program], kind)
    resumed = run(tmp_path / "interrupted", ray, 4, STATEFUL[program], kind)
    alone = run(tmp_path / "alone", one_process, 4, STATEFUL[program], kind)
    for key, value in whole.items():
        assert_array_equal(resumed[key], value, err_msg=key)
        assert_allclose(alone[key], value, rtol=1e-5, atol=1e-6, err_msg=key)


@pytest.mark.slow
def test_an_actor_that_ends_takes_its_parties_out_of_one_question(ray):
    fed = federation(ray)
    before = {int(pid) for pid in fed.gather(process).values()}
    found = fed.gather(ending, {"name": "party 2"})
    assert 0 < len(found) < 6
    assert "party 6" in found
    after = {int(pid) for pid in fed.gather(process).values()}
    assert (len(after), len(before & after)) == (2, 1)


@pytest.mark.slow
def test_what_parties_kept_is_lost_with_their_actor(ray):
    fed = federation(ray)
    fed.sum(push, np.zeros(3), init=still)
    kept = fed.engine.held.states.committed(fed.clock.counted)
    assert fed.sum(ending, {"name": "party 2"}) < 6
    with pytest.raises(StateLost, match="HR-615"):
        fed.sum(counted)
    assert_allclose(fed.sum(totals)["n"], 69)
    fed.engine.held.states.restore(kept)
    assert fed.sum(counted)["count"] == 6


@pytest.mark.slow
def test_a_failure_crosses_as_a_code(ray):
    with pytest.raises(PartyDeclined, match="party 5 declined: HR-221") as declined:
        federation(ray).sum(failing, {"name": "party 5"})
    assert declined.value.codes == {"party 5": "HR-221"}


@pytest.mark.slow
def test_when_every_actor_ends_nobody_answers(ray):
    fed = federation(settings(ray), n_parties=1)
    with pytest.raises(NobodyAnswered, match="HR-220"):
        fed.sum(ending, {"name": "party 1"})
    assert fed.sum(one_of_each) == 1


# ---- tokens ---------------------------------------------------------------------------------------------------------
STRANGER = """
import ray
try:
    ray.init(address={address!r}, logging_level="error")
    print("in", len(ray.nodes()))
except Exception as error:
    print("out", type(error).__name__)
"""


@pytest.mark.slow
def test_a_cluster_of_ours_lets_nobody_in_without_its_token(ray):
    federation(ray).sum(one_of_each)
    address = ray.crew.ray.get_runtime_context().gcs_address
    others = {key: value for key, value in os.environ.items() if not key.startswith("RAY_AUTH")}
    strangers = {
        "with the token": {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": os.environ["RAY_AUTH_TOKEN"]},
        "with another": {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "f" * 64},
        "with none": {"RAY_AUTH_MODE": "disabled"},
    }
    came = {}
    for name, own in strangers.items():
        command = [sys.executable, "-c", STRANGER.format(address=address)]
        environment = others | own | {"RAY_NUM_REDIS_GET_RETRIES": "1"}
        found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        came[name] = found.stdout.split()[:1]
    assert came == {"with the token": ["in"], "with another": ["out"], "with none": ["out"]}


@pytest.mark.slow
def test_a_cluster_elsewhere_is_not_used_without_a_token(monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(RailUnavailable, match=r"HR-612[\s\S]*RAY_AUTH_MODE=token"):
        federation(Ray(2, address="127.0.0.1:1")).sum(one_of_each)
