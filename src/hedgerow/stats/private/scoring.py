"""How well a model of unit rows predicts records that somebody holds; nobody is asked."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from hedgerow.core.arrays import Array
from hedgerow.data import Table
from hedgerow.data.cases import whole_cases

from .rows import UnitRows

CLASSIFIERS = ("logistic", "multinomial", "svm")


def judged(rows: UnitRows, model: str, coef: Array, table: Table) -> dict[str, float]:
    """Metrics of the records of a table that lack no value: those of `metrics`."""
    spec = rows.spec
    weights = [] if spec.weights is None else [spec.weights]
    table = whole_cases(table, [*spec.valued, *weights])
    w = np.asarray(table[spec.weights], np.float64) if spec.weights else np.ones(len(table))
    eta = rows.rows(table.columns, len(table)) @ coef.T
    return metrics(rows, model, rows.targets(table.columns), eta, w)


def metrics(rows: UnitRows, model: str, y: Array, eta: Array, w: Array) -> dict[str, float]:
    """Accuracy, and AUC of two classes; of a number R2 and the mean absolute error, in its own units.

    Parameters
    ----------
    y, w : arrays of shape (n,)
        Targets as rows have them, and weights.
    eta : array of shape (n,) or (n, K)
        Linear predictors.
    """
    if model == "multinomial":
        return {"accuracy": float(np.average(eta.argmax(-1) == y, weights=w))}
    if model in CLASSIFIERS:
        return {"accuracy": float(np.average((eta > 0) == (y > 0.5), weights=w)), "AUC": area(y, eta)}
    unit = rows.half if rows.numeric else 1.0
    if rows.numeric:
        eta = np.clip(eta, -1.0, 1.0)
    left, mean = unit * (y - eta), np.average(y, weights=w)
    spread = np.average((unit * (y - mean)) ** 2, weights=w)
    explained = 1 - float(np.average(left**2, weights=w) / spread) if spread > 0 else float("nan")
    return {"R2": explained, "mean absolute error": float(np.average(np.abs(left), weights=w))}


def area(y: Array, score: Array) -> float:
    """Under the ROC curve, of records that count alike; NaN where a class is missing."""
    event = y > 0.5
    n, m = int(event.sum()), int((~event).sum())
    if not n or not m:
        return float("nan")
    return float((rankdata(score)[event].sum() - n * (n + 1) / 2) / (n * m))
