"""Private models: what one budget buys, by bounded sums, with a bound proved for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .bounded import BoundedLoss
    from .calls import huber, logistic, multinomial, quantile, svm
    from .fit import PrivateFit
    from .group_means import GroupSumsState, PrivateMeans, means, private_means
    from .histogram import RecordHistogram, whole_histogram
    from .inference import inference, private_inference
    from .inference_plan import InferenceState
    from .linear import linear, sufficient
    from .locally import LocalState, locally, private_local
    from .majorised import DescentPoint
    from .models import PrivateModel, private_model
    from .relevance import RelevanceState, relevance_moments
    from .rows import UnitRows
    from .sufficient import MomentState, sufficient_moments

__all__ = [
    "BoundedLoss",
    "DescentPoint",
    "GroupSumsState",
    "InferenceState",
    "LocalState",
    "MomentState",
    "PrivateFit",
    "PrivateMeans",
    "PrivateModel",
    "RecordHistogram",
    "RelevanceState",
    "UnitRows",
    "huber",
    "inference",
    "linear",
    "locally",
    "logistic",
    "means",
    "multinomial",
    "private_inference",
    "private_local",
    "private_means",
    "private_model",
    "quantile",
    "relevance_moments",
    "sufficient",
    "sufficient_moments",
    "svm",
    "whole_histogram",
]

lazily(__name__, checks=True)
