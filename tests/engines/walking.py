"""A small program whose parties keep something, runs of it in a folder, and what is kept."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from hedgerow.engines import InProcess
from hedgerow.learn import feddyn, scaffold
from hedgerow.store import LedgerFile, drive, load_checkpoint
from helpers import federation

LOCAL = {"learning_rate": 0.3, "epochs": 2, "batch_size": 5, "path": "eager"}
ALGORITHMS = {"scaffold": scaffold, "feddyn": feddyn}


@dataclass(frozen=True)
class Place:
    round: int
    at: np.ndarray


def still(broadcast, party):
    """Parties keep arrays of different shapes."""
    return {"speed": np.zeros(3), "record": np.zeros(len(party["x"]), np.float32)}


def push(broadcast, party, rng):
    """A random walk with momentum."""
    party.state["speed"] = 0.5 * party.state["speed"] + rng.normal(size=3) + broadcast
    party.state["record"] = (party.state["record"] + party["x"][:, 0]).astype(np.float32)
    return party.state["speed"]


def look(broadcast, party, rng):
    """Change nothing."""
    return party.state["speed"]


def walk(federation, *, rounds, start=None):
    state = start or Place(0, np.zeros(3))
    while state.round < rounds:
        moved = federation.sample(size=4).sum(push, 0.1 * state.at, init=still)
        state = Place(state.round + 1, state.at + moved)
        yield state


def walkers(folder=None, n_parties=8, seed=0, **settings):
    return federation(InProcess(threads=1, state_folder=folder, **settings), n_parties=n_parties, seed=seed)


def kept(fed):
    """What each party keeps."""
    return {id: dict(state) for id, state in fed.engine.held.states.committed(fed.clock.counted).items()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for id, state in one.items():
        assert state.keys() == other[id].keys()
        for key, value in state.items():
            assert other[id][key].dtype == value.dtype
            np.testing.assert_array_equal(other[id][key], value)


def go(folder, rounds=5, program=walk, kind=Place, parties=walkers):
    """Start a run in a folder, or go on with it, as `hedgerow run` does."""
    fed, checkpoint = parties(folder / "states"), folder / "checkpoint"
    fed.ledger.attach(LedgerFile(folder / "ledger.jsonl"))
    start = load_checkpoint(checkpoint, kind, "") if checkpoint.exists() else None
    if start is None:
        fed.ledger.rewind(0, replay=True)
    return drive(partial(program, rounds=rounds), fed, checkpoint=checkpoint, start=start, seconds=0.0).state, fed


def fresh(tmp_path, name):
    """A new folder."""
    folder = tmp_path / name
    folder.mkdir()
    return folder
