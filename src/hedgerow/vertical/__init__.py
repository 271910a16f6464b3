"""Vertical learning: parties hold different columns of the same people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from hedgerow.crypto.psi import X25519, Agrawal
    from hedgerow.crypto.psi.kkrt import KKRT

    from .aligned import Aligned

__all__ = ["KKRT", "X25519", "Agrawal", "Aligned"]

lazily(__name__, checks=True)
