"""Operations on records whose rows are independent: what they are, and those without parameters.

A value has the shape that it has in torch, (n, ...), in float32; its strides are free, so that images can be kept with channels
last. Sums are taken in a fixed order by `rowwise`; everything else is one rounding for each number, in any order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...rowwise import kernels as rows
from .parts import LayerGradients

Array = np.ndarray
Shape = tuple[int, ...]


class NoGraph(Exception):
    """A module is no chain of operations that are known; decided by the module and the shape of a record alone."""


class Operation(ABC):
    """One operation on records, as it stands in a graph."""

    parameters: tuple[str, ...] = ()
    """Names of the trained parameters whose gradients `parts` gives."""

    def prepare(self, weights: Mapping[str, Array]) -> Any:
        """What a broadcast's weights are made into, once."""
        return None

    @abstractmethod
    def forward(self, made: Any, *inputs: Array) -> tuple[Array, Any]:
        """The output, and what `backward` and `parts` need of it."""

    def before_relu(self, kept: Any, g: Array) -> Array:
        """What `backward` and `parts` take, from the gradient at the output: another one where the operation ends in a ReLU."""
        return g

    def backward(self, made: Any, kept: Any, g: Array) -> tuple[Array, ...]:
        """Gradients at the inputs; of numbers of rows there is none."""
        raise NotImplementedError

    def parts(self, made: Any, kept: Any, g: Array) -> Iterator[LayerGradients]:
        """Gradients of the trained parameters, record by record."""
        yield from ()


def solid(values: Array) -> Array:
    """The values in C order, float32."""
    return np.ascontiguousarray(values, np.float32)


def places(values: Array) -> Array:
    """Images of shape (n, channels, ...) as (n, places, channels)."""
    last = np.moveaxis(values, 1, -1)
    return solid(last).reshape(len(last), -1, last.shape[-1])


def image(values: Array, spatial: Shape) -> Array:
    """The inverse of `places`: a view of shape (n, channels, *spatial)."""
    return np.moveaxis(values.reshape(len(values), *spatial, values.shape[-1]), -1, 1)


@dataclass(frozen=True)
class Elementwise(Operation):
    """A function of each number; its slope is found from the gradient and the function's output, or its input."""

    function: Callable[[Array], Array]
    slopes: Callable[[Array, Array], Array]
    of_output: bool = True

    def forward(self, made: Any, *inputs: Array) -> tuple[Array, Any]:
        x = inputs[0]
        out = np.moveaxis(self.function(np.moveaxis(x, 1, -1)), -1, 1) if turned(x) else self.function(x)
        return out, out if self.of_output else x

    def backward(self, made: Any, kept: Any, g: Array) -> tuple[Array, ...]:
        return (slopes_as_laid(self.slopes, g, kept),)


def turned(values: Array) -> bool:
    """Whether these are images that lie in memory with their channels last."""
    return values.ndim > 2 and np.moveaxis(values, 1, -1).flags.c_contiguous


def slopes_as_laid(slopes: Callable[[Array, Array], Array], g: Array, kept: Array) -> Array:
    """Slopes from a gradient and a value of one shape, in the value's order in memory."""
    if not turned(kept):
        return slopes(g, kept)
    return np.moveaxis(slopes(np.moveaxis(g, 1, -1), np.moveaxis(kept, 1, -1)), -1, 1)


RELU = Elementwise(lambda x: np.maximum(x, np.float32(0)), rows.relu_slopes)
TANH = Elementwise(rows.tanh, rows.tanh_slopes)
SIGMOID = Elementwise(rows.sigmoid, rows.sigmoid_slopes)
SOFTPLUS = Elementwise(rows.softplus, rows.softplus_slopes, of_output=False)
GELU = Elementwise(rows.gelu, rows.gelu_slopes, of_output=False)
SILU = Elementwise(rows.silu, rows.silu_slopes, of_output=False)


@dataclass(frozen=True)
class Reshape(Operation):
    """Another shape of each record, the order of its numbers kept."""

    before: Shape
    after: Shape

    def __post_init__(self) -> None:
        if math.prod(self.before) != math.prod(self.after):
            raise NoGraph(f"records of shape {self.before} do not become {self.after}")

    def forward(self, made: Any, *inputs: Array) -> tuple[Array, Any]:
        return inputs[0].reshape(len(inputs[0]), *self.after), None

    def backward(self, made: Any, kept: Any, g: Array) -> tuple[Array, ...]:
        return (g.reshape(len(g), *self.before),)


@dataclass(frozen=True)
class Turned(Operation):
    """The axes of each record in another order; axis zero counts records and stays."""

    order: tuple[int, ...]

    def forward(self, made: Any, *inputs: Array) -> tuple[Array, Any]:
        return inputs[0].transpose(self.order), None

    def backward(self, made: Any, kept: Any, g: Array) -> tuple[Array, ...]:
        return (g.transpose(tuple(np.argsort(self.order))),)


@dataclass(frozen=True)
class Mean(Operation):
    """The mean over some axes of each record, the last of them first."""

    shape: Shape
    axes: tuple[int, ...]
    keep: bool

    def forward(self, made: Any, *inputs: Array) -> tuple[Array, Any]:
        kept = [axis for axis in range(1, inputs[0].ndim) if axis not in self.axes]
        turned = solid(np.moveaxis(inputs[0], self.axes, range(1, 1 + len(self.axes))))
        out = rows.summed(turned.reshape(len(turned), -1, math.prod(self.shape[axis - 1] for axis in kept)))
        out = out / np.float32(self._places)
        return out.reshape(len(out), *self.after), None

    def backward(self, made: Any, kept: Any, g: Array) -> tuple[Array, ...]:
        wide = tuple(1 if axis + 1 in self.axes else size for axis, size in enumerate(self.shape))
        share = (g / np.float32(self._places)).reshape(len(g), *wide)
        return (np.broadcast_to(share, (len(g), *self.shape)),)

    @property
    def after(self) -> Shape:
        if self.keep:
            return tuple(1 if axis + 1 in self.axes else size for axis, size in enumerate(self.shape))
        return tuple(size for axis, size in enumerate(self.shape) if axis + 1 not in self.axes)

    @property
    def _places(self) -> int:
        return math.prod(self.shape[axis - 1] for axis in self.axes)


@dataclass(frozen=True)
class Addition(Operation):
    """Two values of one shape, added."""

    def forward(self, made: Any, *inputs: Array) -> tuple[Array, Any]:
        return inputs[0] + inputs[1], None

    def backward(self, made: Any, kept: Any, g: Array) -> tuple[Array, ...]:
        return g, g


@dataclass(frozen=True)
class Scaled(Operation):
    """Every number times one, and plus another."""

    by: float = 1.0
    plus: float = 0.0

    def forward(self, made: Any, *inputs: Array) -> tuple[Array, Any]:
        return inputs[0] * np.float32(self.by) + np.float32(self.plus), None

    def backward(self, made: Any, kept: Any, g: Array) -> tuple[Array, ...]:
        return (g * np.float32(self.by),)


@dataclass(frozen=True)
class Numbered(Operation):
    """Numbers cut off to whole ones, as rows of a table; what is not finite, or far from every table, is -1."""

    def forward(self, made: Any, *inputs: Array) -> tuple[Array, Any]:
        there = (inputs[0] > -1) & (inputs[0] < 2**31)
        return np.where(there, inputs[0], np.float32(-1)).astype(np.int64), None
