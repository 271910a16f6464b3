"""Bits: as fine a fixed point as the ring allows, from public facts alone, and what one record adds at most.

Products keep all their bits, so that a total of f = f_left + f_right or 2 f_left + f_weight fraction bits has to hold

    2^f |total| < 2^63        |total| <= n |x| |r| |w|,   |x|, |r| root mean squares of columns, |w| the largest weight

which follows from n and from the declared reach of columns, before anybody is asked. A record adds at most

    left' left     sqrt( sum over i <= j of (M_i M_j)^2 )        numbers of the upper triangle count once
    left' right    |M| |R|                                        R: sum of the parties' and the hub's largest values
    with weights   W times as much

in steps of 2^-f, with M, R and W the largest values in whole steps. It is worked out in whole numbers and rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import Bound, l2
from hedgerow.core.mechanism import Mechanism
from hedgerow.core.question import travels
from hedgerow.errors import BudgetInvalid, HedgerowError, RangeExceeded

from .ring import ROOM

SQUARE = 4.0
"""Largest mean square of a column that is not declared: columns are scaled to about one by public ranges."""
LEAST_FRACTION = 8
"""Fewer fraction bits of a column, of a right row or of a weight are refused."""
MOST_FRACTION = 30
"""More fraction bits are not used for a column or a weight."""


@travels
@dataclass(frozen=True)
class ColumnReach:
    """How far a party's columns, the hub's rows or its weights reach: public facts, in the units of the columns.

    Parameters
    ----------
    largest : tuple of float, optional
        Largest absolute value of each column, from public ranges. Noise needs it: values beyond it are cut.
    square : float
        Largest mean square of a column over the common people. A column beyond it is refused where no noise is added.
    """

    largest: tuple[float, ...] | None = None
    square: float = SQUARE

    def __post_init__(self) -> None:
        if self.largest is not None:
            object.__setattr__(self, "largest", tuple(float(value) for value in self.largest))
        for value in (*(self.largest or ()), 0.0 if self.largest is not None and self.square == math.inf else self.square):
            if not (math.isfinite(value) and value >= 0):
                raise RangeExceeded(f"a reach of {value!r}.", remedy="A reach is a finite number, not below zero.", asked=False)

    def squares(self, columns: int) -> list[float]:
        """The largest mean square of each column."""
        if self.largest is None:
            return [self.square] * columns
        if len(self.largest) != columns:
            raise RangeExceeded(
                f"a reach of {len(self.largest)} columns for {columns}.", remedy="Declare one for each column.", asked=False
            )
        return [min(value**2, self.square) for value in self.largest]

    def steps(self, columns: int, fraction: int) -> list[int] | None:
        """The largest absolute value of each column in whole steps of 2^-fraction, where they are declared."""
        if self.largest is None:
            return None if columns else []
        self.squares(columns)
        return [round(math.ldexp(value, fraction)) for value in self.largest]

    def cut(self, columns: Array, length: float | None = None) -> Array:
        """Columns (n, d) within the declared largest values, rows within a length; zeros for what is not finite."""
        found = np.where(np.isfinite(columns), columns, 0.0)
        if self.largest is not None:
            limit = np.asarray(self.largest, np.float64)
            found = np.clip(found, -limit, limit)
        return found if length is None else l2(length).clip(found)

    def refuse(self, columns: Array, whose: str) -> None:
        """Refuse columns (n, d) beyond the declared reach, at the party that holds them, before anything leaves it."""
        n, d = columns.shape
        found = np.einsum("ij,ij->j", columns, columns)
        allowed = n * np.asarray(self.squares(d)) * (1 + 1e-9)
        if not (found <= allowed).all() and np.isfinite(found).all():
            column = int(np.argmax(found > allowed))
            raise RangeExceeded(
                f"{whose}: column {column} has a mean square of {found[column] / max(n, 1):.3g}, over the declared "
                f"{allowed[column] / max(n, 1):.3g}.",
                remedy="Scale columns to about one by public ranges, or declare a wider ColumnReach.",
            )


@dataclass(frozen=True)
class Products:
    """What one question multiplies, as far as it is public.

    Attributes
    ----------
    n : int
        Common people.
    widths : tuple of int
        Columns of each party, in order.
    right : int
        Columns on the right; 0 where the left ones are multiplied with themselves.
    left_reach, right_reach : tuple of ColumnReach
        Of each party; `right_reach` of each party that has right rows.
    hub_reach : ColumnReach, optional
        Of the hub's rows, or of its weights (one column).
    weighted : bool
        Whether the hub's rows are weights.
    left_length, right_length : float, optional
        Largest Euclidean length of one person's row at each party on the left, and of its row at each party, and at the hub, on
        the right: each cuts its own part, and sees no other.
    """

    n: int
    widths: tuple[int, ...]
    right: int
    left_reach: tuple[ColumnReach, ...]
    right_reach: tuple[ColumnReach, ...] = ()
    hub_reach: ColumnReach | None = None
    weighted: bool = False
    left_length: float | None = None
    right_length: float | None = None

    @property
    def size(self) -> int:
        """Distinct numbers of the result."""
        d = sum(self.widths)
        return d * self.right if self.right else d * (d + 1) // 2

    @property
    def layout(self) -> Layout:
        """The result (D, c), or the upper triangle of (D, D) as a flat vector."""
        return Layout((("", (sum(self.widths), self.right) if self.right else (self.size,)),))


@travels
@dataclass(frozen=True)
class Bits:
    """Fraction bits of columns, of right rows and of weights; `right` and `weight` are 0 where there are none."""

    left: int
    right: int = 0
    weight: int = 0

    @property
    def total(self) -> int:
        """Fraction bits of the result."""
        return self.left + self.right if self.right else 2 * self.left + self.weight


def choose(asked: Products) -> Bits:
    """Return the finest fixed point of which no total leaves the ring, whatever columns within their reach hold.

    Raises
    ------
    RangeExceeded (HR-243)
        Fewer than `LEAST_FRACTION` bits are left for columns, right rows or weights.
    """
    left = max((max(r.squares(d), default=0.0) for r, d in zip(asked.left_reach, asked.widths, strict=True)), default=0.0)
    room = _room(asked.n * left)
    half = min(math.floor(room / 2), MOST_FRACTION)
    if asked.weighted:
        third = min(round(room / 3), MOST_FRACTION)
        weight = _room(asked.n * left * max(_weight(asked), 2.0**-ROOM))
        found = Bits(third, weight=min(math.floor(weight) - 2 * third, MOST_FRACTION))
    elif asked.right:  # columns as fine as alone, so that one opening serves for both
        rows = _room(asked.n * math.sqrt(left) * _right(asked))
        found = Bits(half, min(math.floor(rows) - half, 2 * MOST_FRACTION))
    else:
        found = Bits(half)
    return _enough(found, asked)


def _room(largest: float) -> float:
    """Fraction bits that a total of at most `largest` leaves; a percent is kept for the rounding of its factors."""
    return ROOM - math.log2(max(largest, 2.0**-20) * 1.01)


def _right(asked: Products) -> float:
    """Largest root mean square of the right rows, which are the sum of the parties' and the hub's."""
    reaches = [*asked.right_reach, *([asked.hub_reach] if asked.hub_reach is not None else [])]
    return max((sum(math.sqrt(r.squares(asked.right)[c]) for r in reaches) for c in range(asked.right)), default=0.0)


def _weight(asked: Products) -> float:
    reach = asked.hub_reach
    if reach is None or reach.largest is None or len(reach.largest) != 1:
        raise RangeExceeded("weights without a largest value.", remedy="Declare ColumnReach(largest=(...,)).", asked=False)
    return reach.largest[0]


def _used(bits: Bits, asked: Products) -> list[int]:
    """The fraction bits of each factor."""
    return [bits.left, *([bits.right] if asked.right else []), *([bits.weight] if asked.weighted else [])]


def _enough(bits: Bits, asked: Products) -> Bits:
    used = _used(bits, asked)
    if min(used) < LEAST_FRACTION:
        raise RangeExceeded(
            f"sums over {asked.n} people of products of these reaches leave {used} fraction bits in a ring of 64; "
            f"each factor needs {LEAST_FRACTION}.",
            remedy="Scale columns to about one by public ranges, and declare them with ColumnReach.",
            asked=False,
        )
    return bits


# ---- what one record adds ----------------------------------------------------------------------------------------------------
def record_bound(asked: Products, bits: Bits) -> Bound:
    """Return the l2 bound of what one record adds to the flat result, in whole steps of 2^-f."""
    left, fourth = _left_square(asked, bits.left)
    if asked.right:
        square = left * _right_square(asked, bits.right)
    else:
        square = (left * left + fourth + 1) // 2  # sum over i <= j of (x_i x_j)^2 = (|x|^4 + sum of x_i^4) / 2
        if asked.weighted:
            square *= round(math.ldexp(_weight(asked), bits.weight)) ** 2
    steps = math.isqrt(square) + (math.isqrt(square) ** 2 < square)
    radius = math.ldexp(float(steps), -bits.total)
    if int(float(steps)) < steps:
        radius = math.nextafter(radius, math.inf)
    return l2(radius, unit="record", step=math.ldexp(1.0, -bits.total))


def _left_square(asked: Products, fraction: int) -> tuple[int, int]:
    """The largest sums of squares and of fourth powers of a row on the left, in steps."""
    steps = [r.steps(d, fraction) for r, d in zip(asked.left_reach, asked.widths, strict=True)]
    M = None if None in steps else [m for one in steps if one is not None for m in one]
    squares: list[int] = [] if M is None else [sum(m * m for m in M)]
    if asked.left_length is not None:  # parts stand side by side, so that their squares add up
        squares.append(sum(_longest(asked.left_length, fraction, d, m) ** 2 for d, m in zip(asked.widths, steps, strict=True)))
    if not squares:
        raise _undeclared()
    square = min(squares)
    return square, square * square if M is None else min(sum(m**4 for m in M), square * max(m * m for m in M))


def _right_square(asked: Products, fraction: int) -> int:
    """The largest square of the length of a row on the right, a total of parties and hub, in steps."""
    reaches = [*asked.right_reach, *([] if asked.hub_reach is None else [asked.hub_reach])]
    steps = [r.steps(asked.right, fraction) for r in reaches]
    found: list[int] = []
    if None not in steps:
        found.append(sum(sum(column) ** 2 for column in zip(*[one for one in steps if one is not None], strict=True)))
    if asked.right_length is not None:  # parts are added up, and their lengths with them
        found.append(sum(_longest(asked.right_length, fraction, asked.right, m) for m in steps) ** 2)
    if not found:
        raise _undeclared()
    return min(found)


def _longest(length: float, fraction: int, columns: int, largest: list[int] | None) -> int:
    """The length in steps of a part, cut to a length and to largest values, with half a step of rounding in each number."""
    if not columns:
        return 0
    steps: int = math.ceil(math.ldexp(length, fraction)) + math.isqrt(columns) + 1
    if largest is None:
        return steps
    square = sum(m * m for m in largest)
    return min(steps, math.isqrt(square) + (math.isqrt(square) ** 2 < square))


def _undeclared() -> RangeExceeded:
    return RangeExceeded(
        "noise hides what one record adds, and neither the largest values of columns nor the length of a row are declared.",
        remedy="Declare ColumnReach(largest=...) of each party from public ranges, or lengths.",
        asked=False,
    )


def choose_private(asked: Products, mechanism: Mechanism) -> tuple[Bits, Bound]:
    """Return the finest fixed point whose steps are those of the mechanism's grid, and the bound of one record.

    Noise in shares is added to words, so that its grid has to be that of the ring. Where the noise of the finest fixed point
    would have too many steps to be drawn, a coarser one is taken.

    Raises
    ------
    RangeExceeded (HR-243)
        The reach of a column is not declared, or the mechanism's grid is nowhere that of the ring.
    BudgetInvalid (HR-214)
        Noise is added by each party for itself.
    """
    if mechanism.at == "party":
        raise BudgetInvalid(
            f"{mechanism}: no party holds a row of its own here, only a share that is uniform.",
            remedy="Add noise in shares, or at the server.",
        )
    if mechanism.record_step is not None:
        raise BudgetInvalid(
            f"{mechanism} on products in fixed point: its noise is of whole numbers, and a record adds fractions.",
            remedy="Use Gaussian, whose grid is finer than whole numbers.",
        )
    exact = replace(
        asked,
        left_reach=tuple(_by_largest(r, asked.left_length) for r in asked.left_reach),
        right_reach=tuple(_by_largest(r, asked.right_length) for r in asked.right_reach),
        hub_reach=None if asked.hub_reach is None else _by_largest(asked.hub_reach, asked.right_length),
    )
    bits, why = choose(exact), "no grid fits"
    while min(_used(bits, asked)) >= LEAST_FRACTION:
        bound = record_bound(asked, bits)
        try:
            mechanism.fit(bound, asked.layout)
        except HedgerowError as refused:
            why = str(refused)
        else:
            step = grid(mechanism, bound, asked.layout)
            if step == bound.step and mechanism.reach(bound, asked.layout, asked.n) < 2.0 ** (ROOM - 1):
                return bits, bound
            why = f"its grid has steps of {step:g}, the ring steps of {bound.step:g}"
        bits = _coarser(bits)
    raise RangeExceeded(
        f"{mechanism} on {asked.size} numbers does not fit the ring of 64 bits: {why}.",
        remedy="Take Gaussian noise, whose grid may be as fine as the ring, or ask for fewer numbers at once.",
        asked=False,
    )


def _by_largest(reach: ColumnReach, length: float | None) -> ColumnReach:
    """A reach whose mean square is that of the largest values, to which values are cut."""
    squares = [value**2 for value in reach.largest or ()]
    return replace(reach, square=max(squares) if squares else SQUARE if length is None else length**2)


def _coarser(bits: Bits) -> Bits:
    """One bit less of the largest factor."""
    if bits.weight >= bits.left and bits.weight:
        return replace(bits, weight=bits.weight - 1)
    if bits.right >= bits.left:
        return replace(bits, right=bits.right - 1)
    return replace(bits, left=bits.left - 1)


def grid(mechanism: Mechanism, bound: Bound, layout: Layout) -> float:
    """The step of a mechanism's grid, as its halves at the party and at the server show it; its noise is not drawn."""
    if mechanism.at == "shares":
        one = mechanism.at_server(np.ones(layout.size, np.int64), bound, layout, _nothing)
        return float(one[0])
    probe = math.ldexp(bound.step or 1.0, 20)  # whole in any grid as coarse as a million steps of the ring
    unit = mechanism.at_party(np.full((1, layout.size), probe), bound, layout, lambda which: _nothing)
    return probe / max(float(unit[0, 0]), 1.0)


def _nothing(size: int) -> bytes:
    raise AssertionError("no noise is drawn to look at a grid")
