"""Quantisation: a key's numbers become one of a few evenly spaced levels, and one scale for all of them.

The scale is the largest absolute value, and b bits hold 2^b - 1 levels from minus to plus the scale. The middle one is
zero, so what was zero stays zero; 2^b even levels would have none, and sparse updates would drift. One bit holds two
levels, minus and plus the scale.

    unit = scale / (2^(b-1) - 1)                                   one bit: 2 scale
    code = unit * floor(x / unit + u),  u uniform in [0, 1)        at random: the expected value of the code is x
    code = unit * round(x / unit)                                  to the nearest level

At random, a number errs by less than one unit, with a variance of at most unit^2 / 4. To the nearest it errs by at most
half a unit, but in the same way at every party, so that the error does not average out.

Codes are held as the numbers that they stand for; the server adds these up. So quantisation is not linear, and is refused
where rows are hidden.

Source : Alistarh et al., NeurIPS 2017 (QSGD), section 3; Suresh et al., ICML 2017, section 2.2. Differs: the scale is the
         largest absolute value, where QSGD takes the length, and Suresh et al. the range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.mechanism import Compression
from hedgerow.core.randomness import Stream

from .keys import SMALLEST, bits_of, by_key, check_smallest, is_count, of_keys, refuse_unless

SCALE_BITS = 32
"""What a key's scale takes on a wire."""

MOST_BITS = 16
"""With more bits, the rounding of single precision would be as large as that to levels."""


@dataclass(frozen=True)
class Quantised(Compression):
    """Evenly spaced levels between minus and plus a key's largest absolute value.

    Parameters
    ----------
    bits : int
        For each number, 1 to 16; a key's scale takes 32 more.
    stochastic : bool
        Round at random, without bias, or to the nearest level.
    smallest : int
        Keys with fewer numbers pass as they are.

    Source
    ------
    Alistarh et al. 2017, section 3; Suresh et al. 2017, section 2.2.
    """

    bits: int = 8
    stochastic: bool = True
    smallest: int = SMALLEST
    linear: ClassVar[bool] = False
    remembers: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_levels(self.bits, self.stochastic)
        check_smallest(self.smallest)

    def code(self, layout: Layout) -> Layout:
        """Return the layout itself: codes stand for numbers."""
        return layout

    def wire_bits(self, layout: Layout) -> float:
        """Return `bits` for each number of a large key and 32 for its scale."""
        return bits_of(layout, self.smallest, lambda size: self.bits * size + SCALE_BITS)

    def encode(self, rows: Array, layout: Layout, public: Stream, own: Sequence[Stream]) -> Array:
        """Round each row's large keys to their levels, with the party's own randomness."""
        chance = list(own) if self.stochastic else None
        return by_key(rows, layout, layout, self.smallest, lambda part, size: to_levels(part, self.bits, chance))

    def decode(self, total: Array, layout: Layout, public: Stream) -> Array:
        """Return the total as it is."""
        return total

    def stretch(self, norm: float, layout: Layout) -> float:
        """Each number moves by less than one level, and none beyond the largest of its row."""
        return 1.0 if math.isinf(norm) else 1.0 + moved(norm, layout.size, self.bits, self.stochastic)

    def __str__(self) -> str:
        return in_words(self.bits, self.stochastic) + of_keys(self.smallest)


def check_levels(bits: int, stochastic: bool) -> None:
    """Refuse what has no levels."""
    refuse_unless(
        is_count(bits) and bits <= MOST_BITS, f"{bits!r} bits for a number.", f"It is a whole number from 1 to {MOST_BITS}."
    )
    refuse_unless(
        stochastic or bits > 1,
        "one bit, to the nearest level, makes every number as large as the largest.",
        "Round at random (stochastic=True), or take two bits.",
    )


def moved(norm: float, size: int, bits: int, stochastic: bool) -> float:
    """How far rounding moves a row of so many numbers, in a norm, where the largest of them is 1."""
    level = 1.0 / (2 ** (bits - 1) - 1 or 0.5)
    return float(level * (1.0 if stochastic else 0.5) * size ** (1.0 / norm))


def in_words(bits: int, stochastic: bool) -> str:
    return f"{bits} bit{'s' * (bits > 1)}, rounded {'at random' if stochastic else 'to the nearest level'}"


def to_levels(rows: Array, bits: int, chance: Sequence[Stream] | None) -> Array:
    """Round rows of shape (parties, size), each by its own scale; at random where there is a stream for each."""
    top = 2 ** (bits - 1) - 1 or 0.5
    middle = 0.5 if bits == 1 else 0.0  # two levels lie around zero
    scale = np.maximum(rows.max(-1, keepdims=True), -rows.min(-1, keepdims=True))
    unit = scale / top
    steps = rows / np.maximum(unit, np.finfo(rows.dtype).tiny) + rows.dtype.type(middle)
    if chance is None:
        np.rint(steps, out=steps)
    else:
        for row, stream in zip(steps, chance, strict=True):
            row += stream.random(row.size, dtype=np.float32)
        np.floor(steps, out=steps)
    steps -= rows.dtype.type(middle)
    found: Array = np.clip(steps, -top, top, out=steps) * unit
    return found
