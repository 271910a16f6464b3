"""Private models: what one budget buys, by bounded sums, with a bound proved for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .bounded import BoundedLoss
    from .fit import PrivateFit
    from .inference import InferenceState, inference, private_inference
    from .locally import LocalState, locally, private_local
    from .majorised import DescentPoint
    from .models import PrivateModel, logistic, private_model
    from .rows import UnitRows
    from .sufficient import MomentState, sufficient, sufficient_moments

__all__ = [
    "BoundedLoss",
    "DescentPoint",
    "InferenceState",
    "LocalState",
    "MomentState",
    "PrivateFit",
    "PrivateModel",
    "UnitRows",
    "inference",
    "locally",
    "logistic",
    "private_inference",
    "private_local",
    "private_model",
    "sufficient",
    "sufficient_moments",
]

lazily(__name__, checks=True)
