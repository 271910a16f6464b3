"""Arrays whose rows are made when they are read: of columns that lie in files, and of columns that are prepared from these.

    later[2:9]      later too, of these rows
    later[rows]     an array
    np.asarray      an array of all rows
    party[name]     an array of the party's rows (`Party`), which in a block are few

Whatever is asked of one that is not here is asked of the array of all its rows, so that it can stand where an array does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .arrays import Array

KEPT = 1 << 16
"""What is made of at most so many rows is kept until others are read."""

Read = Callable[[Any], Array]
"""From a slice, or positions of shape (k,), to those rows."""


class Later(NDArrayOperatorsMixin):
    """An array of shape (n, ...) that is read later.

    Parameters
    ----------
    read : callable
        From a slice or positions to rows, in `dtype` and of the same shape each.
    n : int
        Rows.
    tail : tuple of int
        Shape of a row.
    dtype : dtype
    start : int
        Where the rows begin among those that `read` knows.
    """

    def __init__(self, read: Read, n: int, tail: tuple[int, ...], dtype: Any, start: int = 0) -> None:
        self._read, self._start = read, start
        self.shape, self.dtype = (n, *tail), np.dtype(dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Of the array that it would be."""
        return self.size * int(self.dtype.itemsize)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            rows = self[key[0]] if key else self
            return np.asarray(rows)[(slice(None), *key[1:])] if not isinstance(key[0], int | np.integer) else rows[key[1:]]
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return Later(self._read, max(stop - start, 0), self.shape[1:], self.dtype, self._start + start)
            key = np.arange(start, stop, step)
        rows = np.asarray(key)
        if rows.dtype == np.bool_:
            if rows.ndim != 1:
                return np.asarray(self)[rows]
            if len(rows) != len(self):
                raise IndexError(f"a mask of {len(rows)} rows, of an array of {len(self)}.")
            rows = np.flatnonzero(rows)
        elif rows.size and rows.dtype.kind not in "iu":
            raise IndexError(f"rows by numbers of type {rows.dtype}.")
        rows = np.where(rows < 0, rows + len(self), rows)
        if rows.size and (rows.min() < 0 or rows.max() >= len(self)):
            raise IndexError(f"rows of an array of {len(self)}.")
        found = self._read(self._start + rows.ravel().astype(np.int64))
        return found.reshape((*rows.shape, *self.shape[1:]))[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        found = self._read(slice(self._start, self._start + len(self)))
        return found if dtype is None else found.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        read = (np.asarray(one) if isinstance(one, Later) else one for one in inputs)
        return getattr(ufunc, method)(*read, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def __repr__(self) -> str:
        return f"Later(shape={self.shape}, dtype={self.dtype})"


def is_later(columns: Mapping[str, Any]) -> bool:
    """Whether some columns are read later."""
    return any(isinstance(values, Later) for values in columns.values())


def read_through(columns: Mapping[str, Any]) -> None:
    """Read all rows of columns that are read later, in blocks, so that what cannot be made of them raises now."""
    later = [values for values in columns.values() if isinstance(values, Later)]
    for start in range(0, max(map(len, later), default=0), KEPT):
        for values in later:
            np.asarray(values[start : start + KEPT])


class MadeLater:
    """What a preparation makes of some rows, all columns at once; the last ones are kept.

    Row i of what is made depends on row i alone, by the contract of preparations, so blocks give the same but for last bits.
    """

    def __init__(self, make: Callable[[Any], Mapping[str, Array]]) -> None:
        self._make = make
        self._last: tuple[Any, Mapping[str, Array]] = (None, {})

    def columns(self, n: int) -> dict[str, Later]:
        """The columns of `n` rows; their names, shapes and types are those of the first row."""
        first = {name: np.asarray(values) for name, values in self._make(slice(0, 1)).items()}
        return {name: Later(self._reading(name, one.dtype), n, one.shape[1:], one.dtype) for name, one in first.items()}

    def _reading(self, name: str, dtype: np.dtype[Any]) -> Read:
        return lambda rows: np.asarray(self._rows(rows)[name], dtype)

    def _rows(self, rows: Any) -> Mapping[str, Array]:
        if not isinstance(rows, slice):
            return self._make(rows)
        key, made = self._last
        if key != (rows.start, rows.stop):
            key, made = (rows.start, rows.stop), self._make(rows)
            if rows.stop - rows.start <= KEPT:
                self._last = key, made
        return made
