"""Raking: weights of a tree's records, by which they have the tables of all pairs, and not of the tree's edges alone.

    server:  X       <- m records of the tree, as candidates;  weights w = n / m
             repeat rounds times:
                 ratio_p   <- log (table_p + c) / (sum of w over the cell + c)               for each pair p of columns
                 log w     <- log w + rate * mean over p of ratio_p at each candidate
             repeat LAST times, for each column j:
                 log w     <- log w + log node_j / (sum of w over the code)
    records: OVER times as many records of the tree; of these as many as are wanted, by weight (see `selected`)

A tree has the tables of its edges. Other pairs have their tables only as far as they follow from these, and much of what tells
classes apart is in them. All pairs were asked with noise, so that nothing more is asked of anybody. log w is a sum of
potentials of single cells: of all laws that have these tables it is the nearest to the tree's. The steps are those of
generalised iterative scaling, over-relaxed. The noise in a cell is kept from them by c, since cells of fewer records than it
hardly move, and by how few rounds there are.

Conditions are satisfied as by a tree: candidates are drawn under them, exactly, and weighed.

Candidates for the weights come from a public seed: the same tables have the same weights. Nothing here asks a party.

Source : generalised iterative scaling, Darroch & Ratcliff 1972; raking, Deming & Stephan 1940; the same for noisy answers,
         Hardt, Ligett & McSherry 2012 (MWEM), figure 1. Differs: candidates of a tree instead of all records that there could
         be; steps are ratios with a floor instead of differences. Importance resampling: Rubin 1987.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array

from .descent import drawn, passed
from .tree import ColumnTree

FITTED = 2**16
"""Candidates with which weights are fitted, of all classes together."""
FEWEST = 2**10
"""Candidates of a class, and for a draw, at least."""
RATE = 3.0
"""Over-relaxation of a step; 1 never overshoots. Looked at on Adult, as are the numbers below."""
FEW = 5.0
"""Candidates in c, besides the noise of a cell: cells with fewer of them say little of the tree."""
LAST = 3
"""Rounds of single columns, whose tables are the most precise, at the end."""
OVER = 8
"""Candidates for each record that is drawn."""
SWAPS = 300
"""Rounds of swaps of a draw."""


@dataclass(frozen=True)
class Potentials:
    """By how much each cell changes the logarithm of a record's weight.

    Attributes
    ----------
    singles : tuple of arrays (codes,)
    pairs : mapping from (i, j) to array (codes of i, codes of j)
    level : float
        Logarithm of the mean weight of the tree's records, which is taken away.
    """

    singles: tuple[Array, ...]
    pairs: Mapping[tuple[int, int], Array]
    level: float = 0.0

    def log_weights(self, codes: Array) -> Array:
        """Of records (n, f), with a mean weight of one over the tree's records: shape (n,)."""
        columns = np.ascontiguousarray(codes.T)
        found = np.full(len(codes), -self.level)
        for j, potential in enumerate(self.singles):
            found += potential[columns[j]]
        for (i, j), table in self.pairs.items():
            found += table.ravel()[columns[i] * table.shape[1] + columns[j]]
        return found


def raked(tree: ColumnTree, tables: Mapping[tuple[int, int], Array], sigma: float, rounds: int, candidates: int) -> Potentials:
    """Fit the potentials of one class.

    Parameters
    ----------
    tables : mapping from (i, j) to array
        Of all pairs, cleaned of noise.
    sigma : float
        Standard deviation of the noise in a cell before that.
    rounds, candidates : int
    """
    f, total = len(tree.nodes), tree.total
    pairs = {pair: np.zeros(table.size) for pair, table in tables.items()}
    columns = np.ascontiguousarray(drawn(passed(tree, {})[1], candidates, f, np.random.default_rng(0)).T)
    floor = sigma + FEW * total / candidates
    wanted = {pair: np.maximum(table, 0.0).ravel() + floor for pair, table in tables.items()}
    rate = RATE / max(len(tables), 1)
    logs = np.zeros(candidates)
    for _ in range(rounds):
        w = total * _shares(logs)
        for (i, j), table in wanted.items():
            place = columns[i] * len(tree.nodes[j]) + columns[j]
            ratio = rate * np.log(table / (np.bincount(place, w, table.size) + floor))
            pairs[i, j] += ratio
            logs += ratio[place]
    logs, singles = fitted_to_nodes(tree, columns, logs)
    level = float(logs.max() + np.log(np.exp(logs - logs.max()).mean()))
    return Potentials(singles, {pair: flat.reshape(tables[pair].shape) for pair, flat in pairs.items()}, level)


def fitted_to_nodes(tree: ColumnTree, columns: Array, logs: Array) -> tuple[Array, tuple[Array, ...]]:
    """Rake candidates (f, m) to the tables of single columns: their new log-weights, and the potentials of each column."""
    singles = [np.zeros(len(node)) for node in tree.nodes]
    for _ in range(LAST):
        for j, node in enumerate(tree.nodes):
            there = np.bincount(columns[j], tree.total * _shares(logs), len(node))
            ratio = np.log(np.divide(node, there, out=np.ones(len(node)), where=(there > 0) & (node > 0)))
            singles[j] += ratio
            logs = logs + ratio[columns[j]]
    return logs, tuple(singles)


def selected(columns: Array, logs: Array, rows: int, rng: np.random.Generator) -> Array:
    """Select so many of some candidates (f, m) by their weights, so that tables of columns and pairs are theirs: shape (rows,).

    Systematic sampling by weight first. Then rounds of swaps: one in a hundred records is to be exchanged for a candidate that
    is drawn by weight, wherever that brings tables nearer to those of the weights, rounded to whole numbers at random.
    """
    w = _shares(logs)
    ends = np.cumsum(w)
    ends /= ends[-1]
    chosen = np.searchsorted(ends, (np.arange(rows) + rng.random()) / rows, side="right")
    chosen = np.minimum(chosen, len(w) - 1)
    cells = _Cells.of(columns)
    wanted = rows * sum(np.bincount(place, w, cells.size) for place in cells.places(columns))
    off = cells.counted(columns[:, chosen]) - np.floor(wanted + rng.random(cells.size))
    some = max(1, rows // 100)
    for _ in range(SWAPS):
        at = rng.choice(rows, some, replace=False)
        new = np.minimum(np.searchsorted(ends, rng.random(some), side="right"), len(w) - 1)
        out, come = (np.stack(list(cells.places(columns[:, which]))) for which in (chosen[at], new))
        nearer = (off[come] - off[out] + (come != out)).sum(0) < 0  # half the change of the sum of squares
        off += np.bincount(come[:, nearer].ravel(), minlength=cells.size)
        off -= np.bincount(out[:, nearer].ravel(), minlength=cells.size)
        chosen[at[nearer]] = new[nearer]
    return chosen


@dataclass(frozen=True)
class _Cells:
    """The cells of all tables of one column and of two, one after the other."""

    sizes: tuple[int, ...]
    tables: tuple[tuple[int, int], ...]
    starts: tuple[int, ...]
    size: int

    @classmethod
    def of(cls, columns: Array) -> _Cells:
        sizes = tuple(int(column.max(initial=0)) + 1 for column in columns)
        tables = tuple((i, j) for j in range(len(sizes)) for i in range(j + 1))  # (j, j) is the table of column j
        cells = [sizes[j] if i == j else sizes[i] * sizes[j] for i, j in tables]
        return cls(sizes, tables, tuple(int(end) for end in np.cumsum([0, *cells])[:-1]), sum(cells))

    def places(self, columns: Array) -> Sequence[Array]:
        """In which cell of each table records (f, n) lie."""
        return [
            start + columns[j] if i == j else start + columns[i] * self.sizes[j] + columns[j]
            for (i, j), start in zip(self.tables, self.starts, strict=True)
        ]

    def counted(self, columns: Array) -> Array:
        """Records (f, n) in each cell."""
        found = np.zeros(self.size)
        for place in self.places(columns):
            found += np.bincount(place, minlength=self.size)
        return found


def _shares(logs: Array) -> Array:
    """Weights that sum to one."""
    w = np.exp(logs - logs.max())
    shares: Array = w / w.sum()
    return shares
