"""A tree of scikit-learn's own structure, made of Hedgerow's."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.tree._tree import NODE_DTYPE, Tree

from hedgerow.errors import SchemaInvalid
from hedgerow.trees import DecisionTree
from hedgerow.trees.tree import LEAF

from .plain import described

UNDEFINED = -2
"""Of scikit-learn: the feature and the threshold of a leaf."""


def plain_tree(model: Any) -> Any:
    """The estimator of scikit-learn with the nodes of a tree."""
    grown: DecisionTree = model.fit_
    names = tuple(column.name for column in grown.bins.features)
    if categories := [column.name for column in grown.bins.features if column.kind == "category"]:
        raise SchemaInvalid(
            f"the tree reads {', '.join(map(repr, categories[:5]))}, of kind category, whose words a tree of scikit-learn does "
            "not read.",
            remedy="Predict with the federated estimator; or grow a tree of numbers: features=[...].",
        )
    classes = np.array([len(model.classes_) if grown.bins.classes else 1], dtype=np.intp)
    kind = DecisionTreeClassifier if grown.bins.classes else DecisionTreeRegressor
    made = kind(
        max_depth=model.max_depth,
        min_samples_leaf=max(int(model.min_samples_leaf), 1),
        min_impurity_decrease=model.min_impurity_decrease,
    )
    made.n_outputs_, made.max_features_ = 1, len(names)
    if grown.bins.classes:
        made.classes_, made.n_classes_ = model.classes_.copy(), int(classes[0])
    made.tree_ = Tree(len(names), classes, 1)
    made.tree_.__setstate__(_nodes(grown))
    return described(made, names, hasattr(model, "feature_names_in_"))


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
