"""Trees and forests by histograms: programs without gradients over the same waist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .additive import AdditiveState, additive, additive_model
    from .bins import Bins, binned
    from .boosted import boosted_trees, grow_boosted
    from .boosted_forest import BoostedForest, BoostingState
    from .cart import decision_tree, grow, histogram
    from .forest import Forest, grow_forest, random_forest
    from .hybrid import HybridState, grow_hybrid_forest, hybrid_forest
    from .id3 import grow_id3, id3
    from .private_forest import VotesState, grow_private_forest, private_forest
    from .quantiles import quantile_bins
    from .random_trees import RandomTrees, RandomTreesState, boost_random_trees, random_trees
    from .shapes import AdditiveModel
    from .tree import DecisionTree, TreeState
    from .votes import VotingForest

__all__ = [
    "AdditiveModel",
    "AdditiveState",
    "Bins",
    "BoostedForest",
    "BoostingState",
    "DecisionTree",
    "Forest",
    "HybridState",
    "RandomTrees",
    "RandomTreesState",
    "TreeState",
    "VotesState",
    "VotingForest",
    "additive",
    "additive_model",
    "binned",
    "boost_random_trees",
    "boosted_trees",
    "decision_tree",
    "grow",
    "grow_boosted",
    "grow_forest",
    "grow_hybrid_forest",
    "grow_id3",
    "grow_private_forest",
    "histogram",
    "hybrid_forest",
    "id3",
    "private_forest",
    "quantile_bins",
    "random_forest",
    "random_trees",
]

lazily(__name__, checks=True)
