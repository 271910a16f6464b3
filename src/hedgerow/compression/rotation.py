"""Random rotation, then quantisation: a rotated vector has no large coordinates, so few levels lose little.

    party:   z = H D x       D random signs, H the Walsh-Hadamard matrix over sqrt(d), x padded with zeros to d = 2^m
             code = levels of z
    server:  D H (total of codes)

The largest coordinate of z is about sqrt(2 ln d / d) times the length of x, with high probability, whatever x is; so a
number errs by at most that over 2^(b-1) - 1. Signs come from the round's public randomness. H = H_64 x ... x H_r, a product
of small matrices along the axes of x folded to shape (64, ..., r): d log d steps, done by matrix products.

Source : Suresh et al., ICML 2017, section 3. Differs: the levels, see `hedgerow.compression.levels`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.mechanism import Compression
from hedgerow.core.randomness import Stream

from .keys import SMALLEST, bits_of, by_key, check_smallest, code_of, generator, of_keys, seed_of
from .levels import SCALE_BITS, check_levels, in_words, moved, to_levels

FACTOR = 64
"""Side of the matrices of which a transform is made."""


@dataclass(frozen=True)
class Rotated(Compression):
    """Random rotation of each large key, then levels; the total is rotated back once.

    Parameters
    ----------
    bits : int
        For each number of the padded key, 1 to 16; its scale takes 32 more.
    stochastic : bool
        Round at random, without bias, or to the nearest level.
    smallest : int
        Keys with fewer numbers pass as they are.

    Source
    ------
    Suresh et al. 2017, section 3.
    """

    bits: int = 4
    stochastic: bool = True
    smallest: int = SMALLEST
    linear: ClassVar[bool] = False
    remembers: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_levels(self.bits, self.stochastic)
        check_smallest(self.smallest)

    def code(self, layout: Layout) -> Layout:
        """Return large keys padded to the next power of two."""
        return code_of(layout, self.smallest, lambda size: (padded(size),))

    def wire_bits(self, layout: Layout) -> float:
        """Return `bits` for each number of a padded key and 32 for its scale."""
        return bits_of(layout, self.smallest, lambda size: self.bits * padded(size) + SCALE_BITS)

    def encode(self, rows: Array, layout: Layout, public: Stream, own: Sequence[Stream]) -> Array:
        """Rotate each row's large keys and round them to levels."""
        chance = list(own) if self.stochastic else None

        def change(part: Array, size: int) -> Array:
            return to_levels(rotated(part, seed_of(public)), self.bits, chance)

        return by_key(rows, layout, layout, self.smallest, change)

    def decode(self, total: Array, layout: Layout, public: Stream) -> Array:
        """Rotate back, and drop the padding."""

        def change(part: Array, size: int) -> Array:
            return rotated_back(part, seed_of(public))[..., :size]

        return by_key(total, self.code(layout), layout, self.smallest, change)

    def stretch(self, norm: float, layout: Layout) -> float:
        """A rotation keeps the l2 length alone; rounding is that of its levels."""
        size = self.code(layout).size
        if math.isinf(norm):
            return float(size**0.5)
        turned = 1.0 if norm == 2 else size**0.5
        return turned + moved(norm, size, self.bits, self.stochastic)

    def __str__(self) -> str:
        return f"random rotation, then {in_words(self.bits, self.stochastic)}{of_keys(self.smallest)}"


def padded(size: int) -> int:
    """The next power of two."""
    return 1 << max(size - 1, 0).bit_length()


def rotated(rows: Array, seed: int) -> Array:
    """Rotate rows of shape (parties, size) to (parties, padded size), in single precision."""
    n = padded(rows.shape[-1])
    largest = np.maximum(np.abs(rows).max(-1, keepdims=True), np.finfo(rows.dtype).tiny)  # its square may be too large
    wide = np.zeros((len(rows), n), np.float32)
    np.divide(rows, largest, out=wide[:, : rows.shape[-1]], casting="same_kind")
    wide *= signs(seed, n)
    made = np.stack([walsh_hadamard(row) for row in wide])  # one by one: so a row's last bit does not depend on the others
    found: Array = made * largest
    return found


def rotated_back(codes: Array, seed: int) -> Array:
    """Undo `rotated` for codes of shape (..., padded size), in their own precision."""
    n = codes.shape[-1]
    made = np.stack([walsh_hadamard(row) for row in codes.reshape(-1, n)]).reshape(codes.shape)
    found: Array = made * signs(seed, n)
    return found


def walsh_hadamard(x: Array) -> Array:
    """Multiply a vector, of a power of two numbers, by the Walsh-Hadamard matrix over its length's root: its own inverse."""
    n, left = len(x), len(x)
    while left > 1:
        factor = min(left, FACTOR)
        x = (x.reshape(factor, -1).T @ hadamard(factor).astype(x.dtype)).reshape(-1)
        left //= factor
    found: Array = x * x.dtype.type(n**-0.5)
    return found


@lru_cache
def hadamard(n: int) -> Array:
    """The matrix of signs (-1)^(bits that row and column number share), of shape (n, n)."""
    shared = np.arange(n)[:, None] & np.arange(n)
    found: Array = 1.0 - 2.0 * (np.bitwise_count(shared) % 2)
    return found


@lru_cache(maxsize=4)
def signs(seed: int, n: int) -> Array:
    """Random signs, the same for all parties of a round."""
    found: Array = 1 - 2 * generator(seed).integers(0, 2, n, np.int8)
    return found
