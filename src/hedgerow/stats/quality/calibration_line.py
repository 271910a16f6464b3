"""The line, or the curve, that takes predicted probabilities to those that came true: intercept, slope, and their errors.

    z           =  log-odds that the model predicts
    log-odds    =  intercept + slope z                               + terms of a restricted cubic spline, of declared knots
    log-odds    =  intercept at large + z

    for each round:
        coefficients   -> every party                                                                  broadcast
        score          <- sum of  w * (y - p) * (1, z, ...)                                             sum
        information    <- sum of  w * p (1 - p) * (1, z, ...)(1, z, ...)'                               sum
        coefficients   <- coefficients + information^-1 score        halved while the loss rises

A model that is right has slope 1 and intercept 0; slope below 1 says that its predictions are too far apart, as they are where
it was fitted to too few records. Intercept at large is that of slope 1: above 0 more came true than predicted. Of the records
that a logistic regression was fitted to all three are as they should be, whatever the model is worth: ask others.

Releases : each round the score and the triangle of the information, 5 numbers for a line, n and the loss, and 3 at large.
Unit     : record.
Source   : Cox 1958; Van Calster et al. 2019; Harrell 2015, section 2.4.5, for the spline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, linf
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import linear
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid, UnlawfulChannel

from ..blocks import by_blocks
from ..columns import is_exact, upper_end
from ..fitted import Fitted
from ..state import solve
from .metrics import LIMIT, farthest_of

if TYPE_CHECKING:
    import pandas

MOST_ROUNDS = 25
CLOSE, STALLED = 1e-9, 1e-4
"""Steps in standard errors: so short a step ends the rounds, and one no longer than this that does not shrink any more."""
MOST_CORRELATED = 1e12
"""Condition number beyond which scores count as equal."""


@local(additive=True, stackable=True)
@by_blocks
def line_sums(
    broadcast: Mapping[str, Array], party: Party, rng: Any, *, farthest: float, knots: tuple[float, ...] = ()
) -> dict[str, Array]:
    """Add up score (d,), upper triangle of the information and loss at coefficients `at` (d,), and both at slope one."""
    eta = np.clip(linear(party["X"], broadcast["beta"]) + party["offset"], -farthest, farthest)
    y, w, rows = party["y"] > 0.5, party.w, terms_of(eta, knots)
    at, at_large = rows @ broadcast["at"], eta + broadcast["large"]
    p, large = expit(at), expit(at_large)
    information = np.swapaxes(rows, -1, -2) @ (rows * (w * p * (1 - p))[..., None])
    i, j = np.triu_indices(rows.shape[-1])
    return {
        "n": party.n,
        "loss": (w * losses(at, y)).sum(-1),
        "score": (rows * (w * (y - p))[..., None]).sum(-2),
        "information": information[..., i, j],
        "large": np.stack([(w * part).sum(-1) for part in (y - large, large * (1 - large), losses(at_large, y))], axis=-1),
    }


def losses(eta: Array, y: Array) -> Array:
    """Log-loss of each record, no larger than `LIMIT`."""
    found: Array = np.minimum(np.logaddexp(0.0, np.where(y, -eta, eta)), LIMIT)
    return found


def terms_of(z: Array, knots: Sequence[float]) -> Array:
    """1, z, and of k knots k - 2 terms of a restricted cubic spline, shape (..., 2) and more."""
    found = [np.ones_like(z), z]
    if len(knots) > 2:
        last, end, width = knots[-2], knots[-1], knots[-1] - knots[0]
        for knot in knots[:-2]:
            cubes = (np.maximum(z - place, 0.0) ** 3 for place in (knot, last, end))
            first, second, third = cubes
            bent = first - second * (end - knot) / (end - last) + third * (last - knot) / (end - last)
            found.append(bent / width**2)
    return np.stack(found, axis=-1)


def line_bounds(weight: float | None, farthest: float, knots: tuple[float, ...]) -> dict[str, Bound] | None:
    """By how much one record moves `line_sums`: the terms of a spline rise, so that they are largest at the far end."""
    if weight is None:
        return None
    size = max(1.0, farthest, float(np.abs(terms_of(np.array(farthest), knots)).max()))
    sizes = {"n": 1.0, "loss": LIMIT, "score": size, "information": size**2 / 4, "large": LIMIT}
    return {key: linf(weight * of, "record") for key, of in sizes.items()}


@displayed
@dataclass(frozen=True, eq=False)
class CalibrationLine:
    """How the log-odds that came true go by those that were predicted.

    Attributes
    ----------
    coef_ : array of shape (d,)
        Intercept, slope, and of a curve the terms of its spline; NaN where records do not tell, such as those of one class.
    covariance : array of shape (d, d)
    at_large, at_large_se : float
        Intercept where the slope is one, and its standard error.
    knots : tuple of float
        Of a curve, in log-odds; none of a line.
    n : float
    rounds : int
    """

    coef_: Array
    covariance: Array
    at_large: float
    at_large_se: float
    knots: tuple[float, ...]
    n: float
    rounds: int

    @property
    def intercept(self) -> float:
        return float(self.coef_[0])

    @property
    def slope(self) -> float:
        return float(self.coef_[1])

    @property
    def se_(self) -> Array:
        """Standard errors of intercept, slope and further terms, shape (d,)."""
        se: Array = np.sqrt(np.diag(self.covariance))
        return se

    def conf_int(self, level: float = 0.95) -> Array:
        """Wald intervals of intercept, slope and further terms, shape (d, 2)."""
        reach = float(ndtri(upper_end(level))) * self.se_
        return np.stack([self.coef_ - reach, self.coef_ + reach], axis=-1)

    @property
    def p_values(self) -> tuple[float, float]:
        """That the slope is not one, and that the intercept at large is not zero; two-sided, by Wald."""
        return _two_sided((self.slope - 1) / self.se_[1]), _two_sided(self.at_large / self.at_large_se)

    def curve(self, p: Array, level: float = 0.95) -> Array:
        """Probabilities that came true where `p` (k,) was predicted, and the ends of their band, shape (k, 3)."""
        rows = terms_of(logit(np.asarray(p, dtype=np.float64)), self.knots)
        middle = rows @ self.coef_
        reach = float(ndtri(upper_end(level))) * np.sqrt(np.maximum((rows @ self.covariance * rows).sum(-1), 0.0))
        found: Array = expit(np.stack([middle, middle - reach, middle + reach], axis=-1))
        return found

    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Return one row each for intercept, slope, further terms and the intercept at large: estimate, error, interval."""
        import pandas

        names = ["intercept", "slope", *(f"spline {i + 1}" for i in range(len(self.coef_) - 2)), "intercept at large"]
        estimates, errors = np.append(self.coef_, self.at_large), np.append(self.se_, self.at_large_se)
        reach = float(ndtri(upper_end(level))) * errors
        columns = {"estimate": estimates, "standard error": errors, "low": estimates - reach, "high": estimates + reach}
        return pandas.DataFrame(columns, index=pandas.Index(names, name="calibration"))

    def summary(self, level: float = 0.95) -> str:
        """What slope and intercept say, in a sentence or two."""
        if not np.isfinite(self.coef_[1]) or not np.isfinite(self.se_[1]):
            return "These records do not tell a calibration slope."
        low, high = self.conf_int(level)[1]
        said = f"Calibration slope {self.slope:.2f} ({low:.2f} to {high:.2f})"
        if high < 1:
            said += ": predictions are too far apart"
        elif low > 1:
            said += ": predictions are too close together"
        else:
            said += ": no sign that predictions are too far apart or too close together"
        reach = float(ndtri(upper_end(level))) * self.at_large_se
        said += f". Intercept at large {self.at_large:.2f} ({self.at_large - reach:.2f} to {self.at_large + reach:.2f})"
        if abs(self.at_large) > reach:
            said += f": events were {'more' if self.at_large > 0 else 'fewer'} than predicted"
        return said + "."


def _two_sided(z: float) -> float:
    return float(2 * ndtr(-abs(z)))


def calibration_line(
    federation: Federation, model: Any, *, formula: str | None = None, knots: Sequence[float] = ()
) -> CalibrationLine:
    """Calibration slope and intercept of a model's probabilities, by Newton's method on sums; with knots a smooth curve.

    Parameters
    ----------
    model : Fit, state, or array of shape (d,)
        Whose linear predictor is a log-odds.
    knots : sequence of float
        Three or more probabilities, rising and public, between which the curve bends; none for a line.

    Releases
    --------
    Score, information, n, loss, and score, information and loss of the intercept at large; once a round, five to eight times.

    Raises
    ------
    SettingsInvalid (HR-511), UnboundedSum (HR-210), UnlawfulChannel (HR-211)
        Knots that do not rise; rows are hidden and a range is not declared; the channel clips or adds noise.
    """
    places = np.asarray(knots, dtype=np.float64)
    inside = (places > 0).all() and (places < 1).all() and (np.diff(places) > 0).all()
    if len(places) and not (len(places) > 2 and inside):
        remedy = "Give three probabilities or more in rising order, or none."
        raise SettingsInvalid(f"knots={list(knots)!r} bend no curve.", remedy=remedy)
    if not is_exact(federation):
        raise UnlawfulChannel(
            "a calibration line compares losses of rounds, and this channel clips or adds noise.",
            remedy="Ask for calibration(), which is one question of counts; or through a channel without noise.",
        )
    fitted = Fitted.of(federation, model, formula)
    fitted.require(binary=True)
    farthest = farthest_of(federation, fitted)
    assert farthest is not None, "it is None behind noise alone"
    at = tuple(float(place) for place in logit(places))
    bounds = fitted.bounded(federation, line_bounds(fitted.weight, farthest, at))
    asked, question = fitted.ask(federation), partial(line_sums, farthest=farthest, knots=at)

    def sums(trial: Array, large: float) -> dict[str, Array]:
        found: dict[str, Array] = asked.sum(
            question, {"beta": fitted.coef, "at": trial, "large": np.array(large)}, bound=bounds
        )
        return found

    return newton_line(sums, at)


def newton_line(sums: Callable[[Array, float], Mapping[str, Array]], knots: tuple[float, ...]) -> CalibrationLine:
    """Newton's method on `line_sums`, which `sums(coefficients, intercept at large)` asks for, from zeros on."""
    d, n, rounds = len(terms_of(np.zeros(()), knots)), 0.0, 0
    line, large = Climb.at_zero(d), Climb.at_zero(1)
    while not (line.done and large.done) and rounds < MOST_ROUNDS:
        found, rounds = sums(line.trial, float(large.trial[0])), rounds + 1
        n = float(found["n"])
        if rounds == 1 and not 0.5 < float(found["score"][0]) + n / 2 < n - 0.5:  # nobody, or one class
            break
        information = np.zeros((d, d))
        information[np.triu_indices(d)] = found["information"]
        line = line.told(found["score"], np.triu(information) + np.triu(information, 1).T, float(found["loss"]))
        at_large = found["large"]
        large = large.told(at_large[:1], at_large[1:2, None], float(at_large[2]))
    (at, at_error), (coef, covariance) = large.found, line.found
    return CalibrationLine(coef, covariance, float(at[0]), math.sqrt(float(at_error[0, 0])), knots, n, rounds)


@dataclass(frozen=True)
class Climb:
    """Where Newton's method is: the best point, the next trial, the loss and the step there, and whether it has ended."""

    best: Array
    trial: Array
    step: Array
    inverse: Array
    loss: float = math.inf
    length: float = math.inf
    done: bool = False

    @classmethod
    def at_zero(cls, d: int) -> Climb:
        return cls(np.zeros(d), np.zeros(d), np.zeros(d), np.full((d, d), np.nan))

    def told(self, score: Array, information: Array, loss: float) -> Climb:
        """The next trial: half the step where the loss has risen, else a step from here; NaN where there is no step."""
        if self.done:
            return self
        if loss > self.loss * (1 + 1e-9) and self.length > STALLED:
            return replace(self, step=self.step / 2, trial=self.best + self.step / 2)
        try:
            inverse = solve(information, np.eye(len(score)))
        except np.linalg.LinAlgError:
            inverse = np.full_like(information, np.nan)
        if not np.isfinite(inverse).all() or _correlated(information) > MOST_CORRELATED:  # all scores are equal
            return replace(Climb.at_zero(len(score)), best=np.full(len(score), np.nan), done=True)
        step = inverse @ score
        length = math.sqrt(max(float(step @ score), 0.0))
        done = length < CLOSE or STALLED > length >= self.length / 2
        return Climb(self.trial, self.trial + step, step, inverse, loss, length, done)

    @property
    def found(self) -> tuple[Array, Array]:
        """The estimate and its covariance; NaN where it has not been reached."""
        there = self.trial if self.done and np.isfinite(self.best).all() else np.full(len(self.best), np.nan)
        return there, self.inverse if self.done else np.full_like(self.inverse, np.nan)


def _correlated(information: Array) -> float:
    """The condition number of an information with a unit diagonal."""
    size = np.sqrt(np.diag(information))
    return float(np.linalg.cond(information / np.outer(size, size)))
