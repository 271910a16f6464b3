"""What split learning leaks, measured: attacks with their controls, defences, and the tables and figures of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .inference import Area, LabelLeak, area, by_class, by_direction, by_norm, first_of_each, label_leak
    from .inversion import (
        FeatureLeak,
        columns_from_openings,
        columns_from_people,
        feature_leak,
        linked_by_rank,
        variance_recovered,
    )
    from .label_dp import LabelDP
    from .noise import GradientDefence, IsotropicNoise, MaxNormNoise
    from .nopeek import NoPeek, distance_correlation
    from .observer import Observer, SentBatches
    from .tables import DefenceLeaks, LeakReport, feature_table, leak_report, measured

__all__ = [
    "Area",
    "DefenceLeaks",
    "FeatureLeak",
    "GradientDefence",
    "IsotropicNoise",
    "LabelDP",
    "LabelLeak",
    "LeakReport",
    "MaxNormNoise",
    "NoPeek",
    "Observer",
    "SentBatches",
    "area",
    "by_class",
    "by_direction",
    "by_norm",
    "columns_from_openings",
    "columns_from_people",
    "distance_correlation",
    "feature_leak",
    "feature_table",
    "first_of_each",
    "label_leak",
    "leak_report",
    "linked_by_rank",
    "measured",
    "variance_recovered",
]

lazily(__name__)
