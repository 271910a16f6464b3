"""What Newton's methods carry from round to round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from hedgerow.core.arrays import Array
from hedgerow.display import displayed


@displayed
@dataclass(frozen=True)
class NewtonState:
    """A point, the sums at that point, and the point to try next.

    Attributes
    ----------
    beta : array of shape (d,)
        The best coefficients so far; (K, d) of several linear predictors, and longer where other parameters follow.
    trial : array, as `beta`
        Where the next round asks.
    score, information : arrays of shape (d,) and (d, d)
        At `beta`; the inverse of the information, times the dispersion, is the covariance of the estimates.
    deviance : float
        At `beta`: residual sum of squares, or minus twice the log-likelihood of a binary target; what is minimised.
    n : float
        Records, or the sum of their weights.
    centre, response, squares : float
        The target's deviations from `centre`, and their squares, added up.
    length : float
        Of the step from `beta` to `trial`, in standard errors.
    crawled : int
        Rounds in a row whose step hardly shrank though the gain vanished, as when classes are separated.
    pearson : float
        Squared residuals in units of their variance, added up; of families whose dispersion is estimated from them.
    saturated : float
        Log-likelihood of a perfect fit.
    null_deviance : float
        Of a constant alone, where the first sums tell; else NaN.
    beyond : float
        Records whose mean was cut off, where rows are hidden.
    kept : dict of arrays
        What a method keeps besides, in the columns' own units.
    """

    round: int
    beta: Array
    trial: Array
    score: Array
    information: Array
    deviance: float = 0.0
    n: float = 0.0
    centre: float = 0.0
    response: float = 0.0
    squares: float = 0.0
    length: float = 0.0
    crawled: int = 0
    converged: bool = False
    pearson: float = 0.0
    saturated: float = 0.0
    null_deviance: float = float("nan")
    beyond: float = 0.0
    kept: dict[str, Array] = field(default_factory=dict)

    @classmethod
    def at_zero(cls, d: int) -> NewtonState:
        """Before the first round."""
        return cls(0, np.zeros(d), np.zeros(d), np.zeros(d), np.zeros((d, d)))

    def reached(self, sums: Mapping[str, Array]) -> NewtonState:
        """Return the state at the trial point, whose sums these are."""
        told = {name: float(sums[name]) for name in ("deviance", "n", "pearson", "saturated", "beyond") if name in sums}
        return NewtonState(
            round=self.round + 1,
            beta=self.trial,
            trial=self.trial,
            score=sums["score"],
            information=sums["information"],
            centre=self.mean,
            response=float(sums["y"]),
            squares=float(sums["yy"]),
            null_deviance=self.null_deviance,
            kept=self.kept,
            **told,
        )

    def halved(self) -> NewtonState:
        """Return the state after a step that was too long, half of which is tried next."""
        return replace(self, round=self.round + 1, trial=(self.beta + self.trial) / 2)

    def of_columns(self, factors: Array) -> NewtonState:
        """Return the state for columns that are `factors` times larger."""
        by, after = _extended(factors, self.beta.shape[-1]), _extended(factors, self.trial.shape[-1])
        of_matrix = np.tile(by, len(self.information) // len(by)) if len(by) else by
        return replace(
            self,
            beta=self.beta / by,
            trial=self.trial / after,
            score=self.score * by,
            information=self.information * np.outer(of_matrix, of_matrix),
        )

    @property
    def mean(self) -> float:
        """Mean of the target, minus offset where it is a number."""
        return self.centre + self.response / self.n if self.n else 0.0

    @property
    def raw_sum(self) -> float:
        """The target, added up."""
        return self.response + self.n * self.centre

    @property
    def total_squares(self) -> float:
        """Squared deviations of the target from its mean, added up."""
        return self.squares - self.response**2 / self.n

    @property
    def raw_squares(self) -> float:
        """Squares of the target, added up."""
        return self.squares + 2 * self.centre * self.response + self.n * self.centre**2


def _extended(factors: Array, size: int) -> Array:
    """Factors of all parameters: those after the columns' have no units."""
    return np.append(factors, np.ones(size - len(factors)))


def solve(information: Array, right: Array) -> Array:
    """Solve `information @ x = right` by Cholesky after scaling to a unit diagonal.

    Raises
    ------
    numpy.linalg.LinAlgError
        The information is not positive definite.
    """
    diagonal = np.diag(information)
    if not (diagonal > 0).all():
        raise np.linalg.LinAlgError("a diagonal element is not above zero")
    size = np.sqrt(diagonal)
    scaled = cho_solve(cho_factor(information / np.outer(size, size)), (right.T / size).T)
    solved: Array = (scaled.T / size).T
    return solved
