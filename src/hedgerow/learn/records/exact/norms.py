"""Norms of single records: over the last axes of each place, or over groups of channels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ...rowwise import kernels as rows
from .layers import named
from .operations import Array, NoGraph, Operation, Shape, image, places, solid
from .parts import Formed, LayerGradients


@dataclass(frozen=True)
class Norm(Operation):
    """Numbers less their mean, over their deviation, times a scale and plus an offset of each channel.

    Attributes
    ----------
    groups : int
        Of channels, for images; zero where statistics are of each place by itself.
    width : int
        Channels, or numbers of a place.
    """

    weight: str | None
    bias: str | None
    weight_trained: str | None
    bias_trained: str | None
    shape: Shape
    groups: int
    width: int
    after: Shape
    eps: float
    centred: bool

    @classmethod
    def of(cls, layer: nn.LayerNorm | nn.RMSNorm | nn.GroupNorm, prefix: str, shape: Shape) -> tuple[Norm, Shape]:
        """See `Linear.of`."""
        (weight, weight_trained), (bias, bias_trained) = named(prefix, layer, "weight"), named(prefix, layer, "bias")
        read = weight, bias, weight_trained, bias_trained
        if isinstance(layer, nn.GroupNorm):
            if not shape or shape[0] != layer.num_channels:
                raise NoGraph(f"a norm of {layer.num_channels} channels reads records of shape {shape}")
            return cls(*read, shape, layer.num_groups, shape[0], (shape[0],), layer.eps, True), shape
        after = tuple(layer.normalized_shape)
        if shape[-len(after) :] != after:
            raise NoGraph(f"a norm over {after} reads records of shape {shape}")
        eps = torch.finfo(torch.float32).eps if layer.eps is None else layer.eps
        return cls(*read, shape, 0, math.prod(after), after, eps, isinstance(layer, nn.LayerNorm)), shape

    @property
    def parameters(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(name for name in (self.weight_trained, self.bias_trained) if name is not None)

    def prepare(self, weights: Mapping[str, Array]) -> Any:
        return tuple(None if name is None else weights[name].reshape(-1) for name in (self.weight, self.bias))

    def _places(self, values: Array) -> Array:
        """As (n, places, width)."""
        return places(values) if self.groups else solid(values).reshape(len(values), -1, self.width)

    def _grouped(self, values: Array) -> Array:
        """Of (n, places, width), what statistics are taken of, (rows, places, groups, width)."""
        if self.groups:
            return values.reshape(*values.shape[:2], self.groups, -1)
        return values.reshape(-1, 1, 1, self.width)

    def _back(self, values: Array) -> Array:
        """In the records' shape."""
        return image(values, self.shape[1:]) if self.groups else values.reshape(len(values), *self.shape)

    def forward(self, made: Any, *inputs: Array) -> tuple[Array, Any]:
        x = self._places(inputs[0])
        out, inverse = rows.normalised(self._grouped(x), self.eps, centred=self.centred)
        out = out.reshape(x.shape)
        return self._back(rows.affine(out, *made)), (out, inverse)

    def backward(self, made: Any, kept: Any, g: Array) -> tuple[Array, ...]:
        out, inverse = kept
        steep = rows.affine(self._places(g), made[0])
        slopes = rows.normalised_slopes(self._grouped(steep), self._grouped(out), inverse, centred=self.centred)
        return (self._back(slopes.reshape(out.shape)),)

    def parts(self, made: Any, kept: Any, g: Array) -> Iterator[LayerGradients]:
        slopes = self._places(g)
        if self.weight_trained:
            yield Formed(self.weight_trained, rows.product_sums(slopes, kept[0]), self.after)
        if self.bias_trained:
            yield Formed(self.bias_trained, rows.summed(slopes), self.after)
