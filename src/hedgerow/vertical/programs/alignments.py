"""The alignment by itself: how many people parties have in common, and what it costs to find out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hedgerow.core.declaration import program
from hedgerow.report import Outcome

from ..aligned import Aligned
from .cases import heart


@dataclass(frozen=True)
class Common:
    """How many people are common to all parties.

    Attributes
    ----------
    n : int
    round : int
    """

    n: int
    round: int = 1


def show_common(aligned: Aligned, settings: Mapping[str, Any], state: Common) -> Outcome:
    """Show how many people are common."""
    return Outcome({"people in common": state.n})


@program(
    "How many people the parties have in common, and what finding them costs; nothing else is asked.",
    columns="apart",
    outcome=show_common,
    case=heart,
)
def alignment(aligned: Aligned, *, start: Common | None = None) -> Iterator[Common]:
    """Say how many people are common to all parties.

    Releases
    --------
    The number, which the alignment has told already.
    """
    yield Common(aligned.n)
