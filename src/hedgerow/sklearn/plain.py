"""Fitted estimators of scikit-learn itself, made of parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge

from hedgerow.errors import FormulaInvalid
from hedgerow.stats.design import Design
from hedgerow.stats.factors import Number

PLAIN = {
    "FederatedLinearRegression": LinearRegression,
    "FederatedRidge": Ridge,
    "FederatedLasso": Lasso,
    "FederatedElasticNet": ElasticNet,
}


def columns_read(spec: Design) -> tuple[str, ...]:
    """Return the column behind each coefficient but the constant's.

    Raises
    ------
    FormulaInvalid (HR-310)
        A term is no column of numbers by itself; or there is an offset.
    """
    names: list[str] = []
    for term in spec.terms:
        if not term.factors:
            continue
        factor = term.factors[0]
        if len(term.factors) > 1 or not isinstance(factor, Number) or factor.text not in spec.schema:
            raise FormulaInvalid(
                f"{' and '.join(term.names[:2])} of {spec.formula!r} is no column of numbers by itself, and an estimator of "
                "scikit-learn would read columns as they are.",
                remedy="Predict with the federated estimator; or add the terms to the tables, as columns, before the fit.",
            )
        names.append(factor.text)
    if spec.offset:
        raise FormulaInvalid(
            f"{spec.formula!r} has the offset {spec.offset!r}.", remedy="Predict with the federated estimator."
        )
    return tuple(names)


def described(made: Any, names: tuple[str, ...], named: bool) -> Any:
    """Set how many columns an estimator reads, and their names where they have any."""
    made.n_features_in_ = len(names)
    if named:
        made.feature_names_in_ = np.array(names, dtype=object)
    return made


def plain_linear(model: Any) -> Any:
    """The estimator of scikit-learn of the same name, with the coefficients."""
    names = columns_read(model.fit_.spec)
    shared = {key: value for key, value in model.get_params().items() if key in ("alpha", "l1_ratio")}
    made = PLAIN[type(model).__name__](fit_intercept=model.fit_.spec.has_constant, **shared)
    made.coef_, made.intercept_ = model.coef_.copy(), model.intercept_
    if not isinstance(made, LinearRegression):
        made.n_iter_ = model.n_iter_
    return described(made, names, hasattr(model, "feature_names_in_"))


def plain_logistic(model: Any) -> Any:
    """A `LogisticRegression` with the coefficients."""
    names = columns_read(model.fit_.spec)
    made = LogisticRegression(C=model.C, fit_intercept=model.fit_.spec.has_constant)
    if not math.isinf(model.C):
        made.l1_ratio = model.l1_ratio
    made.classes_, made.n_iter_ = model.classes_.copy(), model.n_iter_.copy()
    made.coef_, made.intercept_ = model.coef_.copy(), model.intercept_.copy()
    return described(made, names, hasattr(model, "feature_names_in_"))
