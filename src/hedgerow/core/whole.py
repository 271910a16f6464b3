"""Whole numbers of steps: what a record adds to a sum that noise hides, exactly and never beyond its bound.

Floating-point sums depend on their order and on how many numbers there are, so that one record more changes the rounding of
all others, and a bound per record is false in the last digits. Whole multiples of a power of two add up exactly, in any
order, as long as a total stays below 2^53 of them. So a record's contribution is rounded to whole steps before it is added,
and its length is compared with the bound in whole numbers.

    k_i     <- rint(row_i / step)                       in whole numbers; zeros where a number is not finite
    k_i     <- trunc(k_i * radius / |k_i|)              where |k_i| is beyond the radius
    total   <- step * sum of k_i                        exact

What is left is that row_i itself follows from record i and the broadcast alone, to the last bit. Sums, products, quotients,
roots and comparisons of single numbers do (IEEE 754), and so does a function that is called for one number after the other;
products of matrices do not, as a library orders their sums by shapes. `linear` therefore adds up column by column.

Source : exact sums against neighbours that differ by rounding: Casacuberta et al. 2022 (CCS).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hedgerow.errors import BudgetInvalid

from .arrays import Array, Layout
from .bound import Bound, Bounds, blocks, whole_step

BITS = 24
"""A bound has at least 2^24 steps, so that sums of 2^27 records are exact."""
MOST_BITS = 32
"""More steps a local function may not ask for: sums of 2^19 records are still exact."""
MOST = 2**52
"""So many steps a number of a party's total has at most; it stays there, whatever more records add."""
JUST_BELOW = 1 - 2.0**-30
"""Of a length that is to be kept, against the rounding of the factor by which a row is shortened."""


def step_of(bound: Bound) -> float:
    """The power of two of which a record adds whole multiples."""
    return whole_step(bound.radius) if bound.step is None else bound.step


def in_steps(bounds: Bounds, bits: int = BITS, step: float | None = None) -> Bounds:
    """Bounds that say in which steps a record adds: those given, or such that a radius has at least 2^bits of them."""
    if isinstance(bounds, Mapping):
        return {key: replace(bound, step=_step(bound, bits, step)) for key, bound in bounds.items()}
    return replace(bounds, step=_step(bounds, bits, step))


def _step(bound: Bound, bits: int, step: float | None) -> float:
    found = step or whole_step(bound.radius, bits)
    if not math.isfinite(found * MOST):
        raise BudgetInvalid(
            f"a bound of radius {bound.radius:g}: totals of its steps are no finite numbers.",
            remedy="Count in a larger unit, so that radii are usual numbers.",
        )
    return found


def records_in(bound: Bound) -> int:
    """Of how many records sums are certainly exact in double precision."""
    return max(1, math.floor(Fraction(MOST) * Fraction(step_of(bound)) / Fraction(bound.radius)))


def bound_in(bounds: Bounds, key: str) -> Bound:
    """The bound of one key, which may be that of all keys."""
    return bounds if isinstance(bounds, Bound) else bounds[key]


def whole(rows: Array, bound: Bound, times: int = 1) -> Array:
    """Round rows of shape (..., m) to whole steps, none longer than its bound, in the units of the rows.

    Parameters
    ----------
    bound : Bound
        In its norm a row of the result is at most the radius long: that is checked in whole numbers.
    times : int
        So often a record adds each of its numbers, to sums that are different ones.

    Returns
    -------
    array of shape (..., m), float64
        Rows that are not finite are zero. Their sums are exact below 2^53 steps.
    """
    step = step_of(bound)
    limit = _limit(bound.norm, bound.radius, step)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.asarray(rows, np.float64) * (1 / step)
        np.rint(steps, out=steps)
        size = _size(steps, bound.norm, times)
        if not size.max(initial=0.0) <= limit:  # also where it is not a number
            far = ~(size <= limit)
            steps[far] = _shortened(steps[far], bound.norm, limit, times)
    steps *= step
    return steps


def held(numbers: Array, bounds: Bounds | None, key: str = "", times: int = 1) -> Array:
    """One number of each record (..., n) in whole steps of the bound of its key; as they are where there are no bounds."""
    if bounds is None:
        return numbers
    return whole(np.asarray(numbers)[..., None], bound_in(bounds, key), times)[..., 0]


class WholeTotal:
    """Whole steps of parties added up in 64-bit integers, number by number, and cut at `MOST`.

    Cutting an exact total moves no two totals further apart; rounding or refusing one would.

    Parameters
    ----------
    bounds : Bound or dict of Bound
        Whose steps are added.
    layout : Layout
    parties : int
    """

    def __init__(self, bounds: Bounds, layout: Layout, parties: int = 1) -> None:
        self.layout, self._step = layout, np.empty(layout.size)
        for part, bound in blocks(bounds, layout):
            self._step[part] = step_of(bound)
        self._steps = np.zeros((parties, layout.size), np.int64)

    def add(self, rows: Array, whose: Array | slice) -> None:
        """Add rows (k, size) that are in whole steps, each fewer than 2^53, to the totals of k different parties."""
        self._steps[whose] += np.rint(rows / self._step).astype(np.int64)

    @property
    def rows(self) -> Array:
        """The totals, shape (parties, size), in units."""
        found: Array = np.clip(self._steps, -MOST, MOST) * self._step
        return found


@lru_cache(maxsize=256)
def _limit(norm: float, radius: float, step: float) -> int:
    """The largest `_size` of a row within a bound."""
    steps = Fraction(radius) / Fraction(step)
    return math.floor(steps * steps if norm == 2 else steps)


def _size(steps: Array, norm: float, times: int) -> Array:
    """Length of rows (..., m) of whole numbers, its square for l2; exact below 2^53, and above a limit wherever that is."""
    if norm == math.inf:
        found: Array = np.abs(steps).max(-1, initial=0.0)
        return found
    added: Array = np.vecdot(steps, steps) if norm == 2 else np.abs(steps).sum(-1)
    return np.asarray(added * times) if times > 1 else added


def _shortened(steps: Array, norm: float, limit: int, times: int) -> Array:
    """Rows (k, m) of whole numbers shortened until they are within the limit; zeros where they are not finite.

    They are rounded rather than cut where that does, since cutting off shortens every number by half a step.
    """
    largest = np.abs(steps).max(-1, keepdims=True)
    lawful = np.isfinite(largest)
    unit = np.where(lawful, steps, 0.0) / np.where(lawful & (largest > 0), largest, 1.0)  # its squares do not overflow
    factor = _ratio(limit, _size(unit, norm, times), norm)
    made = np.rint(unit * factor)
    for _ in range(4):
        over = _size(made, norm, times) > limit
        if not over.any():
            return made
        factor = np.where(over[:, None], factor * _ratio(limit, _size(made, norm, times), norm), factor)
        made = np.rint(unit * factor)
    made = np.where((_size(made, norm, times) > limit)[:, None], np.trunc(unit * factor), made)
    return np.where((_size(made, norm, times) <= limit)[:, None], made, 0.0)


def _ratio(limit: int, size: Array, norm: float) -> Array:
    """By how much rows have to be shortened, shape (k, 1); a little more, against the rounding of this factor."""
    size = np.where(size > 0, size, 1.0)
    ratio: Array = np.sqrt(limit / size) if norm == 2 else limit / size
    return ratio[:, None] * JUST_BELOW


def linear(X: Array, beta: Array, *, exact: bool = False) -> Array:
    """Linear predictors of rows (..., n, d) at coefficients (d,), shape (..., n).

    Where they must be `exact`, and of single records, they are added up column by column: those of a record then follow from
    its own numbers, to the last bit.
    """
    if not exact and X.shape[-2] != 1:
        found: Array = X @ beta
        return found
    return by_column(np.moveaxis(X, -1, 0), beta)


def by_column(columns: Array, beta: Array) -> Array:
    """Add up columns (d, ...), each times its coefficient (d,), the first one first; shape (...)."""
    found = np.zeros(columns.shape[1:])
    for column, b in zip(columns, beta, strict=True):
        found += column * b
    return found
