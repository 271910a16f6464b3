"""Networks that were not written for Hedgerow, with tables, tasks, and a loop in plain torch for each."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import grad, vmap

import hedgerow as hr
from hedgerow.core.question import travels
from hedgerow.data import Column, Schema, Table
from hedgerow.learn import Input, Metric, Task
from helpers import party_of

vmap(grad(torch.sum))(torch.ones(2, 2))  # its first use imports much, which no test should be blamed for


@travels
class TwoHeads(nn.Module):
    """A class and a number from numbers and an embedded group."""

    def __init__(self):
        super().__init__()
        self.groups, self.body = nn.Embedding(3, 2), nn.Linear(5, 6)
        self.sick, self.days = nn.Linear(6, 3), nn.Linear(6, 1)

    def forward(self, x, group):
        h = torch.tanh(self.body(torch.cat([x, self.groups(group)], 1)))
        return {"sick": self.sick(h), "days": self.days(h)}


@travels
class SmallUNet(nn.Module):
    """One step down, one up, and a bridge between them."""

    def __init__(self):
        super().__init__()
        self.enter, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4)
        self.low, self.up = nn.Conv2d(4, 8, 3, stride=2, padding=1), nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, image):
        top = F.relu(self.norm(self.enter(image)))
        return self.out(torch.cat([top, self.up(F.relu(self.low(top)))], 1))


@travels
class Hazards(nn.Module):
    """Log-odds of the event in each of five intervals."""

    def __init__(self):
        super().__init__()
        self.body, self.out = nn.Linear(2, 6), nn.Linear(6, 5)

    def forward(self, x):
        return self.out(torch.tanh(self.body(x)))


@travels
def hazard(output, target):
    """Negative log-likelihood of discrete time: of no event before the last interval, and of what happened there."""
    time, event = target["time"], target["event"]
    intervals = torch.arange(output.shape[1])
    happened = (intervals == time[:, None]) * event[:, None]
    losses = F.binary_cross_entropy_with_logits(output, happened.to(output.dtype), reduction="none")
    return (losses * (intervals <= time[:, None])).sum(1)


@travels
def risk(output, target):
    """The chance of an event in the first interval."""
    return torch.sigmoid(output[:, 0])


@dataclass
class Net:
    """A module, its records, its task, and the same task by hand: `loss(module, columns) -> (n,)`."""

    module: nn.Module
    table: Table
    task: Task
    loss: Any


def heads(n=36):
    rng = np.random.default_rng(1)
    schema = Schema(
        (
            *(Column(name, "number", low=0, high=10) for name in "abc"),
            Column("group", "category", levels=("x", "y", "z")),
            Column("sick", "category", role="target", levels=("no", "some", "much")),
            Column("days", "number", low=0, high=30),
        )
    )
    columns = {name: rng.uniform(0, 10, n) for name in "abc"} | {"days": rng.uniform(0, 3, n)}
    columns |= {"group": rng.integers(0, 3, n).astype(np.int16), "sick": rng.integers(0, 3, n).astype(np.int16)}
    task = Task(
        inputs={"x": ["a", "b", "c"], "group": "group"},
        target=["sick", "days"],
        loss={"sick": "cross_entropy", "days": ("squared", 0.1)},
    )

    def loss(module, own):
        x = torch.tensor(np.column_stack([own[name] / 10 for name in "abc"]), dtype=torch.float32)
        found = module(x, torch.tensor(own["group"], dtype=torch.int64))
        one = F.cross_entropy(found["sick"], torch.tensor(own["sick"], dtype=torch.int64), reduction="none")
        return one + 0.1 * (found["days"][:, 0] - torch.tensor(own["days"], dtype=torch.float32)) ** 2

    return Net(TwoHeads(), Table(schema.admit(columns), schema), task, loss)


def masks(n=24):
    rng = np.random.default_rng(2)
    schema = Schema(
        (
            Column("image", "number", shape=(1, 8, 8), low=0, high=255),
            Column("mask", "binary", shape=(1, 8, 8), role="target"),
        )
    )
    image = rng.integers(0, 256, (n, 1, 8, 8)).astype(np.uint8)
    table = Table(schema.admit({"image": image, "mask": (image > 128).astype(float)}), schema)

    def loss(module, own):
        p = torch.sigmoid(module(torch.tensor(own["image"], dtype=torch.float32) / 255)).flatten(1)
        t = torch.tensor(own["mask"], dtype=torch.float32).flatten(1)
        return 1 - (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)

    return Net(SmallUNet(), table, Task(loss="dice"), loss)


def survival(n=30):
    rng = np.random.default_rng(3)
    schema = Schema(
        (
            Column("age", "number", low=0, high=100),
            Column("marker", "number", low=-4, high=4),
            Column("time", "integer", low=0, high=4),
            Column("event", "binary"),
        )
    )
    columns = {"age": rng.uniform(0, 100, n), "marker": rng.normal(size=n).clip(-4, 4)}
    columns |= {"time": rng.integers(0, 5, n), "event": rng.integers(0, 2, n)}
    task = Task(
        inputs=["age", "marker"],
        target=["time", "event"],
        loss=hazard,
        metrics=[Metric(risk, bound=1.0)],
    )

    def loss(module, own):
        x = torch.tensor(np.column_stack([own["age"] / 100, own["marker"] / 4]), dtype=torch.float32)
        logits, rows = module(x), []
        for i, time in enumerate(own["time"].astype(int)):
            lived = F.logsigmoid(-logits[i, :time]).sum()
            last = logits[i, time] if own["event"][i] else -logits[i, time]
            rows.append(-(lived + F.logsigmoid(last)))
        return torch.stack(rows)

    return Net(Hazards(), Table(schema.admit(columns), schema), task, loss)


BUILT = {"two heads": heads, "u-net": masks, "survival": survival}


def net(name):
    """A network with fixed weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return BUILT[name]()


def clinics(own, parties=3):
    """Its records, dealt unequally."""
    return hr.simulate(own.table, hr.data.dirichlet_quantity(parties=parties, alpha=2.0, min_records=3), seed=0)


def trained(module):
    """Trained parameters as one vector."""
    return np.concatenate([value.detach().numpy().reshape(-1) for value in module.parameters() if value.requires_grad])


def loaded(module, flat):
    """A copy with these trained parameters."""
    made, at = copy.deepcopy(module), 0
    with torch.no_grad():
        for value in made.parameters():
            if value.requires_grad:
                value.copy_(torch.tensor(flat[at : at + value.numel()]).view(value.shape))
                at += value.numel()
    return made


def gradient(own, flat, columns):
    """The mean loss's gradient at these weights, by hand."""
    module = loaded(own.module, flat)
    wanted = [value for value in module.parameters() if value.requires_grad]
    found = torch.autograd.grad(own.loss(module, columns).mean(), wanted, allow_unused=True)
    parts = [torch.zeros_like(value) if part is None else part for part, value in zip(found, wanted, strict=True)]
    return np.concatenate([part.numpy().reshape(-1) for part in parts])


def records_of(party, names):
    """A party's columns, one record after the other."""
    return [{name: party[name][i : i + 1] for name in names} for i in range(len(party.w))]


def by_hand(own, federation, rounds, learning_rate, *, clip=None):
    """FedAvg with one full-batch step at each party; with a clip parties count equally."""
    flat, names = trained(own.module), own.table.schema.names
    parties = [party_of(federation, name) for name in federation.names]
    for _ in range(rounds):
        steps = [-learning_rate * gradient(own, flat, {name: party[name] for name in names}) for party in parties]
        weights = [float(len(party.w)) for party in parties]
        if clip is not None:
            steps = [step * min(1.0, clip / np.linalg.norm(step)) for step in steps]
            weights = [1.0] * len(parties)
        flat = (flat + np.average(steps, axis=0, weights=weights)).astype(np.float32)
    return flat


def record_steps(own, federation, rounds, learning_rate, clip, divisor):
    """DP-SGD without noise on all records: each gradient shortened to the clip."""
    flat, names = trained(own.module), own.table.schema.names
    parties = [party_of(federation, name) for name in federation.names]
    for _ in range(rounds):
        rows = [gradient(own, flat, one) for party in parties for one in records_of(party, names)]
        total = sum(row * min(1.0, clip / np.linalg.norm(row)) for row in rows)
        flat = (flat - learning_rate * total / divisor).astype(np.float32)
    return flat


def flat_of(own, state):
    """Trained parameters of a state as one vector."""
    return np.concatenate([state.weights[name].reshape(-1) for name, p in own.module.named_parameters() if p.requires_grad])


__all__ = ["BUILT", "Input", "by_hand", "clinics", "flat_of", "net", "record_steps"]
