"""A fitted multinomial regression: estimates and inference, with the conventions of statsmodels' MNLogit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import LeftOut, Schema, Table
from hedgerow.display import displayed
from hedgerow.errors import FormulaInvalid
from hedgerow.report import Figure, ForPapers, Outcome

from .columns import schema_of, upper_end, warn_of_fractions
from .design import Design
from .factors import Levels
from .provenance import provenance
from .results import Settings
from .state import NewtonState, solve

if TYPE_CHECKING:
    import pandas


@displayed
@dataclass(frozen=True, eq=False)
class MultinomialFit(ForPapers):
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
    rounds, n_parties, n_missing, left, protection, cases
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
    cases: LeftOut | None = None

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

    def predict(self, frame: Any) -> pandas.DataFrame:
        """Probabilities of the levels for new records, one column each; see `Fit.predict`."""
        import pandas

        others = self.spec.predictor(self.coef_, frame)
        eta = np.column_stack([np.zeros(len(others)), others])
        p = np.exp(eta - logsumexp(eta, axis=1, keepdims=True))
        return pandas.DataFrame(p, columns=list(self.levels), index=getattr(frame, "index", None))

    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Return one row for each level but the reference, and coefficient."""
        import pandas

        index = pandas.MultiIndex.from_product([self.levels[1:], self.spec.names], names=["level", "column"])
        low, high = self.conf_int(level).reshape(-1, 2).T
        parts = {"coef": self.coef_, "se": self.se_, "z": self.statistic_, "p": self.p_values}
        values = {name: part.ravel() for name, part in parts.items()} | {"low": low, "high": high}
        return pandas.DataFrame(values | {"odds ratio": np.exp(self.coef_).ravel()}, index=index)

    def plot(self, level: float = 0.95, *, intercept: bool = False) -> Figure:
        """Draw the coefficients with their intervals, as SVG; the intercept is left out where it is not asked for."""
        from .plots import coefficients_figure

        return coefficients_figure(self, level, intercept=intercept)

    def summary(self, level: float = 0.95) -> str:
        """Return the estimates as text, with what left each party and how it was protected."""
        from .summary import multinomial_summary

        return multinomial_summary(self, level)

    def __str__(self) -> str:
        return self.summary()


def labels_of(spec: Design) -> tuple[str, ...]:
    """Return the levels of the target but the reference."""
    assert isinstance(spec.response, Levels)
    return spec.response.labels


def classes_of(schema: Any, formula: str, *, weights: str | None = None) -> Design:
    """Read a formula whose target is a category of any number of levels; nobody is asked."""
    spec = Design.of(formula, schema, weights=weights, classes=True)
    warn_of_fractions(schema, weights)
    if spec.offset:
        raise FormulaInvalid(
            f"the offset {spec.offset!r} has no meaning for {len(labels_of(spec)) + 1} levels.",
            remedy="Give the column another role: table.with_roles(offset=None).",
        )
    if not labels_of(spec):
        raise FormulaInvalid("the target has a single level.", remedy="A target needs two levels or more.")
    return spec


def multinomial_fit(federation: Federation, spec: Design, state: NewtonState, asked_before: int = 0) -> MultinomialFit:
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
        counts=state.kept["levels"],
        deviance=state.deviance,
        rounds=state.round,
        **provenance(federation, asked_before, spec.valued),
    )


def show(federation: Federation, settings: Settings, state: NewtonState) -> Outcome:
    """Show a fit: one row for each level but the reference, and column."""
    import pandas

    spec = classes_of(schema_of(federation), settings["formula"], weights=settings["weights"])
    fit = multinomial_fit(federation, spec, state)
    frame = fit.to_frame()
    low, high = np.exp(fit.conf_int().reshape(-1, 2)).T
    names = pandas.Index([f"{name} ({level})" for level, name in frame.index], name="column")
    frame = frame.set_axis(names)
    ratios = pandas.DataFrame({"odds ratio": frame["odds ratio"], "low": low, "high": high}, index=names)
    metrics = {"log-likelihood": fit.log_likelihood, "AIC": fit.aic, "pseudo R2": fit.r_squared}
    tables = {"Coefficients": frame, "Odds ratios": ratios}
    return Outcome(metrics, tables=tables, text={"Summary": fit.summary()}, coefficients=frame)


def class_loss(settings: Settings, state: NewtonState, schema: Schema, table: Table) -> float:
    """Mean log-loss on a table."""
    spec = classes_of(schema, settings["formula"], weights=settings["weights"])
    eta = spec.matrix(table.columns, len(table)) @ state.beta.T
    own = (spec.response.columns(table.columns) * eta).sum(1)
    total = np.logaddexp.reduce(np.column_stack([np.zeros(len(table)), eta]), axis=1)
    w = np.asarray(table[spec.weights], dtype=np.float64) if spec.weights else None
    return float(np.average(total - own, weights=w))
