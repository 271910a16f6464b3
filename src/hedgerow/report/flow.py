"""Where records were lost: how many there were, how many went, why, and how many are left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class FlowStep:
    """How many records there are at one step.

    Parameters
    ----------
    label : str
        "Records at the stations".
    count : int, str or None
        A number, or what is known of it: "about 295".
    lost : tuple of (reason, count)
        Who goes no further, in words: "no specialty recorded".
    """

    label: str
    count: int | str | None
    lost: tuple[tuple[str, int | str | None], ...] = ()


@dataclass(frozen=True)
class Flow:
    """Where records were lost, step by step; those of the last step are in the model."""

    title: str
    steps: tuple[FlowStep, ...]
    note: str = ""

    @classmethod
    def from_plain(cls, values: dict[str, Any]) -> Self:
        """The flow of which a report's JSON has these values."""
        return cls(**values | {"steps": tuple(FlowStep(**step) for step in values["steps"])})
