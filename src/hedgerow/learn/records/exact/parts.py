"""Gradients of one layer's parameters over some records, as whole numbers.

Three kinds: outer products, which are never written down; gradients that are formed one by one; and rows of a table. Each gives
its squared lengths, is made whole once the records' factors are known, and is added to an int64 total without rounding.

An outer product is rounded, which may lengthen it; `cut` records are cut off towards zero, which cannot. The other two are
always cut off.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ...rowwise import kernels as rows

Array = np.ndarray


class LayerGradients(ABC):
    """Gradients of a layer's parameters over n records.

    Attributes
    ----------
    names : tuple of str
        The parameters; the first decides the layer.
    shape : tuple of int
        Of the total that `add` takes.
    """

    names: tuple[str, ...]
    shape: tuple[int, ...]

    @abstractmethod
    def squares(self) -> Array:
        """Squared length of each record's gradient, (n,), float64; not finite where the gradient is not."""

    @abstractmethod
    def shorten(self, factor: Array, step: float, cut: Array | None) -> Array:
        """Make the gradients times factors of shape (n,) whole; return their squared lengths in steps, (n,), int64."""

    @abstractmethod
    def leave_out(self, which: Array) -> None:
        """Make zero of some records, (n,)."""

    @abstractmethod
    def add(self, total: Array) -> None:
        """Add the whole numbers to an int64 total, exactly."""

    @abstractmethod
    def named(self, total: Array) -> Mapping[str, Array]:
        """The total by parameter, each in its own shape."""


@dataclass
class Formed(LayerGradients):
    """Gradients that are there one by one.

    Parameters
    ----------
    g : shape (n, size)
    before, axes : tuple of int
        The total of `size` numbers has the shape `before`, and the parameter its axes in the order of `axes`.
    after : tuple of int
        The parameter's shape.
    """

    name: str
    g: Array
    after: tuple[int, ...]
    before: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()
    whole: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.names, self.shape = (self.name,), (self.g.shape[1],)

    def squares(self) -> Array:
        found: Array = rows.squares(self.g)
        return found

    def shorten(self, factor: Array, step: float, cut: Array | None) -> Array:
        used: Array
        self.whole, used = rows.steps(self.g, factor, step)
        return used

    def leave_out(self, which: Array) -> None:
        self.whole[which] = 0

    def add(self, total: Array) -> None:
        rows.add_steps(self.whole, total)

    def named(self, total: Array) -> Mapping[str, Array]:
        turned = total.reshape(self.before).transpose(self.axes) if self.before else total
        return {self.name: turned.reshape(self.after)}


@dataclass
class Outer(LayerGradients):
    """Outer products of slopes at a layer's output, (n, out), and what it read, (n, in), with a one appended for the bias."""

    weight: str
    bias: str | None
    read: Array
    slopes: Array

    def __post_init__(self) -> None:
        one = self.bias is not None
        self.names = (self.weight, self.bias) if self.bias is not None else (self.weight,)
        self.shape = (self.slopes.shape[1], self.read.shape[1] + one)
        self._a, self._scale, self._length = rows.whole(self.read, one)
        self._rest: dict[int, Formed] = {}
        for i in np.flatnonzero(self._length < 0):  # 16 bits do not describe rows of millions of equal numbers
            ones = np.append(self.read[i], np.float32(1)) if one else self.read[i]
            self._rest[int(i)] = Formed(self.weight, np.multiply.outer(self.slopes[i], ones).reshape(1, -1), self.shape)
        self._length = np.maximum(self._length, 0)

    def squares(self) -> Array:
        found: Array = rows.lengths(self.slopes, self._scale, self._length)
        for i, formed in self._rest.items():
            found[i] = formed.squares()[0]
        return found

    def shorten(self, factor: Array, step: float, cut: Array | None) -> Array:
        used: Array
        self._u, used = rows.shorten(self.slopes, factor, self._scale, self._length, step, cut)
        for i, formed in self._rest.items():
            used[i] = formed.shorten(factor[i : i + 1], step, None)[0]
        return used

    def leave_out(self, which: Array) -> None:
        self._u[which] = 0
        for i, formed in self._rest.items():
            formed.leave_out(which[i : i + 1])

    def add(self, total: Array) -> None:
        rows.add_outer(self._u, self._a, total)
        for formed in self._rest.values():
            formed.add(total.reshape(-1))

    def named(self, total: Array) -> Mapping[str, Array]:
        if self.bias is None:
            return {self.weight: total}
        return {self.weight: total[:, :-1], self.bias: total[:, -1]}


@dataclass
class TableGradients(LayerGradients):
    """Gradients of some rows of a table: their numbers (n, places), -1 where there is none, and slopes (n, places, width)."""

    name: str
    index: Array
    slopes: Array
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        self.names = (self.name,)
        self._flat = self.slopes.reshape(len(self.slopes), -1)

    def squares(self) -> Array:
        found: Array = rows.squares(self._flat)
        return found

    def shorten(self, factor: Array, step: float, cut: Array | None) -> Array:
        used: Array
        self._whole, used = rows.steps(self._flat, factor, step)
        return used

    def leave_out(self, which: Array) -> None:
        self._whole[which] = 0

    def add(self, total: Array) -> None:
        rows.add_steps_at(self._whole.reshape(self.slopes.shape), self.index, total)

    def named(self, total: Array) -> Mapping[str, Array]:
        return {self.name: total}
