"""Choices: the best of some candidates, questions above a threshold, counts inside a range; noise on no vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .counts import TruncatedGeometric
    from .mechanisms import Choice, Exponential, NoisyMax, PermuteAndFlip, choose
    from .sparse import Answer, ThresholdQuestion, above_threshold

__all__ = [
    "Answer",
    "Choice",
    "Exponential",
    "NoisyMax",
    "PermuteAndFlip",
    "ThresholdQuestion",
    "TruncatedGeometric",
    "above_threshold",
    "choose",
]

lazily(__name__)
