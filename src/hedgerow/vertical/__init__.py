"""Vertical learning: the same people, different columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .aligned import Aligned

__all__ = ["Aligned"]

lazily(__name__, checks=True)
