"""CART: a classification or regression tree, grown level by level from histograms.

    server:  tree <- root
             for each level:
                 tree            -> parties                                          broadcast
                 H               <- for each open node, feature and bin:             local
                                    sum of w, by class; or sums of (w, w y)
                 H               <- sum over parties                                 sum, server
                 tree            <- each open node split where impurity falls most

The tree equals that of the pooled records on the same bins. A node is open while it is on the deepest level and has
records for two children, so deep trees ask for few nodes, and every record counts in one node of a level.

Releases : H, once per level, of shape (open nodes, sum of the features' bins, classes), or (.., 2) for a regression.
State    : none at the parties.
Unit     : record; see `Bins.bound`. Each level is one release, so `depth` of them compose.
Source   : Breiman, Friedman, Olshen & Stone 1984. Differs: bins with public cut points, no surrogate splits, no pruning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import bound_in, whole
from hedgerow.data import complete_cases, load
from hedgerow.errors import SettingsInvalid

from . import results
from .bins import Bins, binned
from .split import Splits, best_splits, by_feature, weigh
from .tree import LEAF, DecisionTree, TreeState, descend


@local(additive=True, stackable=True, holds=True)
def histogram(
    tree: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    sizes: tuple[int, ...],
    n_classes: int,
    bounds: Bounds | None = None,
) -> Array:
    """Count the records of each open node in the bins of each feature.

    Parameters
    ----------
    tree : mapping
        `round`, `feature`, `threshold`, `left` and `open`, as in `TreeState`.
    party : Party
        With the columns that `binned` prepares.
    sizes : tuple of int
        Bins of each feature.
    n_classes : int
        Classes of the target; zero for a regression.
    bounds : Bound, optional
        Behind noise: each record is held to it, in whole steps.

    Returns
    -------
    array of shape (open nodes, sum(sizes), n_classes), or (open nodes, sum(sizes), 2) of (w, w y)
        With a leading axis for parties where they are stacked.
    """
    bins, target, w = party["bins"], party["target"], party.w
    n_open, lead = len(tree["open"]), w.shape[:-1]
    n_parties = int(np.prod(lead, dtype=int))
    rank = np.full(len(tree["feature"]), -1)
    rank[tree["open"]] = np.arange(n_open)
    rank = rank[descend(tree, bins)]
    counted = (rank >= 0) & (w != 0)
    group = (n_open * np.arange(n_parties).reshape((*lead, 1)) + rank)[counted]
    target, w, bins = target[counted], w[counted], bins[counted]
    added = w[:, None] if n_classes else np.stack([w, w * target], axis=-1)  # to one bin of each feature
    if bounds is not None:
        added = whole(added, bound_in(bounds, ""), times=len(sizes))
    if n_classes:
        found = _totals(group * n_classes + target.astype(np.int64), bins, added[:, 0], sizes, n_parties * n_open * n_classes)
    else:
        found = np.stack([_totals(group, bins, x, sizes, n_parties * n_open) for x in added.T], axis=1)
    return found.reshape((*lead, n_open, n_classes or 2, sum(sizes))).swapaxes(-1, -2)


@program(
    "One decision tree from sums of histograms, level by level (Breiman et al. 1984).",
    name="decision_tree",
    outcome=results.outcome,
    watch=results.watch,
    score=results.score,
    metric=results.metric,
    case=lambda: Case(load("diabetes").take(range(200)), {"depth": 2}),
)
def grow(
    federation: Federation,
    *,
    depth: int,
    n_bins: int = 32,
    min_records: float = 10,
    min_gain: float = 0.0,
    features: Sequence[str] | None = None,
    target: str | None = None,
    start: TreeState | None = None,
) -> Iterator[TreeState]:
    """Grow a tree, one level in a round.

    Parameters
    ----------
    federation : Federation
        With a schema that declares the range of every numeric feature; a regression through a channel that adds noise
        needs the range of the target, too.
    depth : int
        Levels of splits, and so questions to the parties.
    n_bins : int
        Bins of a number (see `Bins`).
    min_records : float
        Weighted records that every leaf must have; above zero.
    min_gain : float
        A split is made where `TreeState.gain` would be above this.
    features, target : optional
        The columns with these roles by default.
    start : TreeState, optional
        Continue from this state.

    Yields
    ------
    TreeState
        After each level. Fewer than `depth` when no node can be split any more.

    Raises
    ------
    SettingsInvalid (HR-511), MissingColumn (HR-403), SchemaInvalid (HR-409)
        Before any party is asked; see `Bins.of`.
    UnboundedSum (HR-210)
        The channel adds noise, and target or weights declare no range.
    """
    if depth < 1 or min_records <= 0:
        raise SettingsInvalid(
            f"a tree of depth {depth!r} with at least {min_records!r} records in a leaf cannot be grown.",
            remedy="Give a depth of 1 or more and min_records above zero.",
        )
    bins = Bins.of(federation.schema, features=features, target=target, n_bins=n_bins)
    federation = complete_cases(federation, [*(column.name for column in bins.features), bins.target.name])
    prepared = federation.prepare(binned, bins=bins)
    count = partial(histogram, sizes=bins.sizes, n_classes=len(bins.classes))
    state = start or TreeState.root(bins)
    while state.round < depth and len(state.open):
        found = by_feature(prepared.sum(count, _broadcast(state), bound=bins.bound), bins)
        measured = _measured(state, found, bins)
        splits = best_splits(found, bins, min_records=min_records)
        state = _split(measured, splits, bins, min_records=min_records, min_gain=min_gain)
        yield state


def decision_tree(
    federation: Federation,
    *,
    depth: int = 4,
    n_bins: int = 32,
    min_records: float = 10,
    min_gain: float = 0.0,
    features: Sequence[str] | None = None,
    target: str | None = None,
) -> DecisionTree:
    """Grow a decision tree to its end; parameters, releases and errors are those of `grow`."""
    *_, state = grow(
        federation,
        depth=depth,
        n_bins=n_bins,
        min_records=min_records,
        min_gain=min_gain,
        features=features,
        target=target,
    )
    return DecisionTree(state, Bins.of(federation.schema, features=features, target=target, n_bins=n_bins))


def _totals(group: Array, bins: Array, w: Array, sizes: tuple[int, ...], n_groups: int) -> Array:
    """Add up `w` of shape (n,) by group and bin, feature after feature: shape (n_groups, sum(sizes))."""
    found = [np.bincount(group * size + bins[:, j], w, n_groups * size).reshape(n_groups, size) for j, size in enumerate(sizes)]
    return np.concatenate(found, axis=1)


def _broadcast(state: TreeState) -> dict[str, Array]:
    return {name: np.asarray(getattr(state, name)) for name in ("round", "feature", "threshold", "left", "open")}


def _measured(state: TreeState, found: Array, bins: Bins) -> TreeState:
    """Set records and values of the open nodes. Each feature holds the total of the node: averaging evens out noise."""
    records, value = state.records.copy(), state.value.copy()
    records[state.open], value[state.open] = _node(found.sum(2).mean(1), bins)
    return replace(state, records=records, value=value)


def _split(state: TreeState, splits: Splits, bins: Bins, *, min_records: float, min_gain: float) -> TreeState:
    """Add a level: split the open nodes whose gain is above `min_gain`, and open the children that can be split."""
    total = max(float(state.records[0]), min_records)
    unit = 1.0 if bins.classes else bins.scale**2
    gains = splits.gain * unit / total
    chosen = gains > min_gain
    parents, n_before = state.open[chosen], len(state.feature)
    feature, threshold, left, gain = (x.copy() for x in (state.feature, state.threshold, state.left, state.gain))
    feature[parents], threshold[parents], gain[parents] = splits.feature[chosen], splits.threshold[chosen], gains[chosen]
    left[parents] = n_before + 2 * np.arange(len(parents))
    cells = np.stack([splits.left[chosen], splits.right[chosen]], axis=1).reshape(-1, splits.left.shape[-1])
    records, value = _node(cells, bins)
    is_pure = bool(bins.classes) & (value.max(-1) == 1)
    nothing = np.zeros(len(records), np.int64)
    return TreeState(
        round=state.round + 1,
        feature=np.append(feature, nothing + LEAF),
        threshold=np.append(threshold, nothing),
        left=np.append(left, nothing),
        gain=np.append(gain, nothing),
        records=np.append(state.records, records),
        value=np.concatenate([state.value, value]),
        open=n_before + np.flatnonzero((records >= 2 * min_records) & ~is_pure),
    )


def _node(cells: Array, bins: Bins) -> tuple[Array, Array]:
    """Turn cells of shape (k, s) into records (k,) and values (k, classes), or (k, 1) in units of the target."""
    records, m = weigh(cells, bool(bins.classes))
    share = np.divide(m, records[:, None], out=np.zeros_like(m), where=records[:, None] > 0)
    if bins.classes:
        return records, np.where(records[:, None] > 0, share, 1 / len(bins.classes))
    low, high = bins.target.low, bins.target.high
    mean = bins.centre + bins.scale * share
    return records, np.clip(mean, -np.inf if low is None else low, np.inf if high is None else high)
