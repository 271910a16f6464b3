"""Majorised Newton: one noisy X'X above every information, then noisy scores preconditioned by it.

    G       <- sum over records of  x x'                              l2(1) a record of weight one      share .3
    P       <- curvature * (eigenvalues of G not below zero, raised by c sqrt(d) sigma_G)  +  penalty
    repeat T times:
        s       <- sum over records of  -slope(y, coef x) x           l2(slope)                         share .7 / T each
                   (of a quantile with the width and share of this step: `BoundedLoss.at`)
        coef    <- coef + P^-1 (s - penalty coef)

`curvature` is the largest second derivative of the loss (`BoundedLoss`), so that P lies above the information of every
coefficient, and steps without noise never raise the objective. Noise could make it too small along some directions; the
floor, as large as the noise of an eigenvalue, holds steps back along directions of which the release says nothing.

Without noise, steps are accelerated (Nesterov), begun anew where they turn away from the slope, and end at the minimum of

    sum of loss  +  penalty / 2 * |coef|^2

Public constants: T is 6 for an epsilon below 0.2 and 12 otherwise (of a quantile 20 and 40), c is 1, shares .3 and .7; looked
at on Adult and cardio, where a share of .2, T from 4 to 20 and c from .7 to 2 differ by less than the spread over seeds (a
quarter of the training records was held back to look at). Momentum, a mean of last points and products of one block set to
zero brought nothing.

Releases : G (d, d) once, or as often as brings its share of a channel's noise near .3; scores, T of them.
Unit     : record.
Source   : Boehning & Lindsay 1988; Boehning 1992 for classes. Differs: both sums are noisy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import NotConverged
from hedgerow.privacy.shares import Share

from .bounded_sums import BoundedSums

GRAM = 0.3
"""Share of the budget for the sum of products."""
FLOOR = 1.0
"""Times sqrt(d) standard deviations of the noise: by how much eigenvalues are raised."""
MOST_ROUNDS = 10_000
"""Scores without noise before giving up."""
FLAT = 1e-12
"""Eigenvalues below this share of the largest are zero."""


@dataclass(frozen=True)
class DescentPoint:
    """Where a descent by noisy scores stands.

    Attributes
    ----------
    round : int
        Questions so far.
    coef : array of shape (d,) or (K, d)
    ahead : array, as `coef`
        Where the next score is asked.
    gram : array of shape (d, d)
        Answers so far added up; of gradient descent (1, 1), the records.
    score : array, as `coef`
        The last answer.
    step : array, as `coef`
        The last one of those whose number is fixed.
    pace : float
        Of an acceleration.
    change : float
        Expected fall of the objective by the last step, relative to what has been gained.
    gained : float
        By all steps.
    converged : bool
    """

    round: int
    coef: Array
    ahead: Array
    gram: Array
    score: Array
    step: Array
    pace: float = 1.0
    change: float = math.inf
    gained: float = 0.0
    converged: bool = False

    @property
    def moved(self) -> float:
        """By how much the last step of a fixed number moved predictions of unit rows, root mean square; 0 if not known."""
        if len(self.gram) != self.step.shape[-1]:
            return 0.0
        values, vectors = np.linalg.eigh(self.gram)
        values = np.maximum(values, 0.0)
        return math.sqrt(float(((self.step @ vectors) ** 2 @ values).sum()) / (float(values.sum()) or 1.0))

    @classmethod
    def begin(cls, shape: tuple[int, ...], d: int) -> DescentPoint:
        """Before the first question: coefficients of zero, and nothing of (d, d) numbers added up."""
        zeros = np.zeros(shape)
        return cls(0, zeros, zeros, np.zeros((d, d)), zeros, zeros)


# ---- what is asked --------------------------------------------------------------------------------------------------
def gram_times(rounds: int) -> int:
    """How often products of rows are asked through a channel's own noise, beside so many scores."""
    return max(1, round(GRAM / (1 - GRAM) * rounds))


def majorised_parts(rounds: int, *, own: bool) -> dict[str, Share]:
    """Everything that is asked with noise; `own` is whether a budget is divided, rather than a channel's noise used."""
    return {"gram": Share(GRAM, 1 if own else gram_times(rounds)), "score": Share(1 - GRAM, rounds)}


# ---- the descent ----------------------------------------------------------------------------------------------------
def majorised(
    sums: BoundedSums,
    parts: Mapping[str, Share],
    *,
    penalty: float = 0.0,
    rounds: int | None = None,
    tol: float = 1e-8,
    max_rounds: int = MOST_ROUNDS,
    start: DescentPoint | None = None,
) -> Iterator[DescentPoint]:
    """Yield a point for each question; see the module.

    Parameters
    ----------
    sums : BoundedSums
    parts : mapping
        As `majorised_parts`.
    penalty : float
        Times half the squared length of the coefficients, added to the sum of losses.
    rounds : int, optional
        Scores; None where sums are exact, and steps end at the minimum.
    tol : float
        Then: stop where a step promises less than tol^2 of what all steps have gained.
    max_rounds : int
        Scores before giving up.

    Raises
    ------
    NotConverged (HR-322)
    """
    d, times = sums.rows.size, parts["gram"].times
    point = start or DescentPoint.begin(sums.loss.shape(d), d)
    while point.round < times:
        point = replace(point, round=point.round + 1, gram=point.gram + sums.gram())
        yield point
    products = Majoriser.of(point.gram / times, sums.gram_noise() / math.sqrt(times))
    if rounds is None:
        above = products.times(sums.loss.curvature, penalty)
        yield from to_minimum(sums, point, above, penalty=penalty, tol=tol, last=times + max_rounds)
        return
    while point.round < times + rounds:
        loss = sums.loss.at(point.round - times, rounds)
        found = sums.score(point.coef, loss)
        step = products.times(loss.curvature, penalty).solve(found - penalty * point.coef)
        coef = point.coef + step
        point = replace(point, round=point.round + 1, coef=coef, ahead=coef, score=found, step=step)
        yield point


def to_minimum(
    sums: BoundedSums, point: DescentPoint, above: Majoriser, *, penalty: float, tol: float, last: int
) -> Iterator[DescentPoint]:
    """Yield accelerated steps without noise until they have reached the minimum."""
    while not point.converged:
        if point.round >= last:
            raise NotConverged(
                f"after {point.round} questions a step still promises {point.change:.2g} of what was gained.",
                remedy="Give a penalty, without which separated classes have no minimum; or a larger tol.",
            )
        point = accelerated(point, sums.score(point.ahead), above, penalty, tol)
        yield point


@dataclass(frozen=True)
class Majoriser:
    """A symmetric matrix above every information: its eigenvalues (d,), infinite where there is nothing, and vectors."""

    values: Array
    vectors: Array

    @classmethod
    def of(cls, gram: Array, noise: float) -> Majoriser:
        """Of products of rows (d, d), `noise` being the deviation on their diagonal."""
        values, vectors = np.linalg.eigh(gram)
        return cls(np.maximum(values, 0.0) + FLOOR * math.sqrt(len(values)) * noise, vectors)

    def times(self, curvature: float, penalty: float) -> Majoriser:
        """Above every information of a loss with this curvature, and a penalty."""
        values = curvature * self.values + penalty
        return replace(self, values=np.where(values > FLAT * values.max(initial=0.0), values, math.inf))

    @classmethod
    def flat(cls, d: int, value: float) -> Majoriser:
        """The same along all directions."""
        return cls(np.full(d, value), np.eye(d))

    def solve(self, right: Array) -> Array:
        """Divide (d,) or (K, d) by it."""
        found: Array = (right @ self.vectors / self.values) @ self.vectors.T
        return found


def accelerated(point: DescentPoint, found: Array, above: Majoriser, penalty: float, tol: float) -> DescentPoint:
    """One step of Nesterov's method without noise, begun anew where the last one led uphill (O'Donoghue & Candes 2015)."""
    slope = found - penalty * point.ahead
    step = above.solve(slope)
    coef = point.ahead + step
    promised = float((step * slope).sum())
    gained = point.gained + promised
    uphill = float((slope * (coef - point.coef)).sum()) < 0
    pace = 1.0 if uphill else (1 + math.sqrt(1 + 4 * point.pace**2)) / 2
    ahead = coef if uphill else coef + (point.pace - 1) / pace * (coef - point.coef)
    change = promised / gained if gained > 0 else 0.0
    return replace(
        point,
        round=point.round + 1,
        coef=coef,
        ahead=ahead,
        score=found,
        pace=pace,
        change=change,
        gained=gained,
        converged=change <= tol**2,
    )
