"""Logistic regression of two classes or several."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import Column, Schema
from hedgerow.errors import FormulaInvalid, NotBinary, Separated, SettingsInvalid
from hedgerow.stats import binary_metrics, logistic_regression, multinomial_regression, penalised_regression
from hedgerow.stats.columns import levels_of, schema_of
from hedgerow.stats.design import Design, design_of
from hedgerow.stats.factors import Levels
from hedgerow.stats.multinomial_fit import MultinomialFit, classes_of

from .base import FederatedEstimator
from .linear import count, formula_for
from .plain import logistic, split_classes


def coded(name: str, y: Array) -> tuple[Column, Array, Array]:
    """Declare the classes of a target and code them: the column, its codes, and the classes in their order."""
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y holds one class only, {classes[0]!r}, and a classifier needs two.")
    if len(classes) == 2:
        return Column(name, "binary", role="target"), codes.astype(np.float64), classes
    words = tuple(map(str, classes.tolist()))
    return Column(name, "category", role="target", levels=words), codes.astype(np.int16), classes


def words_of(spec: Design) -> Array:
    """The classes of a target, the reference first: 0 and 1 of a binary one or a comparison, else words."""
    response = spec.response
    if not isinstance(response, Levels) or spec.schema[response.column].kind == "binary":
        return np.array([0, 1])
    reference = next(word for word in levels_of(spec.schema[response.column]) if word not in response.labels)
    return np.array([reference, *response.labels])


class FederatedLogisticRegression(ClassifierMixin, FederatedEstimator):
    """Logistic regression; equal to scikit-learn's `LogisticRegression` of the same C and l1_ratio on the pooled records.

    Two classes go through `hedgerow.stats.logistic_regression`, several through `multinomial_regression`. With a finite C the
    likelihood of two classes is penalised.

    Parameters
    ----------
    formula : str, optional
        By default the schema's target by all features.
    C : float
        As of `LogisticRegression`. By default infinite: maximum likelihood, with standard errors. A finite one asks for the
        number of records first, and leaves none.
    l1_ratio : float
        Of a finite C: 0 for ridge, 1 for the lasso.
    fit_intercept : bool
        Without a formula, whether there is a constant.
    tol, max_iter
        As `tol` and `max_rounds` of `hedgerow.stats.regression`.
    rounds : int
        Through a channel that clips or adds noise: rounds, each of which is charged.
    parties : int
        Simulated parties that `fit(X, y)` makes.

    Attributes
    ----------
    fit_ : hedgerow.stats.Fit, PenalisedFit or MultinomialFit
    classes_ : array of shape (K,)
        The reference first: 0 and 1, or words of levels; of `(X, y)` the values of y.
    coef_ : array of shape (1, d), or (K, d) with zeros for the reference
    intercept_ : array of shape (1,), or (K,)

    Raises
    ------
    Separated (HR-321)
        From `fit` without a penalty: estimates are infinite.
    SettingsInvalid (HR-511)
        From `fit`: C is not above zero, or finite with more than two classes.
    """

    _numeric = False

    def __init__(
        self,
        formula: str | None = None,
        *,
        C: float = math.inf,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 50,
        rounds: int = 5,
        parties: int = 1,
    ) -> None:
        self.formula, self.C, self.l1_ratio, self.fit_intercept = formula, C, l1_ratio, fit_intercept
        self.tol, self.max_iter, self.rounds, self.parties = tol, max_iter, rounds, parties

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = math.isinf(self.C)
        return tags

    def _column(self, name: str, y: Array) -> tuple[Column, Array]:
        column, codes, self._values = coded(name, y)
        if len(self._values) > 2 and not math.isinf(self.C):
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass, "
                f"and C is {self.C!r}: a penalty is for two classes. Take C=math.inf."
            )
        return column, codes

    def _fit(self, federation: Federation) -> None:
        if not self.C > 0:
            raise SettingsInvalid(f"C is {self.C!r}.", remedy="C is above zero; infinity is no penalty.")
        schema = schema_of(federation)
        formula = formula_for(self, schema)
        spec, several = self._spec(schema, formula)
        settings: dict[str, Any] = {"tol": self.tol, "max_rounds": self.max_iter}
        if several:
            self.fit_ = multinomial_regression(federation, formula, **settings)
        elif math.isinf(self.C):
            try:
                self.fit_ = logistic_regression(federation, formula, rounds=self.rounds, **settings)
            except Separated as refusal:
                remedy = f"{refusal.remedy}\nOf this estimator: FederatedLogisticRegression(C=1.0)."
                raise Separated(refusal.reason, remedy=remedy) from refusal
        else:
            penalty = 1 / (self.C * max(count(federation, spec, "binomial"), 1.0))
            settings |= {"family": "binomial", "penalty": penalty, "l1_ratio": self.l1_ratio}
            self.fit_ = penalised_regression(federation, formula, **settings)
        self.classes_ = self._values if self._local else words_of(spec)
        self.coef_, self.intercept_ = split_classes(self.fit_.spec, self.fit_.coef_)
        self.n_iter_ = np.array([self.fit_.rounds])

    def _spec(self, schema: Schema, formula: str) -> tuple[Design, bool]:
        """The design, and whether there are more than two classes."""
        try:
            return design_of(schema, formula, "binomial"), False
        except NotBinary as refusal:
            try:
                spec = classes_of(schema, formula)
            except FormulaInvalid:
                raise refusal from None
        if not math.isinf(self.C):
            raise SettingsInvalid(
                f"C is {self.C!r}, and the target has {len(words_of(spec))} classes: only two classes are penalised.",
                remedy="Take C=math.inf, or compare one level with the rest.",
            )
        return spec, True

    def _reads(self) -> tuple[str, ...]:
        reads: tuple[str, ...] = self.fit_.spec.reads
        return reads

    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second class (n,); of several classes those against the reference, whose own are zero: (n, K)."""
        frame = self._frame(X)
        eta: Array = self.fit_.spec.predictor(self.fit_.coef_, frame)
        return np.column_stack([np.zeros(len(frame)), eta]) if isinstance(self.fit_, MultinomialFit) else eta

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class in the order of `classes_`: shape (n, K)."""
        eta = self.decision_function(X)
        found: Array = softmax(eta, axis=1) if eta.ndim == 2 else np.column_stack([expit(-eta), expit(eta)])
        return found

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            found: Array = np.log(self.predict_proba(X))
        return found

    def predict(self, X: Any) -> Array:
        """The most probable class: shape (n,)."""
        eta = self.decision_function(X)
        chosen: Array = self.classes_[eta.argmax(1) if eta.ndim == 2 else (eta > 0).astype(int)]
        return chosen

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy, on records or on a federation.

        Releases
        --------
        Of a federation what `hedgerow.stats.binary_metrics` releases.

        Raises
        ------
        SettingsInvalid (HR-511)
            A federation, and more than two classes.
        """
        if not isinstance(X, Federation):
            return float(super().score(X, y, sample_weight))
        if isinstance(self.fit_, MultinomialFit):
            raise SettingsInvalid(
                "accuracy over a federation is of two classes.", remedy="Score a frame: score(frame, frame['stage'])."
            )
        return binary_metrics(X, self.fit_).accuracy

    def to_sklearn(self) -> Any:
        """Return a fitted `LogisticRegression` that predicts the same; errors as of `FederatedLinearRegression.to_sklearn`."""
        settings = {"C": self.C} if math.isinf(self.C) else {"C": self.C, "l1_ratio": self.l1_ratio}
        named = hasattr(self, "feature_names_in_")
        return logistic(self.fit_.spec, self.fit_.coef_, self.classes_, rounds=self.fit_.rounds, named=named, **settings)
