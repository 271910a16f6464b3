"""Two-sided laws of any scale: a coarse table, uniform low digits, and a rejection that is hardly ever needed.

A magnitude is x = h B + l with B = 2^bits and 0 <= l < B. Its weight falls as exp(-t) within the B numbers that share h:

    weight(h B + l) = weight(h B) exp(-t),      t = f (c0 + c1 h + c2 f),      f = l / B

    discrete Gaussian   weight(x) = exp(-x^2 / (2 sigma^2))    c0 = 0, c1 = (B / sigma)^2, c2 = c1 / 2
    discrete Laplace    weight(x) = exp(-x / scale)            c0 = B / scale, c1 = c2 = 0

    1. Draw h from a table of the weights of h B, l uniformly below B, and a sign.
    2. Draw u uniformly from [0, 1), and keep x where u < exp(-t).
    3. Of zero, which has two signs, keep one.

A kept magnitude has weight(h B) / B exp(-t), which is weight(x) / B: the law itself, with no lemma about convolutions and no
condition on the scale. With scales of a few dozen B the table has some thousand entries, and 98 of 100 candidates are kept.

**How it is decided.** A candidate takes 16 bytes, two words. The first gives h, by comparison with the high words of the
cumulatives. The second is, from its lowest bit, l, the sign, and the k = 63 - bits leading bits of u, a whole number `top`,
so that u lies in [top, top + 1) 2^-k.

    floating point   (top + 1) 2^-k <= 1 - t, with a margin of 2^-40: keep, because 1 - t <= exp(-t)
    again            both ends of that interval against exp(-t), by 13 terms of its series, which with its rounding is off by
                     less than 2^-48, with a margin of 2^-44: keep, or do not
    whole numbers    128 further bits of u against exp(-t) with 192 bits; and the low word of the number that gives h, where
                     its high word ties with that of a cumulative

The first line decides 98 of 100 candidates or more, the third one in 2^23 or less often. No outcome depends on the rounding
of floating point, so the compiled loop and NumPy have the same law to the last bit, and make the same draws of the same bytes
(but for a chance of 2^-48 that they disagree on whether whole numbers are needed). Time tells next to nothing of the noise:
a number that is kept has needed more than the first line with a probability of about t^2 / 2, on average 2 in 10 000 or less.

**Distance from the law.** Cumulatives are rounded down to multiples of 2^-127, at most 6000 of them; weights that are left
out add up to less than 2^-120; weights have 192 bits, of which recurrences lose less than 30. So the law of (h, l, sign) is
within 2^-114 in total variation. The last comparison has at least 152 bits, of exp(-t) and of u, so a probability of keeping
is off by less than 2^-150. At least 0.48 of all candidates are kept (one half where almost every draw is zero, 0.98 for scales
above 100), and conditioning on that multiplies the distance by less than 5: a draw is within 2^-111 of the stated law, and a
release of 2^20 numbers within 2^-91.

Source: rejection from a piecewise constant envelope (Devroye 1986, sections II.3 and VIII.1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.randomness import Entropy

from .tables import BITS, CumulativeTable, exponential, tabulate, uniform

try:
    _coarse: Any = import_module("hedgerow.privacy._coarse")
except ImportError:  # it was installed without a compiler
    _coarse = None

BLOCK = 2**14
"""Candidates at a time: 256 KiB of entropy, so that they stay in the cache."""

QUICK, MARGIN = 2.0**-40, 2.0**-44
"""More than floating point is off by, when it compares with 1 - t and with exp(-t); the first is the larger."""

TERMS = 13
"""Of the series of exp(-t); the rest is below 2^-60 for t up to 0.22."""


@dataclass(frozen=True, eq=False)
class CoarseLaw:
    """A law of magnitudes h B + l, made by `coarse`.

    Attributes
    ----------
    table : CumulativeTable
        Of h.
    bits : int
        Of l; B = 2^bits.
    fall : (c0, c1, c2)
        t = f (c0 + c1 h + c2 f) with f = l / B, exactly.
    slopes : (c0, c1, c2)
        In floating point.
    guide : array of shape (4096,), uint16
        How many high words of the table lie below b 2^52: that of the table with fewer buckets, for the compiled loop.
    """

    table: CumulativeTable
    bits: int
    fall: tuple[Fraction, Fraction, Fraction]
    slopes: tuple[float, float, float]
    guide: NDArray[np.uint16]

    def exponents(self, h: NDArray[np.int64], low: NDArray[np.int64]) -> NDArray[np.floating[Any]]:
        """Return t, to 2^-50."""
        f: NDArray[np.floating[Any]] = low * 2.0**-self.bits
        c0, c1, c2 = self.slopes
        t: NDArray[np.floating[Any]] = f * (c0 + c1 * h + c2 * f)
        return t

    def exponent(self, h: int, low: int) -> Fraction:
        """Return t, exactly."""
        f = Fraction(low, 1 << self.bits)
        return f * (self.fall[0] + self.fall[1] * h + self.fall[2] * f)


def coarse(weights: Iterable[int], bits: int, fall: tuple[Fraction, Fraction, Fraction]) -> CoarseLaw:
    """Build a law from the weights of the magnitudes 0, B, 2 B, ..., in fixed point with 192 bits.

    Parameters
    ----------
    bits : int
        B = 2^bits, at most 2^40.
    fall : (c0, c1, c2)
        None below zero, and t below 0.22 for every h of the table.
    """
    table = tabulate(weights)
    fall = fall if bits else (Fraction(0), Fraction(0), Fraction(0))  # there is no l
    c0, c1, c2 = (float(part) for part in fall)
    return CoarseLaw(table, bits, fall, (c0, c1, c2), table.guide[:-1:16].astype(np.uint16))


def draw(law: CoarseLaw, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Draw `size` whole numbers; of the bytes, all candidates of a block come first, then what undecided ones need."""
    drawn, made = np.empty(size, np.int64), 0
    loop = _by_numpy if _coarse is None else _compiled
    while made < size:
        made = loop(law, uniform(min(size - made, BLOCK), entropy), drawn, made, entropy)
    return drawn


def _compiled(law: CoarseLaw, words: NDArray[np.uint64], drawn: NDArray[np.int64], made: int, entropy: Entropy) -> int:
    """Write the numbers that come of some candidates to `drawn`, from `made` on; return how many it then holds."""
    words, at = np.ascontiguousarray(words, np.uint64), 0
    while True:
        at, made = _coarse.draw(words, law.table.high, law.guide, law.bits, law.slopes, drawn, at, made)
        if at == len(words):
            return made
        if (number := settled(law, words[at], entropy)) is not None:
            drawn[made] = number
            made += 1
        at += 1


def _by_numpy(law: CoarseLaw, words: NDArray[np.uint64], drawn: NDArray[np.int64], made: int, entropy: Entropy) -> int:
    """`_compiled`, of the same bytes the same draws."""
    first, second = words.astype(np.uint64, copy=False).T
    h, tied = law.table.by_high_word(first)
    low = (second & np.uint64((1 << law.bits) - 1)).view(np.int64)
    negative = (second >> np.uint64(law.bits) & np.uint64(1)).view(np.int64)
    bit = 2.0 ** (law.bits - 63)
    u = (second >> np.uint64(law.bits) >> np.uint64(1)) * bit
    t = law.exponents(h, low)
    keep = u + (bit + QUICK) <= 1.0 - t
    late = np.flatnonzero(~keep)
    u, bound = u[late], series(t[late])
    keep[late] = below = u + (bit + MARGIN) <= bound
    unsettled = late[~below & ~(u >= bound + MARGIN)]
    number = (h << law.bits) + low
    keep &= (number | negative ^ 1) != 0  # but minus zero
    number = (number ^ -negative) + negative
    for i in sorted({*unsettled.tolist(), *tied.tolist()}):
        found = settled(law, words[i], entropy)
        keep[i], number[i] = found is not None, found or 0
    kept = number[keep]
    drawn[made : made + len(kept)] = kept
    return made + len(kept)


def series(t: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Return exp(-t), to 2^-48, by operations that every machine rounds alike."""
    total = np.ones(len(t))
    for k in range(TERMS, 0, -1):
        total = 1.0 - t * total / k
    return total


def settled(law: CoarseLaw, words: NDArray[np.uint64], entropy: Entropy) -> int | None:
    """Decide a candidate in whole numbers, with 24 more bytes; None where it is not kept."""
    first, second = (int(word) for word in words)
    tie, more = int.from_bytes(entropy(8), "little"), int.from_bytes(entropy(16), "little")
    h = law.table.outcome(first << 64 | tie)
    low, negative, top = second & (1 << law.bits) - 1, second >> law.bits & 1, second >> law.bits + 1
    u = (top << 128 | more) << BITS - 128 - 63 + law.bits
    magnitude = (h << law.bits) + low
    if u >= exponential(-law.exponent(h, low)) or (negative and not magnitude):
        return None
    return -magnitude if negative else magnitude
