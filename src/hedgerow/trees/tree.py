"""The tree: its state while it grows, and what a reader does with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
MULTIWAY = -1
"""The `threshold` of a node with a child for each bin of its feature."""


@displayed
@dataclass(frozen=True)
class TreeState:
    """A tree, or several, after some levels: one entry for each node, roots first, the children of a split side by side.

    Attributes
    ----------
    round : int
        Levels asked so far: the depth of the tree.
    feature : array of int, shape (nodes,)
        Position of the feature that splits the node; -1 at a leaf.
    threshold : array of int, shape (nodes,)
        Bins up to this one go left; -1 where each bin has a child of its own.
    left : array of int, shape (nodes,)
        Position of the first child; the others follow it.
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
    def root(cls, bins: Bins, trees: int = 1) -> TreeState:
        """Return trees of a single node each, before anything was asked: their roots are the first nodes."""
        zero, position = np.zeros(trees), np.arange(trees)
        unknown = np.full((trees, max(1, len(bins.classes))), np.nan)
        return cls(0, 0 * position + LEAF, 0 * position, 0 * position, zero, zero, unknown, position)


def descend(tree: Mapping[str, Array], bins: Array, roots: Array | None = None) -> Array:
    """Return the leaf that each record reaches.

    Parameters
    ----------
    tree : mapping with `round`, `feature`, `threshold` and `left`, as in `TreeState`
    bins : array of int, shape (..., n, f)
    roots : array of int, shape (t,), optional
        Nodes to start from; the first node by default.

    Returns
    -------
    array of int, shape (..., n), or (t, ..., n) from several roots
    """
    is_leaf = tree["feature"] == LEAF
    feature = np.maximum(tree["feature"], 0)
    left = np.where(is_leaf, np.arange(len(feature)), tree["left"])
    threshold = np.where(is_leaf, np.iinfo(np.int64).max, tree["threshold"])
    rows, multiway = bins.reshape(-1), bool((threshold == MULTIWAY).any())
    first = bins.shape[-1] * np.arange(rows.size // bins.shape[-1]).reshape(bins.shape[:-1])
    start = np.zeros((), np.int64) if roots is None else roots.reshape(-1, *[1] * first.ndim)
    node = np.zeros((*start.shape[:1], *first.shape), np.int64) + start
    for _ in range(int(tree["round"])):
        here, cut = rows[first + feature[node]], threshold[node]
        aside = here > cut
        node = left[node] + (np.where(cut == MULTIWAY, here, aside) if multiway else aside)
    return node


def owners(tree: Mapping[str, Array], roots: Array, sizes: tuple[int, ...]) -> Array:
    """Return the tree that each node belongs to, shape (nodes,); tree i starts from `roots[i]`, and each has at most
    `round` levels."""
    found = np.full(len(tree["feature"]), -1)
    found[roots] = np.arange(len(roots))
    for parent, child in links(tree, sizes):
        found[child] = found[parent]
    return found


def links(tree: Mapping[str, Array], sizes: tuple[int, ...]) -> Iterator[tuple[Array, Array]]:
    """Parents and children, first all first children, then all second ones and so on; once for each level, for what is
    handed down."""
    parents = np.flatnonzero(tree["feature"] != LEAF)
    widths = ways(tree, sizes)[parents]
    for _ in range(int(tree["round"])):
        for k in range(int(widths.max(initial=0))):
            some = parents[widths > k]
            yield some, tree["left"][some] + k


def ways(tree: Mapping[str, Array], sizes: tuple[int, ...]) -> Array:
    """Children of each node, shape (nodes,): none of a leaf, one for each bin of a multiway split, else two."""
    many = np.where(tree["threshold"] == MULTIWAY, np.array(sizes)[tree["feature"]], 2)
    return np.where(tree["feature"] == LEAF, 0, many)


def subtree(state: TreeState, roots: Array, number: int, sizes: tuple[int, ...]) -> TreeState:
    """Return one of several trees as a tree of its own."""
    own = np.flatnonzero(owners(vars(state), roots, sizes) == number)
    place = np.full(len(state.feature), 0)
    place[own] = np.arange(len(own))
    fields = {name: getattr(state, name)[own] for name in ("feature", "threshold", "gain", "records", "value")}
    left = np.where(fields["feature"] == LEAF, 0, place[np.minimum(state.left[own], len(place) - 1)])
    return TreeState(round=state.round, left=left, open=place[np.intersect1d(state.open, own)], **fields)


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
        named: Array = best.astype(float) if self.bins.target.kind == "binary" else np.array(self.bins.classes)[best]
        return named

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
        return "\n".join(rules(self.state, self.bins, self._leaf))

    def to_frame(self) -> pandas.DataFrame:
        """Return one row for each node: feature, cut, first and last child, gain, records, and its probabilities or mean.

        A multiway split has no cut.
        """
        import pandas

        state, features = self.state, np.array([column.name for column in self.bins.features], object)
        is_split = state.feature != LEAF
        cut = [self._cut(i) if is_split[i] else np.nan for i in range(len(is_split))]
        columns = {
            "feature": np.where(is_split, features[state.feature], ""),
            "cut": cut,
            "left": np.where(is_split, state.left, LEAF),
            "right": np.where(is_split, state.left + ways(vars(state), self.bins.sizes) - 1, LEAF),
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
        found: Array = self.state.value[descend(vars(self.state), numbered(self.bins, data))]
        return found

    def _cut(self, node: int) -> float:
        if self.state.threshold[node] == MULTIWAY:
            return float("nan")
        return float(self.bins.cuts[self.state.feature[node]][self.state.threshold[node]])

    def _leaf(self, node: int) -> str:
        target, value = self.bins.target, self.state.value[node]
        records = self.state.records[node]
        n = f"{records:.6g} records"
        if not self.bins.classes:
            return f"{target.name} = {value[0]:.6g}{_unit(target)}    {n}"
        best = int(value.argmax())
        share = f"{value[best]:.1%} of {n}" if records > 0 else "few records or none"
        return f"{target.name} = {self.bins.classes[best]}    {share}"


def numbered(bins: Bins, data: Any) -> Array:
    """Bin numbers (n, f) of a data frame, a Table or columns; errors are those of `DecisionTree.predict`."""
    if isinstance(data, Table):
        data = data.columns
    elif not isinstance(data, Mapping):
        found = RawTable.of(data, needed=[column.name for column in bins.features])
        data = {name: series_values(series) for name, series in found.columns.items()}
    columns = Schema(bins.features).admit(data)
    lost = {column.name: int(column.lacks(columns[column.name]).sum()) for column in bins.features}
    if told := [f"{count} of {name}" for name, count in lost.items() if count]:
        raise NotFinite(f"the tree reads features of which values are missing: {', '.join(told)}.", remedy=WHOLE)
    return bins.number(columns)


def rules(state: Any, bins: Bins, leaf: Callable[[int], str], node: int = 0, margin: str = "") -> Iterator[str]:
    """A tree as rules, one line for each node below `node`; `leaf` says what a leaf holds."""
    feature = int(state.feature[node])
    if feature == LEAF:
        yield f"{margin}{leaf(node)}"
        return
    column, cuts = bins.features[feature], bins.cuts[feature]
    if state.threshold[node] == MULTIWAY:
        conditions = [_bin(column, cuts, b) for b in range(len(cuts) + 1)]
    else:
        conditions = list(_sides(column, float(cuts[state.threshold[node]])))
    for k, condition in enumerate(conditions):
        yield f"{margin}{condition}"
        yield from rules(state, bins, leaf, int(state.left[node]) + k, margin + "    ")


def _bin(column: Column, cuts: tuple[float, ...], b: int) -> str:
    """The condition of one bin, in words."""
    if column.kind == "binary":
        return f"{column.name} = {b}"
    if column.kind == "category":
        return f"{column.name}: {column.levels[b]}"
    above = f"{cuts[b - 1]:.6g} < " if b else ""
    return f"{above}{column.name}" + (f" <= {cuts[b]:.6g}" if b < len(cuts) else "") + _unit(column)


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
