"""Private set intersection: parties find the people they have in common, and show one another no others.

interface      what every alignment offers: settings, peers, rows in a common order
x25519         masks on curve25519: two parties or more, as a star or a ring
kkrt           oblivious transfers extended by symmetric ciphers: two parties, large lists
rfc9380        a standard hash to the curve
curve          points, scalars, what is checked of points that come
pipes          letters of any length, and how parties begin (opening)
agrawal        powers modulo a safe prime: the thesis's toy, and mended
join_sums      sums by group over a join that nobody sees
ids            the public normal form of ids, and what is refused
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .agrawal import Agrawal
    from .ids import IdRules
    from .interface import AlignedRows, AlignmentProtocol
    from .join_sums import JoinSums
    from .kkrt import KKRT
    from .x25519 import X25519

__all__ = ["KKRT", "X25519", "Agrawal", "AlignedRows", "AlignmentProtocol", "IdRules", "JoinSums"]

lazily(__name__)
