"""What travels: an array, or a dict of arrays, seen as one flat vector at the waist."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = Mapping[str, Any] | Any
"""An array (or number), or a mapping from key to array."""


@dataclass(frozen=True)
class Layout:
    """The keys and shapes of a contribution, in order; a bare array has the single key `""`."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def of(cls, arrays: Arrays, lead: int = 0) -> Layout:
        """Describe `arrays`, leaving out `lead` leading axes (1 where parties are stacked)."""
        return cls(tuple((key, np.shape(value)[lead:]) for key, value in items(arrays)))

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Where each key lies in the flat vector."""
        found, start = {}, 0
        for key, shape in self.shapes:
            stop = start + math.prod(shape)
            found[key] = slice(start, stop)
            start = stop
        return found

    @cached_property
    def size(self) -> int:
        """Numbers in the flat vector."""
        return sum(math.prod(shape) for _, shape in self.shapes)

    def unflatten(self, vector: Array) -> Any:
        """Turn a flat vector of shape (size,) back into an array or a dict of arrays."""
        found = {key: vector[part].reshape(shape) for (key, shape), part in zip(self.shapes, self.slices.values(), strict=True)}
        return found[""] if list(found) == [""] else found

    def __str__(self) -> str:
        return ", ".join(f"{key or 'value'} {shape}" if shape else key or "a number" for key, shape in self.shapes)


def items(arrays: Arrays) -> list[tuple[str, Any]]:
    """Return the (key, value) pairs of a contribution; a bare array has the key `""`."""
    return list(arrays.items()) if isinstance(arrays, Mapping) else [("", arrays)]


def flatten(arrays: Arrays, lead: int = 0) -> Array:
    """Concatenate a contribution to shape (size,), or (parties, size) where `lead` is 1; float32 if all is, else float64."""
    parts = [np.asarray(value) for _, value in items(arrays)]
    kind = np.float32 if all(part.dtype == np.float32 for part in parts) else np.float64
    flat = [part.astype(kind, copy=False).reshape((*part.shape[:lead], math.prod(part.shape[lead:]))) for part in parts]
    return flat[0] if len(flat) == 1 else np.concatenate(flat, axis=-1)
