"""Rules that look for a centre of all rows: the geometric median and centred clipping.

    geometric median   m <- sum_i b_i r_i / sum_i b_i,  b_i = 1 / max(|r_i - m|, nu)    from the median row, until it stays
    centred clip       v <- v + mean_i (r_i - v) min(1, tau / |r_i - v|)               from the v of the round before

The median row is the median of each coordinate.

Needs  : 2 f < n for both.
Keeps  : centred clipping its v, of shape (d,), from round to round; zeros before the first.
Cost   : O(n^2 d) once for the products of rows, and the median of each coordinate, of the geometric median, whose steps are
         O(n^2); O(n d) a step of centred clipping.
Source : Pillutla et al., IEEE TSP 2022, Algorithm 2 (smoothed Weiszfeld); Karimireddy et al., ICML 2021, Algorithm 2. Differs:
         Weiszfeld's steps begin at the median of each coordinate and not at the mean, which one liar moves as far as it likes
         and from which each step comes back by a share alone; and they go on until the point stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .columns import blocks, median_of
from .positive import Radius, lawful_radius, positive
from .rule import Array, Beside, Rule

STAYS = 1e-12
"""A step of the geometric median is no longer than this share of the median distance: the point stays."""


def norms_of(rows: Array, centre: Array | None = None) -> Array:
    """|r_i - centre| of rows (n, d), shape (n,), in double precision; norms where no centre is given."""
    squares = np.zeros(len(rows))
    for part in blocks(rows):
        away = rows[:, part].astype(np.float64)
        away -= 0.0 if centre is None else centre[part]
        squares += np.einsum("ij,ij->i", away, away)
    return np.sqrt(squares)


def shortened(norms: Array, radius: Radius) -> tuple[Array, float]:
    """Factors min(1, radius / norm), shape (n,), by which a radius shortens rows of these norms; and the radius as a number."""
    limit = float(np.median(norms)) if radius == "median" else float(radius)
    return np.divide(limit, norms, out=np.ones(len(norms)), where=norms > limit), limit


def weighted_sum(weights: Array, rows: Array, centre: Array | None = None) -> Array:
    """sum_i weights_i (r_i - centre), shape (d,), in double precision; of the rows where no centre is given."""
    found = np.empty(rows.shape[1])
    for part in blocks(rows):
        found[part] = weights @ (rows[:, part].astype(np.float64) - (0.0 if centre is None else centre[part]))
    return found


def products_from(rows: Array, centre: Array) -> Array:
    """Scalar products of all pairs of r_i - centre, shape (n, n), in double precision."""
    found = np.zeros((len(rows), len(rows)))
    for part in blocks(rows):
        away = rows[:, part].astype(np.float64) - centre[part]
        found += away @ away.T
    return found


@dataclass(frozen=True)
class GeometricMedian(Rule):
    """The point with the least sum of distances to all rows, by smoothed Weiszfeld steps (Pillutla et al. 2022); needs 2 f < n.

    Attributes
    ----------
    nu : float
        Distances below it count as it, in units of a row; above zero.
    steps : int
        At most so many, where the point does not stay before.
    """

    nu: float = 1e-6
    steps: int = 100

    def __post_init__(self) -> None:
        positive(nu=self.nu, steps=self.steps)

    @property
    def name(self) -> str:
        return "geometric-median"

    @property
    def condition(self) -> str:
        return "2 f < n"

    def largest(self, n: int) -> int:
        return (n - 1) // 2

    def combine(self, rows: Array, beside: Beside) -> Array:
        start = median_of(rows).astype(np.float64)
        products = products_from(rows, start)
        away, share = np.sqrt(np.diag(products)), np.zeros(len(rows))
        for _ in range(self.steps):  # every m is a mean of rows by shares, so that distances follow from their products
            near = 1 / np.maximum(away, self.nu)
            before, share = share, near / near.sum()
            along = products @ share
            away = np.sqrt(np.maximum(np.diag(products) - 2 * along + share @ along, 0.0))
            if np.abs(share - before) @ away <= STAYS * np.median(away):  # no less than the length of the step
                break
        return (start + weighted_sum(share, rows, start)).astype(rows.dtype)


@dataclass(frozen=True)
class CentredClip(Rule):
    """The mean of rows clipped to a ball around last round's result (Karimireddy et al. 2021); needs 2 f < n.

    Attributes
    ----------
    radius : float or "median"
        Of the ball, tau, in units of a row: public, and the same in all rounds; or the median of the distances in each step,
        which is lawful where the server gathers all rows anyway.
    steps : int
        Of the iteration in a round.
    """

    radius: Radius
    steps: int = 1

    def __post_init__(self) -> None:
        lawful_radius(self.radius)
        positive(steps=self.steps)

    @property
    def name(self) -> str:
        return "centred-clip"

    @property
    def condition(self) -> str:
        return "2 f < n"

    def largest(self, n: int) -> int:
        return (n - 1) // 2

    def combine(self, rows: Array, beside: Beside) -> Array:
        centre = np.asarray(beside.memory.get("centre", np.zeros(rows.shape[1])), np.float64)
        for _ in range(self.steps):
            share = shortened(norms_of(rows, centre), self.radius)[0] / len(rows)
            centre = centre * (1 - share.sum()) + weighted_sum(share, rows)
        return centre.astype(rows.dtype)

    def kept(self, rows: Array, beside: Beside, found: Array) -> dict[str, Array]:
        return {"centre": found}
