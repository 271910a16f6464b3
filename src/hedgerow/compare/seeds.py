"""Several runs of one cell, which differ in their seeds alone: the mean of what they came to, and how sure it is.

The interval is Student's for the mean of independent runs: seeds differ in which records are drawn and held out, in the first
weights where the model draws them, in cohorts and in noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from hedgerow.report.model import Cell as Value
from hedgerow.report.numerals import show


@dataclass(frozen=True)
class SeedMean:
    """A mean over seeds, and half the width of its 95 % interval, which is None of a single run."""

    value: float
    margin: float | None = None

    @classmethod
    def of(cls, values: Sequence[float | None]) -> SeedMean | None:
        """Of what the runs of a cell came to, those left out that have no value; None where all are."""
        known = np.array([value for value in values if value is not None], float)
        n = len(known)
        if n < 2:
            return cls(float(known[0])) if n else None
        quantile = float(scipy.special.stdtrit(n - 1, 0.975))
        return cls(float(known.mean()), quantile * float(known.std(ddof=1)) / math.sqrt(n))

    @property
    def shown(self) -> Value:
        """The value, or `0.061 ± 0.012` with two digits of the margin."""
        return self.value if self.margin is None else with_margin(self.value, self.margin)


def with_margin(value: float, margin: float) -> str:
    """`0.061 ± 0.012`: as many decimals as the margin has with two digits, at most four."""
    digits = 4 if margin <= 0 else min(4, max(0, 1 - math.floor(math.log10(margin))))
    return f"{show(round(value, digits))} ± {show(round(margin, digits))}"
