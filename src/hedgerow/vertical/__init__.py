"""Vertical learning: the same people, different columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from hedgerow.crypto.cross import ColumnReach

    from .aligned import Aligned
    from .cross import Factors

__all__ = ["Aligned", "ColumnReach", "Factors"]

lazily(__name__, checks=True)
