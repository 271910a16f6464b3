"""Direct and unary encodings: generalised randomised response, symmetric and optimised unary encoding.

    generalised   the value itself with chance e^eps / (e^eps + d - 1), else one of the d - 1 others
    symmetric     a bit for each level, flipped with chance 1 / (e^(eps/2) + 1)
    optimised     the bit of the value is a fair coin; every other bit is set with chance 1 / (e^eps + 1)

Two values differ in two bits of a unary encoding, one bit that is set for each, so that the odds of the two multiply.

Releases : the reports, or their sum: what leaves a party is noisy already.
Unit     : as `Reports` says.
Source   : Warner 1965; Kairouz, Bonawitz, Ramage 2016 (generalised); Erlingsson, Pihur, Korolova 2014 (symmetric, as
           basic RAPPOR with one report); Wang, Blocki, Li, Jha 2017 (optimised).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from hedgerow.core.arrays import Array

from .chance import WORD, Words, below, lie, uniform_index
from .scheme import Counts, Floats, Scheme, Values, two_sided, unbiased


@dataclass(frozen=True)
class GeneralisedScheme:
    """One word decides: below `truth` the value is said, the rest is divided equally among the other answers.

    `nothing` is an answer of its own, or else said as any level, so that it counts 1 / levels of a report for each.
    """

    levels: int
    lie: int
    nothing: bool = False

    words = 1

    @property
    def columns(self) -> int:
        return self.levels + self.nothing

    @cached_property
    def truth(self) -> int:
        return WORD - (self.columns - 1) * self.lie

    def report(self, values: Values, words: Words) -> Counts:
        """Say one answer for each value."""
        word, answers = words[..., 0], self.columns
        away = np.uint64(self.truth)
        other = 1 + ((word - np.minimum(word, away)) // np.uint64(self.lie)).astype(np.int64)
        said = np.where(word < away, values, (values + other) % answers)
        said = np.where(values == answers, uniform_index(word, answers), said)
        apart = said + answers * np.arange(len(said))[:, None]
        return np.bincount(apart.ravel(), minlength=len(said) * answers).reshape(-1, answers)

    @property
    def _chances(self) -> tuple[float, float]:
        return self.truth / WORD, self.lie / WORD

    def estimate(self, total: Array, n: int) -> Floats:
        return unbiased(total, n, *self._chances)[: self.levels]

    def variance(self, counts: Floats) -> Floats:
        return two_sided(counts, *self._chances)

    def ratio(self) -> Fraction:
        return max(Fraction(self.truth, self.lie), Fraction(self.lie, self.truth))


@dataclass(frozen=True)
class UnaryScheme:
    """A bit for each level: set by `truth` words of 2^64 where it is the value's, by `other` where it is not."""

    levels: int
    truth: int
    other: int

    @property
    def columns(self) -> int:
        return self.levels

    @property
    def words(self) -> int:
        return self.levels

    def report(self, values: Values, words: Words) -> Counts:
        """Draw every bit; nothing sets none."""
        bits = words < np.uint64(self.other)
        party, report = np.nonzero(values < self.levels)
        level = values[party, report]
        bits[party, report, level] = words[party, report, level] < np.uint64(self.truth)
        found: Counts = bits.sum(1, dtype=np.int64)
        return found

    @property
    def _chances(self) -> tuple[float, float]:
        return self.truth / WORD, self.other / WORD

    def estimate(self, total: Array, n: int) -> Floats:
        return unbiased(total, n, *self._chances)

    def variance(self, counts: Floats) -> Floats:
        return two_sided(counts, *self._chances)

    def ratio(self) -> Fraction:
        """One value sets a bit that the other does not, and the other way round."""
        return Fraction(self.truth, self.other) * Fraction(WORD - self.other, WORD - self.truth)


@dataclass(frozen=True)
class Generalised:
    """Generalised randomised response: best for few levels, fewer than about 3 e^epsilon + 2.

    Parameters
    ----------
    nothing : bool
        Whether having no record is an answer of its own; else it is said as any level.
    """

    nothing: bool = False

    def scheme(self, epsilon: float, levels: int) -> Scheme:
        return GeneralisedScheme(levels, lie(epsilon, levels + self.nothing), self.nothing)

    def __str__(self) -> str:
        return "k-ary randomised response"


@dataclass(frozen=True)
class Unary:
    """A bit for each level, with the same chances for ones and zeros ("symmetric") or with those of least variance."""

    kind: Literal["symmetric", "optimised"] = "optimised"

    def scheme(self, epsilon: float, levels: int) -> Scheme:
        if self.kind == "optimised":
            return UnaryScheme(levels, WORD // 2, lie(epsilon, 2))
        truth = below(lambda e: e / (e + 1), epsilon / 2)
        return UnaryScheme(levels, truth, WORD - truth)

    def __str__(self) -> str:
        return f"{self.kind} unary encoding"
