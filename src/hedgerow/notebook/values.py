"""Values of any room: numbers and words as facts, arrays by their shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from hedgerow.report import Card, Grid, grid_of
from hedgerow.report.card import listed

_NAMES = 4
_LONGEST_WORD = 60


def card(value: Any) -> Card:
    """A data class as facts, a table of its arrays, and its data frame where it has one."""
    arrays = dict(arrays_of(value))
    return Card(
        kind=type(value).__name__,
        facts=facts_of(value),
        tables=(*([shapes(arrays)] if arrays else []), *frame_of(value)),
        said=(in_words(arrays),) if arrays else (),
    )


def facts_of(value: Any) -> tuple[tuple[str, Any], ...]:
    """Fields that are numbers or short words, by their names."""
    found = []
    for item in fields(value) if is_dataclass(value) else ():
        held = getattr(value, item.name)
        if isinstance(held, bool | int | float | np.number) or (isinstance(held, str) and 0 < len(held) <= _LONGEST_WORD):
            found.append((item.name.rstrip("_").replace("_", " "), held))
    return tuple(found)


def arrays_of(value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays of a value, those in mappings by `field.key`."""
    for item in fields(value) if is_dataclass(value) else ():
        held = getattr(value, item.name)
        if isinstance(held, np.ndarray):
            yield item.name, held
        elif isinstance(held, Mapping):
            yield from ((f"{item.name}.{key}", part) for key, part in held.items() if isinstance(part, np.ndarray))


def shapes(arrays: Mapping[str, np.ndarray]) -> Grid:
    """A table of arrays: shape and how many numbers."""
    rows = tuple((name, " × ".join(map(str, array.shape)) or "a number", int(array.size)) for name, array in arrays.items())
    total = sum(array.size for array in arrays.values())
    return Grid("Arrays", ("array", "shape", "numbers"), rows, f"{total:,} numbers in all.")


def in_words(arrays: Mapping[str, np.ndarray]) -> str:
    """The same in a line."""
    said = [f"{name} {array.shape}" for name, array in arrays.items()]
    total = sum(array.size for array in arrays.values())
    return f"{len(arrays)} array{'s' * (len(arrays) != 1)}, {total:,} numbers: {listed(said, _NAMES)}"


def frame_of(value: Any) -> tuple[Grid, ...]:
    """What `to_frame` gives, where a value has it."""
    return (grid_of("Table", value.to_frame()),) if hasattr(value, "to_frame") else ()
