"""Convolutions as products of what is gathered: where each place of the output starts, and how far from there its terms lie.

    forward        out[place] = bias + sum over taps and channels    x[place + tap, channel] W[tap, channel]
    backward       one such product for each class of input places that the same taps read: stride^2 of them, one without stride
    of a weight    sum over places    x[place + tap, channel] g[place]     with places and taps exchanged, for each record

Images are padded with zeros and have their channels last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from torch import nn

from ...rowwise import kernels as rows
from .layers import named
from .operations import Array, NoGraph, Operation, Shape, image, slopes_as_laid, solid
from .parts import Formed, LayerGradients


@dataclass(frozen=True)
class Axis:
    """One axis of the places of a convolution: its taps, and how far its input is padded before and after."""

    size: int
    taps: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def wide(self) -> int:
        """Places of the padded input."""
        return self.size + self.before + self.after

    @property
    def out(self) -> int:
        return (self.wide - self.dilation * (self.taps - 1) - 1) // self.stride + 1

    def readers(self, first: int) -> list[tuple[int, int]]:
        """Taps that read input places first, first + stride, ..., and by how many output places theirs lie off."""
        shifts = ((tap, first + self.before - tap * self.dilation) for tap in range(self.taps))
        return [(tap, shift // self.stride) for tap, shift in shifts if shift % self.stride == 0]

    @cached_property
    def margins(self) -> tuple[int, int]:
        """Zeros before and after the gradients at the output, so that each reader finds its place."""
        reach = [
            (shift, shift + (self.size - 1 - first) // self.stride)
            for first in range(min(self.stride, self.size))
            for _, shift in self.readers(first)
        ]
        return max((0, *(-low for low, _ in reach))), max((0, *(high - self.out + 1 for _, high in reach)))


def grid(*steps: Array) -> Array:
    """Sums of one number of each, the last the quickest, as int64."""
    total = np.zeros(1, np.int64)
    for step in steps:
        total = (total[:, None] + np.asarray(step, np.int64)).reshape(-1)
    return total


@dataclass(frozen=True)
class Convolution(Operation):
    """A convolution over two axes, of which the first has one place for signals."""

    weight: str
    bias: str | None
    weight_trained: str | None
    bias_trained: str | None
    channels: int
    n_out: int
    groups: int
    axes: tuple[Axis, Axis]
    flat: bool
    relu: bool = False

    @classmethod
    def of(cls, layer: nn.Conv1d | nn.Conv2d, prefix: str, shape: Shape) -> tuple[Convolution, Shape]:
        """See `Linear.of`."""
        flat = type(layer) is nn.Conv1d
        if layer.padding_mode != "zeros" or len(shape) != (2 if flat else 3) or shape[0] != layer.in_channels:
            raise NoGraph(f"a convolution with {layer.padding_mode} padding on records of shape {shape}")
        pads = layer._reversed_padding_repeated_twice
        axes = [
            Axis(size, layer.kernel_size[i], layer.stride[i], layer.dilation[i], pads[-2 * i - 2], pads[-2 * i - 1])
            for i, size in enumerate(shape[1:])
        ]
        if any(axis.out < 1 for axis in axes):
            raise NoGraph(f"a kernel of {layer.kernel_size} on records of shape {shape}")
        both = (Axis(1, 1, 1, 1, 0, 0), axes[0]) if flat else (axes[0], axes[1])
        (weight, weight_trained), (bias, bias_trained) = named(prefix, layer, "weight"), named(prefix, layer, "bias")
        made = cls(str(weight), bias, weight_trained, bias_trained, shape[0], layer.out_channels, layer.groups, both, flat)
        return made, (layer.out_channels, *(axis.out for axis in axes))

    @property
    def parameters(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(name for name in (self.weight_trained, self.bias_trained) if name is not None)

    @property
    def _sizes(self) -> tuple[int, int]:
        """Channels of the input and of the output that one group has."""
        return self.channels // self.groups, self.n_out // self.groups

    @cached_property
    def where(self) -> Array:
        """Where each place of the output starts in a padded record."""
        down, across = self.axes
        row = across.wide * self.channels
        return grid(np.arange(down.out) * down.stride * row, np.arange(across.out) * across.stride * self.channels)

    @cached_property
    def terms(self) -> list[Array]:
        """How far from there each tap and channel lies, for each group."""
        (down, across), (n, _) = self.axes, self._sizes
        row = across.wide * self.channels
        taps = np.arange(down.taps) * down.dilation * row, np.arange(across.taps) * across.dilation * self.channels
        return [grid(*taps, np.arange(n) + group * n) for group in range(self.groups)]

    @cached_property
    def classes(self) -> list[tuple[tuple[int, int], list[tuple[int, int]], Array, list[Array]]]:
        """Classes of input places: the first place of each, its taps, and where and how far away their gradients lie."""
        (down, across), (_, n) = self.axes, self._sizes
        (above, _), (left, right) = down.margins, across.margins
        step = self.n_out
        row = (left + across.out + right) * step
        found = []
        for first in product(range(min(down.stride, down.size)), range(min(across.stride, across.size))):
            read = list(product(down.readers(first[0]), across.readers(first[1])))
            counts = [-(-(axis.size - f) // axis.stride) for axis, f in zip(self.axes, first, strict=True)]
            where = grid((np.arange(counts[0]) + above) * row, (np.arange(counts[1]) + left) * step)
            far = np.array([y * row + x * step for (_, y), (_, x) in read], np.int64)
            taps = [(y, x) for (y, _), (x, _) in read]
            found.append((first, taps, where, [grid(far, np.arange(n) + group * n) for group in range(self.groups)]))
        return found

    def prepare(self, weights: Mapping[str, Array]) -> Any:
        (n_in, n_out), (down, across) = self._sizes, self.axes
        weight = weights[self.weight].reshape(self.groups, n_out, n_in, down.taps, across.taps)
        there = [rows.packed(solid(part.transpose(2, 3, 1, 0).reshape(-1, n_out))) for part in weight]
        back = [
            [rows.packed(solid(np.stack([part[:, :, y, x] for y, x in taps]).reshape(-1, n_in))) for part in weight]
            if taps
            else []
            for _, taps, _, _ in self.classes
        ]
        bias = [None] * self.groups if self.bias is None else weights[self.bias].reshape(self.groups, n_out)
        return there, back, bias

    def forward(self, made: Any, *inputs: Array) -> tuple[Array, Any]:
        down, across = self.axes
        x = inputs[0][:, :, None] if self.flat else inputs[0]
        padded = np.zeros((len(x), down.wide, across.wide, self.channels), np.float32)
        padded[:, down.before : down.before + down.size, across.before : across.before + across.size] = x.transpose(0, 2, 3, 1)
        flat = padded.reshape(len(x), -1)
        there, _, bias = made
        each = [rows.gathered(flat, self.where, self.terms[i], there[i], bias[i], self.relu) for i in range(self.groups)]
        out = each[0] if self.groups == 1 else np.concatenate(each, axis=2)
        out = image(out, (across.out,) if self.flat else (down.out, across.out))
        return out, (flat, out)

    def before_relu(self, kept: Any, g: Array) -> Array:
        return slopes_as_laid(rows.relu_slopes, g, kept[1]) if self.relu else g

    def _slopes(self, g: Array) -> Array:
        """Gradients at the output, (n, down, across, out), with channels last."""
        return solid((g[:, :, None] if self.flat else g).transpose(0, 2, 3, 1))

    def backward(self, made: Any, kept: Any, g: Array) -> tuple[Array, ...]:
        (down, across), (n_in, _) = self.axes, self._sizes
        (above, below), (left, right) = down.margins, across.margins
        wide = np.pad(self._slopes(g), ((0, 0), (above, below), (left, right), (0, 0))).reshape(len(g), -1)
        out = np.zeros((len(g), down.size, across.size, self.channels), np.float32)
        for (first, _, where, far), packed in zip(self.classes, made[1], strict=True):
            places = out[:, first[0] :: down.stride, first[1] :: across.stride]
            for i, weight in enumerate(packed):
                channels = slice(i * n_in, (i + 1) * n_in)
                places[..., channels] = rows.gathered(wide, where, far[i], weight).reshape(places[..., channels].shape)
        return (image(out.reshape(len(g), -1, self.channels), (across.size,) if self.flat else (down.size, across.size)),)

    def parts(self, made: Any, kept: Any, g: Array) -> Iterator[LayerGradients]:
        (n_in, n_out), (down, across) = self._sizes, self.axes
        slopes = self._slopes(g).reshape(len(g), -1, self.n_out)
        if self.weight_trained:
            each = [
                rows.outer_gathered(kept[0], self.where, self.terms[i], solid(slopes[..., i * n_out : (i + 1) * n_out]))
                for i in range(self.groups)
            ]
            found = each[0] if self.groups == 1 else np.concatenate(each, axis=1)
            kernel = (across.taps,) if self.flat else (down.taps, across.taps)
            yield Formed(
                self.weight_trained,
                found.reshape(len(g), -1),
                (self.n_out, n_in, *kernel),
                (self.groups, down.taps, across.taps, n_in, n_out),
                (0, 4, 3, 1, 2),
            )
        if self.bias_trained:
            yield Formed(self.bias_trained, rows.summed(slopes), (self.n_out,))
