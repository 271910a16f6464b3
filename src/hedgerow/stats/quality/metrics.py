"""How well a fitted model does, by sums over the records: of those it was fitted to, or of others.

    number   n, mean squared and absolute error, R squared
    binary   n, log-loss, Brier score, the confusion at a threshold: accuracy, precision, recall, F1

Releases : what `linear_metrics` and `binary_metrics` list; no predictions.
Unit     : record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, l1, linf
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import linear
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid

from ..blocks import by_blocks
from ..columns import is_exact
from ..counts import tally
from ..fitted import Fitted
from .cells import place_of

LEAST_PROBABILITY = float(np.finfo(np.float64).eps)
"""Predicted probabilities count as no nearer to 0 and 1 than this, as in scikit-learn's `log_loss`."""
LIMIT = -math.log(LEAST_PROBABILITY)
BEYOND = 1e6
"""A linear predictor beyond is cut off where it is added up, whatever is declared."""


# ---- numbers --------------------------------------------------------------------------------------------------------
@local(additive=True, stackable=True, rowwise=True)
@by_blocks
def squared_errors(broadcast: Mapping[str, Array], party: Party, rng: Any) -> dict[str, Array]:
    """Add up squared and absolute errors, and the target's deviations from `centre` and their squares."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = party["y"] - linear(party["X"], broadcast["beta"]) - party["offset"]
        deviation = party["y"] - broadcast["centre"]
        return {
            "n": party.n,
            "squares": (party.w * error**2).sum(-1),
            "absolute": (party.w * np.abs(error)).sum(-1),
            "y": (party.w * deviation).sum(-1),
            "yy": (party.w * deviation**2).sum(-1),
        }


def error_bounds(fitted: Fitted, centre: float) -> dict[str, Bound] | None:
    """By how much one record moves `squared_errors`; `None` where a range is not declared."""
    reach, ends = fitted.reach, fitted.target_limits
    if reach is None or ends is None or not math.isfinite(reach.target[1]):
        return None
    w, far, residual = reach.weight, max(abs(ends[0] - centre), abs(ends[1] - centre)), reach.target[1] + reach.eta[1]
    sizes = {"n": 1.0, "squares": residual**2, "absolute": residual, "y": far, "yy": far**2}
    return {key: linf(w * size or w, "record") for key, size in sizes.items()}


@displayed
@dataclass(frozen=True)
class LinearMetrics:
    """Errors of a model of a number, in units of its target; `total` is the target's squared deviations from its mean."""

    n: float
    mse: float
    mae: float
    total: float

    @property
    def rmse(self) -> float:
        return math.sqrt(self.mse) if self.mse >= 0 else float("nan")

    @property
    def r_squared(self) -> float:
        """1 minus squared errors over squared deviations; below zero where the mean would do better."""
        return 1 - self.n * self.mse / self.total if self.total > 0 else float("nan")


def linear_metrics(federation: Federation, model: Any, *, formula: str | None = None) -> LinearMetrics:
    """Mean squared and absolute error and R squared, of any federation that holds the columns.

    Parameters
    ----------
    model : Fit, state, or array of shape (d,)
        Of a state with standardised columns in standard deviations.
    formula : str, optional
        For states and arrays.

    Releases
    --------
    n, squared and absolute errors, the target's deviations from a centre and their squares; twice where they arrive exactly
    and the target's mean is not known, since squares about a far centre would lose digits.

    Raises
    ------
    SettingsInvalid (HR-511), UnboundedSum (HR-210)
    """
    fitted = Fitted.of(federation, model, formula)
    fitted.require(binary=False)
    asked, ends = fitted.ask(federation), fitted.target_limits
    middle = sum(ends) / 2 if ends else 0.0
    known = is_exact(federation) and fitted.mean is not None and not fitted.spec.offset
    centre, rounds = (fitted.mean or 0.0, 1) if known else (middle, 2 if is_exact(federation) else 1)
    for _ in range(rounds):
        bounds = fitted.bounded(federation, error_bounds(fitted, centre))
        sums = asked.sum(squared_errors, {"beta": fitted.coef, "centre": np.array(centre)}, bound=bounds)
        n = max(float(sums["n"]), 1.0)
        total, centre = float(sums["yy"] - sums["y"] ** 2 / n), centre + float(sums["y"]) / n
    return LinearMetrics(float(sums["n"]), float(sums["squares"]) / n, float(sums["absolute"]) / n, total)


# ---- binary targets -------------------------------------------------------------------------------------------------
@local(additive=True, stackable=True, rowwise=True)
@by_blocks
def classified(beta: Array, party: Party, rng: Any, *, threshold: float, farthest: float | None = None) -> dict[str, Array]:
    """Add up log-loss, squared errors of the probability, and the four cells of target by prediction.

    With `farthest` also `score` (2,): the linear predictor, cut off there, and its square; and squares of the squared errors.
    """
    eta = linear(party["X"], beta) + party["offset"]
    y, p = party["y"] > 0.5, expit(eta)
    losses = np.minimum(np.logaddexp(0.0, np.where(y, -eta, eta)), LIMIT)
    predicted, squares = p > threshold, (p - y) ** 2
    found = {
        "log_loss": (party.w * losses).sum(-1),
        "brier": (party.w * squares).sum(-1),
        "cells": tally(2 * y.astype(np.intp) + predicted, party.w, 4),
    }
    if farthest is None:
        return found
    return found | {"score": score_sums(eta, party.w, farthest), "brier_squares": (party.w * squares**2).sum(-1)}


def score_sums(eta: Array, w: Array, farthest: float) -> Array:
    """Sums of linear predictors (..., n), cut off at `farthest`, and of their squares, shape (..., 2)."""
    cut = np.clip(eta, -farthest, farthest)
    return np.stack([(w * cut).sum(-1), (w * cut**2).sum(-1)], axis=-1)


def farthest_of(federation: Federation, fitted: Fitted) -> float | None:
    """Where a linear predictor is cut off before it is added up; None behind noise, which would have to cover it.

    By the declared ranges of the columns it is nowhere beyond. Without them no sum needs a bound where rows are not hidden;
    where they are, probabilities beyond are as good as 0 and 1.
    """
    if not is_exact(federation):
        return None
    reach = fitted.reach
    if reach is not None and 0 < reach.eta[1] < BEYOND:
        return float(reach.eta[1])
    return LIMIT if federation.protection.hides_rows else BEYOND


def score_bound(weight: float, farthest: float) -> Bound:
    """By how much one record moves `score_sums`."""
    return linf(weight * max(farthest, farthest**2), "record")


def place_by(sums: Array, n: float, events: float) -> tuple[float, float] | None:
    """Centre and scale of a curve's bins, by `score_sums` of so many records; None where there are none."""
    if not n > 0:
        return None
    mean = float(sums[0]) / n
    return place_of(mean, math.sqrt(max(float(sums[1]) / n - mean**2, 0.0)), events / n)


def classified_bounds(weight: float | None, farthest: float | None = None) -> dict[str, Bound] | None:
    """By how much one record moves `classified`: it has one loss and one cell."""
    if weight is None:
        return None
    found = {"log_loss": linf(weight * LIMIT, "record"), "brier": linf(weight, "record"), "cells": l1(weight, "record")}
    if farthest is None:
        return found
    return found | {"score": score_bound(weight, farthest), "brier_squares": linf(weight, "record")}


@displayed
@dataclass(frozen=True)
class BinaryMetrics:
    """What a model of a binary target does at a threshold of the probability.

    Attributes
    ----------
    confusion : tuple of float
        Records: truly 0 and predicted 0, 0 and 1, 1 and 0, 1 and 1.
    log_loss, brier : float
        Means over the records.
    place : (float, float) or None
        Centre and scale of the bins in which a curve counts the scores; None behind noise.
    brier_error : float
        Standard error of the Brier score over records that could have been others; NaN behind noise.
    """

    confusion: tuple[float, float, float, float]
    log_loss: float
    brier: float
    threshold: float
    place: tuple[float, float] | None = None
    brier_error: float = float("nan")

    @property
    def n(self) -> float:
        return sum(self.confusion)

    @property
    def accuracy(self) -> float:
        return _share(self.confusion[0] + self.confusion[3], self.n)

    @property
    def precision(self) -> float:
        """Share of predicted events that are events; NaN where none is predicted."""
        return _share(self.confusion[3], self.confusion[1] + self.confusion[3])

    @property
    def recall(self) -> float:
        """Share of events that are predicted."""
        return _share(self.confusion[3], self.confusion[2] + self.confusion[3])

    @property
    def specificity(self) -> float:
        """Share of the others that are not predicted."""
        return _share(self.confusion[0], self.confusion[0] + self.confusion[1])

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return _share(2 * self.confusion[3], 2 * self.confusion[3] + self.confusion[1] + self.confusion[2])


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else float("nan")


def binary_metrics(federation: Federation, model: Any, *, formula: str | None = None, threshold: float = 0.5) -> BinaryMetrics:
    """Log-loss, Brier score and confusion of a logistic regression, of any federation that holds the columns.

    Parameters
    ----------
    model : Fit, state, or array of shape (d,)
        Whose linear predictor is a log-odds.
    threshold : float
        A record is predicted an event where its probability is above.

    Releases
    --------
    log-loss (of each record at most 36.04), Brier score, four counts, and where sums are exact the squares of its squared
    errors, the linear predictor and its square, by which a curve places its bins; once.
    """
    if not 0 < threshold < 1:
        raise SettingsInvalid(f"threshold={threshold!r} is no probability.", remedy="Give one between 0 and 1.")
    fitted = Fitted.of(federation, model, formula)
    fitted.require(binary=True)
    farthest = farthest_of(federation, fitted)
    bounds = fitted.bounded(federation, classified_bounds(fitted.weight, farthest))
    question = partial(classified, threshold=threshold, farthest=farthest)
    sums = fitted.ask(federation).sum(question, fitted.coef, bound=bounds)
    n = max(float(sums["cells"].sum()), 1.0)
    cells = tuple(sums["cells"].tolist())
    place = None if farthest is None else place_by(sums["score"], n, cells[2] + cells[3])
    brier, error = float(sums["brier"]) / n, float("nan")
    if farthest is not None and n > 1:
        error = math.sqrt(max(float(sums["brier_squares"]) / n - brier**2, 0.0) / (n - 1))
    return BinaryMetrics(cells, float(sums["log_loss"]) / n, brier, threshold, place, error)
