"""`Reports`: what a party counts, said with noise that the party adds itself; what is released is the unbiased estimate.

The contribution is a table of counts, one number for each level, as `hedgerow.stats.counts` asks for. Every party makes the
same number of reports, so that not even their number tells anything:

    bound per party    one report, about a level drawn in proportion to the party's table, clipped to an l1 ball; two
                       neighbours are any two tables that the party might have
    bound per record   `records` reports, one about each record, and about nothing for those that are missing; of a party
                       with more records as many are drawn. Neighbours differ by one record that is there or not

Either way a report is epsilon-private by itself, against the server too. Several keys with a bound of their own share
epsilon equally. Randomness is the parties' own entropy, in whole 64-bit words; its chances are exact (`chance`).

Releases : an estimate of each count; once for each question. The sum of a party's reports reaches the server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import Bound, Bounds, blocks, describe, unit_of
from hedgerow.core.events import Event
from hedgerow.core.mechanism import Mechanism, Position
from hedgerow.core.randomness import Entropy
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy.grid import finite

from .bits import Generalised, Unary
from .bloom import Bloom
from .chance import Words, checked, draw, unit_interval
from .scheme import Encoding, Floats, Scheme, Values, in_blocks
from .sketches import Sketch

MOST = 2**20
"""Numbers that are worked on at a time: 8 MiB of words."""

TOO_MANY = 2.0**24
"""A table of more records than this is taken for one that overflowed, and reported as nothing."""


@dataclass(frozen=True)
class ReportedTable:
    """One table of counts inside a contribution, its bound, and how its values are reported."""

    part: slice
    bound: Bound
    scheme: Scheme
    reports: int

    def values(self, rows: Array, sources: list[Entropy]) -> Values:
        """Choose what each party reports about, shape (parties, reports); the number of levels stands for nothing."""
        if self.bound.unit == "party":
            words = draw(sources.__getitem__, range(len(sources)), 1)
            return drawn(self.bound.clip(rows) / self.bound.radius, words)
        return listed(rows, self.reports, sources)

    def report(self, rows: Array, sources: list[Entropy]) -> Array:
        """Add up each party's reports, shape (parties, columns)."""
        rows = np.maximum(finite(rows.astype(np.float64, copy=False)), 0.0)
        values, scheme = self.values(rows, sources), self.scheme
        found = np.zeros((len(rows), scheme.columns), np.int64)

        def some(which: range) -> None:
            words = draw(sources.__getitem__, range(len(sources)), len(which) * scheme.words)
            here = values[:, which.start : which.stop]
            found[...] += scheme.report(here, words.reshape(*here.shape, scheme.words))

        in_blocks(self.reports, scheme.words, MOST, some)
        return found


@dataclass(frozen=True)
class Reports(Mechanism):
    """Reports of one value with noise at the party.

    Parameters
    ----------
    encoding : Encoding
        How a value is said; see the functions below.
    epsilon : float
        Of one release.
    records : int, optional
        With a bound per record: reports that every party makes, whatever the number of its records. A record has one level of
        a table, with a weight of at most one; one that spread its weight over several would change several reports.
    """

    encoding: Encoding
    epsilon: float
    records: int | None = None

    def __post_init__(self) -> None:
        checked(self.epsilon)
        if self.records is not None and not (isinstance(self.records, int) and 1 <= self.records <= TOO_MANY):
            raise BudgetInvalid(
                f"{self.records!r} records at each party.", remedy="Give a public whole number, such as records=1."
            )

    @property
    def at(self) -> Position:
        return "party"

    def event(self, bounds: Bounds) -> Event:
        """Return the cost of one release: epsilon, whatever the bounds."""
        return Event("pure", epsilon=self.epsilon)

    def fit(self, bounds: Bounds, layout: Layout) -> None:
        """Refuse bounds under which a report would not be epsilon-private, and tables that the encoding cannot report.

        Raises
        ------
        BudgetInvalid (HR-214)
        """
        self._plan(bounds, layout)

    def at_party(self, rows: Array, bounds: Bounds, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Turn rows of shape (parties, size) into sums of reports, and the number of reports in a last column."""
        parts = self._plan(bounds, layout)
        width = sum(part.scheme.columns for part in parts)
        most = max(part.scheme.words * part.reports + part.scheme.columns for part in parts)
        kind = np.int8 if self._count < 128 else np.int32
        left = np.full((len(rows), width + 1), self._count, kind)

        def some(which: range) -> None:
            sources, start = [entropies(i) for i in which], 0
            for part in parts:
                stop = start + part.scheme.columns
                left[which.start : which.stop, start:stop] = part.report(rows[which.start : which.stop, part.part], sources)
                start = stop

        in_blocks(len(rows), most, MOST, some)
        return left

    def bytes(self, bounds: Bounds, layout: Layout) -> float:
        """Size of what leaves a party: at most a bit for each column of a report, and 32 for their number."""
        return 4 + sum(part.scheme.columns * part.reports for part in self._plan(bounds, layout)) / 8

    def at_server(self, total: Array, bounds: Bounds, layout: Layout, entropy: Entropy) -> Array:
        """Turn the total of all reports into an estimate of each count, of shape (size,)."""
        released, start = np.zeros(layout.size), 0
        if not total.any():  # nobody was there to report
            return released
        for part in self._plan(bounds, layout):
            stop = start + part.scheme.columns
            scale = part.bound.radius if part.bound.unit == "party" else 1.0
            released[part.part] = scale * part.scheme.estimate(total[start:stop], int(total[-1]))
            start = stop
        return released

    def deviation(self, counts: Array) -> Floats:
        """Standard deviation of the estimates where parties reported about so many records of each level."""
        counts = np.asarray(counts, float)
        found: Floats = np.sqrt(self.encoding.scheme(self.epsilon, len(counts)).variance(counts))
        return found

    @property
    def _count(self) -> int:
        return self.records or 1

    def _plan(self, bounds: Bounds, layout: Layout) -> tuple[ReportedTable, ...]:
        items = tuple(bounds.items()) if isinstance(bounds, Mapping) else bounds
        return _planned(items, layout, self)

    def __str__(self) -> str:
        many = f", {self.records} reports" if self._count > 1 else ""
        return f"{self.encoding}, epsilon {self.epsilon:g}{many} at the party"


@lru_cache(maxsize=64)
def _planned(bounds: Bound | tuple[tuple[str, Bound], ...], layout: Layout, how: Reports) -> tuple[ReportedTable, ...]:
    found: Bounds = dict(bounds) if isinstance(bounds, tuple) else bounds
    parts = blocks(found, layout)
    unit = unit_of(found)
    if any(bound.norm != 1 or (unit == "record" and bound.radius != 1) for _, bound in parts):
        raise BudgetInvalid(
            f"{how} cannot report what is bounded by {describe(found)}: a record has one level of a table.",
            remedy="Bound tables of counts by l1(1, unit='record'), or clip by l1(radius); for numbers use Duchi.",
        )
    if unit == "record" and how.records is None:
        raise BudgetInvalid(
            f"{how} was asked about tables bounded per record, without the number of reports that each party makes.",
            remedy="Say it: records=1 where a party is one record, else what parties have at most; it is public. "
            "Or protect parties: federation.protect(clip=l1(1.0), mechanism=...).",
        )
    if unit == "party" and how.records not in (None, 1):
        raise BudgetInvalid(
            f"{how} was asked about tables bounded per party, of which each party reports once.",
            remedy="Leave records out, or bound the table per record: l1(1, unit='record').",
        )
    narrow = min(part.stop - part.start for part, _ in parts)
    if narrow < 2:
        raise BudgetInvalid(
            f"{how} cannot report a table of {narrow} level.", remedy="For a yes or no use RandomisedResponse(epsilon)."
        )
    share = checked(how.epsilon / len(parts))
    return tuple(
        ReportedTable(part, bound, how.encoding.scheme(share, part.stop - part.start), how.records or 1)
        for part, bound in parts
    )


def drawn(shares: Array, words: Words) -> Values:
    """Draw a level for each party by its shares of shape (parties, levels), whose sum is at most one; the rest is nothing."""
    found: Values = (np.cumsum(shares, axis=1) <= unit_interval(words)).sum(1, keepdims=True)
    return found


def listed(rows: Array, n: int, sources: list[Entropy]) -> Values:
    """List the level of each record of each party's counts, n to a party: nothing in the end, or n drawn of too many."""
    levels = rows.shape[1]
    counts = np.floor(np.minimum(rows, TOO_MANY // levels) + 0.5).astype(np.int64)  # one record more is one report more at most
    if n == 1 and (counts.sum(1) <= 1).all():
        only: Values = np.where(counts.any(1), counts.argmax(1), levels)[:, None]
        return only
    found = np.full((len(rows), n), levels, np.int64)
    for i, held in enumerate(counts):
        values = np.repeat(np.arange(levels), held)
        if len(values) > n:
            order = draw(sources.__getitem__, range(i, i + 1), len(values))[0].argsort(kind="stable")
            values = values[np.sort(order[:n])]
        found[i, : len(values)] = values
    return found


def KRandomisedResponse(epsilon: float, records: int | None = None) -> Reports:
    """Generalised randomised response: the true level, or any other; for few levels."""
    return Reports(Generalised(nothing=(records or 1) > 1), epsilon, records)


def SymmetricUnary(epsilon: float, records: int | None = None) -> Reports:
    """Symmetric unary encoding: a bit for each level, each flipped with the same chance; basic RAPPOR, reported once."""
    return Reports(Unary("symmetric"), epsilon, records)


def OptimisedUnary(epsilon: float, records: int | None = None) -> Reports:
    """Optimised unary encoding: a bit for each level, with the chances of least variance; for many levels."""
    return Reports(Unary("optimised"), epsilon, records)


def Rappor(epsilon: float, records: int | None = None, *, bloom: Bloom | None = None) -> Reports:
    """RAPPOR reported once: a noisy Bloom filter in a random cohort; `rappor.collect` asks the same parties repeatedly."""
    return Reports(bloom or Bloom(), epsilon, records)


def CountMeanSketch(
    epsilon: float, records: int | None = None, *, hashes: int = 16, width: int = 256, salt: int = 0
) -> Reports:
    """Apple's private count-mean sketch: noisy signs of all buckets of one hash function."""
    return Reports(Sketch(hashes, width, False, salt), epsilon, records)


def HadamardSketch(epsilon: float, records: int | None = None, *, hashes: int = 16, width: int = 256, salt: int = 0) -> Reports:
    """Apple's private Hadamard count-mean sketch: a report is a single noisy sign."""
    return Reports(Sketch(hashes, width, True, salt), epsilon, records)
