"""Bounds per record, held at the party: whatever a server asks, no record adds more than the noise was scaled for.

A bound per record follows from what is asked: from the ranges of columns, the settings and the broadcast. In floating point
it is false in the last digits, since one record more changes how the others are rounded; and a server that lies about what
it follows from would get sums beside which the noise is nothing. So behind noise a party asks the local function about each
record alone, rounds what it adds to whole steps within the bound (see `hedgerow.core.whole`), and adds up.

    row_i    <- local(broadcast, record i)                 0 where it is not finite
    row_i    <- whole steps within the bound               each block of a contribution by its own
    total    <- sum of row_i                               exact

One record more then moves the total by its own row, to the last bit, and by at most the radius. A local function that does
this by itself, and faster, says so (`local(holds=True)`) and is given the bounds. A function that is no sum over records, or
takes no parties on a leading axis, is asked as it is; its bound holds but for rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .arrays import Array, Layout, flatten
from .bound import Bound, Bounds, blocks, unit_of
from .party import Local, Party
from .question import Question
from .release import Release
from .whole import BITS, in_steps, whole

NUMBERS = 1 << 18
"""So many numbers of single records are held at once, which a processor's cache holds too."""


def scaled_by_records(release: Release) -> bool:
    """Whether noise is scaled by a bound per record."""
    return release.mechanism is not None and release.bounds is not None and unit_of(release.bounds) == "record"


def comes_apart(question: Question) -> bool:
    """Whether a local function can be held to bounds per record: it does so itself, or is asked about many single ones."""
    if question.verb == "each" or not question.additive:
        return False
    willing = all(getattr(value, "stackable", True) for value in question.settings.values())
    return holds(question) or (bool(getattr(question.function, "stackable", False)) and willing)


def holds(question: Question) -> bool:
    """Whether a local function holds records to the bounds that it is given."""
    return bool(getattr(question.function, "holds", False))


def in_whole_steps(release: Release, question: Question) -> Release:
    """A release whose bounds say in which steps records add, where parties hold records to them."""
    if release.bounds is None or not (scaled_by_records(release) and comes_apart(question)):
        return release
    bits = getattr(question.function, "holds", False)
    return replace(release, bounds=in_steps(release.bounds, BITS if isinstance(bits, bool) else bits))


def held_to_bounds(question: Question, release: Release) -> Local:
    """The local function of a question, asked so that no record adds more than the bounds of its release; else as it is."""
    if release.bounds is None or not (scaled_by_records(release) and comes_apart(question)):
        return question.local
    if holds(question):
        return partial(question.local, bounds=release.bounds)
    return partial(record_by_record, ask=question.local, bounds=release.bounds)


def record_by_record(broadcast: Any, party: Party, rng: Any, *, ask: Local, bounds: Bounds) -> Any:
    """Ask about each record alone, hold it to its bound in whole steps, and add up; for one party or a stack."""
    stacked = party.w.ndim == 2
    n_parties, n_records = party.w.shape if stacked else (1, len(party.w))
    total: Array | None = None
    layout, step, start = Layout(()), 64, 0
    w, owner = party.w.reshape(-1, 1), np.repeat(np.arange(n_parties), n_records)
    while start < len(w) or total is None:
        part = slice(start, start + step)
        some = _Alone(party.columns, part, 1 + stacked)
        made = ask(broadcast, Party(party.id, some, w[part]), rng)
        layout = Layout.of(made, lead=1)
        total = np.zeros((n_parties, layout.size)) if total is None else total
        rows = flatten(made, lead=1).astype(np.float64, copy=False).reshape(-1, layout.size)
        if len(rows):
            whose = owner[part]
            begins = np.flatnonzero(np.diff(whose, prepend=-1))
            total[whose[begins]] += np.add.reduceat(_whole(rows, bounds, layout), begins, axis=0)
        start, step = start + step, max(1, NUMBERS // max(layout.size, some.numbers, 1))
    if not stacked:
        return layout.unflatten(total[0])
    found = {key: total[:, where].reshape(-1, *dict(layout.shapes)[key]) for key, where in layout.slices.items()}
    return found[""] if list(found) == [""] else found


record_by_record.additive, record_by_record.stackable = True, True  # type: ignore[attr-defined]


def _whole(rows: Array, bounds: Bounds, layout: Layout) -> Array:
    """Rows (k, size) within their bounds, in whole steps; one that is not finite counts as zeros: to refuse would reveal it."""
    finite = np.isfinite(rows).all(-1, keepdims=True)
    rows = rows if finite.all() else np.where(finite, rows, 0.0)
    if isinstance(bounds, Bound):
        return whole(rows, bounds)
    return np.concatenate([whole(rows[:, part], bound) for part, bound in blocks(bounds, layout)], axis=-1)


class _Alone(Mapping[str, Array]):
    """Some records of columns, each as a party of its own."""

    def __init__(self, columns: Mapping[str, Array], part: slice, lead: int) -> None:
        self._columns, self._part, self._lead = columns, part, lead
        self.numbers = 0  # of a record, as far as they have been read

    def __getitem__(self, name: str) -> Array:
        column = np.asarray(self._columns[name])
        rows: Array = column.reshape(-1, 1, *column.shape[self._lead :])[self._part]
        self.numbers += math.prod(rows.shape[1:])
        return rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
