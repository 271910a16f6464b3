"""What a guard wants to know of an aggregation."""

from __future__ import annotations

from typing import Any


def smallest_total(aggregation: Any, asked: int) -> int:
    """Of how few parties a hidden total may be."""
    return min(int(aggregation.together(asked)), max(1, int(aggregation.least)))


def withstands(aggregation: Any) -> bool:
    """Whether an aggregation hides rows from a server that lies, and makes up other parties."""
    masks = getattr(aggregation, "masks", aggregation)
    return bool(getattr(getattr(getattr(masks, "scheme", None), "settings", None), "active", False))


def answers_once(aggregation: Any) -> bool:
    """Whether the parties of an aggregation answer the same question once, whether a total came of it or not."""
    masks = getattr(aggregation, "masks", aggregation)
    return bool(getattr(getattr(getattr(masks, "scheme", None), "settings", None), "once_per_context", False))


def proves_rows(aggregation: Any) -> bool:
    """Whether every row is proved to be within its bound, in a protocol that is carried out."""
    return bool(getattr(aggregation, "verified", False))
