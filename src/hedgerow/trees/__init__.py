"""Decision trees by histograms: a program without gradients over the same waist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .additive import AdditiveState, additive, additive_model
    from .bins import Bins, binned
    from .cart import decision_tree, grow, histogram
    from .shapes import AdditiveModel
    from .tree import DecisionTree, TreeState

__all__ = [
    "AdditiveModel",
    "AdditiveState",
    "Bins",
    "DecisionTree",
    "TreeState",
    "additive",
    "additive_model",
    "binned",
    "decision_tree",
    "grow",
    "histogram",
]

lazily(__name__, checks=True)
