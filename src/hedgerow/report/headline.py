"""Numbers that a reader looks for first, each with a line beneath."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .markup import Html, tag


@dataclass(frozen=True)
class Headline:
    """One number, large, and in a small line beneath what it is measured in or how sure it is.

    Parameters
    ----------
    label : str
        "Patients in the model".
    value : str
        "28 652", "× 1.47".
    beneath : str
        "odds; 95% 1.39 to 1.57".
    """

    label: str
    value: str
    beneath: str = ""


def headline_list(headlines: Sequence[Headline]) -> Html:
    """The numbers side by side."""
    return tag("dl", *map(_item, headlines), class_="metrics headlines")


def _item(one: Headline) -> Html:
    return tag("div", tag("dt", one.label), tag("dd", one.value, tag("small", one.beneath) if one.beneath else None))
