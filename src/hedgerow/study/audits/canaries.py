"""Canaries: records or parties that are added to a run of the audit's own, each in by a fair coin.

records   at corners of the declared ranges with a target by chance, dealt to the parties in turn. One that is not in has weight
          zero: it is drawn into samples as it would be, and adds nothing.
parties   answer each question with a direction of their own, three times as long as the bound, through every party's own
          clip. One that is not in answers zeros, and is drawn into cohorts as it would be.

Canaries harm a model, and parties that are added change the cohort: so an audit is never the run whose model is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.party import Parties
from hedgerow.data import Schema
from hedgerow.data.column import Column

MARK = "number of the canary"
"""A column that says which canary a record is; -1 of others."""

FEW = 32
"""Of so many values, or fewer, each is at either end of its range by a fair coin; of more, one in ten is at the upper end, so
that two canaries have little in common."""


@dataclass(frozen=True)
class Canaries:
    """Which canaries there are, and which of them are in.

    Attributes
    ----------
    inside : array of bool, shape (m,)
        By fair coins.
    party : array of int, shape (m,)
        At which party each canary's record is; of canaries that are parties, its own position.
    place : array of shape (m,)
        Where among that party's records it stands, from 0, the first, to 1, the last: by chance, as a fault may depend on it.
    """

    inside: Array
    party: Array
    place: Array

    def __len__(self) -> int:
        return len(self.inside)

    @classmethod
    def dealt(cls, m: int, parties: int, coins: np.random.Generator) -> Canaries:
        """Toss the coins, and deal records to parties in turn."""
        return cls(coins.random(m) < 0.5, np.arange(m) % parties, coins.random(m))


def extreme_records(schema: Schema, held: Mapping[str, Array], n: int, chance: np.random.Generator) -> dict[str, Array]:
    """Records at corners of the declared ranges; columns without one have the values of records that are there."""
    size = max(1, len(next(iter(held.values()))))
    there = chance.integers(0, size, n)
    declared = {column.name: column for column in schema}
    values = sum(int(np.prod(column.shape)) for column in schema if column.role == "feature")
    found = {}
    for name, column in held.items():
        made = _corner(declared[name], n, chance, 0.5 if values <= FEW else 0.1) if name in declared else None
        found[name] = np.asarray(column)[there] if made is None else made.astype(np.asarray(column).dtype)
    return found


def _corner(column: Column, n: int, chance: np.random.Generator, high: float) -> Array | None:
    shape = (n, *column.shape)
    if column.role not in ("feature", "target"):
        return None
    if column.kind == "binary":
        return chance.integers(0, 2, shape)
    if column.kind == "category":
        return chance.integers(0, max(1, len(column.levels)), shape)
    if column.low is None or column.high is None:
        return None
    return np.where(chance.random(shape) < high, column.high, column.low)


def with_records(held: Parties, records: Mapping[str, Array], canaries: Canaries, *, inside: bool) -> Parties:
    """The parties with canaries among their own records.

    Parameters
    ----------
    inside : bool
        Whether those that are in count; otherwise all have weight zero, as if none were.
    """
    n, m = int(held.offsets[-1]), len(canaries)
    own = np.repeat(np.arange(len(held)), held.sizes)
    place = (np.arange(n) - held.offsets[own] + 0.5) / held.sizes[own]
    order = np.lexsort((np.concatenate([place, canaries.place]), np.concatenate([own, canaries.party])))
    columns = {name: np.concatenate([np.asarray(held.columns[name]), records[name]])[order] for name in held.columns}
    columns[MARK] = np.concatenate([np.full(n, -1), np.arange(m)])[order]
    w = np.concatenate([held.w, canaries.inside.astype(float) * inside])[order]
    sizes = held.sizes + np.bincount(canaries.party, minlength=len(held))
    return Parties(held.ids, columns, sizes, w)


def alone(records: Mapping[str, Array], m: int) -> Parties:
    """Each canary's record at a party of its own."""
    columns = {name: np.asarray(column) for name, column in records.items()} | {MARK: np.arange(m)}
    return Parties([f"canary {c + 1}" for c in range(m)], columns, np.ones(m, np.int64))
