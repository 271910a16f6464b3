"""Sums of records at given propensity scores and outcome models: totals by arm, balance, slopes, squared influences.

Of arm k, with weight w_k (zero in the other arm), outcome y and its model's mean f_k:

    weighting           value w_k y                       share w_k
    doubly robust       value f_k + w_k (y - f_k)         share 1

    mean m_k   = sum of values / sum of shares
    slopes     = how the sum of  value - m_k share  changes with the coefficients of the score, and of f_k
    influence  = value - m_k share + slopes' inverse information * score of that model's own record

Outcomes are asked in units of half their declared range about its middle. Slopes are asked at the solution, then influences
with slopes and informations broadcast: 2 (p + q) and 3 numbers instead of two matrices of (p + 2 q + 2)², and one sandwich.

Reads `X`, `y` (who was treated) and `offset` of the score's design, and outcome and rows of the outcome's, which are prepared
first: a table may have a column `y` of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

from hedgerow.core.arrays import Array
from hedgerow.core.party import PRESENT, Party
from hedgerow.core.question import elementwise_where, local, travels
from hedgerow.core.whole import linear

from ..blocks import by_blocks
from ..design import Design
from ..linear.sums import along
from .weights import Weighting, Weights

OUTCOME, ROWS = "the outcome", "rows of the outcome"


@travels
@elementwise_where(lambda spec: spec.is_arithmetic)
def outcomes(columns: Mapping[str, Array], *, spec: Design) -> dict[str, Array]:
    """Prepare the outcome and the rows of its model."""
    y = spec.response.columns(columns)[:, 0]
    rows = spec.matrix(columns, len(y))
    if PRESENT in columns and not (there := np.asarray(columns[PRESENT])).all():
        y, rows = np.where(there, y, 0.0), np.where(there[:, None], rows, 0.0)
    return {OUTCOME: y, ROWS: rows}


@travels
@elementwise_where(lambda spec, arm: spec.is_arithmetic)
def arm_only(columns: Mapping[str, Array], *, spec: Design, arm: int) -> dict[str, Array]:
    """Prepare the records of one arm: others have weight zero."""
    inside = (spec.response.columns(columns)[:, 0] > 0.5) == bool(arm)
    return {PRESENT: inside & np.asarray(columns[PRESENT]) if PRESENT in columns else inside}


@dataclass(frozen=True)
class Arms:
    """A party's records at given coefficients.

    Parameters
    ----------
    broadcast : dict of arrays
        `score` (p,), the coefficients of the score; `frame` (2,), middle and half range of the outcome; `mean` (2,), in that
        frame, where it is known; `models` (2, q), coefficients of the outcome's models, where they are used.
    """

    broadcast: Mapping[str, Array]
    party: Party
    weighting: Weighting
    trim: float
    binary: bool

    @cached_property
    def by_score(self) -> Weights:
        eta = linear(self.party["X"], self.broadcast["score"]) + self.party["offset"]
        return Weights.of(eta, np.asarray(self.party["y"] > 0.5, float), self.weighting, self.trim)

    @property
    def robust(self) -> bool:
        return "models" in self.broadcast

    @cached_property
    def fitted(self) -> Array:
        """Means of the outcome's models in units of the outcome, shape (2, ..., n)."""
        eta = np.stack([linear(self.party[ROWS], b) for b in self.broadcast["models"]])
        return expit(eta) if self.binary else eta

    @cached_property
    def residual(self) -> Array:
        """Outcome less what a weight multiplies besides: the model's mean, or nothing; in the frame, shape (2, ..., n)."""
        centre, scale = self.broadcast["frame"]
        return np.asarray((self.party[OUTCOME] - (self.fitted if self.robust else centre)) / scale) * np.ones(
            (2, *self.party.w.shape)
        )

    @cached_property
    def value(self) -> Array:
        centre, scale = self.broadcast["frame"]
        base = (self.fitted - centre) / scale if self.robust else 0.0
        return np.asarray(base + self.by_score.weight * self.residual)

    @cached_property
    def share(self) -> Array:
        return np.ones_like(self.by_score.weight) if self.robust else self.by_score.weight

    @cached_property
    def moment(self) -> Array:
        """Values less means times shares, shape (2, ..., n)."""
        return self.value - self._means * self.share

    @property
    def _means(self) -> Array:
        return np.asarray(self.broadcast["mean"]).reshape(2, *(1,) * self.party.w.ndim)

    @cached_property
    def along_score(self) -> Array:
        """How a moment changes with the log-odds, shape (2, ..., n)."""
        away = self.residual if self.robust else self.residual - self._means
        return self.by_score.slope * away

    @cached_property
    def along_model(self) -> Array:
        """How a moment changes with the linear predictor of its outcome's model, shape (2, ..., n)."""
        steep = self.fitted * (1 - self.fitted) if self.binary else 1.0
        return np.asarray(steep / self.broadcast["frame"][1] * (1 - self.by_score.weight))

    def influence(self) -> Array:
        """Influences on the sums of moments, shape (2, ..., n)."""
        t = self.party["y"] > 0.5
        lifts = np.stack([linear(self.party["X"], pull) for pull in self.broadcast["score pull"]])
        found = self.moment + lifts * (t - self.by_score.score)
        if self.robust:
            away = (self.party[OUTCOME] - self.fitted) * np.stack([~t, t])
            found = found + away * np.stack([linear(self.party[ROWS], pull) for pull in self.broadcast["model pull"]])
        return np.asarray(found)


def _last(*arrays: Array) -> Array:
    return np.stack(arrays, axis=-1)


@local(additive=True, stackable=True)
@by_blocks
def arm_totals(
    broadcast: Mapping[str, Array], party: Party, rng: Any, *, weighting: Weighting, trim: float, binary: bool = False
) -> dict[str, Array]:
    """Add up `value` and `share` (2,) by arm, `n` (2,) of records by arm, and those whose score is held, `beyond`."""
    at, w = Arms(broadcast, party, weighting, trim, binary), party.w
    treated = (w * (party["y"] > 0.5)).sum(-1)
    return {
        "value": _last(*(w * at.value).sum(-1)),
        "share": _last(*(w * at.share).sum(-1)),
        "n": _last(party.n - treated, treated),
        "beyond": (w * at.by_score.beyond).sum(-1),
    }


@local(additive=True, stackable=True)
@by_blocks
def arm_balance(
    broadcast: Mapping[str, Array], party: Party, rng: Any, *, weighting: Weighting, trim: float
) -> dict[str, Array]:
    """Add up columns of the score by arm: `sum` and `squares` (2, p) as they are, and `weighted` (2, p), `weight` (2,)."""
    X, t = party["X"], np.asarray(party["y"] > 0.5, float)
    weight = Weights.of(linear(X, broadcast["score"]) + party["offset"], t, weighting, trim).weight
    arms, w = (1 - t, t), party.w
    return {
        "n": _last(*((w * arm).sum(-1) for arm in arms)),
        "sum": np.stack([along(X, w * arm) for arm in arms], axis=-2),
        "squares": np.stack([along(X * X, w * arm) for arm in arms], axis=-2),
        "weighted": np.stack([along(X, w * one) for one in weight], axis=-2),
        "weight": _last(*(w * weight).sum(-1)),
    }


@local(additive=True, stackable=True)
@by_blocks
def arm_slopes(
    broadcast: Mapping[str, Array], party: Party, rng: Any, *, weighting: Weighting, trim: float, binary: bool = False
) -> dict[str, Array]:
    """Add up slopes of moments along the coefficients: `score` (2, p), and `models` (2, q) where they are used."""
    at = Arms(broadcast, party, weighting, trim, binary)
    found = {"score": np.stack([along(party["X"], party.w * one) for one in at.along_score], axis=-2)}
    if at.robust:
        found["models"] = np.stack([along(party[ROWS], party.w * one) for one in at.along_model], axis=-2)
    return found


@local(additive=True, stackable=True)
@by_blocks
def arm_squares(
    broadcast: Mapping[str, Array], party: Party, rng: Any, *, weighting: Weighting, trim: float, binary: bool = False
) -> Array:
    """Add up products of influences, in units of `unit`: others, both, treated, shape (3,)."""
    others, treated = Arms(broadcast, party, weighting, trim, binary).influence() / broadcast["unit"]
    return _last(*((party.w * one).sum(-1) for one in (others * others, others * treated, treated * treated)))
