"""Synthetic tables: records that are made up from bounded sums, and how good they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .codes import Codes
    from .conditions import Conditions
    from .synthesizer import Synthesizer
    from .table import Provenance, SyntheticTable, provenance_of

__all__ = [
    "Codes",
    "Conditions",
    "Provenance",
    "Synthesizer",
    "SyntheticTable",
    "provenance_of",
]

lazily(__name__, checks=True)
