"""Raking: weights of a tree's records, by which they have the tables of all pairs, and not of the tree's edges alone.

    server:  X       <- m records of the tree, as candidates;  weights w = n / m
             repeat rounds times, for each pair p of columns:
                 log w     <- log w + RATE * log (table_p + c) / (sum of w over the cell + c)
             repeat LAST times, for each column j:
                 log w     <- log w + log node_j / (sum of w over the code)
    law:     P(x) ~ tree(x) min(e^CAP, e^(log w)), with a mean weight of one in each class
    records: OVER times as many records of the tree; of these as many as are wanted, by weight (see `selected`)

A tree has the tables of its edges. Other pairs have their tables only as far as they follow from these, and much of what tells
classes apart is in them. All pairs were asked with noise, so that nothing more is asked of anybody: their tables are cleaned
and moved to agree with the nodes, as those of edges are. log w is a sum of potentials of single cells: of all laws that have
these tables it is the nearest to the tree's. Noise is kept from them by c, since cells of fewer records than it hardly move,
and by how few rounds there are: with many, weights follow what noise left in the tables, and few candidates have all of it.

Conditions are satisfied as by a tree: candidates are drawn under them, exactly, and weighed by the same potentials, so that
records under conditions have the law that a filter leaves. No record weighs more than e^CAP times the mean of its class,
neither where potentials are fitted nor where they are used, so that no candidate is most of a draw.

Candidates for the weights come from a public seed: the same tables have the same weights. Nothing here asks a party.

Source : raking, Deming & Stephan 1940; for noisy answers Hardt, Ligett & McSherry 2012 (MWEM), figure 1. Differs: candidates of
         a tree instead of all records that there could be; steps are parts of the ratio's logarithm, with a floor, instead of
         differences. Importance resampling: Rubin 1987.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hedgerow.core.arrays import Array

from .descent import drawn, passed, rounded
from .tree import ColumnTree

FITTED = 2**16
"""Candidates with which weights are fitted, of all classes together."""
FEWEST = 2**10
"""Candidates of a class, and for a draw, at least."""
RATE = 0.1
"""Part of a step towards a table: 1 has it at once, and 0.1 for 10 rounds, 0.25 and 0.5 were looked at on Adult."""
FEW = 5.0
"""Candidates in c, besides the noise of a cell: cells with fewer of them say little of the tree."""
LAST = 3
"""Rounds of single columns, whose tables are the most precise, at the end."""
CAP = 3.0
"""Logarithm of the largest weight, over the mean of a class: 20 times. Few records of Adult reach it at epsilon 1."""
LEVELLED = 20
"""Steps towards a mean weight of one, after each round of single columns."""
OVER = 8
"""Candidates for each record that is drawn."""
SWAPS = 300
"""Rounds of swaps of a draw."""
SWAPPED = 1000
"""Records of a class from which on there are swaps: in fewer, cells of rare codes are rounded to nothing."""


@dataclass(frozen=True)
class Potentials:
    """By how much each cell changes the logarithm of a record's weight.

    Attributes
    ----------
    singles : tuple of arrays (codes,)
    pairs : mapping from (i, j) to array (codes of i, codes of j)
    level : float
        What is taken away, so that the tree's records have a mean weight of one.
    """

    singles: tuple[Array, ...]
    pairs: Mapping[tuple[int, int], Array]
    level: float = 0.0

    def log_weights(self, codes: Array) -> Array:
        """Of records (n, f), with a mean weight of one over the tree's records, none above `CAP`: shape (n,)."""
        columns = np.ascontiguousarray(codes.T)
        found = np.full(len(codes), -self.level)
        for j, potential in enumerate(self.singles):
            found += potential[columns[j]]
        for (i, j), table in self.pairs.items():
            found += table.ravel()[columns[i] * table.shape[1] + columns[j]]
        weights: Array = np.minimum(found, CAP)
        return weights


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
    if total <= 0:  # a class of no records has nothing to weigh
        return Potentials(tuple(np.zeros(len(node)) for node in tree.nodes), {p: np.zeros(t.shape) for p, t in tables.items()})
    pairs = {pair: np.zeros(table.size) for pair, table in tables.items()}
    columns = np.ascontiguousarray(drawn(passed(tree, {})[1], candidates, f, np.random.default_rng(0)).T)
    each = total / candidates
    floor = sigma + FEW * each
    wanted = {pair: np.maximum(table, 0.0).ravel() + floor for pair, table in tables.items()}
    logs = np.zeros(candidates)
    for _ in range(rounds):
        held = each * np.exp(np.minimum(logs, CAP))
        w = held.copy()
        for (i, j), table in wanted.items():
            place = columns[i] * len(tree.nodes[j]) + columns[j]
            ratio = RATE * np.log(table / (np.bincount(place, w, table.size) + floor))
            pairs[i, j] += ratio
            w *= np.exp(ratio)[place]
        logs += np.log(w / held)
    singles, level = fitted_to_nodes(tree, columns, logs)
    return Potentials(singles, {pair: flat.reshape(tables[pair].shape) for pair, flat in pairs.items()}, level)


def fitted_to_nodes(tree: ColumnTree, columns: Array, logs: Array) -> tuple[tuple[Array, ...], float]:
    """Rake candidates (f, m) to the tables of single columns: the potentials of each column, and the level."""
    singles = [np.zeros(len(node)) for node in tree.nodes]
    level = _level(logs)
    for _ in range(LAST):
        for j, node in enumerate(tree.nodes):
            there = np.bincount(columns[j], tree.total * _shares(np.minimum(logs - level, CAP)), len(node))
            ratio = np.log(np.divide(node, there, out=np.ones(len(node)), where=(there > 0) & (node > 0)))
            singles[j] += ratio
            logs = logs + ratio[columns[j]]
        level = _level(logs, level)
    return tuple(singles), level


def _level(logs: Array, level: float = 0.0) -> float:
    """What log-weights are less by where weights have a mean of one and none is above the cap."""
    for _ in range(LEVELLED):
        level += float(np.log(np.exp(np.minimum(logs - level, CAP)).mean()))
    return level


def selected(columns: Array, logs: Array, rows: int, rng: np.random.Generator, nodes: Sequence[Array] = ()) -> Array:
    """Select so many of some candidates (f, m) by their weights, so that tables of columns are theirs: shape (rows,).

    Where `nodes` are given, tables of columns are these: those of the law, to which the weights of candidates come near.

    Systematic sampling by weight first. Then rounds of swaps: one in a hundred records is to be exchanged for a candidate that
    is drawn by weight, wherever that brings the tables of columns nearer to those of the weights, rounded at random to whole
    numbers; not where fewer than `SWAPPED` are wanted. Only single columns are compared: of most pairs' cells less than one
    record is wanted, and none would be left.
    """
    w = _shares(logs)
    ends = np.cumsum(w)
    ends /= ends[-1]
    chosen = np.searchsorted(ends, (np.arange(rows) + rng.random()) / rows, side="right")
    chosen = np.minimum(chosen, len(w) - 1)
    if rows < SWAPPED:
        return chosen
    starts = np.cumsum([0, *(int(column.max(initial=0)) + 1 for column in columns)])
    places = columns + starts[:-1, None]
    off = np.bincount(places[:, chosen].ravel(), minlength=starts[-1])
    for j, (start, end) in enumerate(pairwise(starts)):
        wanted = nodes[j][: end - start] if nodes else np.bincount(columns[j], w, end - start)
        off[start:end] -= rounded(wanted[None], np.array([rows]), rng)[0]
    some = rows // 100
    for _ in range(SWAPS):
        at = rng.choice(rows, some, replace=False)
        new = np.minimum(np.searchsorted(ends, rng.random(some), side="right"), len(w) - 1)
        out, come = places[:, chosen[at]], places[:, new]
        nearer = (off[come] - off[out] + (come != out)).sum(0) < 0  # half the change of the sum of squares
        off += np.bincount(come[:, nearer].ravel(), minlength=len(off))
        off -= np.bincount(out[:, nearer].ravel(), minlength=len(off))
        chosen[at[nearer]] = new[nearer]
    return chosen


def _shares(logs: Array) -> Array:
    """Weights that sum to one."""
    w = np.exp(logs - logs.max())
    shares: Array = w / w.sum()
    return shares
