"""Sums over records at given coefficients behind noise: in whole steps of their bounds, and never beyond them.

Predictors are added up column by column, and parts of a loss are functions of one record, so that one record more changes no
bit of what the others add; see `hedgerow.stats.whole`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds
from hedgerow.core.party import Party
from hedgerow.core.whole import bound_in, by_column, held

from ..blocks import added, blocks
from ..whole import WholeRows, records_at_once
from .loss import Loss
from .sums import At, kind_of, symmetric


def whole_sums(
    loss: Loss, party: Party, beta: Array, broadcast: Mapping[str, Array], keys: Sequence[str], bounds: Bounds, *, upper: bool
) -> dict[str, Array]:
    """Add up `keys` at `beta` (d,) as `linear_sums` does, each record held to the bounds."""
    some = blocks(party, records_at_once(len(beta)))
    found: dict[str, Array] = reduce(added, (_Held(loss, block, beta, broadcast).held(keys, bounds) for block in some))
    return found | {key: symmetric(found[key]) for key in found if key == "information" and not upper}


class _Held(At):
    """A block of records that are held to bounds."""

    def __init__(self, loss: Loss, party: Party, beta: Array, broadcast: Mapping[str, Array]) -> None:
        self.rows = WholeRows.of(party["X"])
        if self.rows.lost is not None:
            party = Party(party.id, party.columns, np.where(self.rows.lost, 0.0, party.w))
        super().__init__(loss, party, beta, broadcast)

    def predictor(self, beta: Array) -> Array:
        return by_column(self.rows.columns, beta)

    def held(self, keys: Sequence[str], bounds: Bounds) -> dict[str, Array]:
        """Add up keys in whole steps; products of rows as their upper triangles."""
        return {key: np.asarray(self._held(key, bound_in(bounds, key))) for key in keys}

    def _held(self, key: str, bound: Bound) -> Array:
        kind, w = kind_of(key), self.party.w
        factor = kind.factor(self.loss)
        numbers = w if key == "n" else w * self.part(kind.part)
        numbers = numbers if factor == 1.0 else factor * numbers
        if kind.rows == 2:
            return self.rows.products(numbers, bound)
        total: Array = self.rows.sums(numbers, bound) if kind.rows else held(numbers, bound).sum(-1)
        return total
