"""Split training is that of the whole network to the bit; what it keeps, refuses and tells."""

import numpy as np
import pytest
import torch
from apart_double import Double
from torch import nn

from hedgerow.data import Column, Schema, Table
from hedgerow.vertical.split.reading import order
from hedgerow.vertical.split.splitnn import splitnn

N = 70


def tables(kind="category"):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(N, 5)), rng.normal(size=(N, 3))
    score = x[:, 0] - x[:, 1] + y[:, 0]
    target = {
        "category": Column("fraud", "category", levels=("a", "b", "c"), role="target"),
        "binary": Column("fraud", "binary", role="target"),
        "number": Column("fraud", "number", role="target"),
    }[kind]
    label = {"category": np.digitize(score, [-1, 1]), "binary": (score > 0).astype(float), "number": score}[kind]
    alice = Schema(tuple(Column(f"a{i}", "number") for i in range(5)))
    bank = Schema((*(Column(f"b{i}", "number") for i in range(3)), target))
    held = {
        "alice": Table({f"a{i}": x[:, i] for i in range(5)}, alice),
        "bank": Table({**{f"b{i}": y[:, i] for i in range(3)}, "fraud": label}, bank),
    }
    return held, x, y, label


def nets(seed=0, width=6, n_outputs=3):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        bottom = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, width), nn.ReLU())
        own = nn.Sequential(nn.Linear(3, width), nn.Tanh())
        return bottom, own, nn.Sequential(nn.Linear(width, n_outputs))


def whole(x, label, epochs, dtype, y=None, batch=16, lr=0.05, momentum=0.9, seed=3):
    """The whole network, trained by PyTorch's own loss and optimiser."""
    bottom, own, top = (net.to(dtype) for net in nets())
    parts = [bottom, top] if y is None else [bottom, own, top]
    optimiser = torch.optim.SGD([p for part in parts for p in part.parameters()], lr=lr, momentum=momentum)
    x, target = torch.from_numpy(x.astype(np.float32)).to(dtype), torch.from_numpy(label.astype(np.int64))
    y = None if y is None else torch.from_numpy(y.astype(np.float32)).to(dtype)
    for epoch in range(epochs):
        for i in torch.from_numpy(order(seed, len(x), epoch).copy()).split(batch):
            optimiser.zero_grad()
            z = bottom(x[i]) if y is None else bottom(x[i]) + own(y[i])
            nn.functional.cross_entropy(top(z), target[i]).backward()
            optimiser.step()
    return parts


def same(state, piece, module):
    kept = piece.weights(state)
    return all(np.array_equal(kept[name], value.numpy()) for name, value in module.state_dict().items())


SETTINGS = {"label": "bank.fraud", "batch_size": 16, "learning_rate": 0.05, "momentum": 0.9, "seed": 3, "scale": "none"}


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("own_features", [False, True])
def test_split_is_whole_to_the_bit(precision, own_features):
    held, x, y, label = tables()
    bottom, own, top = nets()
    both = Double(held)
    bottoms = {"alice": bottom, "bank": own} if own_features else {"alice": bottom}
    *_, last = splitnn(both, bottoms, top, epochs=2, labels="shared", precision=precision, **SETTINGS)
    wanted = whole(x, label, 2, getattr(torch, precision), y if own_features else None)
    network = last.fit
    assert same(both.states["alice"], network.bottoms["alice"].piece, wanted[0])
    assert same(both.states["bank"], network.top.piece, wanted[-1])
    if own_features:
        assert same(both.states["bank"], network.bottoms["bank"].piece, wanted[1])
