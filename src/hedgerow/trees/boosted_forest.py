"""Boosted trees: their state while they grow, and what a reader does with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.display import cell, displayed
from hedgerow.errors import SettingsInvalid

from .bins import Bins
from .charged import ForestCost, summary_of
from .tree import LEAF, descend, numbered, rules


@displayed
@dataclass(frozen=True)
class BoostingState:
    """Trees after a round, one after the other: fields of nodes are those of `TreeState`.

    Attributes
    ----------
    round : int
        Trees so far.
    base : float
        The score that trees start from: log odds, or the mean in units of `Bins.scale` about `Bins.centre`.
    roots : array of int, shape (trees,)
    feature, threshold, left : array of int, shape (nodes,)
    gain : array of shape (nodes,)
        Of second order, twice the decrease of the loss.
    records : array of shape (nodes,)
        Sums of second derivatives: of a squared loss records, of a logistic one a quarter of them at most.
    value : array of shape (nodes, 1)
        What a leaf adds to the score, the learning rate included.
    """

    round: int
    base: float
    roots: Array
    feature: Array
    threshold: Array
    left: Array
    gain: Array
    records: Array
    value: Array


def scores(trees: Mapping[str, Array], bins: Array, roots: Sequence[int] | Array) -> Array:
    """The score of each record of `bins` (n, f) by the trees of these roots: shape (n,). Added up tree by tree."""
    score = np.full(len(bins), float(trees["base"]))
    for root in roots:
        score += trees["value"][descend(trees, bins, np.array([root]))[0], 0]
    return score


@dataclass(frozen=True, repr=False)
class BoostedForest:
    """Boosted trees.

    Parameters
    ----------
    state : BoostingState
        The last state of `grow_boosted`.
    bins : Bins
    depth : int
        Levels of each tree at most.
    cost : ForestCost or None
        What was asked and spent for it; None of a model that was made from a state alone.
    """

    state: BoostingState
    bins: Bins
    depth: int
    cost: ForestCost | None = None

    @property
    def spent(self) -> tuple[float, float] | None:
        """Epsilon and delta of everything that its federation's ledger holds; None where that is not finite or not known."""
        return None if self.cost is None else self.cost.spent

    def summary(self) -> str:
        """Return the model as text, with what was spent and how it was protected."""
        return summary_of(self, self.cost)

    def scores(self, data: Any) -> Array:
        """Return log odds of the second class, or the number in units of the target: shape (n,). Data and errors are those of
        `DecisionTree.predict`."""
        found = scores(vars(self.state) | {"round": self.depth}, numbered(self.bins, data), self.state.roots)
        if self.bins.classes:
            return found
        low, high = self.bins.target.low, self.bins.target.high
        number = self.bins.centre + self.bins.scale * found
        return np.clip(number, -np.inf if low is None else low, np.inf if high is None else high)

    def probabilities(self, data: Any) -> Array:
        """Return the probability of each class of `bins.classes`: shape (n, 2). For classification."""
        p = scipy.special.expit(self.scores(data))
        return np.stack([1 - p, p], axis=-1)

    def predict(self, data: Any) -> Array:
        """Return the more probable class (0 or 1 for a binary target, else the level's word), or the number: shape (n,)."""
        found = self.scores(data)
        if not self.bins.classes:
            return found
        is_second = found > 0
        return (
            is_second.astype(float) if self.bins.target.kind == "binary" else np.array(self.bins.classes)[is_second.astype(int)]
        )

    @property
    def importance(self) -> dict[str, float]:
        """Share of each feature in the total gain of all trees."""
        split = self.state.feature != LEAF
        total = np.bincount(self.state.feature[split], self.state.gain[split], len(self.bins.features))
        shares = total / (total.sum() or 1.0)
        return {column.name: float(share) for column, share in zip(self.bins.features, shares, strict=True)}

    def to_text(self, tree: int = 0) -> str:
        """Return one of the trees as rules; a leaf says what it adds to the log odds, or to the number in its units."""
        if not 0 <= tree < self.state.round:
            raise SettingsInvalid(f"tree {tree!r} of {self.state.round}.", remedy="Trees are numbered from zero.")
        return "\n".join(rules(self.state, self.bins, self._leaf, int(self.state.roots[tree])))

    def _leaf(self, node: int) -> str:
        added = self.state.value[node, 0] * (1.0 if self.bins.classes else self.bins.scale)
        return f"{added:+.6g}"

    _repr_html_ = cell

    def __repr__(self) -> str:
        return f"BoostedForest({self.bins.target.name!r}, {self.state.round} trees, depth {self.depth})"
