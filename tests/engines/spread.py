"""Marked local functions that other processes can import, and federations whose parties are spread over them."""

import os
import signal

import numpy as np
import torch
from torch import nn

from hedgerow.core.question import local, travels
from hedgerow.learn.made import leaves_note


@local
def one_of_each(broadcast, party, rng):
    """One for each party, which pooled records do not give."""
    return np.ones(())


@local
def norm_of_x(broadcast, party, rng):
    """Something that cannot be stacked or pooled."""
    return np.linalg.norm(party["x"])


@local
def noisy(broadcast, party, rng):
    """A contribution from the party's own randomness."""
    return rng.normal(size=2)


@local
def first_record(broadcast, party, rng):
    """A row of the party's own."""
    return {"x": party["x"][0], "twice": 2 * party["x"][0, :1]}


@local
def scaled(broadcast, party, rng):
    """The broadcast, times the party's records."""
    return broadcast * float(party.n)


@local
def failing(broadcast, party, rng):
    """Fail at one party."""
    if party.id == broadcast["name"]:
        raise ValueError("a sentence that stays where it is")
    return np.ones(())


@local
def ending(broadcast, party, rng):
    """End the process in which one party is."""
    if party.id == broadcast["name"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return np.ones(())


@local
def ending_with_state(broadcast, party, rng):
    """Keep something; end the process in which one party is."""
    party.state["seen"] = np.ones(2)
    return ending(broadcast, party, rng)


@local
def long(broadcast, party, rng):
    """Take longer than any test waits."""
    signal.pause()


@local
def process(broadcast, party, rng):
    """Which process this is."""
    return float(os.getpid())


@local
def still(broadcast, party):
    """Parties keep arrays of different shapes and types."""
    return {"speed": np.zeros(3), "record": np.zeros(len(party["x"]), np.float32), "count": np.int64(0)}


@local
def nothing(broadcast, party):
    """Begin with nothing."""
    return {}


@local
def push(broadcast, party, rng):
    """A random walk with momentum."""
    party.state["speed"] = 0.5 * party.state["speed"] + rng.normal(size=3) + broadcast
    party.state["record"] = (party.state["record"] + party["x"][:, 0]).astype(np.float32)
    party.state["count"] = party.state["count"] + 1
    return party.state["speed"]


@local
def counted(broadcast, party, rng):
    """Look at what is kept."""
    return {"count": party.state["count"], "speed": party.state["speed"]}


@local(stackable=True)
def products(broadcast, party, rng):
    """A product whose last bits depend on how many rows it has and on where they lie, in several libraries."""
    x = torch.from_numpy(np.ascontiguousarray(party["x"], np.float32))
    return (x @ torch.from_numpy(broadcast.T)).sum(-2).numpy()


@travels
def projected(columns, *, width):
    """A preparation by a product of matrices, made of all records at once where nobody minds."""
    x = np.asarray(columns["x"], np.float32)
    return {"projected": x @ np.random.default_rng(0).normal(size=(x.shape[1], width)).astype(np.float32)}


@local(stackable=True)
def read_projected(broadcast, party, rng):
    """The sum of what was prepared."""
    return np.asarray(party["projected"], np.float64).sum(-2)


@local(stackable=True)
def subnormals(broadcast, party, rng):
    """Sums of numbers that are subnormal on the way, which are lost where the processor flushes them to zero."""
    tiny = np.asarray(party["x"], np.float32) * np.float32(1e-20) * np.float32(1e-20)
    return (tiny * np.float32(1e20) * np.float32(1e20)).sum(-2)


@leaves_note
def sigmoid_net(n_inputs, n_outputs):
    """A network that no compiled kernel takes."""
    layers = nn.Flatten(), nn.Linear(n_inputs, 32), nn.Sigmoid(), nn.Linear(32, n_outputs)
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for value in (value for layer in layers for value in layer.parameters()):
            value.copy_(torch.rand(value.shape, generator=rng) * 0.4 - 0.2)
    return nn.Sequential(*layers)
