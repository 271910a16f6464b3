"""Private count-mean sketches: a report is about the bucket of a value under one of several hash functions.

    count mean    a sign for each of m buckets, each flipped with chance 1 / (e^(eps/2) + 1)
    Hadamard      one sign: entry l of the bucket's Hadamard row, l drawn at random, flipped with chance 1 / (e^eps + 1)

So reports are no longer where there are very many levels; what collides is taken off by its expectation, which is right
on average over hash functions, not for each choice of them. Nothing is reported as a random bucket, which counts as a
collision and so for no level.

Source  : Apple Differential Privacy Team, "Learning with privacy at scale", 2017, algorithms CMS and HCMS. Differs: the
          rows of the sketch add up whole numbers and are divided by their chances at the server.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import BudgetInvalid

from .chance import WORD, Words, lie, uniform_index
from .hashing import Buckets, buckets
from .scheme import Counts, Floats, Scheme, Values, odds, unbiased


@dataclass(frozen=True)
class SketchScheme:
    """What both sketches share: hash functions, and the sketch of shape (hashes, width) with a count for each function.

    A report adds to the row of one hash function. `flip` words of 2^64 flip a sign.
    """

    levels: int
    hashes: int
    width: int
    salt: int
    flip: int
    hadamard: bool

    @property
    def columns(self) -> int:
        return self.hashes * (self.width + 1)

    @property
    def words(self) -> int:
        return 4 if self.hadamard else 2 + self.width

    @cached_property
    def places(self) -> Buckets:
        return buckets(self.salt, self.hashes, self.levels, self.width)

    @property
    def wrong(self) -> float:
        return self.flip / WORD

    def report(self, values: Values, words: Words) -> Counts:
        """Draw a hash function, then the signs of its row."""
        parties = len(values)
        which = uniform_index(words[..., 0], self.hashes)
        known = np.minimum(values, self.levels - 1)
        bucket = np.where(values < self.levels, self.places[which, known], uniform_index(words[..., 1], self.width))
        sketch = np.zeros((parties, self.hashes, self.width + 1), np.int64)
        party: Any = np.broadcast_to(np.arange(parties)[:, None], values.shape)
        row: Any = (party, which)
        np.add.at(sketch[..., self.width], row, 1)
        if self.hadamard:
            entry = uniform_index(words[..., 2], self.width)
            sign = 1 - 2 * (np.bitwise_count(entry & bucket) % 2).astype(np.int64)
            np.add.at(sketch, (party, which, entry), np.where(words[..., 3] < np.uint64(self.flip), -sign, sign))
            return sketch.reshape(parties, -1)
        flipped = words[..., 2:] < np.uint64(self.flip)
        ones = flipped ^ (np.arange(self.width) == bucket[..., None])
        np.add.at(sketch[..., : self.width], row, ones)
        return sketch.reshape(parties, -1)

    def estimate(self, total: Array, n: int) -> Floats:
        sketch = total.reshape(self.hashes, self.width + 1)
        rows, reports = sketch[:, :-1], sketch[:, -1:]
        if self.hadamard:
            about = transform(rows.astype(float)) / (1 - 2 * self.wrong)
        else:
            about = unbiased(rows, reports, 1 - self.wrong, self.wrong)
        found = np.take_along_axis(about, self.places, axis=1).sum(0)
        estimates: Floats = (found - n / self.width) * self.width / (self.width - 1)
        return estimates

    def variance(self, counts: Floats) -> Floats:
        """Over reports and over hash functions: what is added up for a level, and what its collisions add."""
        w, m = self.wrong, self.width
        rest = counts.sum() - counts
        if self.hadamard:
            own, others = 1 / (1 - 2 * w) ** 2 - 1, 1 / (1 - 2 * w) ** 2 - 1 / m**2
        else:
            seen = w + (1 - 2 * w) / m
            own, others = w * (1 - w) / (1 - 2 * w) ** 2, seen * (1 - seen) / (1 - 2 * w) ** 2
        pairs = (np.sum(counts * (counts - 1)) - counts * (counts - 1)) / self.hashes
        together = np.maximum(pairs, 0) / m * (1 - 1 / m)
        found: Floats = (counts * own + rest * others + together) * (m / (m - 1)) ** 2
        return found

    def ratio(self) -> Fraction:
        """Two buckets differ in two signs; of a Hadamard row one sign is said."""
        bit = odds(self.flip, WORD - self.flip)
        return bit if self.hadamard else bit**2


def transform(rows: Floats) -> Floats:
    """Multiply rows, whose length is a power of two, by the Hadamard matrix of signs."""
    n, size = rows.shape
    step = 1
    while step < size:
        rows = rows.reshape(n, -1, 2, step)
        rows = np.stack([rows[:, :, 0] + rows[:, :, 1], rows[:, :, 0] - rows[:, :, 1]], axis=2)
        step *= 2
    return rows.reshape(n, size)


@dataclass(frozen=True)
class Sketch:
    """A private count-mean sketch.

    Parameters
    ----------
    hashes : int
        Hash functions; more of them average out collisions, and cost nothing but room.
    width : int
        Buckets of each; with `hadamard` a power of two.
    hadamard : bool
        Report one sign instead of `width` of them.
    salt : int
        Chooses the hash functions.
    """

    hashes: int = 16
    width: int = 256
    hadamard: bool = False
    salt: int = 0

    def __post_init__(self) -> None:
        whole = all(isinstance(value, int) for value in (self.hashes, self.width, self.salt))
        if not (whole and self.hashes >= 1 and self.width >= 2 and 0 <= self.salt < 2**63):
            raise BudgetInvalid(
                f"a sketch of {self.hashes!r} hash functions and {self.width!r} buckets, salt {self.salt!r}.",
                remedy="Give whole numbers: hashes from 1 on, width from 2 on, salt from 0 on.",
            )
        if self.hadamard and self.width & (self.width - 1):
            raise BudgetInvalid(
                f"a Hadamard row of {self.width} entries: there is one only for powers of two.",
                remedy=f"Take width={1 << self.width.bit_length()}.",
            )

    def scheme(self, epsilon: float, levels: int) -> Scheme:
        flip = lie(epsilon if self.hadamard else epsilon / 2, 2)
        return SketchScheme(levels, self.hashes, self.width, self.salt, flip, self.hadamard)

    def __str__(self) -> str:
        kind = "Hadamard count-mean" if self.hadamard else "count-mean"
        return f"{kind} sketch of {self.hashes} x {self.width} (salt {self.salt})"
