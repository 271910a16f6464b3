"""What a tree declares: rules, importances, and a score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hedgerow.core.federation import Federation
from hedgerow.data import Schema, Table
from hedgerow.data.cases import whole_cases
from hedgerow.report import Outcome

from .bins import Bins
from .tree import DecisionTree, TreeState


def tree_of(settings: Mapping[str, Any], state: TreeState, schema: Schema) -> DecisionTree:
    """The tree of a state."""
    return DecisionTree(state, bins_of(settings, schema))


def bins_of(settings: Mapping[str, Any], schema: Schema) -> Bins:
    """The bins by which a program with these settings grew."""
    chosen = {name: settings[name] for name in ("features", "target", "n_bins", "log") if name in settings}
    return Bins.of(schema, **chosen)


def score(settings: Mapping[str, Any], state: TreeState, schema: Schema, table: Table) -> float:
    """R2 of a regression tree on a table, accuracy of a classification tree."""
    tree = tree_of(settings, state, schema)
    weight = [] if schema.weight is None else [schema.weight]
    table = whole_cases(table, [*(column.name for column in tree.bins.features), tree.bins.target.name, *weight])
    target, predicted = table.columns[tree.bins.target.name], tree.predict(table)
    w = np.ones(len(table)) if schema.weight is None else table[schema.weight]
    if tree.bins.target.kind == "category":
        target = np.array(tree.bins.classes)[target]
    if tree.bins.classes:
        return float(np.average(predicted == target, weights=w))
    mean = np.average(target, weights=w)
    return 1 - float(np.average((target - predicted) ** 2, weights=w) / np.average((target - mean) ** 2, weights=w))


def metric(schema: Schema) -> tuple[str, bool]:
    """Name of the score; more is better."""
    return "accuracy" if schema.classifies else "R2", True


def watch(settings: Mapping[str, Any], state: TreeState, schema: Schema, test: Table | None) -> dict[str, float]:
    """Score of a state on the server's table."""
    name = "test accuracy" if Bins.of(schema, target=settings["target"]).classes else "test R2"
    return {} if test is None else {name: score(settings, state, schema, test)}


def outcome(federation: Federation, settings: Mapping[str, Any], state: TreeState) -> Outcome:
    """The tree as rules and as a table, its importances and its arrays."""
    import pandas

    tree = tree_of(settings, state, federation.schema)
    nodes = tree.to_frame()
    shares = sorted(tree.importance.items(), key=lambda pair: -pair[1])
    arrays = {name: value for name, value in vars(state).items() if isinstance(value, np.ndarray)}
    return Outcome(
        tables={
            "Importance of the features": pandas.DataFrame(shares, columns=["feature", "share of the gain"]),
            "Nodes": nodes.assign(**{side: nodes[side].where(nodes[side] >= 0) for side in ("left", "right")}),
        },
        text={"The tree": tree.to_text()},
        arrays=arrays,
    )
