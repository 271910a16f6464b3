"""Records in small parts, so that what lies between input and output fits a cache."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


def by_chunks(function: Callable[[Tensor], Tensor], x: Tensor, at_once: int) -> Tensor:
    """Apply a function of records, shape (n, ...), to so many at once, and join what it returns."""
    if len(x) <= at_once:
        return function(x)
    made: Tensor | None = None
    for start in range(0, len(x), at_once):
        part = function(x[start : start + at_once])
        if made is None:
            made = part.new_empty((len(x), *part.shape[1:]))
        made[start : start + len(part)] = part
    assert made is not None
    return made
