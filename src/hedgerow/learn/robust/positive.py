"""Settings of rules that are numbers above zero."""

from __future__ import annotations

import math
from typing import Literal

from hedgerow.errors import SettingsInvalid

Radius = float | Literal["median"]
"""A public radius in units of a row, or the median of this round's norms."""


def lawful_radius(radius: Radius) -> None:
    """Refuse a radius that is neither a number above zero nor "median"."""
    if radius != "median":
        positive(radius=radius)


def positive(**settings: float) -> None:
    """Refuse settings that are no finite number above zero.

    Raises
    ------
    SettingsInvalid (HR-511)
    """
    lawful = {
        name: isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
        for name, value in settings.items()
    }
    if wrong := [f"{name} is {settings[name]!r}" for name, good in lawful.items() if not good]:
        raise SettingsInvalid("; ".join(wrong) + ".", remedy="It is a number above zero.")
