"""Models of CIFAR-10 on fifty frequencies of an image, which a study names by import path.

    hedgerow.study.bundled.cifar:logistic       multinomial logistic regression, 510 parameters
    hedgerow.study.bundled.cifar:network        one hidden layer of 128 units with ReLU, 7 818 parameters

Principal components of natural images are near to cosines (Ahmed, Natarajan & Rao 1974), which no record has shaped: the lowest
32 frequencies of the mean of the colours, and nine of each of two differences between them, each times its frequency,
with which amplitudes of natural images fall off (Field 1987). They are a frozen layer, so that nothing is spent on them.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cache

import numpy as np
import torch
from torch import nn

from hedgerow.errors import ModelInvalid
from hedgerow.learn import linear, mlp
from hedgerow.learn.features import freeze

SIDE = 32
"""Pixels of an image's side."""
COLOURS = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])
"""Mean of red, green and blue, and two differences, of length one."""
KEPT = (32, 9, 9)
"""Frequencies of each."""


def logistic(shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    """Multinomial logistic regression, starting at zero."""
    return _on_frequencies(shape, linear(sum(KEPT), n_outputs))


def network(shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    """A hidden layer of 128 units."""
    return _on_frequencies(shape, mlp(sum(KEPT), [128], n_outputs))


def _on_frequencies(shape: tuple[int, ...], net: nn.Module) -> nn.Module:
    if tuple(shape) != (3, SIDE, SIDE):
        raise ModelInvalid(
            f"this model reads images of 3 x {SIDE} x {SIDE} and was given {' x '.join(map(str, shape))}.",
            remedy="It is for cifar10; choose the model linear or mlp for other records.",
        )
    matrix = frequencies()
    layer = nn.Linear(matrix.shape[1], matrix.shape[0])
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(matrix))
        layer.bias.copy_(-layer.weight.sum(1) / 2)  # pixels lie in [0, 1]: grey is nothing
    return freeze(nn.Sequential(OrderedDict(flat=nn.Flatten(), frequencies=layer, net=net)), "frequencies")


@cache
def frequencies() -> np.ndarray:
    """Rows of length one, each times its frequency, shape (50, 3072), float32."""
    k = np.arange(SIDE)
    waves = np.cos(np.pi * (k + 0.5) * k[:, None] / SIDE) * np.sqrt(2 / SIDE)
    waves[0] /= np.sqrt(2)
    order = sorted(((u, v) for u in k for v in k), key=lambda at: (at[0] ** 2 + at[1] ** 2, at))
    made = [
        np.einsum("c,h,w->chw", colour, waves[u], waves[v]).ravel() * max(np.hypot(u, v), 0.5)
        for colour, kept in zip(COLOURS, KEPT, strict=True)
        for u, v in order[:kept]
    ]
    return np.stack(made).astype(np.float32)
