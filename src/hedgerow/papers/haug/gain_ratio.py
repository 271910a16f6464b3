"""Hou's random forest as printed: splits drawn by their gain ratio, Laplace noise on counts. No epsilon holds for it.

    epsilon' <- epsilon / trees / 2                        one half for splits, one for counts
    for each tree, for each level:
        H    <- histogram of each node: class counts by feature and bin       sum, server, exact
        G    <- (information of the node - of its children) per record;  R <- G / information of the split itself
        cut  <- candidate of some features with probability ~ exp(epsilon' / depth * (G + R) / 4)
    leaf     <- class counts + Lap(1 / epsilon')
    forest   <- mean of the trees' shares of classes

Why it is not private: the exponential choice needs to know how far one record moves a score. The information of a split tends
to zero where nearly all records go to one side, so that one record moves the ratio by up to its whole range, 1, however many
records there are; with that scale every choice is almost uniform. Exact histograms reach the server besides. The twin with a
bound chooses by n times the Gini gain, or by counts (`hybrid_forest`).

Releases : H, exact, depth times for each tree.
Unit     : none.
Source   : Hou, Li, Meng, Ning & Chen 2019, by way of Haug 2022, section 4.5. Differs: the paper was not at hand; trees see all
           records and some of the features, numbers have public bins, and of its two scores each weighs a half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.data import Schema, Table, complete_cases, load
from hedgerow.errors import SettingsInvalid
from hedgerow.trees import Bins
from hedgerow.trees.bins import binned
from hedgerow.trees.cart import histogram
from hedgerow.trees.split import by_feature
from hedgerow.trees.tree import LEAF, descend

WHY_NOT = "one record moves a gain ratio by up to its whole range, so that the exponential choice has no scale"


@dataclass(frozen=True)
class RatioForestState:
    """Complete trees: the children of node k are 2 k + 1 and 2 k + 2.

    Attributes
    ----------
    round : int
        Trees so far.
    feature, threshold : arrays of int, shape (trees, 2^depth - 1)
    value : array of shape (trees, 2^depth, classes)
        Share of each class in each leaf.
    """

    round: int
    feature: Array
    threshold: Array
    value: Array


def claim(settings: Mapping[str, Any]) -> str:
    """What the paper claims, and why it does not hold."""
    return (
        f"at epsilon {settings['epsilon']:g}, by exponential choices of splits and Laplace noise on counts. One record moves a "
        "gain ratio by up to its whole range, and histograms are exact, so no finite epsilon holds"
    )


def accuracy(settings: Mapping[str, Any], state: RatioForestState, schema: Schema, table: Table) -> float:
    """Share of a table's records whose class the forest says."""
    bins = bins_of(schema, settings)
    votes = votes_of(state, bins.number(table.columns))
    return float(np.mean(votes.argmax(-1) == np.asarray(table[bins.target.name])))


def watch(settings: Mapping[str, Any], state: Any, schema: Schema, test: Table | None) -> dict[str, float]:
    """Accuracy on the server's table."""
    return {} if test is None else {"test accuracy": accuracy(settings, state, schema, test)}


def bins_of(schema: Schema, settings: Mapping[str, Any]) -> Bins:
    """The bins that the settings name."""
    return Bins.of(schema, n_bins=settings["n_bins"])


def votes_of(state: RatioForestState, bins: Array) -> Array:
    """Mean share of each class for records (n, f): shape (n, classes)."""
    depth = int(np.log2(state.value.shape[1]))
    found = np.zeros((len(bins), state.value.shape[2]))
    for k in range(state.round):
        node = descend(_tree(depth, state.feature[k], state.threshold[k]), bins)
        found += state.value[k][node - (2**depth - 1)]
    return found / max(state.round, 1)


@program(
    "Random forest with splits drawn by gain ratio, as printed: not private (Hou et al. 2019).",
    claim=claim,
    score=accuracy,
    watch=watch,
    metric=lambda schema: ("accuracy", True),
    case=lambda: Case(
        load("breast_cancer").select(["malignant", "mean_radius", "mean_texture"]).take(range(150)), {"trees": 2, "depth": 2}
    ),
)
def gain_ratio_forest(
    federation: Federation,
    *,
    epsilon: float = 1.0,
    trees: int = 10,
    depth: int = 4,
    n_bins: int = 16,
    seed: int = 0,
    start: RatioForestState | None = None,
) -> Iterator[RatioForestState]:
    """Grow a forest, a tree in each round.

    Parameters
    ----------
    epsilon : float
        What the paper's choices and noise are scaled by; no finite epsilon holds.
    trees : int
        Among which epsilon is divided.
    depth : int
        Levels of splits of each tree.
    n_bins : int
        Public bins of a number.
    seed : int
        Of features, choices and noise.

    Yields
    ------
    RatioForestState
        After each tree.

    Raises
    ------
    SettingsInvalid (HR-511)
        A setting is out of its range, or the target is a number.
    """
    if not epsilon > 0 or trees < 1 or not 1 <= depth <= 12:
        raise SettingsInvalid(f"{epsilon=}, {trees=}, {depth=}.", remedy="Epsilon above zero, a tree or more, depths up to 12.")
    bins = bins_of(federation.schema, {"n_bins": n_bins})
    if not bins.classes:
        raise SettingsInvalid(f"a gain ratio is of classes, and {bins.target.name!r} is a number.", remedy="Name a class.")
    known = complete_cases(federation, [*(column.name for column in bins.features), bins.target.name])
    prepared, n_inner = known.prepare(binned, bins=bins), 2**depth - 1
    nothing = np.zeros((0, n_inner), np.int64)
    state = start or RatioForestState(0, nothing, nothing, np.zeros((0, 2**depth, len(bins.classes))))
    each = epsilon / trees / 2
    while state.round < trees:
        rng = np.random.default_rng([seed, state.round])
        feature, threshold = np.full(n_inner, LEAF), np.zeros(n_inner, np.int64)
        leaves = np.zeros((2**depth, len(bins.classes)))
        for level in range(depth):
            here = np.arange(2**level - 1, 2 ** (level + 1) - 1)
            tree = _tree(level, feature, threshold) | {"open": here}
            cells = by_feature(prepared.sum(partial(histogram, sizes=bins.sizes, n_classes=len(bins.classes)), tree), bins)
            allowed = rng.permuted(np.tile(np.arange(len(bins.features)), (len(here), 1)), axis=1)
            allowed = allowed[:, : max(1, round(len(bins.features) ** 0.5))]
            feature[here], threshold[here] = drawn(cells, bins, allowed, each / depth, rng)
            if level == depth - 1:
                own = cells[np.arange(len(here)), feature[here]]
                below = own.cumsum(1)
                left = below[np.arange(len(here)), threshold[here]]
                leaves = np.stack([left, below[:, -1] - left], axis=1).reshape(2**depth, -1)
        noisy = np.maximum(leaves + rng.laplace(0.0, 1 / each, leaves.shape), 0.0) + 1e-9
        state = RatioForestState(
            state.round + 1,
            np.concatenate([state.feature, feature[None]]),
            np.concatenate([state.threshold, threshold[None]]),
            np.concatenate([state.value, (noisy / noisy.sum(-1, keepdims=True))[None]]),
        )
        yield state


def gains(cells: Array) -> tuple[Array, Array]:
    """Information gain in bits per record, and gain ratio, of every cut of cells (..., bins, classes): each (..., bins - 1).

    Both are zero where one side is empty.
    """
    below = cells.cumsum(-2)
    both, left = below[..., -1:, :], below[..., :-1, :]
    right, n = both - left, both.sum(-1)
    information = _entropy(both) - _entropy(left) - _entropy(right)  # times n, as the split's own is
    own = _entropy(np.stack([left.sum(-1), right.sum(-1)], axis=-1))
    ratio = np.divide(information, own, out=np.zeros_like(own), where=own > 0)
    return np.divide(information, n, out=np.zeros_like(own), where=(n > 0) & (own > 0)), ratio


def drawn(cells: Array, bins: Bins, allowed: Array, epsilon: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw a feature and a threshold for each of k nodes from cells (k, f, bins, classes), of the features (k, m) allowed."""
    usable = np.zeros(cells.shape[:2], bool)
    np.put_along_axis(usable, allowed, True, axis=1)
    real = np.arange(cells.shape[2] - 1) < np.array(bins.sizes)[:, None] - 1
    scores = np.where(usable[:, :, None] & real, sum(gains(cells)) / 2, -np.inf).reshape(len(cells), -1)
    below = np.exp(epsilon / 2 * (scores - scores.max(1, keepdims=True))).cumsum(1)
    chosen = (below <= (rng.random(len(cells)) * below[:, -1])[:, None]).sum(1)
    feature, threshold = np.divmod(chosen, cells.shape[2] - 1)
    return feature, threshold


def _entropy(counts: Array) -> Array:
    """Entropy in bits, times the number of records, of counts (..., classes)."""
    n = counts.sum(-1, keepdims=True)
    share = np.divide(counts, n, out=np.ones_like(counts), where=counts > 0)
    found: Array = -(counts * np.log2(share)).sum(-1)
    return found


def _tree(levels: int, feature: Array, threshold: Array) -> dict[str, Array]:
    """What parties descend: nodes below the last level are leaves."""
    n_leaves = len(feature) + 1
    return {
        "round": np.asarray(levels),
        "feature": np.concatenate([feature, np.full(n_leaves, LEAF)]),
        "threshold": np.concatenate([threshold, np.zeros(n_leaves, np.int64)]),
        "left": 2 * np.arange(len(feature) + n_leaves) + 1,
    }
