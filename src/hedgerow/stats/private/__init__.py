"""Private models: what one budget buys, by bounded sums, with a bound proved for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .locally import LocalState, locally, private_local
    from .rows import UnitRows

__all__ = ["LocalState", "UnitRows", "locally", "private_local"]

lazily(__name__, checks=True)
