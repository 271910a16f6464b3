"""Majorised Newton: one noisy X'X above every information, then noisy scores preconditioned by it.

    G       <- sum over records of  x x'                              l2(1) a record of weight one      share .3
    P       <- curvature * (eigenvalues of G not below zero, raised by c sqrt(d) sigma_G)  +  penalty
    repeat T times:
        s       <- sum over records of  -slope(y, coef x) x           l2(slope)                         share .7 / T each
        coef    <- coef + P^-1 (s - penalty coef)

`curvature` is the largest second derivative of the loss (`BoundedLoss`), so that P lies above the information of every
coefficient, and steps without noise never raise the objective. Noise could make it too small along some directions; the
floor, as large as the noise of an eigenvalue, holds steps back along directions of which the release says nothing.

Without noise, steps are accelerated (Nesterov), begun anew where they turn away from the slope, and end at the minimum of

    sum of loss  +  penalty / 2 * |coef|^2

Public constants: T is 6 for an epsilon below 0.2 and 12 otherwise, c is 1, shares .3 and .7; looked at on Adult and cardio.

Releases : G (d, d) once, or as often as brings its share of a channel's noise near .3; scores, T of them.
Unit     : record.
Source   : Boehning & Lindsay 1988; Boehning 1992 for classes. Differs: both sums are noisy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, l1, l2
from hedgerow.core.federation import Federation
from hedgerow.errors import NotConverged
from hedgerow.privacy.level import noise_level
from hedgerow.privacy.shares import Share

from ..linear.sums import symmetric
from .bounded import NAMES, BoundedLoss
from .rows import UnitRows
from .sums import class_score, gram, score

ROUNDS, FEW_ROUNDS, LITTLE = 12, 6, 0.2
"""Scores asked, and how many where epsilon is below what is called little."""
GRAM = 0.3
"""Share of the budget for the sum of products."""
FLOOR = 1.0
"""Times sqrt(d) standard deviations of the noise: by how much eigenvalues are raised."""
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
    pace: float = 1.0
    change: float = math.inf
    gained: float = 0.0
    converged: bool = False


# ---- what is asked --------------------------------------------------------------------------------------------------
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
        if self.upper:
            most = 2.0 if self.loss.classes else self.loss.slope
            return l1(self.rows.heaviest * most * self.widest, "record")
        return l2(self.rows.heaviest * self.loss.slope, "record")

    def gram(self) -> Array:
        """Ask for the products of rows, (d, d)."""
        handle, bound = self.handles["gram"], self.gram_bound
        if self.upper:
            return symmetric(np.asarray(handle.sum(partial(gram, upper=True), bound=bound)))
        found = np.asarray(handle.sum(gram, bound=bound))
        return (found + found.T) / 2

    def gram_noise(self) -> float:
        """Standard deviation of the noise on the diagonal of one answer."""
        d = self.rows.size
        return noise_level(self.handles["gram"], self.gram_bound, "", d * (d + 1) // 2 if self.upper else d * d)

    def score(self, coef: Array) -> Array:
        """Ask for the score at coefficients, in their shape; of classes it adds up to zero, which takes noise away."""
        handle, bound = self.handles["score"], self.score_bound
        if self.loss.classes:
            found = np.asarray(handle.sum(class_score, {"coef": coef}, bound=bound))
            return found - found.mean(0)
        ask = partial(score, loss=NAMES[self.loss.model], **({} if self.loss.share is None else {"shape": self.loss.share}))
        return np.asarray(handle.sum(ask, {"coef": coef, "width": np.array(self.loss.width)}, bound=bound))


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
    max_rounds: int = 5000,
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
    zeros = np.zeros(sums.loss.shape(d))
    point = start or DescentPoint(0, zeros, zeros, np.zeros((d, d)), zeros)
    while point.round < times:
        point = replace(point, round=point.round + 1, gram=point.gram + sums.gram())
        yield point
    last = times + (max_rounds if rounds is None else rounds)
    metric = Majoriser.of(point.gram / times, sums.gram_noise() / math.sqrt(times), sums.loss.curvature, penalty)
    while point.round < last and not point.converged:
        found = sums.score(point.ahead)
        if rounds is None:
            point = accelerated(point, found, metric, penalty, tol)
        else:
            coef = point.coef + metric.solve(found - penalty * point.coef)
            point = replace(point, round=point.round + 1, coef=coef, ahead=coef, score=found)
        yield point
    if rounds is None and not point.converged:
        raise NotConverged(
            f"after {max_rounds} scores a step still promises {point.change:.2g} of what was gained.",
            remedy="Give a penalty, without which separated classes have no minimum; or a larger tol.",
        )


@dataclass(frozen=True)
class Majoriser:
    """A symmetric matrix above every information: its eigenvalues (d,), infinite where there is nothing, and vectors."""

    values: Array
    vectors: Array

    @classmethod
    def of(cls, gram: Array, noise: float, curvature: float, penalty: float) -> Majoriser:
        """Of products of rows (d, d), `noise` being the deviation on their diagonal."""
        values, vectors = np.linalg.eigh(gram)
        values = np.maximum(values, 0.0) + FLOOR * math.sqrt(len(values)) * noise
        values = curvature * values + penalty
        return cls(np.where(values > FLAT * values.max(initial=0.0), values, math.inf), vectors)

    def solve(self, right: Array) -> Array:
        """Divide (d,) or (K, d) by it."""
        found: Array = (right @ self.vectors / self.values) @ self.vectors.T
        return found


def accelerated(point: DescentPoint, found: Array, metric: Majoriser, penalty: float, tol: float) -> DescentPoint:
    """One step of Nesterov's method without noise, begun anew where the last one led uphill (O'Donoghue & Candes 2015)."""
    slope = found - penalty * point.ahead
    step = metric.solve(slope)
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
