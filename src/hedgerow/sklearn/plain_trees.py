"""A tree of scikit-learn's own structure, made of Hedgerow's."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.tree._tree import NODE_DTYPE, Tree

from hedgerow.core.arrays import Array
from hedgerow.errors import SchemaInvalid
from hedgerow.trees import DecisionTree
from hedgerow.trees.tree import LEAF

from .plain import described

UNDEFINED = -2
"""Of scikit-learn: the feature and the threshold of a leaf."""


def plain_tree(grown: DecisionTree, classes: Array | None, *, named: bool = True, **settings: Any) -> Any:
    """The estimator of scikit-learn with the nodes of a tree; `classes` (K,) of a classification."""
    names = tuple(column.name for column in grown.bins.features)
    if categories := [column.name for column in grown.bins.features if column.kind == "category"]:
        raise SchemaInvalid(
            f"the tree reads {', '.join(map(repr, categories[:5]))}, of kind category, whose words a tree of scikit-learn does "
            "not read.",
            remedy="Predict with the federated estimator; or grow a tree of numbers: features=[...].",
        )
    return described(tree_with(_nodes(grown), len(names), classes, **settings), names, named)


def tree_with(nodes: dict[str, Any], n_features: int, classes: Array | None, **settings: Any) -> Any:
    """An estimator with these nodes, of the form in which scikit-learn's `Tree` keeps them."""
    n_classes = 1 if classes is None else len(classes)
    made = (DecisionTreeRegressor if classes is None else DecisionTreeClassifier)(**settings)
    made.n_outputs_, made.max_features_ = 1, n_features
    if classes is not None:
        made.classes_, made.n_classes_ = classes.copy(), n_classes
    made.tree_ = Tree(n_features, np.array([n_classes], dtype=np.intp), 1)
    made.tree_.__setstate__(nodes)
    return made


def _nodes(grown: DecisionTree) -> dict[str, Any]:
    """What scikit-learn's `Tree` keeps: one entry for each node, children by position."""
    state, bins = grown.state, grown.bins
    split = state.feature != LEAF
    nodes = np.zeros(len(split), NODE_DTYPE)
    nodes["left_child"] = np.where(split, state.left, LEAF)
    nodes["right_child"] = np.where(split, state.left + 1, LEAF)
    nodes["feature"] = np.where(split, state.feature, UNDEFINED)
    cuts = [bins.cuts[f][t] if f != LEAF else UNDEFINED for f, t in zip(state.feature, state.threshold, strict=True)]
    nodes["threshold"] = cuts
    nodes["impurity"] = 1 - (state.value**2).sum(1) if bins.classes else np.nan
    nodes["n_node_samples"] = np.maximum(np.rint(state.records), 0)
    nodes["weighted_n_node_samples"] = state.records
    return {
        "max_depth": int(state.round),
        "node_count": len(nodes),
        "nodes": nodes,
        "values": np.ascontiguousarray(state.value[:, None, :], dtype=np.float64),
    }
