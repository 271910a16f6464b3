"""The same fits of the pooled records by statsmodels and scikit-learn, which only a simulation can make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy.special import expit

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.core.party import Parties
from hedgerow.errors import MissingExtra
from hedgerow.stats import design_of

from .replay import FIGURES, as_numbers, codes


@dataclass(frozen=True, eq=False)
class Pooled:
    """A pooled fit, as `ReplayState` has ours.

    Attributes
    ----------
    betas, errors : dict of arrays
        Of "exact", "exact_alone" and "firth".
    figures, others : dict of arrays of shape (len(FIGURES),)
    """

    betas: Mapping[str, Array]
    errors: Mapping[str, Array]
    figures: Mapping[str, Array]
    others: Mapping[str, Array]


def pooled_fits(records: Parties, federation: Federation, settings: Mapping[str, Any]) -> Pooled:
    """Fit the records of all stores in one place.

    Raises
    ------
    MissingExtra (HR-105)
        statsmodels or scikit-learn is not installed.
    """
    names = tuple(settings["numbers"] or ())
    columns = {**records.columns, **codes(records.columns, names=names)}
    spec = design_of(as_numbers(federation, names).schema, settings["formula"], settings["family"])
    n = len(records.w)
    k = min(settings["fitted"] or n, n)
    if settings["standardised"]:
        read = {factor.text for term in spec.terms for factor in term.factors}
        read |= {spec.response.text} if settings["family"] == "gaussian" else set()
        columns |= {name: (columns[name] - columns[name][:k].mean()) / columns[name][:k].std() for name in read}
    X, y = spec.matrix(columns, n), spec.response.columns(columns)[:, 0]
    betas, errors, figures, others = {}, {}, {}, {}
    for method in ("exact", "firth", "exact_alone"):
        if method not in settings["methods"]:
            continue
        if method == "exact_alone":
            each = [_fit(X[:k][:, [0, j]], y[:k], settings["family"]) for j in range(1, X.shape[1])]
            betas[method], errors[method] = (np.array([one[i][1] for one in each]) for i in (0, 1))
            continue
        fit = firth_pooled if method == "firth" else _fit
        betas[method], errors[method] = fit(X[:k], y[:k], settings["family"])
        figures[method] = _figures(X[:k] @ betas[method], y[:k], settings["family"])
        if k < n:
            others[method] = _figures(X[k:] @ betas[method], y[k:], settings["family"])
    return Pooled(betas, errors, figures, others)


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(
            f"{name} makes the pooled fits and is not installed: {error}.", remedy="pip install 'hedgerow[data]'"
        ) from error


def _fit(X: Array, y: Array, family: str) -> tuple[Array, Array]:
    """Coefficients and standard errors by statsmodels; NaN where classes separate."""
    sm = _module("statsmodels.api")
    if family == "gaussian":
        found = sm.OLS(y, X).fit()
        return found.params, found.bse
    if separates(X, y):
        return np.full(X.shape[1], np.nan), np.full(X.shape[1], np.nan)
    found = sm.GLM(y, X, family=sm.families.Binomial()).fit(tol=1e-13, tol_criterion="params", maxiter=200)
    return found.params, found.bse


def separates(X: Array, y: Array) -> bool:
    """Whether a plane has all events on one side and all others on the other (a linear programme)."""
    from scipy.optimize import linprog

    signs = np.where(y > 0.5, 1.0, -1.0)
    size = np.abs(X).max(0)
    found = linprog(np.zeros(X.shape[1]), -signs[:, None] * (X / size), -np.ones(len(y)), bounds=(None, None))
    return bool(found.status == 0)


def firth_pooled(X: Array, y: Array, family: str = "binomial") -> tuple[Array, Array]:
    """Firth's logistic regression of pooled records, by plain damped steps."""
    beta = np.zeros(X.shape[1])
    for _ in range(5000):
        p = expit(X @ beta)
        inverse = np.linalg.inv((X * (p * (1 - p))[:, None]).T @ X)
        leverage = p * (1 - p) * np.einsum("ij,jk,ik->i", X, inverse, X)
        step = inverse @ (X.T @ (y - p + leverage * (0.5 - p)))
        beta = beta + step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-300))
        if np.abs(step).max() < 1e-12:
            break
    return beta, np.sqrt(np.diag(inverse))


def _figures(eta: Array, y: Array, family: str) -> Array:
    found = dict.fromkeys(FIGURES, np.nan)
    if np.isfinite(eta).all() and family == "gaussian":
        squares = float(((y - eta) ** 2).sum())
        found |= {"MSE": squares / len(y), "R2": 1 - squares / float(((y - y.mean()) ** 2).sum())}
    elif np.isfinite(eta).all():
        metrics, p = _module("sklearn.metrics"), expit(eta)
        said = p > 0.5
        found |= {"log-loss": metrics.log_loss(y, p), "AUC": metrics.roc_auc_score(y, eta)}
        found |= {"accuracy": metrics.accuracy_score(y, said), "recall": metrics.recall_score(y, said)}
        found["precision"] = metrics.precision_score(y, said, zero_division=np.nan)
    return np.array([found[name] for name in FIGURES], dtype=np.float64)
