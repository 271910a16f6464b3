"""Whether what a party says it adds is within its bound, in whole numbers: who receives a row can look at its length.

A party that follows the protocol rounds within the bound. One that does not is not protected by it, but the others' model is:
a row that is too long counts as zero. Of several parties' sum only so much can be said as that it is no longer than all their
bounds together.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hedgerow.core.arrays import Array

from .grid import Block


def within(rows: Array, planned: list[Block], parties: int = 1) -> Array:
    """Which rows are as short as sums of so many contributions within their bounds can be; shape (n,).

    Parameters
    ----------
    rows : array of int64, shape (n, size)
        In steps of the grid. What is bounded per record is not looked at: how many records a party has is not known.
    parties : int
        Whose contributions each row adds up.
    """
    return np.array([all(_short(row[block.part], block, parties) for block in planned) for row in rows], bool)


def _short(row: Array, block: Block, parties: int) -> bool:
    """Whether one row is short enough, to the last step."""
    if block.bound.unit == "record":
        return True
    limit = parties * Fraction(block.bound.radius) / Fraction(block.step)
    least, most = int(row.min(initial=0)), int(row.max(initial=0))
    if max(-least, most) > limit:
        return False
    if block.bound.norm == math.inf:
        return True
    power = 1 if block.bound.norm == 1 else 2
    steps = np.abs(row.astype(np.int64))
    at_once = 2**62 // max(int(limit) ** power, 1)  # so many terms cannot overflow
    if at_once < 1:
        return bool(sum(int(step) ** power for step in steps) <= limit**power)
    parts = range(0, len(steps), at_once)
    return bool(sum(int((steps[i : i + at_once] ** power).sum()) for i in parts) <= limit**power)
