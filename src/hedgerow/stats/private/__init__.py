"""Private models: what one budget buys, by bounded sums, with a bound proved for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .rows import UnitRows

__all__ = ["UnitRows"]

lazily(__name__, checks=True)
