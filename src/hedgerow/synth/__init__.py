"""Synthetic tables: records that are made up from bounded sums, and how good they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .assessed import Quality
    from .closest import Closeness, closest, nearer_share
    from .codes import Codes
    from .conditions import Conditions
    from .metrics import correlation_similarity, ks_complement, ks_of_counts, tv_complement, tv_of_counts
    from .quality import QualityState, compared, measured_quality, quality, real_tables
    from .synthesizer import Synthesizer
    from .table import Provenance, SyntheticTable, provenance_of
    from .tstr import Utility, tstr

__all__ = [
    "Closeness",
    "Codes",
    "Conditions",
    "Provenance",
    "Quality",
    "QualityState",
    "Synthesizer",
    "SyntheticTable",
    "Utility",
    "closest",
    "compared",
    "correlation_similarity",
    "ks_complement",
    "ks_of_counts",
    "measured_quality",
    "nearer_share",
    "provenance_of",
    "quality",
    "real_tables",
    "tstr",
    "tv_complement",
    "tv_of_counts",
]

lazily(__name__, checks=True)
