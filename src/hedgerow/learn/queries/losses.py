"""Losses of linear models: their values, subgradients and, from bounds on the inputs, how far one record moves a sum.

    f(theta) = ridge / 2 |theta|^2  +  1/n  sum over records of  g(x'theta, y)

    squared     g = (m - y)^2             m = x'theta, |y| <= 1      linear regression
    logistic    g = log(1 + exp(-y m))    y in {-1, 1}               logistic regression
    hinge       g = max(0, 1 - y m)       y in {-1, 1}               linear support vector machine

The gradient of one record is g'(m, y) x, so its l1-length is |g'| |x|_1 and its l2-length |g'| |x|_2. The ridge depends on
no record and is the server's. Slopes of the logistic and hinge loss are at most 1; that of the squared loss is at most
2 (|m| + |y|), and |m| <= |x|_1 max |theta|: it is bounded by the box that holds theta, and by nothing else.

Source: Wu 2019, section 3.1. Differs: the thesis supposes that a bound exists; here it is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound
from hedgerow.core.whole import by_column, whole
from hedgerow.errors import SettingsInvalid

Kind = Literal["squared", "logistic", "hinge"]
Model = Literal["linear", "logistic", "svm"]

NUMBERS = 1 << 16
"""So many numbers of records' gradients are held at once."""


@dataclass(frozen=True)
class QueryLoss:
    """A convex loss of a linear model.

    Parameters
    ----------
    kind : {"squared", "logistic", "hinge"}
    ridge : float
        Weight of |theta|^2 / 2, which makes any of them strongly convex.
    """

    kind: Kind
    ridge: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.ridge < np.inf:
            raise SettingsInvalid(f"a ridge of {self.ridge!r}.", remedy="Give a finite number of at least 0.")

    def values(self, margin: Array, y: Array) -> Array:
        """Loss of each record; `margin` and `y` broadcast against each other."""
        if self.kind == "squared":
            return np.square(margin - y)
        if self.kind == "logistic":
            return np.logaddexp(0.0, -y * margin)
        return np.maximum(0.0, 1.0 - y * margin)

    def slopes(self, margin: Array, y: Array) -> Array:
        """Derivative by the margin; of the hinge, at its kink, the subgradient 0."""
        if self.kind == "squared":
            return 2.0 * (margin - y)
        if self.kind == "logistic":
            return -y * scipy.special.expit(-y * margin)
        return np.where(y * margin < 1.0, -y, 0.0)

    def steepest(self, reach: float) -> float:
        """Largest absolute slope where margins reach `reach` and targets lie in [-1, 1]."""
        return 2.0 * (reach + 1.0) if self.kind == "squared" else 1.0

    def gradient_sums(self, theta: Array, x: Array, y: Array, w: Array) -> Array:
        """Sum of the records' subgradients, without the ridge.

        Parameters
        ----------
        theta : array of shape (..., d)
        x, y, w : arrays of shape (n, d), (n,), (n,)

        Returns
        -------
        array of shape (..., d)
        """
        many = theta.reshape(-1, theta.shape[-1])
        if self.kind == "squared" and len(many) > theta.shape[-1]:  # one pass over the records serves all of them
            weighted = x.T * w
            return 2.0 * (many @ (weighted @ x) - weighted @ y).reshape(theta.shape)
        slopes = self.slopes(many @ x.T, y) * w
        found: Array = (slopes @ x).reshape(theta.shape)
        return found

    def whole_gradients(self, theta: Array, x: Array, y: Array, w: Array, bound: Bound) -> Array:
        """The same in whole steps: each record's subgradients, at all of theta together, are held to the bound, then added."""
        many, found = theta.reshape(-1, theta.shape[-1]), np.zeros(theta.size)
        at_once = max(1, NUMBERS // max(theta.size, 1))
        for start in range(0, len(y), at_once):
            part = slice(start, start + at_once)
            columns = np.ascontiguousarray(x[part].T)
            margins = np.stack([by_column(columns, one) for one in many], axis=-1)
            slopes = self.slopes(margins, y[part, None]) * w[part, None]
            rows = slopes[:, :, None] * x[part, None, :]
            found += whole(rows.reshape(len(rows), theta.size), bound).sum(0)
        return found.reshape(theta.shape)

    def cost(self, theta: Array, x: Array, y: Array, w: Array) -> Array:
        """f(theta), with weights in place of counts: shape (...)."""
        many = theta.reshape(-1, theta.shape[-1])
        mean = self.values(many @ x.T, y) @ w / w.sum() + self.ridge / 2 * np.square(many).sum(-1)
        found: Array = mean.reshape(theta.shape[:-1])
        return found


def loss_of(model: Model, ridge: float | None = None) -> QueryLoss:
    """Return the loss of a model; by default without a ridge, and of the support vector machine with the thesis's 1."""
    kinds: dict[str, Kind] = {"linear": "squared", "logistic": "logistic", "svm": "hinge"}
    if model not in kinds:
        raise SettingsInvalid(f"no model {model!r} answers gradient queries.", remedy=f"Known: {', '.join(kinds)}.")
    return QueryLoss(kinds[model], (1.0 if model == "svm" else 0.0) if ridge is None else ridge)
