"""Private models: what one budget buys, by bounded sums, with a bound proved for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .fit import PrivateFit
    from .rows import UnitRows
    from .sufficient import sufficient, sufficient_moments

__all__ = ["PrivateFit", "UnitRows", "sufficient", "sufficient_moments"]

lazily(__name__, checks=True)
