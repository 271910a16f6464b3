"""Circuits of rows of whole numbers: ranges by bits, and what their sum may be.

    0..most by bits      weights 1, 2, .., 2^(b-2), most - 2^(b-1) + 1: every vector of bits stands for a number in 0..most
    many bits at once    sum_j r^(j+1) x_j (x_j - 1) = 0, one call a chunk with its own r, which is joint randomness

Every circuit has `encode`, from a row to numbers of the field, and `truncate`, from (shares of) these to (shares of) the row.
Bits are cut in numpy without branches on values; Python does not run in constant time.

Source   : VDAF (draft-irtf-cfrg-vdaf-20), section 7.4; L1BoundSum: draft-ietf-ppm-l1-bound-sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from .field import Field
from .flp import Circuit, Gadget, chunk_of, padded
from .transforms import powers


class RowCircuit(Circuit, Protocol):
    """A circuit that says how a row is laid out."""

    @property
    def length(self) -> int:
        """Numbers of the row."""
        ...

    def encode(self, row: Any) -> Array:
        """Return a row as the numbers of the field that are shared, shape (size,); nothing is checked: that is the proof's."""
        ...

    def truncate(self, encoded: Array) -> Array:
        """Return (shares of) the row, shape (..., length), from (shares of) what is encoded."""
        ...


def weights(most: int) -> list[int]:
    """Return the weights of bits for 0..most, most >= 1."""
    n = most.bit_length()
    return [1 << i for i in range(n - 1)] + [most - (1 << (n - 1)) + 1]


def bits(field: Field, values: Array, most: int) -> Array:
    """Return the bits of whole numbers, shape (n,), as shape (n, b): those of a number in 0..most, else those of its rest."""
    w = weights(most)
    given = np.asarray(values, object if most >= 1 << 62 else np.int64)
    last = (given >= 1 << (len(w) - 1)).astype(given.dtype)
    rest = given - last * w[-1]
    shifts = np.arange(len(w) - 1).astype(given.dtype)
    low = (rest[:, None] >> shifts) & 1
    out: Array = field.of(np.concatenate([low, last[:, None]], axis=1))
    return out


@lru_cache(maxsize=64)
def _weights(field: Field, most: int) -> Array:
    return field.of(weights(most))


def number(field: Field, encoded: Array, most: int) -> Array:
    """Return the number that bits along the last axis stand for."""
    return field.sum(field.mul(encoded, _weights(field, most)))


def share_of(field: Field, value: int, shares: int) -> Array:
    """Return a constant's share, of shape (): all `shares` are equal."""
    return field.constant(value * pow(shares, -1, field.modulus))


def bit_inputs(field: Field, row: Array, joint: Array, chunk: int, shares: int) -> Array:
    """Return r^(j+1) x_j, x_j - 1, for the j-th number of each chunk: shape (..., calls, 2 chunk)."""
    x = padded(field, row, chunk)
    x = x.reshape(*x.shape[:-1], -1, chunk)
    first = field.mul(powers(field, joint, chunk + 1)[..., 1:], x)
    second = field.sub(x, share_of(field, 1, shares))
    return paired(first, second)


def paired(a: Array, b: Array) -> Array:
    """Return a and b alternately along the last axis."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    out = np.empty((*shape, 2), a.dtype)
    out[..., 0], out[..., 1] = a, b
    return out.reshape(*shape[:-1], 2 * shape[-1])


def _whole(**values: int) -> None:
    for name, value in values.items():
        if type(value) is not int or value < 1:
            raise SettingsInvalid(f"{name}={value!r}.", remedy="Give a whole number from 1 on.")


def _unwrapped(field: Field, largest: int) -> None:
    """Refuse sizes at which whole numbers that differ are the same number of the field, so that a false sum is a true one."""
    if largest >= field.modulus:
        raise SettingsInvalid(
            f"numbers and sums of up to {largest} in a field of {field.modulus}: a false one could wrap around.",
            remedy="Prove shorter rows or smaller numbers.",
        )


@dataclass(frozen=True)
class Count:
    """One number, 0 or 1."""

    field: Field
    length = size = outs = 1
    joint = 0
    gadgets = (Gadget("products", 2, 1),)

    def encode(self, row: Any) -> Array:
        return self.field.of(np.reshape(row, 1))

    def truncate(self, encoded: Array) -> Array:
        return encoded

    def inputs(self, row: Array, joint: Array, shares: int) -> list[Array]:
        return [np.stack([row, row], axis=-1)]

    def outputs(self, values: list[Array], row: Array, joint: Array, shares: int) -> Array:
        return self.field.sub(values[0], row)


@dataclass(frozen=True)
class BoundedSum:
    """One number in 0..most."""

    field: Field
    most: int
    length = 1
    joint = 0

    def __post_init__(self) -> None:
        _whole(most=self.most)
        _unwrapped(self.field, self.most)

    @property
    def size(self) -> int:
        return self.most.bit_length()

    outs = size

    @property
    def gadgets(self) -> tuple[Gadget, ...]:
        return (Gadget("bit", 1, self.size),)

    def encode(self, row: Any) -> Array:
        encoded: Array = bits(self.field, np.reshape(row, 1), self.most)[0]
        return encoded

    def truncate(self, encoded: Array) -> Array:
        return number(self.field, encoded, self.most)[..., None]

    def inputs(self, row: Array, joint: Array, shares: int) -> list[Array]:
        return [row[..., None]]

    def outputs(self, values: list[Array], row: Array, joint: Array, shares: int) -> Array:
        return values[0]


@dataclass(frozen=True)
class SumVec:
    """Numbers that are each in 0..most; `chunk` of 0 chooses the shortest proof."""

    field: Field
    length: int
    most: int
    chunk: int = 0
    outs = 1

    def __post_init__(self) -> None:
        _whole(length=self.length, most=self.most)
        _unwrapped(self.field, self.most)
        object.__setattr__(self, "chunk", self.chunk or chunk_of(self.size, 2))

    @cached_property
    def size(self) -> int:
        return self.length * self.most.bit_length()

    @property
    def joint(self) -> int:
        return -(-self.size // self.chunk)

    @property
    def gadgets(self) -> tuple[Gadget, ...]:
        return (Gadget("products", 2 * self.chunk, self.joint),)

    def encode(self, row: Any) -> Array:
        return bits(self.field, np.asarray(row), self.most).reshape(-1)

    def truncate(self, encoded: Array) -> Array:
        return number(self.field, encoded.reshape(*encoded.shape[:-1], self.length, -1), self.most)

    def inputs(self, row: Array, joint: Array, shares: int) -> list[Array]:
        return [bit_inputs(self.field, row, joint, self.chunk, shares)]

    def outputs(self, values: list[Array], row: Array, joint: Array, shares: int) -> Array:
        return self.field.sum(values[0])[..., None]


@dataclass(frozen=True)
class L1BoundSum:
    """Numbers that are each in 0..most and whose sum is in 0..most; `chunk` of 0 chooses the shortest proof."""

    field: Field
    length: int
    most: int
    chunk: int = 0
    outs = 2

    def __post_init__(self) -> None:
        _whole(length=self.length, most=self.most)
        _unwrapped(self.field, self.length * self.most)
        object.__setattr__(self, "chunk", self.chunk or chunk_of(self.size, 2))

    @cached_property
    def size(self) -> int:
        return (self.length + 1) * self.most.bit_length()

    @property
    def joint(self) -> int:
        return -(-self.size // self.chunk)

    @property
    def gadgets(self) -> tuple[Gadget, ...]:
        return (Gadget("products", 2 * self.chunk, self.joint),)

    def encode(self, row: Any) -> Array:
        given = np.asarray(row)
        return bits(self.field, np.append(given, given.sum()), self.most).reshape(-1)

    def _numbers(self, encoded: Array) -> Array:
        return number(self.field, encoded.reshape(*encoded.shape[:-1], self.length + 1, -1), self.most)

    def truncate(self, encoded: Array) -> Array:
        return self._numbers(encoded)[..., :-1]

    def inputs(self, row: Array, joint: Array, shares: int) -> list[Array]:
        return [bit_inputs(self.field, row, joint, self.chunk, shares)]

    def outputs(self, values: list[Array], row: Array, joint: Array, shares: int) -> Array:
        x = self._numbers(row)
        return _both(self.field.sum(values[0]), self.field.sub(self.field.sum(x[..., :-1]), x[..., -1]))


@dataclass(frozen=True)
class Histogram:
    """Zeros and a single one; a row is the place of the one, or the zeros and ones themselves. `chunk` of 0 as above."""

    field: Field
    length: int
    chunk: int = 0
    outs = 2

    def __post_init__(self) -> None:
        _whole(length=self.length)
        object.__setattr__(self, "chunk", self.chunk or chunk_of(self.length, 2))

    @property
    def size(self) -> int:
        return self.length

    @property
    def joint(self) -> int:
        return -(-self.size // self.chunk)

    @property
    def gadgets(self) -> tuple[Gadget, ...]:
        return (Gadget("products", 2 * self.chunk, self.joint),)

    def encode(self, row: Any) -> Array:
        place = np.asarray(row)
        return self.field.of((np.arange(self.length) == place).astype(np.int64) if place.ndim == 0 else place)

    def truncate(self, encoded: Array) -> Array:
        return encoded

    def inputs(self, row: Array, joint: Array, shares: int) -> list[Array]:
        return [bit_inputs(self.field, row, joint, self.chunk, shares)]

    def outputs(self, values: list[Array], row: Array, joint: Array, shares: int) -> Array:
        field = self.field
        return _both(field.sum(values[0]), field.sub(field.sum(row), share_of(field, 1, shares)))


@dataclass(frozen=True)
class Multihot:
    """Zeros and at most `most` ones; `chunk` of 0 chooses the shortest proof."""

    field: Field
    length: int
    most: int
    chunk: int = 0
    outs = 2

    def __post_init__(self) -> None:
        _whole(length=self.length, most=self.most)
        _unwrapped(self.field, max(self.length, self.most))
        object.__setattr__(self, "chunk", self.chunk or chunk_of(self.size, 2))

    @cached_property
    def size(self) -> int:
        return self.length + self.most.bit_length()

    @property
    def joint(self) -> int:
        return -(-self.size // self.chunk)

    @property
    def gadgets(self) -> tuple[Gadget, ...]:
        return (Gadget("products", 2 * self.chunk, self.joint),)

    def encode(self, row: Any) -> Array:
        given = np.asarray(row).astype(np.int64)
        encoded: Array = np.concatenate([self.field.of(given), bits(self.field, given.sum(keepdims=True), self.most)[0]])
        return encoded

    def truncate(self, encoded: Array) -> Array:
        return encoded[..., : self.length]

    def inputs(self, row: Array, joint: Array, shares: int) -> list[Array]:
        return [bit_inputs(self.field, row, joint, self.chunk, shares)]

    def outputs(self, values: list[Array], row: Array, joint: Array, shares: int) -> Array:
        field = self.field
        claimed = number(field, row[..., self.length :], self.most)
        return _both(field.sum(values[0]), field.sub(field.sum(row[..., : self.length]), claimed))


def _both(a: Array, b: Array) -> Array:
    """Return two outputs of equal leading axes; those without a proofs' axis of their own are repeated."""
    out: Array = np.stack(np.broadcast_arrays(a, b), axis=-1)
    return out
