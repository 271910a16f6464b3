"""Values of a report as JSON has them, and back."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any


def to_plain(value: Any) -> Any:
    """Lists, dictionaries and strictly lawful JSON numbers instead of the values of a report."""
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if hasattr(value, "item"):  # a scalar of numpy
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}  # JSON has no infinity
    return value


def frozen(value: Any) -> Any:
    """Tuples in the place of lists, and numbers that JSON does not have."""
    if isinstance(value, list):
        return tuple(frozen(item) for item in value)
    if isinstance(value, dict):
        if value.keys() == {"float"}:
            return float(value["float"])
        return {key: frozen(item) for key, item in value.items()}
    return value
