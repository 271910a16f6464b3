"""The mean of rows: what federated averaging takes, and what one party that lies moves as far as it likes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .centres import weighted_sum
from .rule import Array, Beside, Rule


@dataclass(frozen=True)
class PlainMean(Rule):
    """The mean of all rows; no row may be false."""

    @property
    def name(self) -> str:
        return "mean"

    @property
    def condition(self) -> str:
        return "f = 0, as one row moves the mean as far as it likes"

    def largest(self, n: int) -> int:
        return 0

    def combine(self, rows: Array, beside: Beside) -> Array:
        return weighted_sum(np.full(len(rows), 1 / len(rows)), rows).astype(rows.dtype)
