"""Boosted trees over columns that lie apart: histograms by products, thresholds with the column's owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .grow import boosted_trees, grow_trees
    from .predict import predict
    from .results import BoostedTrees, BoostState, Cut

__all__ = ["BoostState", "BoostedTrees", "Cut", "boosted_trees", "grow_trees", "predict"]

lazily(__name__, checks=True)
