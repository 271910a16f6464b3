"""Who may add up this station's shares: those that it pinned, all of them and no others.

A coordinator says by which aggregators, in which order and with which keys; a station has keys from the organisations
themselves (`hedgerow aggregator pin`). One of them must be honest, so a study among some of them alone is refused as well.
"""

from __future__ import annotations

from typing import Any

from hedgerow.crypto.schemes import PinnedAggregators, aggregators_needed
from hedgerow.errors import KeyInvalid, MessageRefused

from .config import StationConfig


def admit_aggregators(config: StationConfig, aggregation: Any, told: tuple[tuple[str, bytes], ...]) -> str:
    """Refuse a study whose rows others would add up than this station pinned; return who does, in words, or "".

    Parameters
    ----------
    aggregation : Any
        Of the study.
    told : tuple of (str, bytes)
        Names and keys that the coordinator tells, in order.

    Raises
    ------
    KeyInvalid (HR-244), MessageRefused (HR-242)
    """
    needed = aggregators_needed(aggregation)
    if needed != len(told):
        raise MessageRefused(
            f"the study splits rows among {needed} aggregators, and the coordinator names {len(told)}.",
            remedy="Name as many in aggregators of coordinator.toml.",
        )
    if not needed:
        return ""
    pins = config.aggregators
    if set(pins) != {name for name, _ in told}:
        raise KeyInvalid(
            f"{', '.join(name for name, _ in told)} would add up, and pinned here are {', '.join(pins) or 'none'}.",
            remedy="Exactly those add up whom [aggregators] of station.toml pins; `hedgerow aggregator pin` prints its lines.",
        )
    if others := [name for name, key in told if pins[name] != key.hex()]:
        raise KeyInvalid(
            f"the coordinator brings another key of {', '.join(others)} than is pinned here.",
            remedy="Ask them by telephone. Where they made a new one, pin that: `hedgerow aggregator pin`.",
        )
    return (
        f"Rows are added up by {', '.join(name for name, _ in told)}, whose keys are pinned here: all of them together would "
        "see every row, all but one of them see nothing."
    )


def pinned_of(config: StationConfig, aggregation: Any, told: tuple[tuple[str, bytes], ...], study: bytes) -> Any:
    """Whom the parties of a study trust to add up; None where nobody has to. Refuses as `admit_aggregators`."""
    if not admit_aggregators(config, aggregation, told):
        return None
    return PinnedAggregators(tuple(key for _, key in told), study)
