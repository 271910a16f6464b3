"""Complete binary trees, node by node in an array, and the scores by which their splits are chosen.

    score "max count"   sum over both children of the largest class count     moves by 0 or 1: sensitivity 1, monotone
    score "gini"        n times the decrease of Gini impurity                 moves by less than 2, up or down

The proofs stand in `hedgerow.trees.hybrid`. A number is cut between bins, and of a category one level is split from the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.question import travels
from hedgerow.privacy.choice import ScoreRule

from .split import TIE

SplitScore = Literal["max count", "gini"]


@travels
@dataclass(frozen=True)
class SplitRule(ScoreRule):
    """Scores of the splits of each node, from counts of shape (nodes, sum(sizes), classes).

    Attributes
    ----------
    score : {"max count", "gini"}
    sizes : tuple of int
        Bins of each feature.
    ordered : tuple of bool
        Whether a feature is cut between bins; else one of its bins is split from the others.
    heaviest : float
        Weight of the heaviest record.
    rows : int
        In how many nodes a record counts: one of each tree that it is in.
    """

    score: SplitScore
    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]
    heaviest: float = 1.0
    rows: int = 1

    @property
    def sensitivity(self) -> float:
        """How far one record moves the scores of all nodes together."""
        return self.rows * self.heaviest * (1.0 if self.score == "max count" else 2.0)

    @property
    def monotonic(self) -> bool:
        """Whether a record that joins lowers no score."""
        return self.score == "max count"

    @property
    def candidates(self) -> list[tuple[int, int]]:
        """Feature and cut of each split."""
        return [
            (j, cut)
            for j, (size, ordered) in enumerate(zip(self.sizes, self.ordered, strict=True))
            for cut in range(size - ordered)
        ]

    def scores(self, totals: Array) -> Array:
        """Scores of shape (nodes, candidates)."""
        counts = np.maximum(totals, 0.0)
        found, start = [], 0
        for size, ordered in zip(self.sizes, self.ordered, strict=True):
            cells = counts[:, start : start + size]
            start += size
            both = cells.sum(1, keepdims=True)
            left = cells.cumsum(1)[:, :-1] if ordered else cells
            found.append(self._scored(left, both - left, both))
        return np.concatenate(found, axis=1)

    def best(self, totals: Array) -> Array:
        """The first of the candidates whose score is the largest of its node, but for rounding: shape (nodes,)."""
        scores = self.scores(totals)
        weight = np.maximum(totals[:, : self.sizes[0]], 0.0).sum((1, 2))
        chosen: Array = (scores >= scores.max(1, keepdims=True) - TIE * weight[:, None]).argmax(1)
        return chosen

    def _scored(self, left: Array, right: Array, both: Array) -> Array:
        if self.score == "max count":
            return np.asarray(left.max(-1) + right.max(-1))
        return np.asarray(_impurity(both) - _impurity(left) - _impurity(right))


def _impurity(counts: Array) -> Array:
    """Number of records times Gini impurity; zero where there are none."""
    n = counts.sum(-1)
    found: Array = np.divide((counts * (n[..., None] - counts)).sum(-1), n, out=np.zeros_like(n), where=n > 0)
    return found


@dataclass(frozen=True, eq=False)
class HeapTrees:
    """Complete binary trees, with one split for each node.

    Attributes
    ----------
    feature, cut : array of int, shape (trees, nodes)
        As in `HybridState`.
    ordered : tuple of bool
        As in `SplitRule`.
    """

    feature: Array
    cut: Array
    ordered: tuple[bool, ...]

    def descended(self, tree: int, bins: Array, levels: int) -> Array:
        """Which node of a level records with bin numbers (..., n, f) reach: shape (..., n), from 0."""
        place = np.zeros(bins.shape[:-1], np.int64)
        between = np.array(self.ordered)
        for level in range(levels):
            node = 2**level - 1 + place
            feature, cut = self.feature[tree][node], self.cut[tree][node]
            here = np.take_along_axis(bins, feature[..., None].astype(np.int64), axis=-1)[..., 0]
            place = 2 * place + np.where(between[feature], here > cut, here != cut)
        return place

    def leaves_of(self, tree: int, bins: Array) -> Array:
        """The leaf of one tree that records reach."""
        return self.descended(tree, bins, int(np.log2(self.feature.shape[1] + 1)))
