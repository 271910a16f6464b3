"""Columns that lie apart, in one process and without masks: the oracle of what an aligned handle returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from hedgerow.core import Party
from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Stream
from hedgerow.data import Schema, Table

COLUMNS, WEIGHTED, ROWS, WEIGHTS, SUMS = 24, 16, 24, 16, 33
"""Binary places of columns, of columns that are weighted, of right-hand rows, weights and sums whose rows are records."""


def grid(values: Any, places: int) -> Array:
    """Numbers as they come out of fixed point."""
    return np.rint(np.asarray(values, float) * 2.0**places) / 2.0**places


@dataclass
class InMemory:
    """The verbs of an aligned handle on tables in memory, rounded to fixed point; `noise` is added to every cross product."""

    tables: dict[str, Table]
    least: int = 10
    noise: float = 0.0
    seed: int = 0
    opened: list[Array] = field(default_factory=list)
    asked: list[tuple[str, Any]] = field(default_factory=list)
    order: Array | None = None

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.names = tuple(self.tables)
        self.n = len(next(iter(self.tables.values())))
        self.schemas: dict[str, Schema] = {name: table.schema for name, table in self.tables.items()}
        noisy = self.noise > 0
        self.protection = SimpleNamespace(
            noisy=noisy,
            exact=not noisy,
            mechanism="Gaussian" if noisy else None,
            meaning="(1, 1e-6) per record" if noisy else "",
        )

    @property
    def traffic(self) -> list[Any]:
        return []

    @property
    def ledger(self) -> list[Any]:
        return self.asked

    def _local(self, function: Callable[..., Array], broadcast: Any) -> list[Array]:
        found = []
        for name, table in self.tables.items():
            columns = {column: table[column] for column in table.schema.names}
            found.append(
                np.asarray(function(broadcast, Party(name, columns, np.ones(self.n)), Stream(f"{name} {len(self.asked)}")))
            )
        return found

    def sum(self, local: Callable[..., Array], broadcast: Any = None) -> Array:
        self.asked.append(("sum", local))
        self.order = self.rng.permutation(self.n)
        total = sum(grid(rows, SUMS) for rows in self._local(local, broadcast))[self.order]
        self.opened.append(total)
        return total

    def cross(
        self, left: Any, right: Any = None, broadcast: Any = None, *, bound: Any = None, hub: Any = None, weights: Any = None
    ) -> Array:
        self.asked.append(("cross", bound))
        blocks = self._local(left, broadcast)
        X = grid(np.concatenate(blocks, axis=1), COLUMNS if weights is None else WEIGHTED)
        within(blocks, bound.left, self.names)
        w, R = np.ones(self.n), X
        if weights is not None:
            w = np.empty(self.n)
            w[self.order] = grid(weights, WEIGHTS)
            assert np.abs(w).max() <= 0.25 + 1e-9
        if right is not None:
            rows = self._local(right, broadcast)
            within(
                [one for one in rows if one.size],
                bound.right,
                [name for name, one in zip(self.names, rows, strict=True) if one.size],
            )
            R = sum(grid(one, ROWS) for one in rows if one.size)
            if hub is not None:
                shared = np.empty_like(R)
                shared[self.order] = grid(hub, ROWS)
                R = R + shared
        found = (X * w[:, None]).T @ R
        return found + self.rng.normal(0, self.noise, found.shape) if self.noise else found


def within(blocks: list[Array], reaches: Any, names: Any) -> None:
    """Every column is within what is declared of it, by party."""
    for name, block in zip(names, blocks, strict=True):
        largest = np.array(reaches[name].largest if name in reaches else ())
        assert block.shape[1] == len(largest), (name, block.shape, largest)
        assert (np.abs(block) <= largest * (1 + 1e-12)).all(), (name, np.abs(block).max(0), largest)
