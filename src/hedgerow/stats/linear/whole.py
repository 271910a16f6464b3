"""Sums over records at given coefficients behind noise: in whole steps of their bounds, and never beyond them.

What a record adds to a key is a number times its row, or times the products of its row with itself. The number is made
smaller where its length, with room for rounding, would be beyond the bound; then every product is rounded to whole steps,
and all are added exactly:

    v_i     <- v_i * min(1, room / (|v_i| |x_i|^r))           room: the radius less half a step for each sqrt(number)
    total   <- sum of rint(v_i x_ij / step),  or of rint(v_i x_ij x_ik / step)

Predictors are added up column by column, and parts of a loss are functions of one record, so that one record more changes
no bit of what the others add. Records are computed in columns, in blocks that fit a processor's cache.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds
from hedgerow.core.party import Party
from hedgerow.core.whole import bound_in, by_column, step_of, whole

from ..blocks import added, blocks
from .loss import Loss
from .sums import At, kind_of, symmetric

NUMBERS = 1 << 16
"""So many numbers of rows are held at once."""
ROUNDED = 1 + 1e-9
"""By so much lengths are overstated, against their own rounding."""


def whole_sums(
    loss: Loss, party: Party, beta: Array, broadcast: Mapping[str, Array], keys: Sequence[str], bounds: Bounds, *, upper: bool
) -> dict[str, Array]:
    """Add up `keys` at `beta` (d,) as `linear_sums` does, each record held to the bounds."""
    some = max(1, NUMBERS // max(len(beta), 1))
    found: dict[str, Array] = reduce(
        added, (_Columns(loss, block, beta, broadcast).whole_sums(keys, bounds) for block in blocks(party, some))
    )
    return found | {key: symmetric(found[key]) for key in found if key == "information" and not upper}


class _Columns(At):
    """A block of records, by columns of shape (d, ..., n)."""

    def __init__(self, loss: Loss, party: Party, beta: Array, broadcast: Mapping[str, Array]) -> None:
        self.columns = np.ascontiguousarray(np.moveaxis(party["X"], -1, 0))
        finite = np.isfinite(self.columns).all(0)
        if not finite.all():  # such records add nothing
            self.columns, party = np.where(finite, self.columns, 0.0), Party(party.id, party.columns, party.w * finite)
        super().__init__(loss, party, beta, broadcast)
        self.length = np.sqrt(by_column(self.columns, self.columns))

    def predictor(self, beta: Array) -> Array:
        return by_column(self.columns, beta)

    def whole_sums(self, keys: Sequence[str], bounds: Bounds) -> dict[str, Array]:
        return {key: self._whole(key, bound_in(bounds, key)) for key in keys}

    def _whole(self, key: str, bound: Bound) -> Array:
        kind, w = kind_of(key), self.party.w
        numbers = w if key == "n" else w * self.part(kind.part) * kind.factor(self.loss)
        if kind.rows == 0:
            return np.asarray(whole(numbers[..., None], bound)[..., 0].sum(-1))
        d = len(self.columns)
        v = self._held(numbers, bound, kind.rows) / step_of(bound)
        if kind.rows == 1:
            found = np.rint(self.columns * v).sum(-1)
        else:
            found = np.concatenate([_rounded(self.columns[j:] * (self.columns[j] * v)).sum(-1) for j in range(d)])
        return np.asarray(np.moveaxis(found, 0, -1) * step_of(bound))

    def _held(self, numbers: Array, bound: Bound, rows: int) -> Array:
        """Numbers (..., n) so small that what records add stays within the bound, rounding included."""
        d, step = len(self.columns), step_of(bound)
        room = bound.radius - step * math.sqrt(d**rows) / 2
        length = np.abs(numbers) * self.length**rows * ROUNDED
        lawful = np.isfinite(length)
        if lawful.all() and not (length > room).any():
            return numbers
        factor = np.where(length > room, room / np.where(lawful, np.maximum(length, room), 1.0), 1.0)
        held: Array = np.where(lawful, numbers, 0.0) * factor
        return held


def _rounded(products: Array) -> Array:
    return np.rint(products, out=products)
