"""Bounds: by how much one unit can move a sum. Declared once; the clip, the noise and the encoding read it there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hedgerow.errors import BudgetInvalid, ContributionInvalid, MixedUnits

from .arrays import Array, Layout
from .events import Unit

SLACK = 3e-4
"""By so much lengths of float32 rows are overstated, so that their rounding cannot hide that one is too long."""


@dataclass(frozen=True)
class Bound:
    """A ball that holds what one unit adds to a sum.

    Parameters
    ----------
    norm : {1, 2, inf}
    radius : float
        In the units of the contribution.
    unit : {"party", "record"}
        Whose presence changes between neighbours. A party-level bound is enforced by clipping; a record-level bound
        holds by construction of the local function and is proved by a neighbour test.
    step : float, optional
        A power of two of which every coordinate that a record adds is a whole multiple, by construction of the local
        function, so that sums of records are exact and a record moves them by at most the radius to the last bit.
    """

    norm: float
    radius: float
    unit: Unit = "party"
    step: float | None = None

    def __post_init__(self) -> None:
        if self.step is not None and not (self.step > 0 and math.frexp(self.step)[0] == 0.5 and self.unit == "record"):
            raise BudgetInvalid(
                f"a bound per {self.unit} in steps of {self.step!r}: steps are powers of two, of what a record adds.",
                remedy="Leave step out, or take whole_step(radius).",
            )
        if self.unit not in ("party", "record") or not (math.isfinite(self.radius) and self.radius > 0):
            raise BudgetInvalid(
                f"a bound of radius {self.radius!r} per {self.unit!r} bounds nothing: a radius is a finite number above zero.",
                remedy="Take the largest norm that one party or record can contribute, e.g. l2(1.0).",
            )

    def size(self, rows: Array) -> Array:
        """Norm of each row: shape (parties, size) to (parties, 1); of float32 rows an upper bound, tight to 0.03 percent."""
        with np.errstate(over="ignore"):  # an infinite length is clipped to zero
            if self.norm == 2 and rows.dtype == np.float32 and 1e-12 < self.radius < 1e12:  # else squares may vanish
                size: Array = np.sqrt(_squares(rows)) * (1 + SLACK)
            else:
                size = np.linalg.norm(rows.astype(np.float64, copy=False), ord=self.norm, axis=-1, keepdims=True)
        return size

    def clip(self, rows: Array) -> Array:
        """Shorten the rows that are longer than the radius; leave the others as they are, to the bit."""
        size = self.size(rows)
        if not (size > self.radius).any():
            return rows
        factor = np.where(size > self.radius, self.radius / np.maximum(size, np.finfo(float).tiny), 1.0)
        shortened: Array = rows * factor.astype(rows.dtype)
        return shortened

    def distance(self, norm: int, dimension: int) -> float:
        """Largest `norm`-length (1 or 2) of a vector of this many coordinates inside the ball."""
        if norm == 2:
            return self.radius * (math.sqrt(dimension) if self.norm == math.inf else 1.0)
        return self.radius * {1: 1.0, 2: math.sqrt(dimension), math.inf: float(dimension)}[self.norm]

    def __str__(self) -> str:
        steps = "" if self.step is None else f" in steps of 2^{math.frexp(self.step)[1] - 1}"
        return f"{ {1: 'l1', 2: 'l2', math.inf: 'linf'}[self.norm] }({self.radius:.6g}) per {self.unit}{steps}"


def _squares(rows: Array) -> Array:
    """Squared length of float32 rows, added in parts of 4096, whose rounding stays below a part in 4096."""
    whole = rows.shape[-1] // 4096 * 4096
    parts = rows[:, :whole].reshape(len(rows), -1, 4096)
    found: Array = np.vecdot(parts, parts).sum(-1, dtype=np.float64) + np.vecdot(rows[:, whole:], rows[:, whole:])
    return found[:, None]


Bounds = Bound | Mapping[str, Bound]
"""One bound for the whole contribution, or one for each key."""


def l1(radius: float, unit: Unit = "party", step: float | None = None) -> Bound:
    """Bound the sum of absolute values."""
    return Bound(1, float(radius), unit, step)


def l2(radius: float, unit: Unit = "party", step: float | None = None) -> Bound:
    """Bound the Euclidean length."""
    return Bound(2, float(radius), unit, step)


def linf(radius: float, unit: Unit = "party", step: float | None = None) -> Bound:
    """Bound every coordinate's absolute value."""
    return Bound(math.inf, float(radius), unit, step)


def whole_step(radius: float, bits: int = 24) -> float:
    """The power of two of which a radius has at least 2^bits, and fewer than twice as many: a grid for what a record adds."""
    return math.ldexp(1.0, math.frexp(radius)[1] - 1 - bits)


def blocks(bounds: Bounds, layout: Layout) -> list[tuple[slice, Bound]]:
    """Pair each part of the flat vector with its bound; keys and bounds must match one to one."""
    if isinstance(bounds, Bound):
        return [(slice(0, layout.size), bounds)]
    if set(bounds) != set(layout.slices):
        raise ContributionInvalid(
            f"bounds are given for {sorted(bounds)}, but the contribution has {sorted(layout.slices)}.",
            remedy="Give one bound for each key, or a single one for all of them together.",
            asked=False,
        )
    return [(part, bounds[key]) for key, part in layout.slices.items()]


def each_bound(bounds: Bounds) -> list[Bound]:
    """Return the given bounds, one for each key or one for all."""
    return [bounds] if isinstance(bounds, Bound) else list(bounds.values())


def unit_of(bounds: Bounds) -> Unit:
    """Return the unit that all given bounds share."""
    units: set[Unit] = {bound.unit for bound in each_bound(bounds)}
    if len(units) != 1:
        raise MixedUnits(
            f"the bounds {describe(bounds)} mix units.",
            remedy="Bound every key per record, or every key per party.",
        )
    return units.pop()


def describe(bounds: Bounds | None) -> str:
    """Return bounds in words, for ledgers and reports."""
    if bounds is None:
        return "none"
    if isinstance(bounds, Bound):
        return str(bounds)
    return "; ".join(f"{key}: {bound}" for key, bound in bounds.items())
