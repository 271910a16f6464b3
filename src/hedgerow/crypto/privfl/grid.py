"""Public steps of a hidden model's arithmetic: everything is an integer, and what a total needs fits 64 bits.

A party knows `A` and `b` of its loss, the server knows `theta`, and the gradient is `A theta - b`. With steps 2^-a for
terms and 2^-t for the model, the gradient is whole in steps of 2^-(a + t). Steps follow from declared limits, so that
the total of all parties stays below 2^63 whatever they hold; a value beyond its limit is refused by whoever holds it.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.errors import RangeExceeded, SettingsInvalid

ROOM = 62
"""Bits of a total without its sign; one more is left for the rounding of terms."""
LEAST_BITS = 16
"""Terms, models and factors have at least 2^16 steps; fewer would leave little of them."""
FINE_BITS = 30
"""Steps of rows and model in a cubic predictor, which is computed modulo the key and has room."""

Sigmoid = Literal[1, 3]

CUBIC = (0.5, 0.197, -0.004)
"""Coefficients of 1, z and z^3 in the usual cubic for the logistic function on [-8, 8]."""


class GradientGrid:
    """Steps, limits, and what goes in and comes out."""

    size: int
    parties: int
    model: float
    degree: Sigmoid

    @property
    def model_bits(self) -> int:
        """The model's step is 2 to the power of minus this."""
        raise NotImplementedError

    @property
    def total_bits(self) -> int:
        """A total's step is 2 to the power of minus this."""
        raise NotImplementedError

    @cached_property
    def digest(self) -> bytes:
        """Identifies the grid, 32 bytes."""
        return hashlib.sha256(repr(self).encode()).digest()

    def on_grid(self, theta: Array) -> Array:
        """The nearest model that can be sent."""
        found: Array = np.ldexp(np.rint(np.ldexp(np.asarray(theta, dtype=np.float64), self.model_bits)), -self.model_bits)
        return found

    def encode_model(self, theta: Array) -> list[int]:
        """Turn a model of shape (size,) into whole steps.

        Raises
        ------
        RangeExceeded (HR-243)
            A coefficient is not finite or beyond the limit; no party was asked.
        """
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape != (self.size,) or not self._holds(theta):
            raise RangeExceeded(
                f"a model of shape {theta.shape} whose largest coefficient is {np.abs(theta).max(initial=0.0):.3g}, where "
                f"{self.size} of at most {self.model:.3g} were announced.",
                remedy="Standardise the columns, take smaller steps, or declare a wider limit for the model.",
                asked=False,
            )
        return _whole(theta, self.model_bits)

    def decode(self, total: Array) -> Array:
        """Turn a total modulo 2^64 into a gradient, shape (size,)."""
        return np.ldexp(total.astype(np.uint64).view(np.int64).astype(np.float64), -self.total_bits)

    def _holds(self, theta: Array) -> bool:
        return bool((np.abs(theta) <= self.model).all())


@dataclass(frozen=True)
class LinearGradientGrid(GradientGrid):
    """The grid of gradients that are linear in the model: least squares, and the logistic loss with a linear sigmoid.

    Attributes
    ----------
    size : int
        Coefficients.
    parties : int
        For how many parties' total there is room.
    terms, target : float
        Largest absolute element of one party's `A`, and of its `b`.
    model : float
        Largest absolute coefficient.
    """

    size: int
    parties: int
    terms: float
    target: float
    model: float
    degree = 1

    def __post_init__(self) -> None:
        _check(self.size, self.parties, (self.terms, self.target, self.model))
        if self.total_bits + math.log2(self.terms * self.model) < 2 * LEAST_BITS:
            raise _crowded(self)

    @cached_property
    def total_bits(self) -> int:
        reach = self.parties * (self.size * self.terms * self.model + self.target)
        return math.floor(ROOM - math.log2(reach))

    @cached_property
    def terms_bits(self) -> int:
        """The step of terms is 2 to the power of minus this; the same share of error comes from terms and model."""
        return round((self.total_bits + math.log2(self.model / self.terms)) / 2)

    @property
    def model_bits(self) -> int:
        return self.total_bits - self.terms_bits

    def encode_terms(self, layout: Layout, row: Array) -> tuple[list[list[int]], list[int]]:
        """Turn a party's contribution `A` (size, size), `b` (size,) into whole steps.

        Raises
        ------
        RangeExceeded (HR-243)
            An element is not finite or beyond its limit; nothing has left the party.
        """
        if layout.shapes != (("A", (self.size, self.size)), ("b", (self.size,))):
            raise RangeExceeded(f"terms are A {(self.size, self.size)} and b {(self.size,)}, not {layout}.")
        found: dict[str, Any] = layout.unflatten(row)
        A, b = found["A"], found["b"]
        if not (np.abs(A) <= self.terms).all() or not (np.abs(b) <= self.target).all():
            raise RangeExceeded(
                f"terms reach {np.abs(A).max():.3g} and {np.abs(b).max():.3g}, beyond the limits {self.terms:.3g} and "
                f"{self.target:.3g}.",
                remedy="Declare wider ranges, or more records to a party.",
            )
        return [_whole(line, self.terms_bits) for line in A], _whole(b, self.total_bits)


@dataclass(frozen=True)
class Cubic(GradientGrid):
    """The grid of a logistic gradient whose sigmoid is a cubic; needs one more trip, and rows instead of terms.

    Attributes
    ----------
    size : int
        Coefficients.
    parties, records : int
        For how many parties' total there is room, and for how many records at one party.
    row : float
        Largest Euclidean length of a record's row.
    weight : float
        Largest weight of a record.
    reach : float
        Largest absolute predictor; the server keeps `row * |theta|` below it.
    coefficients : tuple of 3 floats
        Of 1, z and z^3.
    """

    size: int
    parties: int
    records: int
    row: float
    reach: float
    weight: float = 1.0
    coefficients: tuple[float, float, float] = CUBIC
    degree = 3

    def __post_init__(self) -> None:
        _check(self.size, self.parties * self.records, (self.row, self.weight, self.reach))
        if self.factor_bits < LEAST_BITS or self.predictor_bits < 4:
            raise _crowded(self)

    @property
    def model(self) -> float:  # type: ignore[override]
        return self.reach / self.row

    @property
    def model_bits(self) -> int:
        return FINE_BITS

    @cached_property
    def total_bits(self) -> int:
        c0, c1, c3 = map(abs, self.coefficients)
        z = self.reach
        slope = c0 + 1 + c1 * z + c3 * z**3
        return math.floor(ROOM - math.log2(self.parties * self.records * self.row * self.weight * slope))

    @cached_property
    def predictor_bits(self) -> int:
        """Predictors are cut to steps of 2 to the power of minus this: what a cube leaves room for."""
        least_factor = abs(self.coefficients[2] or 1.0) * self.row * self.weight
        return min(FINE_BITS, math.floor((self.total_bits + math.log2(least_factor) - LEAST_BITS) / 3))

    @property
    def factor_bits(self) -> int:
        """Steps of the numbers by which cubes are multiplied."""
        return self.total_bits - 3 * self.predictor_bits

    @property
    def cut(self) -> int:
        """Bits that a predictor loses on its trip."""
        return 2 * FINE_BITS - self.predictor_bits

    @property
    def predictor_room(self) -> int:
        """Bits of a predictor in fine steps, with its sign."""
        return 2 * FINE_BITS + math.ceil(math.log2(self.reach)) + 2

    def encode_rows(self, layout: Layout, row: Array) -> tuple[list[list[int]], Array, Array]:
        """Turn a party's contribution `X` (n, size), `y` (n,), `w` (n,) into whole rows, weighted rows and targets.

        Raises
        ------
        RangeExceeded (HR-243)
            There are too many records, or one is beyond its limit; nothing has left the party.
        """
        shapes = dict(layout.shapes)
        n = shapes.get("y", (0,))[0]
        if shapes != {"X": (n, self.size), "y": (n,), "w": (n,)} or not 0 < n <= self.records:
            raise RangeExceeded(f"records are X (n, {self.size}), y (n,), w (n,) with n up to {self.records}, not {layout}.")
        found: dict[str, Any] = layout.unflatten(row)
        X, y, w = found["X"], found["y"], found["w"]
        long = np.linalg.norm(X, axis=1).max()
        if not (long <= self.row and (np.abs(w) <= self.weight).all() and (np.abs(y - 0.5) <= 0.5).all()):
            raise RangeExceeded(
                f"a row has length {long:.3g}, a weight is {np.abs(w).max():.3g}, targets reach {np.abs(y).max():.3g}; the "
                f"limits are {self.row:.3g}, {self.weight:.3g} and 1.",
                remedy="Declare wider ranges.",
            )
        return [_whole(line, FINE_BITS) for line in X], X * w[:, None], y

    def _holds(self, theta: Array) -> bool:
        return float(np.linalg.norm(theta)) * self.row <= self.reach


def _whole(numbers: Array, bits: int) -> list[int]:
    return [int(number) for number in np.rint(np.ldexp(numbers, bits))]


def _check(size: int, parties: int, limits: tuple[float, ...]) -> None:
    if size < 1 or parties < 1 or not all(math.isfinite(limit) and limit > 0 for limit in limits):
        raise SettingsInvalid(
            f"{size} coefficients, {parties} contributions and limits of {', '.join(f'{limit:g}' for limit in limits)}.",
            remedy="Sizes are at least one; limits are finite and above zero.",
        )


def _crowded(grid: GradientGrid) -> RangeExceeded:
    return RangeExceeded(
        f"64 bits leave too few steps for {grid}.", remedy="Standardise the columns, or declare narrower limits.", asked=False
    )
