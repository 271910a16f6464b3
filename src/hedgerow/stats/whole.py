"""Sums over records behind noise, in whole steps of their bounds and never beyond them, of rows held as columns.

What a record adds is a number times its row, or times the products of its row with itself. The number is made smaller where
its length, with room for rounding, would be beyond the bound; then every product is rounded to whole steps, and all are added
exactly:

    v_i     <- v_i * min(1, room / (|v_i| |x_i|^r))           room: the radius less half a step for each sqrt(number)
    total   <- sum of rint(v_i x_ij / step),  or of rint(v_i x_ij x_ik / step)

Lengths are Euclidean; where every number has a bound of its own it is cut to whole steps within it.
"""

from __future__ import annotations

import math
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound
from hedgerow.core.whole import by_column, held, step_of

try:
    _sums: Any = import_module("hedgerow.stats._sums")
except ImportError:  # it was installed without a compiler
    _sums = None

NUMBERS = 1 << 18
"""So many numbers of rows are held at once, which a processor's cache holds too."""
ROUNDED = 1 + 1e-9
"""By so much lengths are overstated, against their own rounding."""


def records_at_once(d: int) -> int:
    """How many rows of so many numbers are held at once."""
    return max(1, NUMBERS // max(d, 1))


class WholeRows:
    """Rows of records as columns of shape (d, ..., n); those that are not finite add nothing.

    Attributes
    ----------
    columns : array of shape (d, ..., n)
    lost : array of bool, shape (..., n), or None
        Which records are not finite, where there are any.
    """

    def __init__(self, columns: Array) -> None:
        self.columns = np.ascontiguousarray(columns)
        self.lost: Array | None = None
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(self.length).all():
                del self.length
                self.lost = ~np.isfinite(self.columns).all(0)
                self.columns = np.where(self.lost, 0.0, self.columns)

    @classmethod
    def of(cls, X: Array) -> WholeRows:
        """From rows of shape (..., n, d)."""
        return cls(np.moveaxis(X, -1, 0))

    @cached_property
    def length(self) -> Array:
        """Of each row, shape (..., n)."""
        found: Array = np.sqrt(by_column(self.columns, self.columns))
        return found

    @cached_property
    def _steps(self) -> Array:
        return np.empty_like(self.columns)

    @property
    def squared(self) -> WholeRows:
        """The squares of all numbers."""
        return WholeRows(self.columns * self.columns)

    def sums(self, numbers: Array, bound: Bound) -> Array:
        """Add up rows, each times its own number (..., n); shape (..., d)."""
        step = step_of(bound)
        if bound.norm == math.inf:
            cut = [held(column * numbers, bound).sum(-1) for column in self.columns]
            return np.stack(cut, axis=-1)
        v = self._within(numbers, bound, 1) * (1 / step)
        if _sums is not None and v.ndim == 1:
            return self._compiled(_sums.rows, v, len(self.columns)) * step
        return np.moveaxis(_added(np.multiply(self.columns, v, out=self._steps)), 0, -1) * step

    def products(self, numbers: Array, bound: Bound) -> Array:
        """Add up products of rows with themselves, each times its own number: upper triangles (..., d (d + 1) / 2)."""
        step, columns = step_of(bound), self.columns
        v, d = self._within(numbers, bound, 2) * (1 / step), len(columns)
        if _sums is not None and v.ndim == 1:
            return self._compiled(_sums.products, v, d * (d + 1) // 2) * step
        found = [_added(np.multiply(columns[j:], column * v, out=self._steps[j:])) for j, column in enumerate(columns)]
        return np.moveaxis(np.concatenate(found), 0, -1) * step

    def _compiled(self, sums: Any, v: Array, size: int) -> Array:
        found = np.empty(size)
        sums(self.columns, np.ascontiguousarray(v), found)
        return found

    def _within(self, numbers: Array, bound: Bound, power: int) -> Array:
        """Numbers (..., n) so small that what records add stays within a bound of lengths, rounding included."""
        assert bound.norm == 2, "a record's numbers are bounded together, or each by itself"
        room = max(bound.radius - step_of(bound) * math.sqrt(len(self.columns) ** power) / 2, 0.0)
        length = np.abs(numbers) * (self.length if power == 1 else self.length * self.length)
        longest = length.max(initial=0.0) * ROUNDED
        if longest <= room:
            return numbers
        length *= ROUNDED
        lawful = np.isfinite(length)
        factor = np.where(length > room, room / np.where(lawful, np.maximum(length, room), 1.0), 1.0)
        kept: Array = np.where(lawful, numbers, 0.0) * factor
        return kept


def _added(steps: Array) -> Array:
    """Sums (k, ...) of numbers (k, ..., n), each rounded to a whole one before, in place."""
    found: Array = np.rint(steps, out=steps).sum(-1)
    return found
