"""Linear regression: least squares, ridge, lasso and elastic net."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import Column
from hedgerow.errors import SchemaInvalid, SettingsInvalid
from hedgerow.stats import linear_metrics, linear_regression, penalised_regression
from hedgerow.stats.columns import schema_of
from hedgerow.stats.design import Design, design_of
from hedgerow.stats.linear.asking import ask_for
from hedgerow.stats.linear.losses import FamilyName

from .base import FederatedEstimator
from .plain import linear, split


def formula_for(estimator: Any, schema: Any) -> str:
    """Return an estimator's formula: its own, or the schema's target by all features.

    Raises
    ------
    SchemaInvalid (HR-409)
        There is none, and the schema declares no target.
    SettingsInvalid (HR-511)
        A formula and fit_intercept=False.
    """
    if estimator.formula is not None:
        if not estimator.fit_intercept:
            raise SettingsInvalid("fit_intercept=False beside a formula.", remedy="Write y ~ 0 + a + b.")
        return str(estimator.formula)
    if schema.target is None:
        raise SchemaInvalid(
            "no formula was given, and the federation's schema declares no target.",
            remedy="Give formula='y ~ a + b', or declare the target: table.with_roles(target='y').",
        )
    return f"`{schema.target}` ~ {'.' if estimator.fit_intercept else '0 + .'}"


def count(federation: Federation, spec: Design, family: FamilyName) -> float:
    """Ask how many records a fit will be of, or the sum of their weights: one number."""
    return float(ask_for(federation, spec).sums(family, np.zeros(spec.size), ("n",))["n"])


class LinearFederated(RegressorMixin, FederatedEstimator):
    """What estimators of a number share."""

    def _column(self, name: str, y: Array) -> tuple[Column, Array]:
        return Column(name, "number", role="target"), np.asarray(y, dtype=np.float64)

    def _set(self, fit: Any) -> None:
        self.fit_ = fit
        self.coef_, constant = split(fit.spec, fit.coef_)
        self.intercept_ = float(constant)
        self.n_iter_ = fit.rounds

    def _reads(self) -> tuple[str, ...]:
        reads: tuple[str, ...] = self.fit_.spec.reads
        return reads

    def predict(self, X: Any) -> Array:
        """Expected target of new records: shape (n,)."""
        frame = self._frame(X)
        predicted: Array = self.fit_.predict(frame)
        return predicted

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R squared, on records or on a federation.

        Releases
        --------
        Of a federation what `hedgerow.stats.linear_metrics` releases.
        """
        if isinstance(X, Federation):
            return linear_metrics(X, self.fit_).r_squared
        return float(super().score(X, y, sample_weight))

    def to_sklearn(self) -> Any:
        """Return a fitted estimator of scikit-learn that predicts the same.

        Raises
        ------
        FormulaInvalid (HR-310)
            The formula has levels, products or functions of columns, which scikit-learn's estimator would not read.
        """
        fit, named = self.fit_, hasattr(self, "feature_names_in_")
        return linear(fit.spec, fit.coef_, self._penalty, rounds=self.n_iter_, named=named)

    @property
    def _penalty(self) -> dict[str, float]:
        """As `ElasticNet` and `Ridge` have it."""
        return {}

    def _penalised(self, federation: Federation, penalty: float, l1_ratio: float, *, per_record: bool) -> None:
        formula = formula_for(self, schema_of(federation))
        if not per_record:
            spec = design_of(schema_of(federation), formula, "gaussian")
            penalty /= max(count(federation, spec, "gaussian"), 1.0)
        settings = {"tol": self.tol, "max_rounds": self.max_iter}
        self._set(penalised_regression(federation, formula, penalty=penalty, l1_ratio=l1_ratio, **settings))


class FederatedLinearRegression(LinearFederated):
    """Least squares; equal to scikit-learn's `LinearRegression` on the pooled records.

    Parameters
    ----------
    formula : str, optional
        As of `hedgerow.stats.linear_regression`; by default the schema's target by all features.
    fit_intercept : bool
        Without a formula, whether there is a constant.
    parties : int
        Simulated parties that `fit(X, y)` makes.

    Attributes
    ----------
    fit_ : hedgerow.stats.Fit
        With standard errors, intervals and `summary()`.
    coef_ : array of shape (d,)
        In the order of `fit_.names`, without the constant.
    intercept_ : float
    """

    def __init__(self, formula: str | None = None, *, fit_intercept: bool = True, parties: int = 1) -> None:
        self.formula, self.fit_intercept, self.parties = formula, fit_intercept, parties

    def _fit(self, federation: Federation) -> None:
        self._set(linear_regression(federation, formula_for(self, schema_of(federation))))


class FederatedRidge(LinearFederated):
    """Least squares with a penalty on squares; equal to scikit-learn's `Ridge` of the same alpha.

    Parameters
    ----------
    formula, fit_intercept, parties
        As `FederatedLinearRegression`.
    alpha : float
        As of `Ridge`: it is added to the sum of squares, so that the number of records is asked for first.
    tol, max_iter
        As `tol` and `max_rounds` of `hedgerow.stats.penalised`.

    Attributes
    ----------
    fit_ : hedgerow.stats.PenalisedFit
        Without standard errors, which a penalty does not leave.

    Raises
    ------
    UnlawfulChannel (HR-211)
        From `fit`: the federation clips or adds noise.
    """

    def __init__(
        self,
        formula: str | None = None,
        *,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 50,
        parties: int = 1,
    ) -> None:
        self.formula, self.alpha, self.fit_intercept = formula, alpha, fit_intercept
        self.tol, self.max_iter, self.parties = tol, max_iter, parties

    def _fit(self, federation: Federation) -> None:
        self._penalised(federation, self.alpha, 0.0, per_record=False)

    @property
    def _penalty(self) -> dict[str, float]:
        return {"alpha": self.alpha}


class FederatedLasso(LinearFederated):
    """Least squares with a penalty on absolute values; equal to scikit-learn's `Lasso` of the same alpha.

    Parameters
    ----------
    formula, fit_intercept, tol, max_iter, parties
        As `FederatedRidge`.
    alpha : float
        As of `Lasso`: it is added to half the mean square.
    """

    def __init__(
        self,
        formula: str | None = None,
        *,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 50,
        parties: int = 1,
    ) -> None:
        self.formula, self.alpha, self.fit_intercept = formula, alpha, fit_intercept
        self.tol, self.max_iter, self.parties = tol, max_iter, parties

    def _fit(self, federation: Federation) -> None:
        self._penalised(federation, self.alpha, 1.0, per_record=True)

    @property
    def _penalty(self) -> dict[str, float]:
        return {"alpha": self.alpha, "l1_ratio": 1.0}


class FederatedElasticNet(LinearFederated):
    """Least squares with both penalties; equal to scikit-learn's `ElasticNet` of the same alpha and l1_ratio.

    Parameters
    ----------
    formula, fit_intercept, tol, max_iter, parties
        As `FederatedRidge`.
    alpha, l1_ratio : float
        As of `ElasticNet`.
    """

    def __init__(
        self,
        formula: str | None = None,
        *,
        alpha: float = 1.0,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 50,
        parties: int = 1,
    ) -> None:
        self.formula, self.alpha, self.l1_ratio, self.fit_intercept = formula, alpha, l1_ratio, fit_intercept
        self.tol, self.max_iter, self.parties = tol, max_iter, parties

    def _fit(self, federation: Federation) -> None:
        self._penalised(federation, self.alpha, self.l1_ratio, per_record=True)

    @property
    def _penalty(self) -> dict[str, float]:
        return {"alpha": self.alpha, "l1_ratio": self.l1_ratio}
