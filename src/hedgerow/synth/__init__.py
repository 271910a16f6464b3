"""Synthetic tables: records that are made up from bounded sums, and how good they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .codes import Codes
    from .conditions import Conditions
    from .metrics import correlation_similarity, ks_complement, ks_of_counts, tv_complement, tv_of_counts
    from .synthesizer import Synthesizer
    from .table import Provenance, SyntheticTable, provenance_of
    from .tstr import Utility, tstr

__all__ = [
    "Codes",
    "Conditions",
    "Provenance",
    "Synthesizer",
    "SyntheticTable",
    "Utility",
    "correlation_similarity",
    "ks_complement",
    "ks_of_counts",
    "provenance_of",
    "tstr",
    "tv_complement",
    "tv_of_counts",
]

lazily(__name__, checks=True)
