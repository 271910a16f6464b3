"""Bounds per record, held at the party: whatever a server asks, no record adds more than the noise was scaled for.

A bound per record follows from what is asked: from the ranges of columns, the settings and the broadcast. In floating point
it is false in the last digits, since one record more changes how the others are rounded; and a server that lies about what
it follows from would get sums beside which the noise is nothing. So behind noise a party asks a sum over records about one
record at a time, rounds what it adds to whole steps within the bound (see `hedgerow.core.whole`), and adds up.

    row_i    <- local(broadcast, record i)                 0 where it is not finite, or fails
    row_i    <- whole steps within the bound               each block of a contribution by its own
    total    <- sum of row_i                               exact, and cut at 2^52 steps

One record more then moves the total by its own row, to the last bit, and by at most the radius. Whatever goes wrong because of
a record takes away that record alone: a party that counted as zeros would move the total by all of its records.

A local function that holds records to bounds by itself, and faster, says so (`local(holds=True)`) and is given the bounds.
Where it fails it is asked about halves of the records, and about halves of these, until single records are left that count as
zeros; its sums are exact, so the parts add up to the same bits. A function whose rows do not depend on each other
(`local(rowwise=True)`) is asked about many records at once, as stacked parties of one record each. A function that is no sum
over records is asked as it is; its bound holds but for rounding, and as long as it fails for no record. One that adds up whole
numbers shard by shard (`local(by_shard=True)`) keeps to its bound by itself, without rounding.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from hedgerow.errors import BudgetInvalid, CannotWrite, CheckpointMismatch, ContributionInvalid

from .arrays import Array, Layout, flatten
from .bound import Bound, Bounds, blocks, each_bound, unit_of
from .columns import Rows
from .party import Local, Party, apart
from .question import Question, function_of, settings_of
from .release import Release
from .whole import BITS, WholeTotal, in_steps, records_in, whole

log = logging.getLogger("hedgerow")

NUMBERS = 1 << 18
"""So many numbers of single records are held at once, which a processor's cache holds too."""

MACHINE = (CannotWrite, CheckpointMismatch)
"""Failures of the machine and not of a record."""


def scaled_by_records(release: Release) -> bool:
    """Whether noise is scaled by a bound per record."""
    return release.mechanism is not None and release.bounds is not None and unit_of(release.bounds) == "record"


def comes_apart(question: Question) -> bool:
    """Whether a local function can be held to bounds per record: it is a sum over records."""
    return question.verb != "each" and question.additive


def holds(question: Question, bounds: Bounds | None, layout: Layout | None) -> bool:
    """Whether a local function holds records to bounds like these by itself: it does so key by key, in the norms it says."""
    if bounds is None or not getattr(question.function, "holds", False):
        return False
    if isinstance(bounds, Bound):
        bounds, keys = {"": bounds}, 1 if layout is None else len(layout.slices)
        if keys > 1:  # one ball for all keys together
            return False
    return all(bound.norm in question.function.norms for bound in bounds.values())  # type: ignore[attr-defined]


def one_by_one(question: Question, release: Release, layout: Layout | None = None) -> bool:
    """Whether a party asks a local function about one record a call, in surroundings that no other record changes."""
    held = scaled_by_records(release) and comes_apart(question)
    return held and not holds(question, release.bounds, layout) and not _rowwise(question.local)


def _rowwise(ask: Local) -> bool:
    """Whether many single records may be asked about at once."""
    function = function_of(ask)
    willing = all(getattr(value, "stackable", True) for value in settings_of(ask).values())
    return bool(getattr(function, "rowwise", False) and getattr(function, "stackable", False)) and willing


def in_whole_steps(release: Release, question: Question) -> Release:
    """A release whose bounds say in which steps records add, where parties hold records to them.

    Raises
    ------
    BudgetInvalid (HR-214)
        Noise on whole numbers would be added to what is none.
    """
    if release.mechanism is None or release.bounds is None or not scaled_by_records(release):
        return release
    step, bits = release.mechanism.record_step, getattr(question.function, "holds", False)
    if step is not None:
        _refuse_fractions(release, release.bounds, question, step)
    if not comes_apart(question) and not question.by_shard:
        _on_trust(question.name)
        return release
    return replace(release, bounds=in_steps(release.bounds, BITS if isinstance(bits, bool) else bits, step))


@lru_cache(maxsize=256)
def _on_trust(name: str) -> None:
    """Say once that nothing holds records to the bound of a function that is no sum over records."""
    log.warning("%s is not declared additive, so nothing holds a record to its bound: it is taken on trust.", name)


def _refuse_fractions(release: Release, bounds: Bounds, question: Question, step: float) -> None:
    """Refuse, before anybody is asked, records that cannot add whole multiples of a step, or only zeros."""
    smallest = min(bound.radius for bound in each_bound(bounds))
    if not comes_apart(question) and not question.by_shard:
        why = "is no sum over records, so they cannot be held to whole numbers"
    elif not isinstance(getattr(question.function, "holds", False), bool):
        why = "adds what is no whole number"
    elif smallest < step:
        why = f"lets a record add {smallest:g} at most, of which no whole number but zero is left"
    else:
        return
    raise BudgetInvalid(
        f"{release.mechanism} is noise on whole numbers, and {question.name} {why}.",
        remedy="Use Laplace or Gaussian, whose grid is finer; or count records, in a function that is local(additive=True).",
    )


def held_to_bounds(question: Question, release: Release, layout: Layout | None = None) -> Local:
    """The local function of a question, asked so that no record adds more than the bounds of its release; else as it is.

    Parameters
    ----------
    layout : Layout, optional
        As it was announced: a record of which the function makes another one counts as zeros.
    """
    if release.bounds is None or not (scaled_by_records(release) and comes_apart(question)):
        return question.local
    if holds(question, release.bounds, layout):
        return partial(in_parts, ask=partial(question.local, bounds=release.bounds), bounds=release.bounds, layout=layout)
    return partial(record_by_record, ask=question.local, bounds=release.bounds, layout=layout)


# ---- functions that hold records to bounds --------------------------------------------------------------------------
def in_parts(broadcast: Any, party: Party, rng: Any, *, ask: Local, bounds: Bounds, layout: Layout | None = None) -> Any:
    """Ask about all records; where that fails, or their sum might not be exact, about parts of them, and add these up.

    Of several stacked parties a failure is raised, and each is asked by itself.
    """
    lead, n = party.w.ndim - 1, party.w.shape[-1]
    parties = len(party.w) if lead else 1
    most = min(records_in(bound) for bound in each_bound(bounds))
    found, total = _Found(party.id, layout, parties), None

    def made_of(part: slice) -> Any:
        return found.lawful(ask(broadcast, _some(party, part), rng), lead)

    for made, part in _halves(made_of, slice(0, n), most, found):
        if part == slice(0, n):
            return made
        total = total or WholeTotal(bounds, Layout.of(made, lead), parties)
        total.add(flatten(made, lead).reshape(parties, -1), slice(None))
    return found.closed(total, bounds, stacked=bool(lead))


def _some(party: Party, part: slice) -> Party:
    """A party, or stacked parties, with some of their records."""
    if part == slice(0, party.w.shape[-1]):
        return party
    rows: Any = (*(slice(None),) * (party.w.ndim - 1), part)
    return Party(party.id, Rows(party.columns, rows), party.w[rows], party.state)


# ---- functions that are asked about single records ------------------------------------------------------------------
def record_by_record(
    broadcast: Any, party: Party, rng: Any, *, ask: Local, bounds: Bounds, layout: Layout | None = None
) -> Any:
    """Ask about one record a call, hold it to its bound in whole steps, and add up; for one party or a stack.

    A `rowwise` function is asked about many records a call.
    """
    stacked, together = party.w.ndim == 2, _rowwise(ask)
    n_parties, n_records = party.w.shape if stacked else (1, len(party.w))
    columns, w, owner = _Flat(party.columns, 1 + stacked), party.w.reshape(-1), np.repeat(np.arange(n_parties), n_records)
    found, total = _Found(party.id, layout, n_parties if stacked else 1), None

    def rows_of(part: slice) -> tuple[Layout, Array]:
        rows: Any = part
        some = Party(party.id, Rows(columns, rows), w[part])
        lead = int(together)
        made = ask(broadcast, _each_alone(some) if together else apart(some), rng)
        seen = found.layout_of(made, lead)
        return seen, flatten(made, lead).astype(np.float64, copy=False).reshape(-1, seen.size)

    start, step = 0, 64
    while start < len(w) or start == 0:
        part = slice(start, min(start + step, len(w)))
        lawful = list(_halves(rows_of, part, step if together else 1, found, single=True))
        if lawful:
            size = lawful[0][0][0].size
            total = total or WholeTotal(bounds, lawful[0][0][0], n_parties)
            rows = np.concatenate([rows for (_, rows), _ in lawful])
            whose = np.concatenate([owner[one] for _, one in lawful])
            if len(whose):
                begins = np.flatnonzero(np.diff(whose, prepend=-1))
                total.add(np.add.reduceat(_whole(rows, bounds, total.layout), begins, axis=0), whose[begins])
            step = max(1, NUMBERS // max(size, columns.numbers, 1))
        start = max(part.stop, 1)
    return found.closed(total, bounds, stacked=stacked)


record_by_record.additive, record_by_record.stackable = True, True  # type: ignore[attr-defined]


def _each_alone(some: Party) -> Party:
    """Records as stacked parties of one record each."""
    return Party(some.id, _Flat(some.columns, 1, (1,)), some.w[:, None])


def _whole(rows: Array, bounds: Bounds, layout: Layout) -> Array:
    """Rows (k, size) within their bounds, in whole steps; one that is not finite counts as zeros: to refuse would reveal it."""
    finite = np.isfinite(rows).all(-1, keepdims=True)
    rows = rows if finite.all() else np.where(finite, rows, 0.0)
    if isinstance(bounds, Bound):
        return whole(rows, bounds)
    return np.concatenate([whole(rows[:, part], bound) for part, bound in blocks(bounds, layout)], axis=-1)


class _Flat(Mapping[str, Array]):
    """Columns with the records of all parties on one axis, of which each may get more axes."""

    def __init__(self, columns: Mapping[str, Array], lead: int, more: tuple[int, ...] = ()) -> None:
        self._columns, self._lead, self._more = columns, lead, more
        self._read: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._read:
            column = np.asarray(self._columns[name])
            n = math.prod(column.shape[: self._lead])
            self._read[name] = column.reshape(n, *self._more, *column.shape[self._lead :])
        return self._read[name]

    @property
    def numbers(self) -> int:
        """Of a record, as far as they have been read."""
        return sum(math.prod(column.shape[1:]) for column in self._read.values())

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


# ---- records that fail ----------------------------------------------------------------------------------------------
@dataclass
class _Found:
    """What is known of an answer while parts of the records are asked about."""

    party: str
    layout: Layout | None
    parties: int
    lost: int = 0
    why: BaseException | None = None

    def layout_of(self, made: Any, lead: int) -> Layout:
        """The layout of what a function made; it fails where that is not as was announced."""
        layout = Layout.of(made, lead)
        if self.layout is not None and layout != self.layout:
            raise ContributionInvalid("a shape that was not announced.")
        return layout

    def lawful(self, made: Any, lead: int) -> Any:
        """What a function made of many records; it fails where that is not finite, too."""
        self.layout_of(made, lead)
        if (numbers := flatten(made, lead)).dtype == np.float32:
            raise ContributionInvalid("a sum in whole steps is in float32, which cannot hold it.")
        if not np.isfinite(numbers).all():
            raise ContributionInvalid("a contribution is not finite.")
        return made

    def closed(self, total: WholeTotal | None, bounds: Bounds, *, stacked: bool) -> Any:
        """The total; where every record failed, zeros as announced, or the failure where nothing was announced."""
        if total is None and (self.layout is None or not self.lost):
            raise self.why or ContributionInvalid("nobody asked about any record.")
        if self.lost:  # a sentence for the party's own log
            log.warning(
                "%d of its records count as zeros at %s: %s: %s", self.lost, self.party, type(self.why).__name__, self.why
            )
        total = total or WholeTotal(bounds, self.layout or Layout(()), self.parties)
        rows, layout = total.rows, total.layout
        if not stacked:
            return layout.unflatten(rows[0])
        found = {key: rows[:, where].reshape(-1, *dict(layout.shapes)[key]) for key, where in layout.slices.items()}
        return found[""] if list(found) == [""] else found


def _halves(
    ask: Callable[[slice], Any], part: slice, most: int, found: _Found, *, single: bool = False
) -> Iterator[tuple[Any, slice]]:
    """What is made of parts of the records, each of so many at most; one that fails is halved, down to single records."""
    todo = [part]
    while todo:
        part = todo.pop()
        size = part.stop - part.start
        if size <= most:
            try:
                made = ask(part)
            except MACHINE:
                raise
            except (Exception, SystemExit) as error:
                if found.parties > 1 and not single:
                    raise
                found.lost, found.why = found.lost + (size == 1), error
                if size < 2:
                    continue
            else:
                yield made, part
                continue
        middle = part.start + size // 2
        todo += [slice(middle, part.stop), slice(part.start, middle)]
