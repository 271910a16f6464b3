"""Private models: what one budget buys, by bounded sums, with a bound proved for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .bounded import BoundedLoss
    from .fit import PrivateFit
    from .locally import LocalState, locally, private_local
    from .majorised import DescentPoint
    from .models import PrivateModel, logistic, private_model
    from .rows import UnitRows

__all__ = [
    "BoundedLoss",
    "DescentPoint",
    "LocalState",
    "PrivateFit",
    "PrivateModel",
    "UnitRows",
    "locally",
    "logistic",
    "private_local",
    "private_model",
]

lazily(__name__, checks=True)
