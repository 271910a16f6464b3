"""Choices: the best of some candidates, questions above a threshold, counts inside a range; noise on no vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .counts import TruncatedGeometric
    from .many import ManyChoice, ScoreRule, choose_many
    from .mechanisms import Choice, Exponential, NoisyMax, PermuteAndFlip, choose
    from .sparse import Answer, ThresholdQuestion, above_threshold

__all__ = [
    "Answer",
    "Choice",
    "Exponential",
    "ManyChoice",
    "NoisyMax",
    "PermuteAndFlip",
    "ScoreRule",
    "ThresholdQuestion",
    "TruncatedGeometric",
    "above_threshold",
    "choose",
    "choose_many",
]

lazily(__name__)
