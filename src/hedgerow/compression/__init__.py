"""Compression: shorter codes for large contributions, made at the party after its clip and before noise and masks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .coordinates import RandomK, TopK
    from .levels import Quantised
    from .rotation import Rotated
    from .sketch import Sketched

__all__ = ["Quantised", "RandomK", "Rotated", "Sketched", "TopK"]

lazily(__name__, checks=True)
