"""Networks of every kind with fixed weights, records for them, and exact sums in whole steps."""

import numpy as np
import torch
from torch import nn

from hedgerow.learn.models import Model
from hedgerow.learn.records import Clipping, clipped_sum


class Read(nn.Module):
    """Words, averaged, and read by a layer."""

    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(11, 5, padding_idx=0), nn.Linear(5, 3)

    def forward(self, x):
        return self.out(self.words(x.long()).mean(1))


class Recalled(nn.Module):
    """A recurrent layer, for which there is no graph."""

    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x):
        return self.out(self.cell(x)[0][:, -1])


def networks():
    """Name to (module, shape of a record)."""
    return {
        "mlp": (nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 7), nn.Tanh(), nn.Linear(7, 3)), (20,)),
        "cnn": (
            nn.Sequential(
                nn.Conv2d(1, 4, 3, padding=1),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(4, 6, 3, stride=2),
                nn.Flatten(),
                nn.Linear(6, 3),
            ),
            (1, 6, 6),
        ),
        "words": (Read(), (6,)),
        "norms": (
            nn.Sequential(
                nn.Conv1d(2, 4, 3), nn.GroupNorm(2, 4), nn.Sigmoid(), nn.Flatten(), nn.LayerNorm(16), nn.Linear(16, 3)
            ),
            (2, 6),
        ),
        "smooth": (
            nn.Sequential(
                nn.Conv2d(1, 4, 3), nn.SiLU(), nn.Flatten(), nn.Linear(64, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3)
            ),
            (1, 6, 6),
        ),
        "alone": (Recalled(), (5, 3)),
    }


NETWORKS = {name: (Model(module, "category"), shape) for name, (module, shape) in networks().items()}
"""Their weights are not read: tests take those of `weights`."""


def weights(model, seed=0):
    """Weights that no generator of torch decides, shape (all,)."""
    size = sum(shape.numel() for shape in model.shapes)
    return torch.from_numpy((np.random.default_rng(seed).normal(size=size) * 0.4).astype(np.float32))


def records(name, n, seed=1):
    """Records, their classes, and ones as weights."""
    shape, rng = NETWORKS[name][1], np.random.default_rng(seed)
    x = rng.integers(0, 11, (n, *shape)) if name == "words" else rng.normal(size=(n, *shape))
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(rng.integers(0, 3, n)), torch.ones(n)


def in_steps(model, flat, x, target, w, clip=1.0, summed=clipped_sum):
    """A sum as whole steps, int64 of shape (d,)."""
    clipping = clip if isinstance(clip, Clipping) else Clipping.of(clip)
    total, _ = summed(model, flat, x, target, w, clipping)
    steps = total.numpy() / clipping.step
    assert (steps == np.rint(steps)).all()
    return steps.astype(np.int64)


def squared(steps):
    """Squared length in Python's whole numbers."""
    return sum(int(value) ** 2 for value in steps if value)


def limit(clip=1.0):
    """Steps within which a record stays."""
    clipping = Clipping.of(clip)
    return int(clipping.radius / clipping.step)
