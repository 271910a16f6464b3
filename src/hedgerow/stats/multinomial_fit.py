"""A fitted multinomial regression: estimates and inference, with the conventions of statsmodels' MNLogit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.errors import FormulaInvalid

from .columns import schema_of, upper_end
from .design import Design
from .factors import Levels
from .multinomial import MultinomialState, labels_of, softmax_newton
from .regression import left_of, protection_of
from .state import solve

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class MultinomialFit:
    """Estimates of a multinomial logistic regression, with K - 1 rows of d coefficients.

    Attributes
    ----------
    spec : Design
    levels : tuple of str
        Of the target; the first is the reference.
    coef_ : array of shape (K - 1, d)
        Log-odds of a level against the reference, for each unit of a column.
    covariance : array of shape ((K - 1) d, (K - 1) d)
        Of `coef_`, row by row.
    counts : array of shape (K,)
        Records of each level.
    deviance : float
        Minus twice the log-likelihood.
    rounds, n_parties, n_missing, left, protection
        As in `Fit`.
    """

    spec: Design
    levels: tuple[str, ...]
    coef_: Array
    covariance: Array
    counts: Array
    deviance: float
    rounds: int
    n_parties: int
    n_missing: int
    left: str
    protection: str

    @property
    def n_records(self) -> float:
        """Records, or the sum of their weights."""
        return float(self.counts.sum())

    @property
    def se_(self) -> Array:
        """Standard errors, shape (K - 1, d)."""
        se: Array = np.sqrt(np.diag(self.covariance)).reshape(self.coef_.shape)
        return se

    @property
    def statistic_(self) -> Array:
        """Coefficients over their standard errors, shape (K - 1, d)."""
        return self.coef_ / self.se_

    @property
    def p_values(self) -> Array:
        """Two-sided p-values, shape (K - 1, d)."""
        p: Array = 2 * ndtr(-np.abs(self.statistic_))
        return p

    def conf_int(self, level: float = 0.95) -> Array:
        """Confidence intervals of the coefficients, shape (K - 1, d, 2)."""
        reach = ndtri(upper_end(level)) * self.se_
        return np.stack([self.coef_ - reach, self.coef_ + reach], axis=-1)

    @property
    def log_likelihood(self) -> float:
        return -self.deviance / 2

    @property
    def null_log_likelihood(self) -> float:
        """Of a constant alone."""
        return float((self.counts * np.log(self.counts / self.n_records)).sum())

    @property
    def aic(self) -> float:
        """Akaike's criterion."""
        return 2 * self.coef_.size + self.deviance

    @property
    def bic(self) -> float:
        """Schwarz's criterion."""
        return math.log(self.n_records) * self.coef_.size + self.deviance

    @property
    def r_squared(self) -> float:
        """McFadden's 1 - log-likelihood / null's."""
        return 1 - self.log_likelihood / self.null_log_likelihood

    def predict(self, frame: pandas.DataFrame) -> pandas.DataFrame:
        """Probabilities of the levels for new records, one column each; see `Fit.predict`."""
        import pandas

        given = {name: np.asarray(frame[name]) for name in self.spec.reads if name in frame}
        columns, n = self.spec.schema.select(self.spec.reads).admit(given), len(frame)
        eta = np.column_stack([np.zeros(n), self.spec.matrix(columns, n) @ self.coef_.T])
        p = np.exp(eta - logsumexp(eta, axis=1, keepdims=True))
        return pandas.DataFrame(p, columns=list(self.levels), index=frame.index)

    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Return one row for each level but the reference, and coefficient."""
        import pandas

        index = pandas.MultiIndex.from_product([self.levels[1:], self.spec.names], names=["level", "column"])
        low, high = self.conf_int(level).reshape(-1, 2).T
        parts = {"coef": self.coef_, "se": self.se_, "z": self.statistic_, "p": self.p_values}
        values = {name: part.ravel() for name, part in parts.items()} | {"low": low, "high": high}
        return pandas.DataFrame(values | {"odds ratio": np.exp(self.coef_).ravel()}, index=index)

    def summary(self, level: float = 0.95) -> str:
        """Return the estimates as text, with what left each party and how it was protected."""
        from .summary import multinomial_summary

        return multinomial_summary(self, level)

    def __str__(self) -> str:
        return self.summary()


def multinomial_regression(
    federation: Federation,
    formula: str,
    *,
    weights: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
) -> MultinomialFit:
    """Multinomial logistic regression of a category by maximum likelihood; equal to the pooled fit.

    Parameters
    ----------
    federation : Federation
    formula : str
        The target is a category; its first level is the reference, or the one named: `C(stage, Treatment('II')) ~ age`.
    weights, tol, max_rounds
        As `logistic_regression`.

    Raises
    ------
    FormulaInvalid (HR-310)
        The target is a number, or the schema has an offset, which would mean the same for every level.
    NotIdentified (HR-320), Separated (HR-321), NotConverged (HR-322)
        Estimates are not unique, infinite, or not reached.

    Releases
    --------
    As `softmax_newton`.

    Examples
    --------
    >>> multinomial_regression(federation, "stage ~ age + dose").to_frame()
    """
    asked_before = len(federation.ledger)
    spec = classes_of(schema_of(federation), formula, weights=weights)
    *_, state = softmax_newton(federation, spec, tol=tol, max_rounds=max_rounds)
    return multinomial_fit(federation, spec, state, asked_before)


def classes_of(schema: Any, formula: str, *, weights: str | None = None) -> Design:
    """Read a formula whose target is a category of any number of levels; nobody is asked."""
    spec = Design.of(formula, schema, weights=weights, classes=True)
    if spec.offset:
        raise FormulaInvalid(
            f"the offset {spec.offset!r} has no meaning for {len(labels_of(spec)) + 1} levels.",
            remedy="Give the column another role: table.with_roles(offset=None).",
        )
    if not labels_of(spec):
        raise FormulaInvalid("the target has a single level.", remedy="A target needs two levels or more.")
    return spec


def multinomial_fit(federation: Federation, spec: Design, state: MultinomialState, asked_before: int = 0) -> MultinomialFit:
    """Turn the last state of `softmax_newton` into a fit."""
    assert isinstance(spec.response, Levels)
    column = spec.schema[spec.response.column]
    words = column.levels if column.kind == "category" else ("0", "1")
    reference = next(word for word in words if word not in spec.response.labels)
    inverse = solve(state.information, np.eye(len(state.information)))
    return MultinomialFit(
        spec=spec,
        levels=(reference, *spec.response.labels),
        coef_=state.beta,
        covariance=(inverse + inverse.T) / 2,
        counts=state.levels,
        deviance=state.deviance,
        rounds=state.round,
        n_parties=len(federation.members),
        n_missing=federation.missing,
        left=left_of(federation, asked_before),
        protection=protection_of(federation),
    )
