"""Relative fitness: how much worse a model is than the best one on the same records. Only a simulation can know it.

    psi(theta) = f(theta) / f(theta*) - 1        theta* the best in the box

Source: Wu 2019, section 3.3.
"""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.party import Parties, Party

from .inputs import BUCKET, Inputs, X, Y, inputs
from .losses import QueryLoss
from .steps import Steps

WIDTHS = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""The hinge is rounded off over so much of the margin, less and less: an error of at most a quarter of the last."""


def pooled(records: Parties | Party, spec: Inputs, share: float = 1.0) -> tuple[Array, Array, Array]:
    """All parties' rows, targets and weights in one place, or a share of them by their buckets; a simulation holds them."""
    made = inputs(records.columns, spec=spec)
    kept = (made[BUCKET] < share) & np.isfinite(made[X]).all(1) & np.isfinite(made[Y])
    return made[X][kept], made[Y][kept], records.w[kept]


def optimum(loss: QueryLoss, x: Array, y: Array, w: Array, box: float) -> Array:
    """The coefficients in the box with the least cost: shape (d,)."""
    if loss.kind == "squared":
        n = w.sum()
        theta = np.linalg.lstsq((x.T * w) @ x + loss.ridge * n / 2 * np.eye(x.shape[1]), (x.T * w) @ y, rcond=None)[0]
    else:
        theta = np.zeros(x.shape[1])
        for width in WIDTHS if loss.kind == "hinge" else (0.0,):
            theta = _newton(loss, x, y, w, theta, width)
    return theta if np.abs(theta).max() <= box else _in_box(loss, x, y, w, np.clip(theta, -box, box), box)


def relative_fitness(loss: QueryLoss, theta: Array, best: Array, x: Array, y: Array, w: Array) -> Array:
    """psi of models of shape (..., d), beside that of the best: shape (...)."""
    least = loss.cost(best, x, y, w)
    found: Array = loss.cost(theta, x, y, w) / least - 1.0
    return found


def noiseless(loss: QueryLoss, steps: Steps, horizon: int, x: Array, y: Array, w: Array) -> Array:
    """The result of gradient queries that are answered without noise: shape (d,)."""
    theta = average = np.zeros(x.shape[1])
    for k in range(1, horizon + 1):
        gradient = loss.gradient_sums(theta, x, y, w) / w.sum() + loss.ridge * theta
        moved = steps.move(theta, gradient, k, horizon)
        theta, average = moved, steps.average(average, theta, moved, k, horizon)
    return average


def smooth(loss: QueryLoss, theta: Array, x: Array, y: Array, w: Array, width: float) -> tuple[float, Array, Array]:
    """Cost, gradient and curvature, with the hinge rounded off over `width`."""
    margin, n = x @ theta, w.sum()
    if loss.kind == "hinge":
        gap = (1.0 - y * margin) / width + 0.5  # 0 to 1 across the rounded kink
        inside = np.clip(gap, 0.0, 1.0)
        values = width * (np.square(inside) / 2 + np.maximum(gap - 1.0, 0.0))
        slopes, curves = -y * inside, np.where((gap > 0) & (gap < 1), 1 / width, 0.0)
    else:
        values, slopes = loss.values(margin, y), loss.slopes(margin, y)
        curves = np.full(len(y), 2.0) if loss.kind == "squared" else np.abs(slopes) * (1.0 - np.abs(slopes))
    value = float(values @ w / n + loss.ridge / 2 * theta @ theta)
    gradient = x.T @ (slopes * w) / n + loss.ridge * theta
    if loss.kind == "hinge":  # few records lie on its kink
        bent = curves > 0
        x, curves, w = x[bent], curves[bent], w[bent]
    curvature = (x.T * (curves * w)) @ x / n + loss.ridge * np.eye(len(theta))
    return value, gradient, curvature


def _newton(loss: QueryLoss, x: Array, y: Array, w: Array, theta: Array, width: float) -> Array:
    """Newton's method with halved steps."""
    value, gradient, curvature = smooth(loss, theta, x, y, w, width)
    for _ in range(100):
        step = np.linalg.solve(curvature + 1e-12 * np.eye(len(theta)), gradient)
        if gradient @ step < 1e-18:
            break
        for halved in 0.5 ** np.arange(40):
            tried = smooth(loss, theta - halved * step, x, y, w, width)
            if tried[0] < value - 1e-4 * halved * gradient @ step:
                break
        else:
            break
        theta, (value, gradient, curvature) = theta - halved * step, tried
    return theta


def _in_box(loss: QueryLoss, x: Array, y: Array, w: Array, theta: Array, box: float) -> Array:
    """The best in the box, where the best of all lies outside."""
    from scipy.optimize import minimize

    def cost(at: Array) -> tuple[float, Array]:
        return smooth(loss, at, x, y, w, WIDTHS[-3])[:2]

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 20_000}
    found = minimize(cost, theta, jac=True, method="L-BFGS-B", bounds=[(-box, box)] * len(theta), options=options)
    best: Array = found.x
    return best
