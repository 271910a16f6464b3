"""Cards of trees: the rules, and which features they follow."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from hedgerow.report import Card, Grid
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
    shares = sorted(tree.importance.items(), key=lambda pair: -pair[1])
    grid = Grid("Importance of the features", ("feature", "share of the gain"), tuple(pair for pair in shares if pair[1] > 0))
    what = f"probability of each of {len(tree.bins.classes)} classes" if tree.bins.classes else "mean"
    return Card(
        kind="decision tree",
        title=f"{tree.bins.target.name}: {what}",
        facts=(("depth", tree.state.round), ("leaves", leaves), ("records", float(tree.state.records[0]))),
        tables=(grid,) if grid.rows else (),
        text=(("Rules", tree.to_text()),),
        said=tuple(tree.to_text().splitlines()[:_RULES_IN_TEXT]),
    )
