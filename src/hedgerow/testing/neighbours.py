"""Neighbours: whether one record, or one party, moves a sum by no more than its declared bound.

Every sum that a program asks is heard. Its local function is then called again on some records with and without one more:
a real one, and ones at the ends of the declared ranges; and on none, since a party may have no records. This can find a bound
that is false and not prove one that is true.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from hedgerow.core.arrays import Layout, flatten
from hedgerow.core.bound import Bounds, blocks, unit_of
from hedgerow.core.federation import Federation, inside
from hedgerow.core.party import Parties
from hedgerow.core.question import function_of, name_of
from hedgerow.core.randomness import Streams
from hedgerow.data import Column, Table

log = logging.getLogger("hedgerow")

MOST = 3
"""Questions of one local function that are tried."""

RECORDS = 30
CORNERS = 6


@dataclass(frozen=True)
class Heard:
    """A sum as it was asked."""

    federation: Federation
    local: Any
    broadcast: Any
    bound: Bounds | None
    init: Any

    @property
    def name(self) -> str:
        return name_of(function_of(self.local))

    @property
    def preparations(self) -> tuple[Any, ...]:
        return inside(self.federation).view


@contextmanager
def hearing() -> Iterator[list[Heard]]:
    """Collect the sums that are asked."""
    heard: list[Heard] = []
    ask = Federation.sum

    def sum(self: Federation, local: Any, broadcast: Any = None, *, bound: Any = None, init: Any = None) -> Any:
        heard.append(Heard(self, local, broadcast, bound, init))
        return ask(self, local, broadcast, bound=bound, init=init)

    with patch.object(Federation, "sum", sum):
        yield heard


def few(heard: list[Heard]) -> list[Heard]:
    """The first sums of each local function."""
    counts: dict[str, int] = {}
    kept = []
    for one in heard:
        counts[one.name] = counts.get(one.name, 0) + 1
        kept += [one] if counts[one.name] <= MOST else []
    return kept


def padded(one: Heard, table: Table) -> float:
    """By how much records of weight zero move a sum, relative to its largest number above one."""
    some = {name: values[:RECORDS] for name, values in table.columns.items()}
    more = {name: np.concatenate([values, table.columns[name][-RECORDS:]]) for name, values in some.items()}
    weights = [np.ones(len(next(iter(part.values())))) for part in (some, more)]
    weights[1][len(weights[0]) :] = 0.0
    before, after = (_contribution(one, part, table, w) for part, w in zip((some, more), weights, strict=True))
    return float(np.abs(after - before).max(initial=0.0) / max(1.0, np.abs(before).max(initial=0.0)))


def longest(one: Heard, table: Table, seed: int = 0) -> list[tuple[str, float]]:
    """By how much a unit moves each part of a sum, over its radius: at most 1 where the bound holds."""
    assert one.bound is not None
    rng = np.random.default_rng(seed)
    some = {name: values[:RECORDS] for name, values in table.columns.items()}
    if unit_of(one.bound) == "party":
        return _over(one, table, [_contribution(one, some, table)])
    moved = []
    for present in (some, {name: values[:0] for name, values in some.items()}):  # a party may have no records
        before = _counted(one, present, table)
        for more in (*_real(table, rng), *(corner(table, rng) for _ in range(CORNERS))):
            after = {name: np.concatenate([present[name], more[name]]) for name in present}
            moved.append(_counted(one, after, table) - before)
    return _over(one, table, moved)


def _over(one: Heard, table: Table, moved: list[np.ndarray]) -> list[tuple[str, float]]:
    layout = _layout(one, table)
    assert one.bound is not None
    found = []
    for part, bound in blocks(one.bound, layout):
        lengths = [float(np.linalg.norm(row[part], ord=bound.norm)) / bound.radius for row in moved]
        found.append((f"{one.name} {bound}", max(lengths)))
    return found


def _asked(one: Heard, columns: dict[str, np.ndarray], table: Table, w: np.ndarray | None = None) -> Any:
    weight, n = table.schema.weight, len(next(iter(columns.values())))
    whole = Parties(("one",), columns, [n], columns[weight] if weight and w is None else w)
    party = whole.prepared(one.preparations, together=False)[0]
    if one.init is not None:
        party.state = dict(one.init(one.broadcast, party))
    return one.local(one.broadcast, party, Streams(0).stream(1, "one", "local"))


def _layout(one: Heard, table: Table) -> Layout:
    return Layout.of(_asked(one, {name: values[:2] for name, values in table.columns.items()}, table))


def _contribution(one: Heard, columns: dict[str, np.ndarray], table: Table, w: np.ndarray | None = None) -> np.ndarray:
    return np.asarray(flatten(_asked(one, columns, table, w)), dtype=np.float64).ravel()


def _counted(one: Heard, columns: dict[str, np.ndarray], table: Table) -> np.ndarray:
    """A contribution as a channel with noise counts it: as zeros where it fails or is not finite."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = _contribution(one, columns, table)
    except Exception as error:  # whatever a local function makes of no records
        if len(next(iter(columns.values()))) > 1:
            raise
        log.info("%s counts as zeros: %s", one.name, error)
        found = np.zeros(_layout(one, table).size)
    return found if np.isfinite(found).all() else np.zeros_like(found)


def _real(table: Table, rng: np.random.Generator) -> Iterator[dict[str, np.ndarray]]:
    for i in rng.integers(len(table), size=2):
        yield {name: values[i : i + 1] for name, values in table.columns.items()}


def corner(table: Table, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A record whose numbers lie at ends of their declared ranges; real where an end is not declared."""
    made = {}
    real = int(rng.integers(len(table)))
    for column in table.schema:
        value = table.columns[column.name][real : real + 1]
        made[column.name] = _end(column, value, rng)
    return made


def _end(column: Column, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if column.kind in ("binary", "category"):
        return column.synthetic(1, rng).astype(value.dtype)
    if column.low is None or column.high is None:
        return value
    ends = np.array([column.low, column.high])
    return ends[rng.integers(2, size=value.shape)].astype(value.dtype)
