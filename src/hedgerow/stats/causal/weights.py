"""Weights of records by their propensity score e, the probability to be treated, and how they change with its log-odds.

    inverse    treated 1 / e          others 1 / (1 - e)        all records: the average effect
    treated    treated 1              others e / (1 - e)        the effect in those who were treated
    overlap    treated 1 - e          others e                  those who might have been either; at most 1

The first two grow without bound, so scores are held within [trim, 1 - trim] for them, which is declared; records beyond are
counted. A weight that is held does not change with the score.

Source : Lunceford & Davidian 2004; Li, Morgan & Zaslavsky 2018 (overlap).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

from hedgerow.core.arrays import Array

Weighting = Literal["inverse", "treated", "overlap"]

ESTIMANDS: dict[str, str] = {
    "inverse": "average effect in all records",
    "treated": "average effect in the treated",
    "overlap": "average effect where groups overlap",
}


@dataclass(frozen=True)
class Weights:
    """Weights of records, and their slopes, by arm: 0 others, 1 treated.

    Attributes
    ----------
    score : array of shape (..., n)
        Propensity scores as they are.
    weight, slope : arrays of shape (2, ..., n)
        Zero in the other arm; the slope is that along the log-odds.
    beyond : array of bool, shape (..., n)
        Whose score is held.
    """

    score: Array
    weight: Array
    slope: Array
    beyond: Array

    @classmethod
    def of(cls, eta: Array, treated: Array, weighting: Weighting, trim: float) -> Weights:
        """From log-odds and who was treated."""
        score = expit(eta)
        e = np.clip(score, trim, 1 - trim)
        held = e != score
        t = np.stack([1.0 - treated, treated])
        if weighting == "inverse":
            weight, slope = np.stack([1 / (1 - e), 1 / e]), np.stack([e / (1 - e), -(1 - e) / e])
        elif weighting == "treated":
            weight, slope = np.stack([e / (1 - e), np.ones_like(e)]), np.stack([e / (1 - e), np.zeros_like(e)])
        else:
            weight, slope = np.stack([e, 1 - e]), np.stack([e * (1 - e), -e * (1 - e)])
        return cls(score, t * weight, np.where(held, 0.0, t * slope), held)


def largest_weight(weighting: Weighting, trim: float) -> tuple[float, float]:
    """The largest weight, and the largest slope of one; infinite without a trim where there is none."""
    if weighting == "overlap":
        return 1.0, 0.25
    most = 1 / trim if trim > 0 else float("inf")
    return most, most
