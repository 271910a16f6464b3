"""PINE's sizes and its two circuits: what is shared of a row whose Euclidean norm is bounded, and what must hold of it.

    shared     x | bits of v | bits of u | for each check: bits of y_i + W - 1, and g_i, whether it passed
    norm       sum x^2 = v                    a circuit of its own, without joint randomness: nothing to search for at home
    rest       all bits are bits; v + u = B; g_i (y_i - claimed_i) = 0; sum g_i = the number that must pass
    y_i        z_i . x with random z_i of -1, 0, 1: linear, so each aggregator computes its own share

B is the largest squared norm in steps, W the least power of two from alpha sqrt(B) + 1 on.

How large the field must be. Let x be centred numbers with sum x^2 >= q as whole numbers, although it is v <= B modulo q. One
check passes with probability at most 1/2 if q >= 128 W^2:

    some |x_i| >= 2W       given all other signs, y is c - x_i, c, c + x_i with 1/4, 1/2, 1/4, and an interval of 2W numbers
                           (modulo q) does not hold c and a neighbour: at most 1/2, which one coordinate alone reaches.
    all |x_i| < 2W         s^2 = |x|^2 / 2 >= q / 2. Take coordinates until their s^2 lies between q/2 and q/2 + 2 W^2, and
                           condition on the others: y is sub-Gaussian and stays within q/2 of its centre, so a single interval
                           counts. By Berry and Esseen it is hit with at most 2W / (s sqrt(2 pi)) + 2 * 0.56 * 2W / s
                           <= 3.04 W / s, and W / s <= 1/8: 0.38.

The range check of v and u needs q > 3 B + 2. The published reference code asks for 2600 W <= q and W^2 <= 4000 q only, which
admits unsound sizes: at B = 2^58 in Field64 a row of eight times the bound passes every check. Its rule is here under
`as_drafted`, to read its vectors, whose sizes are sound.

An honest row fails one check with at most 2 exp(-alpha^2) (Hoeffding): 2^-108 at alpha = 8.7.

Source   : PINE (Rothblum, Omri, Chen, Talwar 2023); draft-chen-cfrg-vdaf-pine. Differs: the rule for the field, derived above.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from .circuits import paired, share_of
from .field import Field
from .flp import Gadget, chunk_of, padded
from .transforms import powers

DRAFT_LEAST, DRAFT_MOST = 2600, 4000


@dataclass(frozen=True)
class PineShape:
    """Public parameters of PINE, and the sizes that follow.

    Parameters
    ----------
    field : Field
    length : int
        Numbers of the row.
    bound2 : int
        B, the largest squared norm, in steps.
    checks, passes : int
        Wrap-around checks, and how many must pass: 0, all, unless `as_drafted`. A false row has 2^-checks, which its maker can
        search for at home.
    alpha : float
        An honest row fails one check with at most 2 exp(-alpha^2).
    chunk, chunk_norm : int
        Numbers to a gadget call of the two circuits; 0 chooses the shortest proofs.
    as_drafted : bool
        Checks sizes by the reference code's rule, which is not sound.
    """

    field: Field
    length: int
    bound2: int
    checks: int = 128
    passes: int = 0
    alpha: float = 8.7
    chunk: int = 0
    chunk_norm: int = 0
    as_drafted: bool = False

    def __post_init__(self) -> None:
        if self.length < 1 or self.bound2 < 1 or self.checks < 1 or not 0 <= self.passes <= self.checks:
            raise SettingsInvalid(
                f"length {self.length}, squared bound {self.bound2}, {self.passes} of {self.checks} checks.",
                remedy="Give whole numbers from 1 on, and at most as many passes as checks.",
            )
        if not self.as_drafted and self.passes not in (0, self.checks):
            raise SettingsInvalid(
                f"{self.passes} of {self.checks} checks must pass: a false row passes half of them.", remedy="Let all pass."
            )
        if not 0 < self.alpha < math.inf:
            raise SettingsInvalid(f"alpha={self.alpha!r}.", remedy="Give 8.7, at which an honest row fails with 2^-108.")
        object.__setattr__(self, "passes", self.passes or self.checks)
        object.__setattr__(self, "chunk", self.chunk or chunk_of(self.n_bits, 2))
        object.__setattr__(self, "chunk_norm", self.chunk_norm or chunk_of(self.length, 1))
        q, w = self.field.modulus, self.reach
        if q <= 3 * self.bound2 + 2 or not (self._drafted(q, w) if self.as_drafted else q >= 128 * w * w):
            raise SettingsInvalid(
                f"a squared bound of {self.bound2} steps is too large for a field of {q}: a row that wraps around would pass.",
                remedy="Make the step coarser.",
            )

    @staticmethod
    def _drafted(q: int, w: int) -> bool:
        return DRAFT_LEAST * w <= q and w * w <= DRAFT_MOST * q

    @cached_property
    def reach(self) -> int:
        """W: a dot product passes in -W + 1 .. W."""
        return 1 << math.ceil(self.alpha * math.sqrt(self.bound2)).bit_length()

    @cached_property
    def check_bits(self) -> int:
        """Bits of a dot product."""
        return (2 * self.reach - 1).bit_length()

    @cached_property
    def norm_bits(self) -> int:
        """Bits of v, and of u."""
        return self.bound2.bit_length()

    @property
    def head(self) -> int:
        """Numbers that are fixed before the vectors of signs: the row, v and u."""
        return self.length + 2 * self.norm_bits

    @property
    def n_bits(self) -> int:
        """All bits."""
        return 2 * self.norm_bits + (self.check_bits + 1) * self.checks

    @property
    def shared(self) -> int:
        """Numbers that are shared; a circuit's `size` has the dot products too."""
        return self.length + self.n_bits


def binary(field: Field, value: int, n: int) -> Array:
    """Return the lowest n bits of a whole number."""
    return field.of(np.array([value >> i & 1 for i in range(n)], np.int64))


def valued(field: Field, bits: Array) -> Array:
    """Return sum_i 2^i b_i along the last axis."""
    return field.sum(field.mul(bits, powers(field, field.constant(2), bits.shape[-1])))


@dataclass(frozen=True)
class NormCircuit:
    """The row's squares add up to v."""

    shape: PineShape
    joint = 0
    outs = 1

    @property
    def field(self) -> Field:
        return self.shape.field

    @property
    def size(self) -> int:
        return self.shape.shared + self.shape.checks

    @property
    def gadgets(self) -> tuple[Gadget, ...]:
        s = self.shape
        return (Gadget("squares", s.chunk_norm, -(-s.length // s.chunk_norm)),)

    def inputs(self, row: Array, joint: Array, shares: int) -> list[Array]:
        s = self.shape
        x = padded(s.field, row[..., : s.length], s.chunk_norm)
        return [x.reshape(*x.shape[:-1], -1, s.chunk_norm)]

    def outputs(self, values: list[Array], row: Array, joint: Array, shares: int) -> Array:
        s = self.shape
        v = valued(s.field, row[..., s.length : s.length + s.norm_bits])
        return s.field.sub(v, s.field.sum(values[0]))[..., None]


@dataclass(frozen=True)
class RestCircuit:
    """All bits are bits, v is at most the bound, and the dot products, which follow the row, are short."""

    shape: PineShape
    joint = 3
    outs = 1

    @property
    def field(self) -> Field:
        return self.shape.field

    @property
    def size(self) -> int:
        return self.shape.shared + self.shape.checks

    @property
    def calls(self) -> tuple[int, int]:
        """Calls for bits, and for dot products."""
        s = self.shape
        return -(-s.n_bits // s.chunk), -(-s.checks // s.chunk)

    @property
    def gadgets(self) -> tuple[Gadget, ...]:
        return (Gadget("products", 2 * self.shape.chunk, sum(self.calls)),)

    def _parts(self, row: Array) -> tuple[Array, Array, Array, Array]:
        """Return all bits, the dot products, and of each check the bits and whether it passed."""
        s = self.shape
        bits, dots = row[..., s.length : s.shared], row[..., s.shared :]
        checks = bits[..., 2 * s.norm_bits :]
        checks = checks.reshape(*checks.shape[:-1], s.checks, s.check_bits + 1)
        return bits, dots, checks[..., :-1], checks[..., -1]

    def inputs(self, row: Array, joint: Array, shares: int) -> list[Array]:
        s, field = self.shape, self.field
        bits, dots, claimed, passed = self._parts(row)
        first = field.mul(powers(field, joint[..., 0], s.n_bits), bits)
        second = field.sub(bits, share_of(field, 1, shares))
        value = field.sub(valued(field, claimed), share_of(field, s.reach - 1, shares))
        wrong = field.mul(powers(field, joint[..., 1], s.checks), field.sub(dots, value))
        calls = []
        for a, b in ((first, second), (wrong, passed)):
            pairs = padded(field, paired(a, b), 2 * s.chunk)
            calls.append(pairs.reshape(*pairs.shape[:-1], -1, 2 * s.chunk))
        return [np.concatenate(calls, axis=-2)]

    def outputs(self, values: list[Array], row: Array, joint: Array, shares: int) -> Array:
        s, field, n = self.shape, self.field, self.calls[0]
        bits, _, _, passed = self._parts(row)
        v, u = (valued(field, bits[..., k * s.norm_bits : (k + 1) * s.norm_bits]) for k in (0, 1))
        out = field.sub(field.sum(passed), share_of(field, s.passes, shares))
        r = joint[..., 2]
        for term in (
            field.sum(values[0][..., n:]),
            field.sub(field.add(v, u), share_of(field, s.bound2, shares)),
            field.sum(values[0][..., :n]),
        ):
            out = field.add(field.mul(out, r), term)
        return out[..., None]
