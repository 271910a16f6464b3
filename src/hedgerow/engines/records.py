"""Bounds per record, held at the party: whatever a server asks, no record adds more than the noise was scaled for.

A bound per record follows from what is asked: from the ranges of columns, the settings and the broadcast. A server that
lies about one of them would get sums beside which the noise is nothing. So a party that does not trust the server asks the
local function about each record alone, shortens what is too long, and adds up.

    row_i    <- local(broadcast, record i)                 0 where it is not finite
    total    <- sum of row_i * min(1, radius / |row_i|)    each block of a contribution by its own bound

Where the bound is true nothing is shortened, and the total is the sum as it was, but for rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array, Layout, flatten
from hedgerow.core.bound import Bounds, blocks, unit_of
from hedgerow.core.engine import Outbox
from hedgerow.core.party import Local, Party

NUMBERS = 1 << 20
"""So many numbers of single records are held at once."""


def held_to_bounds(outbox: Outbox) -> Outbox:
    """Return an outbox of which no record adds more than its bound; as it is, where that does not follow from records alone.

    That is possible for sums over records whose function takes parties on a leading axis, of which each is then one record.
    """
    if not (scaled_by_records(outbox) and comes_apart(outbox)):
        return outbox
    held = partial(record_by_record, ask=outbox.question.local, bounds=outbox.release.bounds)
    return replace(outbox, question=replace(outbox.question, local=held))


def scaled_by_records(outbox: Outbox) -> bool:
    """Whether noise is scaled by a bound per record, which nobody enforces but the local function."""
    release = outbox.release
    return release.mechanism is not None and release.bounds is not None and unit_of(release.bounds) == "record"


def comes_apart(outbox: Outbox) -> bool:
    """Whether a local function can be asked about single records, many at once."""
    question = outbox.question
    willing = all(getattr(value, "stackable", True) for value in question.settings.values())
    stacks = bool(getattr(question.function, "stackable", False)) and willing
    return stacks and question.additive and question.verb != "each"


def record_by_record(broadcast: Any, party: Party, rng: Any, *, ask: Local, bounds: Bounds) -> Any:
    """Ask about each record alone, shorten what is longer than its bound, and add up; for one party or a stack."""
    stacked = party.w.ndim == 2
    n_parties, n_records = party.w.shape if stacked else (1, len(party.w))
    total: Array | None = None
    layout, step, start = Layout(()), 64, 0
    w, owner = party.w.reshape(-1, 1), np.repeat(np.arange(n_parties), n_records)
    while start < len(w) or total is None:
        part = slice(start, start + step)
        made = ask(broadcast, Party(party.id, _Alone(party.columns, part, 1 + stacked), w[part]), rng)
        layout = Layout.of(made, lead=1)
        rows = _shortened(flatten(made, lead=1).astype(np.float64).reshape(-1, layout.size), bounds, layout)
        total = np.zeros((n_parties, layout.size)) if total is None else total
        if len(rows):
            whose = owner[part]
            begins = np.flatnonzero(np.diff(whose, prepend=-1))
            total[whose[begins]] += np.add.reduceat(rows, begins, axis=0)
        start, step = start + step, max(1, NUMBERS // max(layout.size, 1))
    if not stacked:
        return layout.unflatten(total[0])
    found = {key: total[:, where].reshape(-1, *dict(layout.shapes)[key]) for key, where in layout.slices.items()}
    return found[""] if list(found) == [""] else found


record_by_record.additive, record_by_record.stackable = True, True  # type: ignore[attr-defined]


def _shortened(rows: Array, bounds: Bounds, layout: Layout) -> Array:
    """Rows within their bounds; one that is not finite counts as zeros, since to refuse it would reveal it."""
    rows = np.where(np.isfinite(rows).all(-1, keepdims=True), rows, 0.0)
    return np.concatenate([bound.clip(rows[:, part]) for part, bound in blocks(bounds, layout)], axis=-1)


class _Alone(Mapping[str, Array]):
    """Some records of columns, each as a party of its own."""

    def __init__(self, columns: Mapping[str, Array], part: slice, lead: int) -> None:
        self._columns, self._part, self._lead = columns, part, lead

    def __getitem__(self, name: str) -> Array:
        column = np.asarray(self._columns[name])
        rows: Array = column.reshape(-1, 1, *column.shape[self._lead :])[self._part]
        return rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
