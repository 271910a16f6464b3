"""Cards of trees: the rules, and which features they follow."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from hedgerow.report import Card, Grid
from hedgerow.trees.boosted_forest import BoostedForest
from hedgerow.trees.forest import Forest
from hedgerow.trees.tree import LEAF, DecisionTree

from . import values

_RULES_IN_TEXT = 3


@singledispatch
def card(value: Any) -> Card:
    """The card of a tree, or of a state of one."""
    return values.card(value)


@card.register
def _(tree: DecisionTree) -> Card:
    leaves = int((tree.state.feature == LEAF).sum())
    what = f"probability of each of {len(tree.bins.classes)} classes" if tree.bins.classes else "mean"
    return Card(
        kind="decision tree",
        title=f"{tree.bins.target.name}: {what}",
        facts=(("depth", tree.state.round), ("leaves", leaves), ("records", float(tree.state.records[0]))),
        tables=_importance(tree),
        text=(("Rules", tree.to_text()),),
        said=tuple(tree.to_text().splitlines()[:_RULES_IN_TEXT]),
    )


@card.register
def _(forest: Forest) -> Card:
    return _of_many("random forest", forest, forest.trees, forest.state.round)


@card.register
def _(boosted: BoostedForest) -> Card:
    return _of_many("boosted trees", boosted, boosted.state.round, boosted.depth)


def _of_many(kind: str, model: Any, trees: int, depth: int) -> Card:
    """The card of several trees."""
    leaves = int((model.state.feature == LEAF).sum())
    return Card(
        kind=kind,
        title=model.bins.target.name,
        facts=(("trees", trees), ("depth", depth), ("leaves", leaves)),
        tables=_importance(model),
        text=(("The first tree", model.to_text()),) if trees else (),
    )


def _importance(model: Any) -> tuple[Grid, ...]:
    """The features that were used, the most important first."""
    shares = sorted(model.importance.items(), key=lambda pair: -pair[1])
    rows = tuple(pair for pair in shares if pair[1] > 0)
    return (Grid("Importance of the features", ("feature", "share of the gain"), rows),) if rows else ()
