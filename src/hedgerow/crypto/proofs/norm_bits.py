"""A bound on the Euclidean norm of a short row, by bits of every number: no wrap-around is possible, so none is checked.

    shared     bits of x_i + M, M = floor(sqrt(B)) | bits of v in 0..B
    holds      all bits are bits; sum x_i^2 = v

The circuit's row is x_i + M. Every x_i is in -M .. M whatever the bits are, so the sum of squares stays below q. Shorter than
PINE for up to a few hundred numbers.

Source   : SumVec of VDAF (draft-irtf-cfrg-vdaf-20), section 7.4.3, and the norm circuit of PINE; put together here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from .circuits import bit_inputs, bits, number, share_of
from .field import Field
from .flp import Gadget, chunk_of, padded
from .signs import squared_norm


@dataclass(frozen=True)
class NormBits:
    """Numbers of either sign whose squares sum to at most `bound2`; the circuit's row is what they are above `-largest`.

    Parameters
    ----------
    field : Field
    length : int
    bound2 : int
        B, the largest squared norm.
    chunk, chunk_squares : int
        Numbers to a gadget call; 0 chooses the shortest proof.
    """

    field: Field
    length: int
    bound2: int
    chunk: int = 0
    chunk_squares: int = 0
    outs = 2

    def __post_init__(self) -> None:
        if self.length < 1 or self.bound2 < 1 or self.length * self.largest**2 >= self.field.modulus:
            raise SettingsInvalid(
                f"{self.length} numbers with a squared norm of up to {self.bound2}: squares could wrap around the field.",
                remedy="Use PINE, or a coarser step.",
            )
        object.__setattr__(self, "chunk", self.chunk or chunk_of(self.size, 2))
        object.__setattr__(self, "chunk_squares", self.chunk_squares or chunk_of(self.length, 1))

    @cached_property
    def largest(self) -> int:
        """M: no number is beyond it."""
        return math.isqrt(self.bound2)

    @property
    def n_bits(self) -> int:
        """Bits of all numbers."""
        return self.length * (2 * self.largest).bit_length()

    @property
    def size(self) -> int:
        return self.n_bits + self.bound2.bit_length()

    @property
    def joint(self) -> int:
        return -(-self.size // self.chunk)

    @property
    def gadgets(self) -> tuple[Gadget, ...]:
        return (
            Gadget("products", 2 * self.chunk, self.joint),
            Gadget("squares", self.chunk_squares, -(-self.length // self.chunk_squares)),
        )

    def encode(self, row: Any) -> Array:
        given = np.asarray(row, np.int64)
        norm = bits(self.field, np.array([self.claim(given - self.largest)], object), self.bound2)
        return np.concatenate([bits(self.field, given, 2 * self.largest).reshape(-1), norm[0]])

    def claim(self, row: Array) -> int:
        """Return v, the squared norm that a party claims; one beyond the bound stays one."""
        return min(squared_norm(row), max(self.bound2 + 1, 1 << 62))

    def truncate(self, encoded: Array) -> Array:
        x = encoded[..., : self.n_bits]
        return number(self.field, x.reshape(*x.shape[:-1], self.length, -1), 2 * self.largest)

    def inputs(self, row: Array, joint: Array, shares: int) -> list[Array]:
        centred = self.field.sub(self.truncate(row), share_of(self.field, self.largest, shares))
        x = padded(self.field, centred, self.chunk_squares)
        return [
            bit_inputs(self.field, row, joint, self.chunk, shares),
            x.reshape(*x.shape[:-1], -1, self.chunk_squares),
        ]

    def outputs(self, values: list[Array], row: Array, joint: Array, shares: int) -> Array:
        field = self.field
        claimed = number(field, row[..., self.n_bits :], self.bound2)
        binary, norm = field.sum(values[0]), field.sub(claimed, field.sum(values[1]))
        out: Array = np.stack(np.broadcast_arrays(binary, norm), axis=-1)
        return out
