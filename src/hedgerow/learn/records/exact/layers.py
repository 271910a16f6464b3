"""Layers with a matrix or a table: at one place of a record, at many, or read by number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from ...rowwise import kernels as rows
from .operations import Array, NoGraph, Operation, Shape, solid
from .parts import Formed, LayerGradients, Outer, TableGradients


def named(prefix: str, layer: nn.Module, name: str) -> tuple[str | None, str | None]:
    """A parameter's name in the whole module, None where the layer has none; and again, None where it is not trained."""
    value = getattr(layer, name, None)
    full = f"{prefix}.{name}".lstrip(".") if value is not None else None
    return full, full if value is not None and value.requires_grad else None


@dataclass(frozen=True)
class Linear(Operation):
    """A matrix, of shape (out, in), and a bias, at one place or at many: (n, ..., in) to (n, ..., out)."""

    weight: str
    bias: str | None
    weight_trained: str | None
    bias_trained: str | None
    relu: bool = False

    @classmethod
    def of(cls, layer: nn.Linear, prefix: str, shape: Shape) -> tuple[Linear, Shape]:
        """The operation of a layer on records of a shape, and the shape of what it gives."""
        if not shape or shape[-1] != layer.in_features:
            raise NoGraph(f"a layer of {layer.in_features} inputs reads records of shape {shape}")
        (weight, weight_trained), (bias, bias_trained) = named(prefix, layer, "weight"), named(prefix, layer, "bias")
        return cls(str(weight), bias, weight_trained, bias_trained), (*shape[:-1], layer.out_features)

    @property
    def parameters(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(name for name in (self.weight_trained, self.bias_trained) if name is not None)

    def prepare(self, weights: Mapping[str, Array]) -> Any:
        weight = weights[self.weight]
        start = None if self.bias is None else weights[self.bias]
        return rows.packed(weight, transposed=True), rows.packed(weight), start

    def forward(self, made: Any, *inputs: Array) -> tuple[Array, Any]:
        there, _, start = made
        a = solid(inputs[0])
        out = rows.multiply(a.reshape(-1, a.shape[-1]), there, start, self.relu).reshape(*a.shape[:-1], there.n)
        return out, (a, out)

    def before_relu(self, kept: Any, g: Array) -> Array:
        return rows.relu_slopes(solid(g), kept[1]) if self.relu else g

    def backward(self, made: Any, kept: Any, g: Array) -> tuple[Array, ...]:
        return (rows.multiply(solid(g).reshape(-1, g.shape[-1]), made[1]).reshape(kept[0].shape),)

    def parts(self, made: Any, kept: Any, g: Array) -> Iterator[LayerGradients]:
        a, g = kept[0], solid(g)
        if a.ndim == 2 and self.weight_trained:
            yield Outer(self.weight_trained, self.bias_trained, a, g)
            return
        m, n_in, n_out = len(a), a.shape[-1], g.shape[-1]
        slopes = g.reshape(m, -1, n_out)
        if self.weight_trained:
            where = np.arange(slopes.shape[1], dtype=np.int64) * n_in
            found = rows.outer_gathered(a.reshape(m, -1), where, np.arange(n_in, dtype=np.int64), slopes)
            yield Formed(self.weight_trained, found.reshape(m, -1), (n_out, n_in), (n_in, n_out), (1, 0))
        if self.bias_trained:
            yield Formed(self.bias_trained, rows.summed(slopes), (n_out,))


@dataclass(frozen=True)
class EmbeddedRows(Operation):
    """Rows of a table by their numbers: (n, ...) whole numbers to (n, ..., width); NaN for a number that it has not."""

    weight: str
    trained: str | None
    size: int
    width: int
    padding: int | None

    @classmethod
    def of(cls, layer: nn.Embedding, prefix: str, shape: Shape) -> tuple[EmbeddedRows, Shape]:
        """See `Linear.of`."""
        if layer.max_norm is not None or layer.scale_grad_by_freq or layer.sparse:
            raise NoGraph("an embedding whose rows change while they are read, or count by how often they are read")
        weight, trained = named(prefix, layer, "weight")
        return cls(str(weight), trained, layer.num_embeddings, layer.embedding_dim, layer.padding_idx), (
            *shape,
            layer.embedding_dim,
        )

    @property
    def parameters(self) -> tuple[str, ...]:  # type: ignore[override]
        return () if self.trained is None else (self.trained,)

    def prepare(self, weights: Mapping[str, Array]) -> Any:
        return weights[self.weight]

    def forward(self, made: Any, *inputs: Array) -> tuple[Array, Any]:
        index = inputs[0].reshape(len(inputs[0]), -1)
        there = (index >= 0) & (index < self.size)
        out = np.where(there[..., None], made[np.where(there, index, 0)], np.float32(np.nan))
        learned = there if self.padding is None else there & (index != self.padding)
        return out.reshape(*inputs[0].shape, self.width), np.where(learned, index, -1)

    def parts(self, made: Any, kept: Any, g: Array) -> Iterator[LayerGradients]:
        if self.trained is not None:
            index, sums = rows.combined(kept, solid(g).reshape(*kept.shape, self.width))
            yield TableGradients(self.trained, index, sums, (self.size, self.width))
