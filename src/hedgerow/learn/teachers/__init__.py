"""PATE: labels for public inputs, voted by teachers that never leave their parties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .account import Unreleasable
    from .labels import Student, VotedLabels
    from .learners import LEARNERS, Learner, learner
    from .pate import VoteState, pate, pate_votes
    from .published import PublishedLabels, confident_gnmax, gnmax, lnmax

__all__ = [
    "LEARNERS",
    "Learner",
    "PublishedLabels",
    "Student",
    "Unreleasable",
    "VoteState",
    "VotedLabels",
    "confident_gnmax",
    "gnmax",
    "learner",
    "lnmax",
    "pate",
    "pate_votes",
]

lazily(__name__)
