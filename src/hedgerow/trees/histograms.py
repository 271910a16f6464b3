"""Histograms of open nodes: what records add to the bins of the features that a node may be split by.

    record i, in open node k of a tree, for each feature j of those chosen for the node:
        cell (k, j, bin of record i)  +=  what record i adds

One layout serves a tree, a forest in lock step, ID3 and boosting. Cells lie side by side: nodes in order, of each node its
features in order, of each feature its bins in order. Numbers in, numbers out: nothing here knows of a federation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array

ENTRIES = 1 << 20
"""So many pairs of a record in a tree and a feature are counted at once."""


@dataclass(frozen=True)
class CellLayout:
    """Where the cells of open nodes lie.

    Attributes
    ----------
    chosen : array of int, shape (k, m)
        Features that each open node may be split by, ascending.
    start : array of int, shape (k, m)
        The first cell of each.
    cells : int
        Of all nodes.
    """

    chosen: Array
    start: Array
    cells: int

    @classmethod
    def of(cls, chosen: Array, sizes: tuple[int, ...]) -> CellLayout:
        """Lay out the features `chosen` (k, m), of which a feature has as many bins as `sizes` says."""
        widths = np.array(sizes, np.int64)[chosen]
        after = widths.cumsum().reshape(widths.shape)
        return cls(chosen, after - widths, int(widths.sum()))


def every_feature(n_open: int, n_features: int) -> Array:
    """All features chosen for each of some nodes: shape (n_open, n_features)."""
    return np.broadcast_to(np.arange(n_features), (n_open, n_features))


def slots(reached: Array, opened: Array, n_nodes: int) -> Array:
    """The position among the open nodes of the node that each record reached; -1 where that is not open."""
    rank = np.full(n_nodes, -1, np.int32)
    rank[opened] = np.arange(len(opened))
    return rank[reached]


def tally(
    slot: Array,
    bins: Array,
    parts: Array,
    layout: CellLayout,
    *,
    codes: Array | None = None,
    n_codes: int = 1,
    parties: int = 1,
) -> Array:
    """Add up what records add, by cell.

    Parameters
    ----------
    slot : array of int, shape (t, n)
        The open node that each record is in, for each of t trees; -1 for none.
    bins : array of int, shape (n, f)
        Bins of the records, those of one party after the other.
    parts : array of shape (s, 1, n) or (s, t, n)
        What a record adds: s numbers. One of which all are zero is not counted.
    layout : CellLayout
    codes : array of int, shape (n,), optional
        Classes, of which there are `n_codes`: a record adds its one number to that of its class.
    parties : int
        Each with as many records.

    Returns
    -------
    array of shape (parties, cells, n_codes), or (parties, cells, s) without codes
    """
    n_parts, (trees, n) = len(parts), slot.shape
    width, n_chosen = layout.cells * n_codes, layout.chosen.shape[1]
    found = np.zeros((n_parts, parties * width))
    parts = np.broadcast_to(parts, (n_parts, trees, n))
    step = max(1, ENTRIES // max(n_chosen, 1))
    some_trees, some_records = max(1, step // max(n, 1)), min(n, step)
    every = n_chosen == bins.shape[1]
    for first in range(0, trees, some_trees):
        for begin in range(0, n, max(some_records, 1)):
            part = slice(first, first + some_trees), slice(begin, begin + some_records)
            added = parts[:, *part]
            tree, record = np.nonzero((slot[part] >= 0) & added.any(0))
            if not len(tree):
                continue
            node, row = slot[part][tree, record], record + begin
            here = bins[row] if every else np.take_along_axis(bins[row], layout.chosen[node], axis=1)
            cell = layout.start[node] + here
            if n_codes > 1:
                assert codes is not None
                cell = cell * n_codes + codes[row, None]
            if parties > 1:
                cell += (row // (n // parties) * width)[:, None]
            low = int(cell.min())
            cell -= low
            for total, numbers in zip(found, added[:, tree, record], strict=True):
                counted = np.bincount(cell.ravel(), _repeated(numbers, n_chosen))
                total[low : low + len(counted)] += counted
    shape = (parties, layout.cells, n_codes) if codes is not None else (n_parts, parties, layout.cells)
    made = found[0].reshape(shape) if codes is not None else np.moveaxis(found.reshape(shape), 0, -1)
    return np.ascontiguousarray(made)


def _repeated(numbers: Array, times: int) -> Array | None:
    """Each number so many times; None where all are one, which need no weights."""
    return None if (numbers == 1).all() else np.repeat(numbers, times)


def padded(flat: Array, chosen: Array, sizes: tuple[int, ...]) -> Array:
    """Give every feature as many bins as the largest has, at least two: (cells, s) to (k, m, largest, s)."""
    widths = np.array(sizes)[chosen]
    real = np.arange(max(2, max(sizes))) < widths[..., None]
    found = np.zeros((*real.shape, flat.shape[-1]))
    found[real] = flat
    return found
