"""Columns that are read later: some rows of others, or others at places of their own in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .arrays import Array
from .later import Later

PLACE = 64
"""Bytes to whose multiples arrays are moved on which a party computes by itself: some products depend on where arrays lie."""


class Rows(Mapping[str, Array]):
    """Some rows of columns, each copied when it is first read."""

    def __init__(self, columns: Mapping[str, Array], rows: Array | slice) -> None:
        self._columns, self._rows = columns, rows
        self._read: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._read:
            values: Any = self._columns[name][self._rows]
            self._read[name] = placed(np.asarray(values)) if isinstance(values, Later) else values
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class Placed(Mapping[str, Array]):
    """Columns, each moved to a place of its own when it is first read; see `placed`. Those read later are when they are."""

    def __init__(self, columns: Mapping[str, Array]) -> None:
        self._columns = columns
        self._read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._read:
            values: Any = self._columns[name]
            self._read[name] = values if isinstance(values, Later) else placed(np.asarray(values))
        found: Array = self._read[name]
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def placed(array: Array) -> Array:
    """The same array without gaps and at a multiple of `PLACE` bytes: as it is if it lies so, else a copy.

    Where a party's records begin among those of all depends on how many records the others have, and products of the same
    numbers at another place may have other last bits.
    """
    if array.dtype.hasobject or (array.flags.c_contiguous and array.__array_interface__["data"][0] % PLACE == 0):
        return array
    memory = np.empty(array.nbytes + PLACE, np.uint8)
    start = -memory.__array_interface__["data"][0] % PLACE
    moved: Array = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved
