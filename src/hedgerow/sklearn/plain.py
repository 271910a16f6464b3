"""Fitted linear estimators of scikit-learn itself, made of coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge

from hedgerow.core.arrays import Array
from hedgerow.errors import FormulaInvalid
from hedgerow.stats.design import Design
from hedgerow.stats.factors import Number


def split(spec: Design, coef: Array) -> tuple[Array, Any]:
    """Take coefficients (..., d) apart into those of columns and those of the constant, which are zero without one."""
    starts = np.cumsum([0, *(len(term.names) for term in spec.terms)])
    places = [int(starts[i]) for i, term in enumerate(spec.terms) if not term.factors]
    constant = coef[..., places].sum(-1)
    return np.delete(coef, places, axis=-1), constant


def split_classes(spec: Design, coef: Array) -> tuple[Array, Array]:
    """As `split`, as classifiers of scikit-learn have it: one row for two classes, else zeros for the reference first."""
    coef, constant = split(spec, np.atleast_2d(coef))
    if len(coef) == 1:
        return coef, constant
    return np.vstack([np.zeros_like(coef[:1]), coef]), np.append(0.0, constant)


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
            f"{spec.formula!r} has an offset, {spec.offset!r}.", remedy="Predict with the federated estimator."
        )
    return tuple(names)


def described(made: Any, names: tuple[str, ...], named: bool = True) -> Any:
    """Set how many columns an estimator reads, and their names where they have any."""
    made.n_features_in_ = len(names)
    if named:
        made.feature_names_in_ = np.array(names, dtype=object)
    return made


def linear(spec: Design, coef: Array, penalty: Mapping[str, float], *, rounds: int = 0, named: bool = True) -> Any:
    """A linear estimator with these coefficients (d,).

    Parameters
    ----------
    penalty : mapping
        `alpha` and `l1_ratio` of `ElasticNet`, which at a ratio of 1 is a lasso; `alpha` alone is that of `Ridge`.
    """
    names = columns_read(spec)
    kind = ElasticNet if "l1_ratio" in penalty else Ridge if penalty else LinearRegression
    if penalty.get("l1_ratio") == 1.0:
        kind, penalty = Lasso, {"alpha": penalty["alpha"]}
    made = kind(fit_intercept=spec.has_constant, **penalty)
    made.coef_, constant = split(spec, coef)
    made.intercept_ = np.float64(constant)
    if kind is not LinearRegression:
        made.n_iter_ = rounds
    return described(made, names, named)


def logistic(spec: Design, coef: Array, classes: Array, *, rounds: int = 0, named: bool = True, **settings: Any) -> Any:
    """A `LogisticRegression` with these coefficients: (d,), or (K - 1, d) against the first class."""
    names = columns_read(spec)
    made = LogisticRegression(fit_intercept=spec.has_constant, **settings)
    made.classes_, made.n_iter_ = classes.copy(), np.array([rounds])
    made.coef_, made.intercept_ = split_classes(spec, coef)
    return described(made, names, named)
