"""The minimum of penalised losses to a gradient of stated length, from any records: a solver that always ends there.

    theta(b) = argmin  sum of w l(x't, y)  +  penalty/2 |t|^2  +  b't                |x| <= 1, 0 <= w <= 1

    repeat until |g| is short:                                               g, the gradient at theta, by exact sums
        direction   <- (Hessian at theta)^-1 g
        theta'      <- theta - direction              where that halves the shortest |g| so far
        else        <- theta - t direction,  t <= 1 by bisection so that the objective still falls there, then
                       theta' - g(theta') / (penalty + curvature sum of w)

Whether a party answers must not follow from its records, which noise would not hide. So the solver declines nothing, and ends
whatever the records are: in exact arithmetic the second branch lowers the objective by |g|^2 / (2 (penalty + curvature sum of
w)) at least, and the first is taken as often as |g| can be halved. Kinks of the Hessian, as the smoothed hinge has them, cost
steps and no more.

Rounding is bounded before a party is asked (`rounding`), by its public limit on records:

    rows        whole multiples of 2^-24, towards zero: a change of each record by itself, which no proof minds
    theta       whole multiples of 2^-60, in pieces of 20 bits; a row times a piece is exact
    slopes      whole multiples of 2^-51, in pieces of 17 bits; 4096 rows times a piece are added up exactly

and what these sums are of is added up by `math.fsum`. What remains is the rounding of each record's own slope.

Source : Newton's method with a line search for functions whose gradient is piecewise smooth: Qi & Sun 1993; sums of exact
         products: Demmel & Hida 2004.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array

from .objective import MarginLoss

ROWS, FINE, PIECE, SLOPE, PART, BLOCK = 24, 60, 20, 51, 17, 4096
UNIT = 2.0**-53
HALVINGS = 40
"""Of a step along a direction; a shorter one is none, and the step down the gradient follows."""
FALLEN = 0.1
"""A step may end where the objective falls this much less steeply along it than where it began."""


@dataclass(frozen=True)
class Minimum:
    """Where the solver ended.

    Attributes
    ----------
    theta : array of shape (d,)
    gradient : float
        Length of the gradient there, its rounding included: theta is this over the penalty away from the exact minimum at most.
    steps : int
    """

    theta: Array
    gradient: float
    steps: int


def rounding(records: float, d: int, loss: MarginLoss, penalty: float) -> float:
    """How far a computed gradient of so many records, of weight one, may be from the exact one; b's own is apart.

    Each record's slope is within (8 + 4 l'') of 2^-53 of the exact one, its product with its weight and the pieces within 3
    of them, penalty * theta within 4; and theta is a whole multiple.
    """
    return records * UNIT * (16 + 4 * loss.curvature) + math.sqrt(d) * 2.0 ** -(FINE + 1) * (records * loss.curvature + penalty)


def minimise(X: Array, y: Array, w: Array, b: Array, *, loss: MarginLoss, penalty: float, tolerance: float) -> Minimum:
    """Minimise the penalised sum of losses with a linear term b, to a gradient of the tolerance's length.

    The same numbers give the same minimum, to the bit. Nothing is declined: where the tolerance is below twice the rounding of
    so many records, the solver ends at that, and the result says so.

    Parameters
    ----------
    X, y, w : arrays of shape (n, d), (n,), (n,)
        Rows of length one at most, which are read as whole multiples of 2^-24; targets 0 or 1; weights in [0, 1].
    b : array of shape (d,)
    tolerance : float
        Of the gradient's length, rounding included.
    """
    problem = _Problem(np.trunc(X * 2.0**ROWS) * 2.0**-ROWS, y, w, b, loss, penalty)
    theta = [0] * len(b)
    g = problem.gradient(theta)
    shortest, steps = _length(g), 0
    while _length(g) > problem.enough(tolerance):
        direction = problem.direction(theta, g)
        tried = _moved(theta, direction)
        there = problem.gradient(tried)
        if _length(there) > shortest / 2:
            tried = problem.down(theta, g, direction, tried, there)
            there = problem.gradient(tried)
        theta, g, steps = tried, there, steps + 1
        shortest = min(shortest, _length(g))
    return Minimum(_floats(theta), _length(g) + problem.rounded, steps)


class _Problem:
    """Records, and the gradient and Hessian of their objective; theta in whole multiples of 2^-FINE."""

    def __init__(self, X: Array, y: Array, w: Array, b: Array, loss: MarginLoss, penalty: float) -> None:
        self.X, self.y, self.w, self.b, self.loss, self.penalty = X, y, w, b, loss, penalty
        total = math.fsum(w.tolist())
        self.steepest = penalty + loss.curvature * total
        self.rounded = rounding(total, len(b), loss, penalty) + 8 * UNIT * _length(b)

    def enough(self, tolerance: float) -> float:
        """How short a computed gradient need be."""
        return max(tolerance / 2, 2 * self.rounded)

    def gradient(self, theta: list[int]) -> Array:
        """The gradient at theta, (d,)."""
        pieces = _pieces(theta)
        sums = [self.penalty * _floats(theta)[:, None], self.b[:, None]]
        for i in range(0, len(self.X), BLOCK):
            x = self.X[i : i + BLOCK]
            products = x @ pieces
            eta = products[:, 0]
            for k in range(1, products.shape[1]):
                eta = eta + products[:, k]
            sums.append(x.T @ _parts(self.w[i : i + BLOCK] * self.loss.slopes(eta, self.y[i : i + BLOCK])))
        return np.array([math.fsum(row) for row in np.concatenate(sums, axis=1).tolist()])

    def direction(self, theta: list[int], g: Array) -> Array:
        """Newton's direction; the gradient's where rounding leaves none along which the objective falls."""
        at, found = _floats(theta), self.penalty * np.eye(len(theta))
        for i in range(0, len(self.X), 2 * BLOCK):
            x = self.X[i : i + 2 * BLOCK]
            found += x.T @ (x * (self.w[i : i + 2 * BLOCK] * self.loss.curves(x @ at, self.y[i : i + 2 * BLOCK]))[:, None])
        try:
            direction = np.linalg.solve(found, g)
        except np.linalg.LinAlgError:
            direction = np.full(len(g), math.nan)
        downward: Array = direction if 0 < float(g @ direction) < math.inf else g / self.steepest
        return downward

    def down(self, theta: list[int], g: Array, direction: Array, end: list[int], there: Array) -> list[int]:
        """Theta at which the objective is lower: along the direction no further than it falls, then down the gradient."""
        if float(there @ direction) < 0:  # beyond the lowest point of the line
            start, low, high = float(g @ direction), 0.0, 1.0
            end, there = theta, g
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                tried = _moved(theta, middle * direction)
                slope = self.gradient(tried)
                if float(slope @ direction) < 0:
                    high = middle
                    continue
                low, end, there = middle, tried, slope
                if float(slope @ direction) <= FALLEN * start:
                    break
        return _moved(end, there / self.steepest)


def _length(vector: Array) -> float:
    return float(np.linalg.norm(vector))


def _floats(theta: list[int]) -> Array:
    return np.array([math.ldexp(number, -FINE) for number in theta])


def _moved(theta: list[int], step: Array) -> list[int]:
    """Theta less a step."""
    return [number - round(math.ldexp(by, FINE)) for number, by in zip(theta, step.tolist(), strict=True)]


def _pieces(theta: list[int]) -> Array:
    """Numbers of PIECE bits whose sum is theta, largest first, (d, k)."""
    count = max(1, -(-max((abs(number).bit_length() for number in theta), default=0) // PIECE))
    mask = (1 << PIECE) - 1
    return np.array(
        [
            [math.ldexp((abs(v) >> PIECE * k & mask) * (1 if v > 0 else -1), PIECE * k - FINE) for k in reversed(range(count))]
            for v in theta
        ]
    )


def _parts(slopes: Array) -> Array:
    """Three numbers of PART bits whose sum is a slope in whole steps, (n, 3)."""
    steps = np.rint(slopes * 2.0**SLOPE)
    high = np.rint(steps * 2.0 ** -(2 * PART))
    rest = steps - high * 2.0 ** (2 * PART)
    middle = np.rint(rest * 2.0**-PART)
    low = rest - middle * 2.0**PART
    return np.stack([high * 2.0 ** (2 * PART - SLOPE), middle * 2.0 ** (PART - SLOPE), low * 2.0**-SLOPE], axis=1)
