"""Parties, networks and the whole network of split training, small, and what parties keep in a simulation."""

from dataclasses import dataclass

import numpy as np
import torch
from apart_double import AsHeld
from torch import nn

import hedgerow as hr
from hedgerow.core.federation import inside
from hedgerow.data import Column, Schema, Table
from hedgerow.learn.made import leaves_note
from hedgerow.store.checkpoint import states_of

N = 70
SETTINGS = {"label": "bank.fraud", "batch_size": 16, "learning_rate": 0.05, "momentum": 0.9, "seed": 3, "scale": "none"}


@dataclass
class Made:
    """Made-up people: alice has five columns, carol four, the bank three and the label."""

    x: dict
    label: np.ndarray
    kind: str

    def tables(self, *parties):
        target = {
            "category": Column("fraud", "category", levels=("a", "b", "c"), role="target"),
            "binary": Column("fraud", "binary", role="target"),
            "number": Column("fraud", "number", role="target"),
        }[self.kind]
        held = {}
        for party in (*parties, "bank"):
            names = [f"{party}{i}" for i in range(self.x[party].shape[1])]
            columns = [Column(name, "number") for name in names] + ([target] if party == "bank" else [])
            values = dict(zip(names, self.x[party].T, strict=True)) | ({"fraud": self.label} if party == "bank" else {})
            schema = Schema((*columns, Column("id", "integer")))
            held[party] = Table(values | {"id": np.arange(len(self.label)) + 1000}, schema)
        return held


def made(kind="category", n=N, seed=0):
    rng = np.random.default_rng(seed)
    x = {party: rng.normal(size=(n, k)) for party, k in (("alice", 5), ("carol", 4), ("bank", 3))}
    score = x["alice"][:, 0] - x["alice"][:, 1] + x["bank"][:, 0] + x["carol"][:, 0]
    label = {"category": np.digitize(score, [-1, 1]), "binary": (score > 0).astype(float), "number": score}[kind]
    return Made(x, label, kind)


def aligned(people, *parties, engine=None):
    return hr.simulate(people.tables(*(parties or ("alice",))), on="id", seed=0, engine=engine).align(on="id", by=AsHeld())


@leaves_note
def bottom(n_inputs, width=6, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(n_inputs, 8), nn.ReLU(), nn.Linear(8, width), nn.ReLU())


@leaves_note
def own_bottom(n_inputs, width=6, seed=1):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(n_inputs, width), nn.Tanh())


@leaves_note
def dropping(n_inputs, width=6):
    with torch.random.fork_rng():
        torch.manual_seed(4)
        return nn.Sequential(nn.Linear(n_inputs, 16), nn.Dropout(0.5), nn.ReLU(), nn.Linear(16, width), nn.Tanh())


@leaves_note
def normed(n_inputs, width=6):
    with torch.random.fork_rng():
        torch.manual_seed(4)
        return nn.Sequential(nn.Linear(n_inputs, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, width))


@leaves_note
def top(width=6, n_outputs=3, seed=2):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(width, n_outputs))


@leaves_note
def between(width=6, seed=5):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(width, 7), nn.ReLU(), nn.Linear(7, width), nn.Tanh())


def whole(people, parts, joined, *, epochs=2, dtype=torch.float32, loss=nn.functional.cross_entropy, make=None):
    """The whole network, trained by PyTorch's own loss and optimiser on data in one place.

    `joined(parts, batches)` is its output for a mapping from party to a batch; `parts` are trained in place.
    """
    parts = {name: part.to(dtype) for name, part in parts.items()}
    weights = [p for part in parts.values() for p in part.parameters()]
    optimiser = make(weights) if make else torch.optim.SGD(weights, lr=0.05, momentum=0.9)
    x = {name: torch.from_numpy(values.astype(np.float32)).to(dtype) for name, values in people.x.items()}
    target = torch.from_numpy(people.label).to(torch.int64 if people.kind == "category" else dtype)
    for epoch in range(epochs):
        for rows in torch.from_numpy(np.random.default_rng([3, epoch]).permutation(len(target))).split(16):
            optimiser.zero_grad()
            loss(joined(parts, {name: values[rows] for name, values in x.items()}), target[rows]).backward()
            optimiser.step()
    return parts


def kept(both):
    """What the parties of a simulation keep."""
    run = inside(both._federation).run
    return states_of(run).committed(run.counted)


def same(state, piece, module):
    """Whether a party keeps exactly the weights of a module."""
    found = piece.weights(state)
    return all(np.array_equal(found[name], value.numpy()) for name, value in module.state_dict().items())
