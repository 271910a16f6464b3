"""Synthetic tables: records that are made up from bounded sums, and how good they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .codes import Codes
    from .conditions import Conditions
    from .gan import Ctgan, CtganState, Tvae, TvaeState, ctgan, ctgan_rounds, tvae, tvae_rounds
    from .synthesizer import Synthesizer
    from .table import Provenance, SyntheticTable, provenance_of

__all__ = [
    "Codes",
    "Conditions",
    "Ctgan",
    "CtganState",
    "Provenance",
    "Synthesizer",
    "SyntheticTable",
    "Tvae",
    "TvaeState",
    "ctgan",
    "ctgan_rounds",
    "provenance_of",
    "tvae",
    "tvae_rounds",
]

lazily(__name__, checks=True)
