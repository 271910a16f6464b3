"""The equations of a chain at the server: fit each copy's model of a column from sums, and draw its coefficients.

    normal      sigma² <- residual squares / chi-square(n - p);  beta <- normal(least squares, sigma² (Z'Z)^-1)
    logistic    beta   <- normal(maximum likelihood, information^-1)

Source : Rubin 1987, examples 5.1 and 5.2; van Buuren 2018, sections 3.2 and 3.6. Differs: logistic models are fitted with a
         weak pull towards zero (`PULL` of a record for each column), so that separated classes have an estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import NotConverged, NotIdentified

from ..linear.sums import symmetric
from ..state import solve

PULL = 0.01
STEPS = 50
CLOSE = 1e-6


class DrawnModels(NamedTuple):
    """Coefficients (copies, p) and residual deviations (copies,) of the copies' models, and where a search goes on."""

    beta: Array
    sd: Array
    at: Array


def normal_draws(gram: Array, rng: Any, name: str, *, noise: bool) -> DrawnModels:
    """Draw normal models from Gram matrices of [1, others, target], upper triangles (copies, ...)."""
    whole = symmetric(gram)
    A, b, c, n = whole[:, :-1, :-1], whole[:, :-1, -1], whole[:, -1, -1], whole[:, 0, 0]
    m, p = b.shape
    beta, sd, at = np.empty((m, p)), np.empty(m), np.empty((m, p))
    for i in range(m):
        if not n[i] > p:
            raise NotIdentified(
                f"{n[i]:g} records have {name!r}, and its model has {p} coefficients.",
                remedy="Take a shorter chain.",
                asked=True,
            )
        inverse = _inverse(A[i], name)
        at[i] = inverse @ b[i]
        left = max(float(c[i] - b[i] @ at[i]), 0.0)
        sd[i] = np.sqrt(left / (rng.chisquare(n[i] - p) if noise else n[i] - p))
        beta[i] = at[i] + (sd[i] * _root(inverse) @ rng.standard_normal(p) if noise else 0.0)
    return DrawnModels(beta, sd, at)


def logistic_draws(ask: Callable[[Array], dict[str, Array]], start: Array, rng: Any, name: str, *, noise: bool) -> DrawnModels:
    """Fit logistic models of all copies together, one question a step, and draw their coefficients."""
    at, p = start, start.shape[1]
    ridge = PULL * np.eye(p)
    for _ in range(STEPS):
        sums = ask(at)
        inverses = np.array([_inverse(one + ridge, name) for one in symmetric(sums["information"])])
        step = np.einsum("mij,mj->mi", inverses, sums["score"] - PULL * at)
        longest = np.abs(step).max(-1, keepdims=True)
        at = at + step * np.minimum(1.0, 4.0 / np.maximum(longest, 1e-300))
        size = np.sqrt(np.maximum(np.einsum("mi,mi->m", step, sums["score"] - PULL * (at - step)), 0.0))
        if size.max() < CLOSE:
            beta = at + np.array([_root(one) @ rng.standard_normal(p) for one in inverses]) * noise
            return DrawnModels(beta, np.zeros(len(at)), at)
    raise NotConverged(
        f"the logistic model of {name!r} did not converge in {STEPS} steps.", remedy="Take a shorter chain.", asked=True
    )


def _inverse(matrix: Array, name: str) -> Array:
    try:
        with np.errstate(all="raise"):
            found = solve(matrix, np.eye(len(matrix)))
    except (np.linalg.LinAlgError, FloatingPointError):
        found = np.full(matrix.shape, np.inf)
    size = np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))
    if not np.abs(found * size).max() < 1e12:
        raise NotIdentified(
            f"columns of the chain are multiples of each other, so the model of {name!r} has no single fit.",
            remedy="Leave one of them out, or one that is constant.",
            asked=True,
        )
    return np.asarray((found + found.T) / 2)


def _root(covariance: Array) -> Array:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
