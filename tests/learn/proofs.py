"""What tests of several algorithms share: batches as a party's stream shuffles them, runs, and runs that are cut off."""

from functools import partial
from itertools import islice

import numpy as np

import hedgerow as hr
from hedgerow.learn import linear
from hedgerow.store import drive, load_checkpoint, save_checkpoint

FLOAT32 = 5e-5


def batches(fed, name, rng, *, epochs, batch_size):
    """Records (x, label) of each local step of a party, in the order that its stream `rng` draws."""
    party = fed.engine.held[fed.engine.held.position[name]]
    n = len(party["x"])
    for order in [rng.permutation(n) for _ in range(epochs)]:
        for start in range(0, n, batch_size or n):
            batch = order[start : start + (batch_size or n)]
            yield party["x"][batch], party["label"][batch]


def records(fed, name):
    """All records (x, label) of a party."""
    party = fed.engine.held[fed.engine.held.position[name]]
    return party["x"], party["label"]


def run(parties, program, *, engine=None, module=None, **settings):
    """The last state of a program, its steps taken eagerly; `test_the_fast_paths_take_the_same_steps` takes the others."""
    fed = parties.on(engine or hr.InProcess())
    return hr.last(program(fed, module or linear(4, 1), **{"path": "eager", **settings}))


def whole_and_resumed(parties, program, path, *, rounds=5, half=2):
    """The federations and last states of a run, and of one that was cut off after `half` of its rounds and went on."""
    program = partial(program, module=linear(4, 1), path="eager", learning_rate=0.3, epochs=2, batch_size=5)
    fed = parties.on(hr.InProcess())
    whole = drive(partial(program, rounds=rounds), fed).state
    before = parties.on(hr.InProcess())
    *_, state = islice(program(before, rounds=rounds), half)
    save_checkpoint(path, state, before, "")
    again = parties.on(hr.InProcess())
    again.ledger.entries.extend(before.ledger.entries)
    resumed = drive(partial(program, rounds=rounds), again, start=load_checkpoint(path, type(whole), "")).state
    return (fed, whole), (again, resumed)


def kept(fed):
    """What each party keeps: its committed state."""
    return fed.engine.held.states.committed(fed.clock.counted)


def assert_same_weights(one, other, atol=FLOAT32):
    for key, value in one.weights.items():
        np.testing.assert_allclose(other.weights[key], value, atol=atol)
