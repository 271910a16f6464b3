"""Private set intersection: parties find the people they have in common, and show one another no others.

interface      what every alignment offers: settings, peers, rows in a common order
ids            the public normal form of ids, and what is refused
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .ids import IdRules
    from .interface import AlignedRows, AlignmentProtocol

__all__ = ["AlignedRows", "AlignmentProtocol", "IdRules"]

lazily(__name__)
