"""Split networks: layers at the parties that hold the columns, and what crosses between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .cutting import cut, feature_layers
    from .network import SplitNetwork
    from .predict import evaluate, predict
    from .splitnn import SplitState, splitnn

__all__ = ["SplitNetwork", "SplitState", "cut", "evaluate", "feature_layers", "predict", "splitnn"]

lazily(__name__, checks=True)
