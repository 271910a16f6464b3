"""The sums of a model of unit rows as they are asked, each with its bound and through its own part of a budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, l1, l2, linf
from hedgerow.core.federation import Federation
from hedgerow.privacy.level import noise_level

from ..linear.sums import symmetric
from .bounded import NAMES, BoundedLoss
from .rows import UnitRows
from .sums import class_score, count, gram, score


@dataclass(frozen=True)
class BoundedSums:
    """The sums of a model of unit rows, with their bounds, as a federation is asked them.

    Attributes
    ----------
    handles : mapping from part to Federation
        As `BudgetShares.handles` has them, with the rows prepared.
    rows : UnitRows
    loss : BoundedLoss
    """

    handles: Mapping[str, Federation]
    rows: UnitRows
    loss: BoundedLoss

    @property
    def upper(self) -> bool:
        """Whether noise follows sums of absolute values, for which an upper triangle is half as long."""
        return self.handles["score"].protection.law in ("laplace", "geometric")

    @property
    def widest(self) -> float:
        """Largest sum of absolute values of a row: of a block at most one column differs from zero."""
        return math.sqrt(len(self.rows.blocks))

    @property
    def gram_bound(self) -> Bound:
        """Of the products of a row with itself."""
        if self.upper:
            return l1(self.rows.heaviest * (self.widest**2 + 1) / 2, "record")
        return l2(self.rows.heaviest, "record")

    @property
    def score_bound(self) -> Bound:
        """Of a score."""
        return self.bound_of(self.loss)

    def bound_of(self, loss: BoundedLoss) -> Bound:
        """Of a score of a loss."""
        if self.upper:
            most = 2.0 if loss.classes else loss.slope
            return l1(self.rows.heaviest * most * self.widest, "record")
        return l2(self.rows.heaviest * loss.slope, "record")

    def gram(self) -> Array:
        """Ask for the products of rows, (d, d)."""
        handle, bound = self.handles["gram"], self.gram_bound
        if self.upper:
            return symmetric(np.asarray(handle.sum(partial(gram, upper=True), bound=bound)))
        found: Array = np.asarray(handle.sum(gram, bound=bound))
        return (found + found.T) / 2

    def gram_noise(self) -> float:
        """Standard deviation of the noise on the diagonal of one answer."""
        d = self.rows.size
        return noise_level(self.handles["gram"], self.gram_bound, "", d * (d + 1) // 2 if self.upper else d * d)

    def score(self, coef: Array, loss: BoundedLoss | None = None) -> Array:
        """Ask for the score at coefficients, in their shape; of classes it adds up to zero, which takes noise away.

        Another loss is that of one step (`BoundedLoss.at`).
        """
        loss = loss or self.loss
        handle, bound = self.handles["score"], self.bound_of(loss)
        if loss.classes:
            found: Array = np.asarray(handle.sum(class_score, {"coef": coef}, bound=bound))
            return found - found.mean(0)
        ask = partial(score, loss=NAMES[loss.model], **({} if loss.share is None else {"shape": loss.share}))
        return np.asarray(handle.sum(ask, {"coef": coef, "width": np.array(loss.width)}, bound=bound))

    def count(self) -> float:
        """Ask for the sum of weights."""
        return float(self.handles["count"].sum(count, bound=self.count_bound))

    @property
    def count_bound(self) -> Bound:
        """Of a record's weight."""
        return linf(self.rows.heaviest, "record")

    def count_noise(self) -> float:
        """Standard deviation of the noise of one answer."""
        return noise_level(self.handles["count"], self.count_bound, "", 1)
