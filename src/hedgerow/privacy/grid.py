"""The integer grid on which every private release lives.

Contributions are rounded to multiples of a public power of two `step` before they are summed, sums are exact in 64-bit
integers, and noise is an integer number of steps. So the low bits of a release say nothing about its input (Mironov, CCS
2012), and the order of summation cannot change the distance of neighbours (Casacuberta et al., CCS 2022).

What a record decides is never refused here, since a refusal would move the total by all records of its party. A total that
is bounded per record and reaches 2^52 steps stays there: that moves no two totals further apart.

Rounding can lengthen a vector. A party-level bound is therefore enforced again on the grid; for a record-level bound,
where a record moves a party's sum that is rounded afterwards, the noise is scaled to the lengthened distance.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import SLACK, Bound, Bounds, blocks
from hedgerow.core.whole import MOST
from hedgerow.errors import ContributionInvalid

try:
    _steps: Any = import_module("hedgerow.privacy._steps")
except ImportError:  # it was installed without a compiler
    _steps = None


log = logging.getLogger("hedgerow")

ROUNDING = 2.0**-10
"""By so much of itself the noise of a record-level sum grows, at most, because the sum is rounded."""


@dataclass(frozen=True)
class Block:
    """One part of the flat contribution with its bound, its grid, and the scale of its noise in steps of that grid.

    `whole` says that what a record adds is a whole number of steps by construction.
    """

    part: slice
    bound: Bound
    step: float
    scale: float
    whole: bool = False

    def round(self, rows: Array) -> Array:
        """Round rows of shape (parties, size) to whole steps, never beyond a party-level bound; zero those not finite.

        Sums of records are cut at `MOST` steps.
        """
        if self.bound.unit == "record":
            if self.bound.step is not None and self.whole and rows.dtype == np.float32:
                raise ContributionInvalid(
                    f"a sum of records in float32, which cannot hold it in whole steps, under the bound {self.bound}.",
                    remedy="Return it in float64.",
                )
            with np.errstate(over="ignore"):
                exact = finite(rows.astype(np.float64, copy=False)) / self.step
            steps: Array = np.clip(np.rint(exact), -MOST, MOST)
            if self.whole and not (steps == exact).all() and (np.abs(exact) <= MOST).all():
                log.warning(
                    "a contribution is not in whole steps of %g, and is rounded: a record may move it further than %s.",
                    self.step,
                    self.bound,
                )
            return steps
        if len(rows) > 1:  # each by itself, since the compiled passes are for one row and add up in another order
            return np.concatenate([self.round(row) for row in rows[:, None]])
        limit = self.bound.radius / self.step
        if (quick := self._round_one(rows, limit)) is not None:
            return quick
        if limit > 2**22 or self.step < 2.0**-100:  # float32 would not hold its steps, or their inverse
            rows = rows.astype(np.float64, copy=False)
        size = self.bound.size(rows)
        if not np.isfinite(size).all():
            rows = finite(rows)
            size = self.bound.size(rows)
        factor = np.where(size > self.bound.radius, self._room(limit) / np.maximum(size, self.bound.radius), 1 / self.step)
        whole = _rint(rows, factor)
        for _ in range(4):  # shorten what rounding still lengthened, and round again
            long = self._too_long(whole, limit)
            if not long.any():
                return whole
            shorter = limit * (1 - 2.0**-30)
            factor = np.where(long, factor * (shorter / np.maximum(self.bound.size(whole), shorter)), factor)
            whole = _rint(rows, factor)
        cut = np.trunc(self.bound.clip(rows.astype(np.float64)) / self.step)
        whole = np.where(self._too_long(whole, limit), cut, whole)
        return np.where(self._too_long(whole, limit), 0.0, whole)

    def _too_long(self, whole: Array, limit: float) -> Array:
        """Which rows of whole steps may be longer than the limit: shape (parties, 1); none that is goes unseen."""
        if whole.dtype == np.float64 and self.bound.norm == 2 and limit <= 2**26:  # sums of squares below 2^52 are exact
            squares: Array = np.square(whole).sum(-1, keepdims=True)
            return ~(squares <= math.floor(Fraction(limit) ** 2))
        rounded = whole.dtype == np.float64 and self.bound.norm != math.inf and limit > 2**26
        long: Array = ~(self.bound.size(whole) <= (limit * (1 - 2.0**-30) if rounded else limit))
        return long

    def _round_one(self, rows: Array, limit: float) -> Array | None:
        """`round` of a single float32 row in two compiled passes; None where they are not there or do not settle it."""
        fits = len(rows) == 1 and rows.dtype == np.float32 and rows.flags.c_contiguous and limit <= 2**22
        if _steps is None or not fits or self.bound.norm != 2 or not 1e-12 < self.bound.radius < 1e12:
            return None
        size = math.sqrt(_steps.squares(rows)) * (1 + SLACK)
        if not math.isfinite(size):
            return None
        whole = np.empty(rows.shape, np.int32)
        factor = self._room(limit) / size if size > self.bound.radius else 1 / self.step
        return whole if math.sqrt(_steps.steps(rows, factor, whole)) * (1 + SLACK) <= limit else None

    def _room(self, limit: float) -> float:
        """The length, in steps, to which a long row is clipped, so that rounding it hardly ever goes beyond the limit.

        Rounding adds a variance of 1/12 to each coordinate, and deviates from the sum of these by little.
        """
        d = self.part.stop - self.part.start
        spare = (d + 8 * math.sqrt(d)) / 12 if self.bound.norm == 2 else math.inf
        return math.sqrt(limit**2 - spare) * (1 - 1e-3) if spare < limit**2 / 2 else limit


def finite(rows: Array) -> Array:
    """The rows, with zeros for each that holds what is not a finite number."""
    kept = np.isfinite(rows).all(-1, keepdims=True)
    return rows if kept.all() else np.where(kept, rows, np.zeros(1, rows.dtype))


def _rint(rows: Array, factor: Array) -> Array:
    scaled: Array = rows * factor.astype(rows.dtype)
    return np.rint(scaled, out=scaled)


def plan(
    bounds: Bounds,
    layout: Layout,
    multiplier: float,
    norm: int,
    step: Callable[[float], float],
    *,
    whole: bool = False,
    largest: float = 0.0,
) -> list[Block]:
    """Lay out grid and noise for a contribution.

    Parameters
    ----------
    multiplier : float
        Noise scale over the neighbours' distance in `norm`. K bounds share one event: each part gets K (l1) or sqrt(K)
        (l2) times its own noise, so that their costs add up to that of a single release.
    step : callable
        Grid step for noise of a given scale.
    whole : bool
        Contributions bounded per record are whole steps already, so rounding moves none of them.
    largest : float
        Most steps that noise may take.

    The grid is that of `step`, or a finer one if records need it and noise may take so many steps. A bound that says in which
    steps records add is met by that grid or a finer one: then nothing is rounded, and the distance of neighbours is the radius.
    Other sums of records are rounded, and the grid is so fine that this adds a thousandth to the noise.
    """
    parts = blocks(bounds, layout)
    share = multiplier * (len(parts) if norm == 1 else math.sqrt(len(parts)))
    planned = []
    for part, bound in parts:
        d = part.stop - part.start
        distance = bound.distance(norm, d)
        size = step(share * distance)
        if bound.step is not None and not whole and share * distance / min(size, bound.step) <= largest:
            size = min(size, bound.step)
            planned.append(Block(part, bound, size, share * distance / size, True))
            continue
        rounding = 0.0 if bound.unit == "party" or whole else float(d) if norm == 1 else math.sqrt(d)
        if rounding and largest > share * rounding:
            wanted, possible = distance * ROUNDING / rounding, share * distance / (largest - share * rounding)
            size = min(size, max(_power_of_two(wanted), 2 * _power_of_two(possible)))
        planned.append(Block(part, bound, size, share * (distance / size + rounding), whole))
    return planned


def _power_of_two(value: float) -> float:
    """The largest power of two that is at most `value`."""
    return math.ldexp(0.5, math.frexp(value)[1])


def to_steps(rows: Array, planned: list[Block]) -> Array:
    """Round rows of shape (parties, size) to integers; refuse what 64-bit sums could not hold of a party's bound."""
    rounded = [block.round(rows[:, block.part]) for block in planned]
    if len(rounded) == 1 and rounded[0].dtype in (np.float32, np.int32):  # at most 2^22 steps, by its bound
        return rounded[0].astype(np.int32, copy=False)
    whole = np.concatenate(rounded, axis=-1)
    if not np.abs(whole).max(initial=0.0) <= MOST:  # also where it is not a number
        raise ContributionInvalid(
            "a contribution overflows the integer grid: its bound is far too small for it.",
            remedy="Declare the bound in the units of the contribution.",
        )
    return whole.astype(np.int64)
