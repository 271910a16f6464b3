"""Fitting: from noisy tables to one tree of columns inside each class. It asks nobody: it is post-processing.

    n_c       <- records of class c: mean of the totals of its tables, weighted by their precision
    node      <- each column in c: mean of its own table and of the margins of all its pairs, weighted likewise,
              and what noise explains of its differences between classes taken away
    table     <- each pair in c, cleaned of noise
    tree      <- the edges with the largest sum of n_c times mutual information in c, over the classes      Chow & Liu
    edge      <- the tables of the tree moved to agree with their nodes
    weights   <- of the tree's records, by which they have the tables of all pairs                 see `raking`

All pairs were measured, so that choosing the tree costs nothing, and the pairs that are not chosen still say how many records
have each code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from hedgerow.core.arrays import Array

from .measured import TablesState
from .raking import FEWEST, FITTED, Potentials, raked
from .tables import Clique, Tables
from .tree import NEAR, ColumnTree, agreeing, cleaned, combined, shrunk, simplex, spanning

EXACT = 1e-6
"""Of the other's noise: what tables without any count as, beside tables with noise."""
Score = Callable[[Array], float]
"""How strong an edge is, of the table of its two columns."""


def information(table: Array) -> float:
    """Mutual information of a table of counts, times its records, in nats; cells below zero count as zero."""
    table = np.maximum(table, 0.0)
    total = table.sum()
    if total <= 0:
        return 0.0
    expected = np.outer(table.sum(1), table.sum(0)) / total
    there = table > 0
    return float((table[there] * np.log(table[there] / expected[there])).sum())


def misfit(table: Array) -> float:
    """By how much a table of counts differs from independence, in records: l1 length; cells below zero count as zero."""
    table = np.maximum(table, 0.0)
    total = table.sum()
    return float(np.abs(table - np.outer(table.sum(1), table.sum(0)) / total).sum()) if total > 0 else 0.0


def fitted(
    state: TablesState,
    singles: Tables,
    pairs: Tables | None = None,
    rounds: int = 0,
    score: Score = information,
) -> tuple[tuple[ColumnTree, ...], tuple[Potentials, ...]]:
    """Return a tree of all columns for each class, and potentials that weigh its records where there are rounds of raking.

    The tree has the edges with the largest sum of `score`, by default `information`.

    A target whose codes are the classes is no column of these tables: its node then is all its records at that code.
    Where pairs were never asked, since a budget ended before, trees have no edges.
    """
    totals, nodes, clean = cleaned_tables(state, singles, pairs)
    edges = spanning({(i, j): sum(map(score, tables)) - NEAR * sum(totals) for (i, j), tables in clean.items()})
    wanted = clean if rounds else edges
    moved = {
        (i, j): [agreeing(table, *(nodes[c][end] for end in (i, j))) for c, table in enumerate(clean[i, j])] for i, j in wanted
    }
    trees = tuple(ColumnTree(tuple(own), {pair: moved[pair][c] for pair in edges}) for c, own in enumerate(nodes))
    if not (rounds and clean):
        return trees, ()
    candidates = max(FEWEST, FITTED // len(trees))
    tables = [{pair: of_classes[c] for pair, of_classes in moved.items()} for c in range(len(trees))]
    return trees, tuple(
        raked(tree, own, state.sigma_pairs, rounds, candidates) for tree, own in zip(trees, tables, strict=True)
    )


def cleaned_tables(
    state: TablesState, singles: Tables, pairs: Tables | None = None
) -> tuple[list[float], list[list[Array]], dict[Clique, list[Array]]]:
    """Records of each class, nodes of each column in each class, and tables of pairs in each class, cleaned of noise."""
    one = singles.split(state.singles)
    two = pairs.split(state.pairs) if pairs is not None and state.pairs.size else {}
    largest = max(state.sigma_singles, state.sigma_pairs)
    exact = not largest
    spread = (1.0, 1.0) if exact else [max(sigma, EXACT * largest) ** 2 for sigma in (state.sigma_singles, state.sigma_pairs)]
    totals = class_totals(one, two, *spread)
    columns = [_column(j, np.array(totals), one, two, singles, *spread, exact=exact) for j in range(len(singles.sizes))]
    nodes = [list(own) for own in zip(*columns, strict=True)]
    clean = {
        pair: [cleaned(table, nodes[c][pair[0]], nodes[c][pair[1]], state.sigma_pairs) for c, table in enumerate(tables)]
        for pair, tables in two.items()
    }
    return totals, nodes, clean


def class_totals(
    one: Mapping[Clique, Array], two: Mapping[Clique, Array], variance_one: float, variance_two: float
) -> list[float]:
    """Records of each class by all tables: none below zero, and one in each where all of them are."""
    weighed = [
        (table, 1 / (table[0].size * variance))
        for tables, variance in ((one, variance_one), (two, variance_two))
        for table in tables.values()
    ]
    weight = sum(weight for _, weight in weighed)
    found = sum(table.reshape(len(table), -1).sum(1) * share for table, share in weighed) / weight
    found = np.maximum(found, 0.0)
    return [float(total) for total in (found if found.any() else np.ones_like(found))]


def _column(
    j: int,
    totals: Array,
    one: Mapping[Clique, Array],
    two: Mapping[Clique, Array],
    layout: Tables,
    variance_one: float,
    variance_two: float,
    *,
    exact: bool,
) -> list[Array]:
    """The node of a column in each class."""
    possible = [_possible(layout, j, c) for c in range(len(totals))]
    if (j,) not in one:  # the target: its codes are the classes
        return [total * codes / codes.sum() for total, codes in zip(totals, possible, strict=True)]
    views = [(one[j,], variance_one)]
    for (a, b), table in two.items():
        if j in (a, b):
            other = b if j == a else a
            views.append((table.sum(2 if j == a else 1), variance_two * layout.sizes[other]))
    means, variance = combined(views)
    if not exact and j != layout.target:
        means = shrunk(means, totals, variance)
    found = np.zeros(means.shape)
    for c, codes in enumerate(possible):
        found[c, codes] = simplex(means[c, codes], float(totals[c]))
    return list(found)


def _possible(layout: Tables, j: int, c: int) -> Array:
    """Which codes of a column class `c` has: all of them, but of the target those that make the class."""
    if j != layout.target:
        return np.ones(layout.sizes[j], bool)
    found: Array = np.array(layout.classes) == c
    return found


def to_arrays(trees: Sequence[ColumnTree], potentials: Sequence[Potentials] = ()) -> dict[str, Array]:
    """Trees as arrays, to be kept, by class: `nodes` of all columns, and `tables` of the `edges` (e, 2).

    With potentials there are those of single columns and of pairs besides, `weights`, those `pairs` (p, 2), and `levels`.
    """
    found = {
        "nodes": np.stack([np.concatenate(tree.nodes) for tree in trees]),
        "edges": np.array(list(trees[0].edges), np.int64).reshape(-1, 2),
        "tables": np.stack([_flat(list(tree.edges.values())) for tree in trees]),
    }
    if potentials:
        found["pairs"] = np.array(list(potentials[0].pairs), np.int64).reshape(-1, 2)
        found["weights"] = np.stack([_flat([*one.singles, *one.pairs.values()]) for one in potentials])
        found["levels"] = np.array([one.level for one in potentials])
    return found


def from_arrays(arrays: Mapping[str, Array], sizes: Sequence[int]) -> tuple[tuple[ColumnTree, ...], tuple[Potentials, ...]]:
    """The same trees and potentials again, given how many codes each column has."""
    trees = tuple(
        ColumnTree(tuple(_cut(nodes, [(size,) for size in sizes])), _by_pair(tables, arrays["edges"], sizes))
        for nodes, tables in zip(arrays["nodes"], arrays["tables"], strict=True)
    )
    if "weights" not in arrays:
        return trees, ()
    cells = sum(sizes)
    return trees, tuple(
        Potentials(
            tuple(_cut(flat[:cells], [(size,) for size in sizes])),
            _by_pair(flat[cells:], arrays["pairs"], sizes),
            float(level),
        )
        for flat, level in zip(arrays["weights"], arrays["levels"], strict=True)
    )


def _flat(tables: Sequence[Array]) -> Array:
    return np.concatenate([np.zeros(0), *(table.ravel() for table in tables)])


def _cut(flat: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    ends = np.cumsum([prod(shape) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True)] if shapes else []


def _by_pair(flat: Array, pairs: Array, sizes: Sequence[int]) -> dict[tuple[int, int], Array]:
    named = [(int(i), int(j)) for i, j in pairs]
    return dict(zip(named, _cut(flat, [(sizes[i], sizes[j]) for i, j in named]), strict=True))
