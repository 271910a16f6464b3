"""Scores on the grid: rounding at the party, and by how many whole steps a unit can move a score."""

from __future__ import annotations

import math

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import Bound, Bounds, describe
from hedgerow.errors import BudgetInvalid

from ..grid import Block, to_steps
from ..noise import LARGEST_SCALE, grid_step


def score_block(bounds: Bounds, layout: Layout, widest: float, rows: int = 1) -> Block:
    """Return the grid of some scores; its `scale` is by how many steps a unit moves a score at most, a whole number.

    Any norm's ball of a radius lies in the box of that radius, so a unit moves each score by the radius at most. The
    radius has 4096 steps or more for each row that a record touches, fewer where noise would have more than 2^45; where a
    record moves a sum that is rounded afterwards, the distance has one step more for each of these rows.

    Parameters
    ----------
    widest : float
        Scale of the noise over the radius, 1 without noise.
    rows : int
        How many rows of scores one unit may move, each rounded by itself; the radius is for all of them together.
    """
    if not isinstance(bounds, Bound) or len(layout.shapes) != 1:
        raise BudgetInvalid(
            f"scores bounded by {describe(bounds)} in {layout}: candidates are one array with one bound.",
            remedy="Return an array with a score for each candidate, and declare linf(radius, unit=...).",
        )
    step = grid_step(bounds.radius / rows)
    beyond = 2 * widest * bounds.radius / step / LARGEST_SCALE
    step *= 2.0 ** max(0, math.ceil(math.log2(beyond)))
    by_record, steps = bounds.unit == "record", bounds.radius / step
    distance = math.ceil(steps) + rows if by_record else math.floor(steps)
    if distance < 1 or widest * distance > LARGEST_SCALE:
        raise BudgetInvalid(
            f"noise {widest:.3g} times as large as the bound {bounds} has no grid on which a unit would count.",
            remedy="Spend a larger epsilon, or expect fewer answers.",
        )
    return Block(slice(0, layout.size), bounds, step, float(distance))


def rounded(rows: Array, block: Block, *, monotonic: bool) -> Array:
    """Round scores of shape (parties, candidates); those of a party are none below zero where a unit may only add."""
    if monotonic and block.bound.unit == "party":
        rows = np.maximum(rows, 0)
    return to_steps(rows, [block])
