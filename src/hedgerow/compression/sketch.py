"""Count sketch: each coordinate is added, with a random sign, to one bucket in each of a few rows.

    party:   code[r, h_r(i)] += s_r(i) x_i / sqrt(rows)         for every coordinate i and row r
    server:  x_i ~ sqrt(rows) * median over r of  s_r(i) total[r, h_r(i)]

Buckets h and signs s are drawn from the round's public randomness, so codes are short vectors that add up. The root of the
number of rows keeps the expected squared length of a code at that of the contribution, so that an l2 bound fits both.

One row is unbiased, and errs by a variance of at most |x|^2 / columns in each coordinate. The median errs symmetrically, so
it is unbiased too, and lies within 2 |x| / sqrt(columns) of every coordinate but for a probability that falls exponentially
with the rows: |x| shrinks to the length of x without its largest coordinates where these meet in no bucket.

So a sketch finds what is large in a total; a total whose coordinates are all alike drowns in the error, whose length is
about sqrt(d / columns) times that of x. For those take random coordinates or levels.

Source : Charikar, Chen and Farach-Colton, ICALP 2002, section 3; Rothchild et al., ICML 2020 (FetchSGD). Differs: buckets and
         signs are independent draws instead of a hash family; the server keeps no error sketch of its own.
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

from .keys import SMALLEST, bits_of, by_key, check_smallest, code_of, generator, is_count, of_keys, refuse_unless, seed_of

NUMBER_BITS = 32


@dataclass(frozen=True)
class Sketched(Compression):
    """A count sketch of each key that has more numbers than the sketch.

    Parameters
    ----------
    rows : int
        Of the sketch; an odd number has a middle one.
    columns : int
        Buckets in each row.
    smallest : int
        Keys with fewer numbers pass as they are.

    Source
    ------
    Charikar et al. 2002, section 3; Rothchild et al. 2020.
    """

    rows: int
    columns: int
    smallest: int = SMALLEST
    linear: ClassVar[bool] = True
    remembers: ClassVar[bool] = False

    def __post_init__(self) -> None:
        refuse_unless(
            is_count(self.rows) and is_count(self.columns, 2),
            f"a sketch of {self.rows!r} by {self.columns!r} buckets.",
            "It has at least one row and two columns, e.g. Sketched(rows=5, columns=2000).",
        )
        check_smallest(self.smallest)

    @property
    def least(self) -> int:
        """Numbers from which a key is longer than its sketch, and large."""
        return max(self.smallest, self.rows * self.columns + 1)

    def code(self, layout: Layout) -> Layout:
        """Return the sketches in place of large keys."""
        return code_of(layout, self.least, lambda size: (self.rows, self.columns))

    def wire_bits(self, layout: Layout) -> float:
        """Return 32 bits for each bucket."""
        return bits_of(layout, self.least, lambda size: NUMBER_BITS * self.rows * self.columns)

    def encode(self, rows: Array, layout: Layout, public: Stream, own: Sequence[Stream]) -> Array:
        """Add each coordinate, with its sign, to its bucket in each row."""

        def change(part: Array, size: int) -> Array:
            where = buckets(seed_of(public), size, self.rows, self.columns)
            signed = np.stack([[np.bincount(row, x, 2 * self.columns) for row in where] for x in part])
            return self._halved(signed).reshape(len(part), -1).astype(rows.dtype)

        return by_key(rows, layout, layout, self.least, change)

    def decode(self, total: Array, layout: Layout, public: Stream) -> Array:
        """Estimate each coordinate by the median over the rows."""

        def change(part: Array, size: int) -> Array:
            where = buckets(seed_of(public), size, self.rows, self.columns)
            table = part.reshape(*part.shape[:-1], self.rows, self.columns) * part.dtype.type(self.rows**0.5)
            both = np.stack([table, -table], axis=-1).reshape(*table.shape[:-1], -1)
            return median([both[..., r, row] for r, row in enumerate(where)])

        return by_key(total, self.code(layout), layout, self.least, change)

    def _halved(self, signed: Array) -> Array:
        """What was added to a bucket less what was subtracted, over the root of the number of rows."""
        both = signed.reshape(*signed.shape[:-1], self.columns, 2)
        found: Array = (both[..., 0] - both[..., 1]) / self.rows**0.5
        return found

    def stretch(self, norm: float, layout: Layout) -> float:
        """All of a row may fall into one bucket of each row of the sketch, with one sign."""
        longest = {1.0: self.rows**0.5, 2.0: layout.size**0.5, math.inf: layout.size / self.rows**0.5}
        return float(max(1.0, longest[float(norm)]))

    def __str__(self) -> str:
        return f"sketch of {self.rows} x {self.columns}{of_keys(self.smallest)}"


def median(values: Sequence[Array]) -> Array:
    """Median, number by number, of a few arrays: they are sorted by exchanging neighbours."""
    rows, n = list(values), len(values)
    for turn in range(n):
        for i in range(turn % 2, n - 1, 2):
            rows[i], rows[i + 1] = np.minimum(rows[i], rows[i + 1]), np.maximum(rows[i], rows[i + 1])
    middle: Array = (rows[(n - 1) // 2] + rows[n // 2]) / 2
    return middle


@lru_cache(maxsize=4)
def buckets(seed: int, size: int, rows: int, columns: int) -> Array:
    """Twice the bucket of each coordinate in each row, plus one where its sign is minus; shape (rows, size)."""
    return generator(seed).integers(0, 2 * columns, (rows, size))
