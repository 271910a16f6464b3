"""What a tree declares: rules, importances, and a score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.federation import Federation
from hedgerow.data import Schema, Table
from hedgerow.data.cases import whole_cases
from hedgerow.report import Outcome

from .bins import Bins
from .tree import DecisionTree, TreeState

if TYPE_CHECKING:
    import pandas

    from .boosted_forest import BoostedForest, BoostingState
    from .forest import Forest


def tree_of(settings: Mapping[str, Any], state: TreeState, schema: Schema) -> DecisionTree:
    """The tree of a state."""
    return DecisionTree(state, bins_of(settings, schema))


def bins_of(settings: Mapping[str, Any], schema: Schema) -> Bins:
    """The bins by which a program with these settings grew."""
    chosen = {name: settings[name] for name in ("features", "target", "n_bins", "log") if name in settings}
    return Bins.of(schema, **chosen)


def score(settings: Mapping[str, Any], state: TreeState, schema: Schema, table: Table) -> float:
    """R2 of a regression tree on a table, accuracy of a classification tree."""
    return scored(tree_of(settings, state, schema), schema, table)


def scored(tree: Any, schema: Schema, table: Table) -> float:
    """R2 or accuracy on a table of what has `bins` and predicts."""
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
    return watched(settings, schema, None if test is None else score(settings, state, schema, test))


def watched(settings: Mapping[str, Any], schema: Schema, found: float | None) -> dict[str, float]:
    """A score under its name."""
    name = "test accuracy" if bins_of(settings, schema).classes else "test R2"
    return {} if found is None else {name: found}


def outcome(federation: Federation, settings: Mapping[str, Any], state: TreeState) -> Outcome:
    """The tree as rules and as a table, its importances and its arrays."""
    tree = tree_of(settings, state, federation.schema)
    nodes = tree.to_frame()
    nodes = nodes.assign(**{side: nodes[side].where(nodes[side] >= 0) for side in ("left", "right")})
    return Outcome(
        tables={"Importance of the features": shares_of(tree), "Nodes": nodes},
        text={"The tree": tree.to_text()},
        arrays=arrays_of(state),
    )


def shares_of(model: Any) -> pandas.DataFrame:
    """The importances of a model, the largest first."""
    import pandas

    shares = sorted(model.importance.items(), key=lambda pair: -pair[1])
    return pandas.DataFrame(shares, columns=["feature", "share of the gain"])


def arrays_of(state: Any) -> dict[str, np.ndarray]:
    """The arrays of a state."""
    return {name: value for name, value in vars(state).items() if isinstance(value, np.ndarray)}


# ---- forests --------------------------------------------------------------------------------------------------------
def forest_of(settings: Mapping[str, Any], state: TreeState, schema: Schema) -> Forest:
    """The forest of a state."""
    from .forest import Forest

    return Forest(state, bins_of(settings, schema), settings["trees"])


def forest_score(settings: Mapping[str, Any], state: TreeState, schema: Schema, table: Table) -> float:
    """R2 or accuracy of a forest on a table."""
    return scored(forest_of(settings, state, schema), schema, table)


def forest_watch(settings: Mapping[str, Any], state: TreeState, schema: Schema, test: Table | None) -> dict[str, float]:
    """Score of a state on the server's table."""
    return watched(settings, schema, None if test is None else forest_score(settings, state, schema, test))


def forest_outcome(federation: Federation, settings: Mapping[str, Any], state: TreeState) -> Outcome:
    """The importances, the first tree, and the arrays of all trees."""
    forest = forest_of(settings, state, federation.schema)
    return Outcome(
        tables={"Importance of the features": shares_of(forest)},
        text={"The first tree": forest.to_text()},
        arrays=arrays_of(state),
    )


# ---- boosted trees --------------------------------------------------------------------------------------------------
def boosted_of(settings: Mapping[str, Any], state: BoostingState, schema: Schema) -> BoostedForest:
    """The boosted trees of a state."""
    from .boosted_forest import BoostedForest

    return BoostedForest(state, bins_of(settings, schema), settings["depth"])


def boosted_score(settings: Mapping[str, Any], state: BoostingState, schema: Schema, table: Table) -> float:
    """R2 or accuracy of boosted trees on a table."""
    return scored(boosted_of(settings, state, schema), schema, table)


def boosted_watch(settings: Mapping[str, Any], state: BoostingState, schema: Schema, test: Table | None) -> dict[str, float]:
    """Score of a state on the server's table."""
    return watched(settings, schema, None if test is None else boosted_score(settings, state, schema, test))


def boosted_outcome(federation: Federation, settings: Mapping[str, Any], state: BoostingState) -> Outcome:
    """The importances, the first tree, and the arrays of all trees."""
    boosted = boosted_of(settings, state, federation.schema)
    return Outcome(
        tables={"Importance of the features": shares_of(boosted)},
        text={"The first tree": boosted.to_text()},
        arrays=arrays_of(state),
    )
