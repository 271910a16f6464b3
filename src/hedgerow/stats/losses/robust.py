"""Huber's robust regression on sums: residuals beyond a threshold pull with a constant force.

    s      <- median of |r| / 0.6745                        counts, some rounds of `hedgerow.stats.losses.middle`
    beta   <- minimise sum of huber(r / s)                  Newton steps, which end after a few
    repeat until neither moves

Where both hold still is where the re-weighted least squares of statsmodels' RLM hold still.

Releases : gradient, curvature, n and loss of Huber's loss, counts of absolute residuals; once a round each. For the
           standard errors X'X and three sums, once.
Unit     : record.
Source   : Huber 1981, sections 7.6 and 7.10 (first proposal for the covariance).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.data import load
from hedgerow.display import displayed
from hedgerow.errors import NotConverged, SettingsInvalid
from hedgerow.report import Figure, ForPapers, Outcome

from ..columns import schema_of, upper_end
from ..design import Design, design_of
from ..linear.asking import Asked, ask_for
from ..results import Settings, brief, spec_of
from ..scores import absolute_error, reading, scored
from ..state import solve
from .middle import median_residual
from .smooth import least_squares, refuse_noise

if TYPE_CHECKING:
    import pandas

NORMAL_MEDIAN = float(ndtri(0.75))
NO_SCALE = 1e-8
"""Of the least-squares residuals' size: a median residual below this is rounding."""
STEPS = 30
"""Newton steps at one scale, at most."""


@displayed
@dataclass(frozen=True, eq=False)
class RobustFit(ForPapers):
    """A line that outliers pull less at.

    Attributes
    ----------
    spec : Design
    coef_ : array of shape (d,)
    covariance : array of shape (d, d)
        NaN where it is not estimated.
    scale : float
        Of the residuals; NaN for a quantile regression.
    objective : float
        Mean loss.
    rounds : int
        Questions asked.
    """

    spec: Design
    coef_: Array
    covariance: Array
    scale: float
    n_records: float
    objective: float
    rounds: int

    @property
    def names(self) -> tuple[str, ...]:
        return self.spec.names

    @property
    def se_(self) -> Array:
        """Standard errors, shape (d,)."""
        se: Array = np.sqrt(np.diag(self.covariance))
        return se

    @property
    def p_values(self) -> Array:
        """Two-sided p-values by the normal distribution, shape (d,)."""
        p: Array = 2 * ndtr(-np.abs(self.coef_ / self.se_))
        return p

    def conf_int(self, level: float = 0.95) -> Array:
        """Confidence intervals by the normal distribution, shape (d, 2)."""
        reach = ndtri(upper_end(level)) * self.se_
        return np.column_stack([self.coef_ - reach, self.coef_ + reach])

    def plot(self, level: float = 0.95, *, intercept: bool = False) -> Figure:
        """Draw the coefficients with their intervals, as SVG; the intercept is left out where it is not asked for."""
        from ..plots import coefficients_figure

        return coefficients_figure(self, level, intercept=intercept)

    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Return one row for each coefficient."""
        import pandas

        low, high = self.conf_int(level).T
        values = {"coef": self.coef_, "se": self.se_, "p": self.p_values, "low": low, "high": high}
        return pandas.DataFrame(values, index=pandas.Index(self.names, name="column"))


@displayed
@dataclass(frozen=True)
class HuberState:
    """After a line was fitted at a scale.

    Attributes
    ----------
    beta : array of shape (d,)
    scale : float
        At which `beta` was fitted.
    covariance : array of shape (d, d)
        Of the coefficients; NaN until they have converged.
    change : float
        Of the scale since the state before, relative.
    objective : float
        Mean of Huber's loss of `r / scale`.
    asked : int
        Questions so far; `round` counts scales.
    """

    round: int
    beta: Array
    scale: float
    n: float
    covariance: Array
    change: float = float("inf")
    objective: float = float("nan")
    asked: int = 0
    converged: bool = False


def show(federation: Federation, settings: Settings, state: HuberState) -> Outcome:
    """Show the line, with intervals."""
    fit = robust_fit(spec_of(federation, settings, "gaussian"), state)
    metrics = {"scale of residuals": fit.scale, "objective": fit.objective}
    words = f"Huber's loss, linear beyond {settings['threshold']:g} scales; intervals by Huber's first proposal"
    return brief(federation, settings, f"converged at {state.round} scales", fit.to_frame(), metrics, words)


@program(
    "Robust linear regression by Huber's loss, with intervals (Huber 1981).",
    name="huber_regression",
    outcome=show,
    case=lambda: Case(load("diabetes").take(range(200)), {"formula": "progression ~ bmi + sex", "tol": 1e-2}),
    **scored(reading("gaussian"), absolute_error, "mean absolute error"),
)
def huber_lines(
    federation: Federation,
    *,
    formula: str,
    threshold: float = 1.345,
    tol: float = 1e-9,
    max_rounds: int = 50,
    offset: str | None = None,
    weights: str | None = None,
    start: HuberState | None = None,
) -> Iterator[HuberState]:
    """Fit lines at scales until both hold still; settings as `hedgerow.stats.regression`.

    Parameters
    ----------
    formula : str
        As of a linear regression.
    threshold : float
        Residuals beyond so many scales pull with a constant force; 1.345 loses 5 percent of efficiency where errors are
        normal.
    tol : float
        Stop when the scale moves by less than this, relative.
    max_rounds : int
        Scales, each of which takes some five questions.
    offset : str, optional
        Column or expression that is subtracted from the target.

    Yields
    ------
    HuberState
        After each scale; the last one has a covariance.

    Raises
    ------
    SettingsInvalid (HR-511), FormulaInvalid (HR-310), UnlawfulChannel (HR-211)
        Before any party is asked.
    NotIdentified (HR-320), NotConverged (HR-322)

    Releases
    --------
    See the module.
    """
    if not (threshold > 0 and tol > 0 and max_rounds >= 1):
        raise SettingsInvalid(f"threshold={threshold!r}, tol={tol!r}, max_rounds={max_rounds!r}.", remedy="All are above zero.")
    refuse_noise(federation, "huber_regression", "Ask gradient_descent(family='check'), or a linear regression.")
    spec = design_of(schema_of(federation), formula, "gaussian", offset=offset, weights=weights)

    def lines() -> Iterator[HuberState]:
        asked = ask_for(federation, spec, target=False)
        state = start or _begin(asked)
        while not state.converged:
            if state.round >= max_rounds:
                raise NotConverged(
                    f"after {state.round} scales the last one moved by {state.change:.2g}.", remedy="Give a larger max_rounds."
                )
            state = _advance(asked, state, threshold, tol)
            if state.converged:
                state = replace(state, covariance=huber_covariance(asked, state, threshold), asked=state.asked + 2)
            yield state

    return lines()


def _begin(asked: Asked) -> HuberState:
    first = least_squares(asked)
    unknown = np.full((len(first.beta), len(first.beta)), np.nan)
    return HuberState(0, first.beta, first.next_width / 2, 0.0, unknown, asked=1)


def _advance(asked: Asked, state: HuberState, threshold: float, tol: float) -> HuberState:
    """Measure the scale at `beta`, then fit the line at this scale."""
    known = max(tol / 10, min(state.change, 1.0) / 100)  # a scale that still moves need not be known to many digits
    around = 0.9 if state.round == 0 else min(0.9, 3 * state.change + 10 * known)
    guess = state.scale * NORMAL_MEDIAN
    middle, times = median_residual(asked, state.beta * asked.factors, guess=guess, tol=known, within=around)
    scale = middle / NORMAL_MEDIAN
    change = abs(scale / state.scale - 1) if state.scale > 0 else 0.0
    if not scale > (NO_SCALE * state.scale if state.round == 0 else 0.0):
        raise NotConverged(
            "more than half of the residuals are zero, so they have no scale.", remedy="Ask quantile_regression."
        )
    found, steps = _fit_at(asked, state, scale, threshold)
    return replace(
        found,
        round=state.round + 1,
        scale=scale,
        change=change,
        asked=state.asked + times + steps,
        converged=change < tol and known <= tol,
    )


def _fit_at(asked: Asked, state: HuberState, scale: float, threshold: float) -> tuple[HuberState, int]:
    """Newton steps on a loss of square and straight pieces: once every record keeps its piece, a step ends there."""
    beta, best, trial = state.beta, np.inf, state.beta
    times = 0
    while times < STEPS:
        times += 1
        keys = ("gradient", "curvature", "n", "loss")
        sums = asked.sums_in_own_units("huber", trial, keys, width=threshold * scale)
        if sums["loss"] > best * (1 + 1e-12):
            trial = (beta + trial) / 2
            continue
        n, beta, best = float(sums["n"]), trial, float(sums["loss"])
        curvature = sums["curvature"]
        step = -solve(curvature + 1e-12 * np.diag(np.diag(curvature)), sums["gradient"])
        if -sums["gradient"] @ step <= 1e-22 * n * scale**2:
            break
        trial = beta + step
    return replace(state, beta=beta, n=n, objective=best / n / scale**2), times


def huber_regression(federation: Federation, formula: str, **settings: Any) -> RobustFit:
    """Huber's regression with the scale of the median absolute residual, as statsmodels' RLM; settings as `huber_lines`."""
    *_, state = huber_lines(federation, formula=formula, **settings)
    return robust_fit(spec_of(federation, settings | {"formula": formula}, "gaussian"), state)


def robust_fit(spec: Design, state: HuberState) -> RobustFit:
    """Turn a state of `huber_lines` into a fit."""
    return RobustFit(spec, state.beta, state.covariance, state.scale, state.n, state.objective, state.asked)


def huber_covariance(asked: Asked, state: HuberState, threshold: float) -> Array:
    """Covariance of the coefficients by Huber's first proposal, shape (d, d); two questions.

    With `m` the share of records within the threshold, the covariance is
    `k^2 * sum(pull^2) / (n - d) / m^2 * (X'X)^-1`, `k = 1 + d / n * (1 - m) / m`.
    """
    d, n = asked.spec.size, state.n
    square = asked.sums_in_own_units("gaussian", state.beta, ("curvature", "loss"))
    sums = asked.sums_in_own_units("huber", state.beta, ("pull", "inside"), width=threshold * state.scale)
    inside, pull = float(sums["inside"]) / n, float(sums["pull"])
    correction = 1 + d / n * (1 - inside) / inside
    inverse = solve(square["curvature"] / 2, np.eye(d))
    found: Array = correction**2 * pull / (n - d) / inside**2 * (inverse + inverse.T) / 2
    return found
