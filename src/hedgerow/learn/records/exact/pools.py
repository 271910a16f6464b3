"""Pools over the places of a record, as tables of windows."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import nn

from ...rowwise import kernels as rows
from .operations import Array, NoGraph, Operation, Shape, image, places


@dataclass(frozen=True, eq=False)
class Pool(Operation):
    """The largest number of each window, or its sum over a divisor.

    Attributes
    ----------
    windows : shape (windows, size)
        Places of the input, -1 where a window sticks out.
    divisor : shape (windows,), or None for the largest
    """

    before: Shape
    after: Shape
    windows: Array = field(repr=False)
    divisor: Array | None = None

    @classmethod
    def of(cls, layer: Any, prefix: str, shape: Shape) -> tuple[Pool, Shape]:
        """See `Linear.of`."""
        two = type(layer) in (nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d)
        if len(shape) != (3 if two else 2):
            raise NoGraph(f"{type(layer).__name__} reads records of shape {shape}")
        sizes = shape[1:]
        if isinstance(layer, nn.AdaptiveAvgPool1d | nn.AdaptiveAvgPool2d):
            wanted = _each(layer.output_size, sizes)
            axes = [
                [range(i * size // n, -(-(i + 1) * size // n)) for i in range(n)] for size, n in zip(sizes, wanted, strict=True)
            ]
            windows = _table(axes, sizes)
            return cls(sizes, tuple(wanted), windows, (windows >= 0).sum(1).astype(float)), (shape[0], *wanted)
        if layer.ceil_mode or getattr(layer, "return_indices", False) or getattr(layer, "divisor_override", None):
            raise NoGraph(f"{type(layer).__name__} with unusual settings")
        kernel, stride = _each(layer.kernel_size, sizes), _each(layer.stride, sizes)
        padding, dilation = _each(layer.padding, sizes), _each(getattr(layer, "dilation", 1), sizes)
        axes = []
        for size, k, s, pad, far in zip(sizes, kernel, stride, padding, dilation, strict=True):
            n = (size + 2 * pad - far * (k - 1) - 1) // s + 1
            if n < 1:
                raise NoGraph(f"a window of {k} on records of shape {shape}")
            axes.append([range(i * s - pad, i * s - pad + far * k, far) for i in range(n)])
        windows, after = _table(axes, sizes), tuple(len(axis) for axis in axes)
        if type(layer) in (nn.MaxPool1d, nn.MaxPool2d):
            return cls(sizes, after, windows), (shape[0], *after)
        counts = (windows >= 0).sum(1).astype(float)
        divisor = np.full(len(windows), float(math.prod(kernel))) if layer.count_include_pad else counts
        return cls(sizes, after, windows, divisor), (shape[0], *after)

    def forward(self, made: Any, *inputs: Array) -> tuple[Array, Any]:
        x = places(inputs[0])
        if self.divisor is not None:
            return image(rows.mean_pool(x, self.windows, self.divisor), self.after), None
        out, chosen = rows.max_pool(x, self.windows)
        return image(out, self.after), chosen

    def backward(self, made: Any, kept: Any, g: Array) -> tuple[Array, ...]:
        slopes, n = places(g), math.prod(self.before)
        if self.divisor is not None:
            return (image(rows.mean_pool_slopes(slopes, self.windows, self.divisor, n), self.before),)
        return (image(rows.max_pool_slopes(slopes, kept, n), self.before),)


def _each(given: Any, sizes: Shape) -> list[int]:
    """A setting for each axis; None keeps the size."""
    values = list(given) if isinstance(given, tuple | list) else [given] * len(sizes)
    return [size if value is None else int(value) for value, size in zip(values, sizes, strict=True)]


def _table(axes: list[list[range]], sizes: Shape) -> Array:
    """Windows over all axes, from those of each; of unequal ones the shorter are filled with -1."""
    found = []
    for window in itertools.product(*axes):
        place = [0]
        for along, size in zip(window, sizes, strict=True):
            place = [p * size + i if p >= 0 and 0 <= i < size else -1 for p in place for i in along]
        found.append(place)
    longest = max(map(len, found))
    return np.array([place + [-1] * (longest - len(place)) for place in found], np.int64)
