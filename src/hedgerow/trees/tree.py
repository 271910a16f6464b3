"""The tree: its state while it grows, and what a reader does with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.data import Column, Schema, Table
from hedgerow.data.declared import series_values
from hedgerow.data.frames import RawTable
from hedgerow.display import cell, displayed
from hedgerow.errors import NotFinite

from .bins import Bins

if TYPE_CHECKING:
    import pandas

WHOLE = "Leave those records out, or fill the values before."
LEAF = -1
"""The `feature` of a node that is not split."""


@displayed
@dataclass(frozen=True)
class TreeState:
    """A tree after some levels: one entry for each node, the root first, the two children of a split side by side.

    Attributes
    ----------
    round : int
        Levels asked so far: the depth of the tree.
    feature : array of int, shape (nodes,)
        Position of the feature that splits the node; -1 at a leaf.
    threshold : array of int, shape (nodes,)
        Bins up to this one go left.
    left : array of int, shape (nodes,)
        Position of the left child; the right one follows it.
    gain : array of shape (nodes,)
        Decrease of Gini impurity, or of variance in squared units of the target, times the node's share of all records.
    records : array of shape (nodes,)
        Weighted records.
    value : array of shape (nodes, classes), or (nodes, 1)
        Probability of each class, or mean in units of the target.
    open : array of int, shape (k,)
        Nodes of the deepest level that the next round may split.
    """

    round: int
    feature: Array
    threshold: Array
    left: Array
    gain: Array
    records: Array
    value: Array
    open: Array

    @classmethod
    def root(cls, bins: Bins) -> TreeState:
        """Return the tree of a single node, before anything was asked."""
        zero, position = np.zeros(1), np.zeros(1, np.int64)
        unknown = np.full((1, max(1, len(bins.classes))), np.nan)
        return cls(0, position + LEAF, position, position, zero, zero, unknown, position)


def descend(tree: Mapping[str, Array], bins: Array) -> Array:
    """Return the leaf that each record reaches.

    Parameters
    ----------
    tree : mapping with `round`, `feature`, `threshold` and `left`, as in `TreeState`
    bins : array of int, shape (..., n, f)

    Returns
    -------
    array of int, shape (..., n)
    """
    node = np.zeros(bins.shape[:-1], np.int64)
    for _ in range(int(tree["round"])):
        feature = tree["feature"][node]
        here = np.take_along_axis(bins, np.maximum(feature, 0)[..., None], axis=-1)[..., 0]
        node = np.where(feature == LEAF, node, tree["left"][node] + (here > tree["threshold"][node]))
    return node


@dataclass(frozen=True, repr=False)
class DecisionTree:
    """A grown decision tree.

    Parameters
    ----------
    state : TreeState
        The last state of `grow`.
    bins : Bins
        Those of `grow`.
    """

    state: TreeState
    bins: Bins

    def predict(self, data: Any) -> np.ndarray:
        """Return the most probable class (0 or 1 for a binary target, else the level's word) or the mean: shape (n,).

        Parameters
        ----------
        data : data frame of any library, Table, or mapping from column to values
            See `hedgerow.data.Table.from_frame`.

        Raises
        ------
        MissingColumn, NotFinite, OutOfRange, SchemaInvalid (HR-403, 404, 405, 409)
            The data do not hold the features as declared, or lack a value. Integers of a frame are words of levels, whatever
            their size; the columns of a table are codes.
        """
        found = self._reached(data)
        if not self.bins.classes:
            return found[:, 0]
        best = found.argmax(-1)
        return best.astype(float) if self.bins.target.kind == "binary" else np.array(self.bins.classes)[best]

    def probabilities(self, data: Any) -> np.ndarray:
        """Return the probability of each class of `bins.classes`: shape (n, classes). For classification."""
        return self._reached(data)

    @property
    def importance(self) -> dict[str, float]:
        """Share of each feature in the total gain."""
        split = self.state.feature != LEAF
        total = np.bincount(self.state.feature[split], self.state.gain[split], len(self.bins.features))
        shares = total / (total.sum() or 1.0)
        return {column.name: float(share) for column, share in zip(self.bins.features, shares, strict=True)}

    def to_text(self) -> str:
        """Return the tree as rules, one line for each node."""
        return "\n".join(self._rules(0, ""))

    def to_frame(self) -> pandas.DataFrame:
        """Return one row for each node: feature, cut, left and right child, gain, records, and its probabilities or mean."""
        import pandas

        state, features = self.state, np.array([column.name for column in self.bins.features], object)
        is_split = state.feature != LEAF
        cut = [self._cut(i) if is_split[i] else np.nan for i in range(len(is_split))]
        columns = {
            "feature": np.where(is_split, features[state.feature], ""),
            "cut": cut,
            "left": np.where(is_split, state.left, LEAF),
            "right": np.where(is_split, state.left + 1, LEAF),
            "gain": state.gain,
            "records": state.records,
        }
        names = [f"probability of {name}" for name in self.bins.classes] or ["mean"]
        values = dict(zip(names, state.value.T, strict=True))
        return pandas.DataFrame(columns | values).rename_axis("node")

    def __str__(self) -> str:
        return self.to_text()

    _repr_html_ = cell

    def __repr__(self) -> str:
        leaves = int((self.state.feature == LEAF).sum())
        return f"Tree({self.bins.target.name!r}, depth {self.state.round}, {leaves} leaves)"

    def _reached(self, data: Any) -> Array:
        if isinstance(data, Table):
            data = data.columns
        elif not isinstance(data, Mapping):
            found = RawTable.of(data, needed=[column.name for column in self.bins.features])
            data = {name: series_values(series) for name, series in found.columns.items()}
        columns = Schema(self.bins.features).admit(data)
        lost = {column.name: int(column.lacks(columns[column.name]).sum()) for column in self.bins.features}
        if told := [f"{count} of {name}" for name, count in lost.items() if count]:
            raise NotFinite(f"the tree reads features of which values are missing: {', '.join(told)}.", remedy=WHOLE)
        return self.state.value[descend(vars(self.state), self.bins.number(columns))]

    def _cut(self, node: int) -> float:
        return float(self.bins.cuts[self.state.feature[node]][self.state.threshold[node]])

    def _rules(self, node: int, margin: str) -> Iterator[str]:
        if self.state.feature[node] == LEAF:
            yield f"{margin}{self._leaf(node)}"
            return
        left, right = _sides(self.bins.features[self.state.feature[node]], self._cut(node))
        for condition, child in ((left, self.state.left[node]), (right, self.state.left[node] + 1)):
            yield f"{margin}{condition}"
            yield from self._rules(int(child), margin + "    ")

    def _leaf(self, node: int) -> str:
        target, value = self.bins.target, self.state.value[node]
        n = f"{self.state.records[node]:.6g} records"
        if not self.bins.classes:
            return f"{target.name} = {value[0]:.6g}{_unit(target)}    {n}"
        best = int(value.argmax())
        return f"{target.name} = {self.bins.classes[best]}    {value[best]:.1%} of {n}"


def _sides(column: Column, cut: float) -> tuple[str, str]:
    """Return the conditions of the left and the right branch, in words."""
    if column.kind == "binary":
        return f"{column.name} = 0", f"{column.name} = 1"
    if column.kind == "category":
        first = int(cut) + 1
        return f"{column.name}: {', '.join(column.levels[:first])}", f"{column.name}: {', '.join(column.levels[first:])}"
    return f"{column.name} <= {cut:.6g}{_unit(column)}", f"{column.name} > {cut:.6g}{_unit(column)}"


def _unit(column: Column) -> str:
    return f" {column.unit}" if column.unit else ""
