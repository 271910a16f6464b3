"""Cross products: sums over common people of products of columns that lie at different parties, and nothing else.

ring, letters     words modulo 2^64 with exact products; letters of any length
bits              how fine the fixed point may be, and what one record adds at most
pads, terms       what hides columns; what a question multiplies
party, dealer     the peers: parties, and the hub, which holds no column
noise             a mechanism's noise in steps of the ring
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .bits import Bits, ColumnReach, Products
    from .dealer import hub_peer
    from .pads import PadMemory
    from .party import party_peer
    from .terms import Terms

__all__ = ["Bits", "ColumnReach", "PadMemory", "Products", "Terms", "hub_peer", "party_peer"]

lazily(__name__)
