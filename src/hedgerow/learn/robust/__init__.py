"""Rules by which a server combines the rows of parties of which some may lie, in place of their mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .buckets import Bucketing
    from .centres import CentredClip, GeometricMedian
    from .columns import Median, TrimmedMean
    from .groups import Groups
    from .history import FoolsGold
    from .named import RULES, rule_from
    from .nearest import Bulyan, Krum, MultiKrum
    from .norms import NormBound, NormNoise
    from .plain import PlainMean
    from .rule import Beside, Rule
    from .trust import FLTrust

__all__ = [
    "RULES",
    "Beside",
    "Bucketing",
    "Bulyan",
    "CentredClip",
    "FLTrust",
    "FoolsGold",
    "GeometricMedian",
    "Groups",
    "Krum",
    "Median",
    "MultiKrum",
    "NormBound",
    "NormNoise",
    "PlainMean",
    "Rule",
    "TrimmedMean",
    "rule_from",
]

lazily(__name__)
