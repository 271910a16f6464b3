"""One level more: what parties count for open nodes, and how the server splits them. Trees and forests share it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds
from hedgerow.core.party import Party
from hedgerow.core.whole import bound_in, whole

from .bins import Bins
from .histograms import CellLayout, slots, tally
from .split import Splits, best_splits, weigh
from .tree import LEAF, TreeState, descend


def broadcast_of(state: TreeState) -> dict[str, Array]:
    """What parties are told of trees that grow."""
    return {name: np.asarray(getattr(state, name)) for name in ("round", "feature", "threshold", "left", "open")}


def count_open(
    tree: Mapping[str, Array],
    party: Party,
    layout: CellLayout,
    *,
    n_classes: int,
    trees: int = 1,
    drawn: Array | None = None,
    bounds: Bounds | None = None,
) -> Array:
    """Count a party's records, or those of a stack, in the cells of the open nodes.

    Parameters
    ----------
    tree : mapping
        As `broadcast_of` makes it; the first nodes are the roots of `trees` trees.
    layout : CellLayout
    n_classes : int
        Classes of the target; zero for a regression, where (w, w y) is added.
    drawn : array of shape (trees, n), optional
        How often each tree draws a record.
    bounds : Bound, optional
        Behind noise: each record is held to it, in whole steps.

    Returns
    -------
    array of shape (..., cells, n_classes or 2)
    """
    lead, bins = party.w.shape[:-1], party["bins"]
    n_parties, w, target = int(np.prod(lead, dtype=int)), party.w.reshape(-1), party["target"].reshape(-1)
    bins = bins.reshape(-1, bins.shape[-1])
    slot = slots(descend(tree, bins, np.arange(trees)), tree["open"], len(tree["feature"]))
    added = w[:, None] if n_classes else np.stack([w, w * target], axis=-1)
    if bounds is not None:
        added = whole(added, bound_in(bounds, ""), times=trees * layout.chosen.shape[1])
    parts = added.T[:, None]
    if drawn is not None:
        parts = parts * drawn
    codes = target.astype(np.int64) if n_classes else None
    found = tally(slot, bins, parts, layout, codes=codes, n_codes=n_classes or 1, parties=n_parties)
    return found.reshape((*lead, *found.shape[1:]))


def grown(
    state: TreeState,
    found: Array,
    bins: Bins,
    *,
    min_records: float,
    min_gain: float,
    chosen: Array | None = None,
    root: Array | None = None,
) -> TreeState:
    """Add a level to trees.

    Parameters
    ----------
    found : array of shape (k, m, largest, s)
        Histograms of the open nodes.
    chosen : array of int, shape (k, m), optional
        Features of each open node, where they are not all.
    root : array of int, shape (k,), optional
        The root of each open node's tree; the first node by default.
    """
    measured = _measured(state, found, bins)
    splits = best_splits(found, bins, min_records=min_records, chosen=chosen)
    total = np.maximum(measured.records[0 if root is None else root], min_records)
    unit = 1.0 if bins.classes else bins.scale**2
    gains = splits.gain * unit / total
    return split_nodes(
        measured,
        splits,
        gains,
        gains > min_gain,
        valued=partial(node_values, bins=bins),
        opens=lambda records, value: (records >= 2 * min_records) & ~(bool(bins.classes) & (value.max(-1) == 1)),
    )


def node_values(cells: Array, bins: Bins) -> tuple[Array, Array]:
    """Turn cells of shape (k, s) into records (k,) and values (k, classes), or (k, 1) in units of the target."""
    records, m = weigh(cells, bool(bins.classes))
    share = np.divide(m, records[:, None], out=np.zeros_like(m), where=records[:, None] > 0)
    if bins.classes:
        return records, np.where(records[:, None] > 0, share, 1 / len(bins.classes))
    low, high = bins.target.low, bins.target.high
    mean = bins.centre + bins.scale * share
    return records, np.clip(mean, -np.inf if low is None else low, np.inf if high is None else high)


def _measured(state: TreeState, found: Array, bins: Bins) -> TreeState:
    """Set records and values of the open nodes. Each feature holds the total of the node: averaging evens out noise."""
    records, value = state.records.copy(), state.value.copy()
    records[state.open], value[state.open] = node_values(found.sum(2).mean(1), bins)
    return replace(state, records=records, value=value)


def split_nodes(
    state: TreeState,
    splits: Splits,
    gains: Array,
    made: Array,
    *,
    valued: Callable[[Array], tuple[Array, Array]],
    opens: Callable[[Array, Array], Array],
) -> TreeState:
    """Split the open nodes for which that is `made`, and open those children that can be split.

    Parameters
    ----------
    valued : callable
        Cells (k, s) to what nodes hold and say, as `node_values`.
    opens : callable
        What children hold and say to whether they can be split.
    """
    parents, n_before = state.open[made], len(state.feature)
    feature, threshold, left, gain = (x.copy() for x in (state.feature, state.threshold, state.left, state.gain))
    feature[parents], threshold[parents], gain[parents] = splits.feature[made], splits.threshold[made], gains[made]
    left[parents] = n_before + 2 * np.arange(len(parents))
    cells = np.stack([splits.left[made], splits.right[made]], axis=1).reshape(-1, splits.left.shape[-1])
    records, value = valued(cells)
    nothing = np.zeros(len(records), np.int64)
    return TreeState(
        round=state.round + 1,
        feature=np.append(feature, nothing + LEAF),
        threshold=np.append(threshold, nothing),
        left=np.append(left, nothing),
        gain=np.append(gain, nothing),
        records=np.append(state.records, records),
        value=np.concatenate([state.value, value]),
        open=n_before + np.flatnonzero(opens(records, value)),
    )
