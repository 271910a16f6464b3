"""Clipped sums by one backward pass for each record, and modules with every kind of layer."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import grad, vmap

vmap(grad(torch.sum))(torch.ones(2, 2))  # its first use imports much, which no test should be blamed for


def gradients(module, x, target, kind="category"):
    """Each record's gradient in float64, by layer: a list over records of dicts from layer to flat vector."""
    module, rows = copy.deepcopy(module).double(), []
    for i in range(len(x)):
        output, wanted = module(x[i : i + 1].double()), target[i : i + 1]
        loss = F.cross_entropy(output, wanted) if kind == "category" else (output.reshape(-1) - wanted).square().sum()
        trained = {name: value for name, value in module.named_parameters() if value.requires_grad}
        found, layers = torch.autograd.grad(loss, list(trained.values()), allow_unused=True), {}
        for (name, value), part in zip(trained.items(), found, strict=True):
            part = torch.zeros_like(value) if part is None else part
            layers.setdefault(name.rpartition(".")[0], []).append(part.flatten())
        rows.append({layer: torch.cat(parts) for layer, parts in layers.items()})
    return rows


def clipped(module, x, target, w, radii, kind="category"):
    """The sum of clipped gradients, in the order of the layers."""
    total = 0
    for row, weight in zip(gradients(module, x, target, kind), w.double(), strict=True):
        parts = {layer: weight * part for layer, part in row.items()}
        if len(radii) == 1:
            length = math.sqrt(sum(float(part.square().sum()) for part in parts.values()))
            parts = {layer: part * min(1.0, radii[0] / max(length, 1e-300)) for layer, part in parts.items()}
        else:
            short = zip(parts.items(), radii, strict=True)
            parts = {layer: part * min(1.0, radius / max(float(part.norm()), 1e-300)) for (layer, part), radius in short}
        total = total + torch.cat(list(parts.values()))
    return total


class Words(nn.Module):
    """Embedded words, their sequence normalised and read by a layer at every place."""

    def __init__(self):
        super().__init__()
        self.words, self.norm, self.at_each = nn.Embedding(7, 5, padding_idx=0), nn.LayerNorm(5), nn.Linear(5, 3)

    def forward(self, x):
        return self.at_each(self.norm(self.words(x.long()))).mean(1)


class Residual(nn.Module):
    """An addition in place, after which the first layer's output is no longer what it was."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.out = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        y = self.one(x).relu_()
        z = self.two(y)
        z += y
        return self.out(z)


class Tied(nn.Module):
    """One weight in two places."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(6, 6), nn.Linear(6, 6)
        self.two.weight = self.one.weight

    def forward(self, x):
        return self.two(self.one(x).tanh())[:, :3]


class Bare(nn.Module):
    """A parameter that belongs to no layer."""

    def __init__(self):
        super().__init__()
        self.out, self.scale = nn.Linear(6, 3), nn.Parameter(torch.ones(6))

    def forward(self, x):
        return self.out(x * self.scale)


class Twice(nn.Module):
    """A layer that is used twice."""

    def __init__(self):
        super().__init__()
        self.again, self.out = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.out(self.again(self.again(x).tanh()))


class Recurrent(nn.Module):
    """A GRU, which `torch.func` cannot differentiate record by record."""

    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x):
        return self.out(self.cell(x)[0][:, -1])


class Frozen(nn.Module):
    """A layer that is not trained, and one of which only the offset is."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.out = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self.one.requires_grad_(False)
        self.two.weight.requires_grad_(False)

    def forward(self, x):
        return self.out(self.two(self.one(x).tanh()).tanh())


def after(*layers, width):
    """Layers, and a last one with three outputs."""
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(width, 3))


def modules():
    """Name to (module, shape of a record, the way in which its gradients are found)."""
    torch.manual_seed(0)
    picture = (4, 6, 6)
    return {
        "linear": (nn.Linear(6, 3), (6,), "ghost"),
        "without bias": (nn.Sequential(nn.Linear(6, 5, bias=False), nn.ReLU(inplace=True), nn.Linear(5, 3)), (6,), "ghost"),
        "at many places": (after(nn.Linear(6, 2), nn.Tanh(), width=16), (8, 6), "ghost"),
        "at few places": (after(nn.Linear(20, 20), nn.Tanh(), width=40), (2, 20), "ghost"),
        "convolution": (after(nn.Conv2d(4, 3, 3, padding=1, stride=2), nn.ReLU(), width=27), picture, "ghost"),
        "wide convolution": (after(nn.Conv2d(4, 24, 5), nn.MaxPool2d(2), width=24), picture, "ghost"),
        "grouped": (after(nn.Conv2d(4, 6, 3, groups=2, dilation=2, bias=False), width=24), picture, "ghost"),
        "circular": (after(nn.Conv2d(4, 3, 3, padding="same", padding_mode="circular"), width=108), picture, "ghost"),
        "signal": (after(nn.Conv1d(3, 4, 3, padding=1), nn.ReLU(), nn.AvgPool1d(2), width=16), (3, 8), "ghost"),
        "group norm": (after(nn.Conv2d(4, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), width=64), picture, "ghost"),
        "layer norm": (nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, 3)), (6,), "ghost"),
        "rms norm": (nn.Sequential(nn.Linear(6, 6), nn.RMSNorm(6), nn.Tanh(), nn.Linear(6, 3)), (6,), "ghost"),
        "gelu": (nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.Linear(6, 3)), (6,), "ghost"),
        "silu": (after(nn.Conv2d(4, 3, 3), nn.SiLU(inplace=True), width=48), picture, "ghost"),
        "words": (Words(), (9,), "ghost"),
        "residual": (Residual(), (6,), "ghost"),
        "frozen": (Frozen(), (6,), "ghost"),
        "tied": (Tied(), (6,), "vmap"),
        "bare": (Bare(), (6,), "vmap"),
        "twice": (Twice(), (6,), "vmap"),
        "upsampling": (after(nn.ConvTranspose2d(4, 2, 2), width=98), picture, "vmap"),
        "recurrent": (Recurrent(), (5, 3), "each"),
    }


def records(shape, n=7, seed=1, words=False):
    """Records of a shape, their classes, and weights, one of them zero and one above one."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 7, (n, *shape), generator=generator).float() if words else torch.randn(n, *shape, generator=generator)
    w = torch.ones(n)
    w[0], w[-1] = 0.0, 2.5
    return x, torch.randint(0, 3, (n,), generator=generator), w


MODULES_BY_WAY = {
    "ghost": (Residual(), (6,)),
    "vmap": (Twice(), (6,)),
    "each": (Recurrent(), (5, 3)),
}
"""One module for each way of finding gradients, with the shape of its records."""
