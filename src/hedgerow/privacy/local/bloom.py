"""RAPPOR's Bloom filters: a report is a noisy Bloom filter of its value, in one of several cohorts of hash functions.

A bit of the filter is set with chance `truth` where the value sets it, and `other` where not. Reports of one cohort are
added up; the server solves the least squares of all cohorts for the levels, whose filters it knows. That has an answer
where the filters of all levels are independent: with more levels than bits in all cohorts, `rappor.decode` picks those
that occur.

Source  : Erlingsson, Pihur, Korolova, "RAPPOR", CCS 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.arrays import Array
from hedgerow.errors import BudgetInvalid

from .chance import WORD, Words, below, uniform_index
from .hashing import buckets
from .scheme import Counts, Floats, Scheme, Values, unbiased


@dataclass(frozen=True)
class Filters:
    """The Bloom filters of all levels in all cohorts."""

    levels: int
    bits: int
    hashes: int
    cohorts: int
    salt: int

    @cached_property
    def set_bits(self) -> NDArray[np.bool_]:
        """Shape (cohorts, levels, bits)."""
        places = buckets(self.salt, self.cohorts * self.hashes, self.levels, self.bits)
        found = np.zeros((self.cohorts, self.levels, self.bits), bool)
        np.put_along_axis(found, places.reshape(self.cohorts, self.hashes, -1).transpose(0, 2, 1), True, axis=2)
        return found

    @cached_property
    def design(self) -> Floats:
        """Which level sets which bit, shape (cohorts * bits, levels)."""
        found: Floats = self.set_bits.transpose(0, 2, 1).reshape(-1, self.levels).astype(float)
        return found

    @cached_property
    def gram(self) -> Floats:
        """How many bits each pair of levels shares, over all cohorts, shape (levels, levels)."""
        found: Floats = self.design.T @ self.design
        return found

    @cached_property
    def independent(self) -> bool:
        """Whether no level's filters are a combination of those of others."""
        if self.levels > self.cohorts * self.bits:
            return False
        values = np.linalg.eigvalsh(self.gram)
        return bool(values[0] > 1e-9 * values[-1])

    @cached_property
    def solution(self) -> Floats:
        """Turns expected bits of all cohorts into reports of each level, shape (levels, cohorts * bits)."""
        found: Floats = np.asarray(self.cohorts * np.linalg.solve(self.gram, self.design.T), np.float64)
        return found

    @cached_property
    def spread(self) -> Floats:
        """By how much the estimate of a level varies with the cohort of one report about another, shape (levels, levels)."""
        mean, squares = np.zeros((2, self.levels, self.levels))
        for cohort, filters in zip(np.split(self.solution, self.cohorts, axis=1), self.set_bits, strict=True):
            one = cohort @ filters.T.astype(float)
            mean, squares = mean + one / self.cohorts, squares + one**2 / self.cohorts
        found: Floats = np.asarray(squares - mean**2, np.float64)
        return found


@dataclass(frozen=True)
class BloomScheme:
    """A noisy Bloom filter; see `UnaryScheme` for the chances."""

    filters: Filters
    truth: int
    other: int

    @property
    def levels(self) -> int:
        return self.filters.levels

    @property
    def columns(self) -> int:
        return self.filters.cohorts * (self.filters.bits + 1)

    @property
    def words(self) -> int:
        return 1 + self.filters.bits

    def report(self, values: Values, words: Words) -> Counts:
        """Draw a cohort, then every bit of its filter; nothing sets none."""
        f, parties = self.filters, len(values)
        cohort = uniform_index(words[..., 0], f.cohorts)
        wanted = f.set_bits[cohort, np.minimum(values, f.levels - 1)] & (values < f.levels)[..., None]
        bits = words[..., 1:] < np.where(wanted, np.uint64(self.truth), np.uint64(self.other))
        sums = np.zeros((parties, f.cohorts, f.bits + 1), np.int64)
        party: Any = np.broadcast_to(np.arange(parties)[:, None], values.shape)
        row: Any = (party, cohort)
        np.add.at(sums[..., f.bits], row, 1)
        np.add.at(sums[..., : f.bits], row, bits)
        return sums.reshape(parties, -1)

    def expected(self, total: Array) -> Floats:
        """How many reports of each cohort set each bit, before noise, shape (cohorts * bits,)."""
        sums = total.reshape(self.filters.cohorts, self.filters.bits + 1)
        found: Floats = unbiased(sums[:, :-1], sums[:, -1:], self.truth / WORD, self.other / WORD).ravel()
        return found

    def estimate(self, total: Array, n: int) -> Floats:
        found: Floats = self.filters.solution @ self.expected(total)
        return found

    def variance(self, counts: Floats) -> Floats:
        """Over reports and cohorts: noise of the bits, and how many of a level's reports fell into each cohort."""
        f = self.filters
        p, q = self.truth / WORD, self.other / WORD
        noise_set, noise_unset = p * (1 - p) / (p - q) ** 2, q * (1 - q) / (p - q) ** 2
        with_bit = f.design @ counts / f.cohorts
        noise = with_bit * noise_set + (counts.sum() / f.cohorts - with_bit) * noise_unset
        found: Floats = f.solution**2 @ noise + f.spread @ counts
        return found

    def ratio(self) -> Fraction:
        """Filters differ in `hashes` bits that one value sets, and as many that the other does, at most."""
        pair = Fraction(self.truth, self.other) * Fraction(WORD - self.other, WORD - self.truth)
        return pair**self.filters.hashes


@dataclass(frozen=True)
class Bloom:
    """Noisy Bloom filters, reported once.

    Parameters
    ----------
    bits, hashes : int
        Of a filter: its length, and how many bits a value sets.
    cohorts : int
        Choices of hash functions, one for each report, so that values which collide in one are told apart in others.
    salt : int
        Chooses the hash functions.
    """

    bits: int = 64
    hashes: int = 2
    cohorts: int = 8
    salt: int = 0

    def __post_init__(self) -> None:
        whole = all(isinstance(value, int) for value in (self.bits, self.hashes, self.cohorts, self.salt))
        if not (whole and 1 <= self.hashes <= self.bits and self.bits >= 2 and self.cohorts >= 1 and 0 <= self.salt < 2**63):
            raise BudgetInvalid(
                f"Bloom filters of {self.bits!r} bits, {self.hashes!r} hash functions, {self.cohorts!r} cohorts and salt "
                f"{self.salt!r}.",
                remedy="Give whole numbers from 1 on, and fewer hash functions than bits.",
            )

    def filters(self, levels: int) -> Filters:
        return _filters(self, levels)

    def scheme(self, epsilon: float, levels: int) -> Scheme:
        """With equal chances for ones and zeros: e^(eps / 2 hashes) to one.

        Raises
        ------
        BudgetInvalid (HR-214)
            The filters of so many levels are not independent.
        """
        truth = below(lambda e: e / (e + 1), epsilon / (2 * self.hashes))
        scheme = BloomScheme(self.filters(levels), truth, WORD - truth)
        if not scheme.filters.independent:
            raise BudgetInvalid(
                f"the Bloom filters of {levels} levels, {self.bits} bits in {self.cohorts} cohorts, cannot be told apart.",
                remedy=f"Take more bits or cohorts, such as cohorts={2 + 2 * levels // self.bits}.",
            )
        return scheme

    def __str__(self) -> str:
        return f"Bloom filters of {self.bits} bits ({self.hashes} hash functions, {self.cohorts} cohorts, salt {self.salt})"


@lru_cache(maxsize=16)
def _filters(bloom: Bloom, levels: int) -> Filters:
    return Filters(levels, bloom.bits, bloom.hashes, bloom.cohorts, bloom.salt)
