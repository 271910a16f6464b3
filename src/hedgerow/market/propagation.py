"""How noise of gradients becomes excess of the result, exactly for a quadratic loss while the box is inactive.

    e_1 = -theta*;   e_{k+1} = (I - s_k H) e_k - s_k w_k;   result = sum_j om_j theta_j         w_k: variance v per coordinate

    bias   1/2 sum_h h (sum_j om_j prod_{i<j} (1 - s_i h) e_1h)^2
    A_h    1/2 h sum_k (s_k sum_{j>k} om_j prod_{k<i<j} (1 - s_i h))^2                          backward recursion, O(T d)

    expected excess = bias + v sum_h A_h

om are the weights that the rule's average gives to the iterates; they are found by running the rule.

Source: derived for `hedgerow.learn.queries`; in place of Theorems 2 and 3 of Wu 2019, whose constants depend on the rule, the
loss and the law of noise at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.learn.queries.steps import Steps

from .pilot_estimate import PilotEstimate


@dataclass(frozen=True)
class Propagation:
    """What T steps make of a start and of noise, along each eigenvector of the curvature.

    Attributes
    ----------
    eigenvalues : array of shape (d,)
    left : array of shape (d,)
        Error of the noiseless result along each.
    amplifications : array of shape (d,)
        Expected excess along each, for noise of variance 1 in each coordinate of the mean gradient.
    """

    eigenvalues: Array
    left: Array
    amplifications: Array

    @property
    def bias(self) -> float:
        """Excess without noise."""
        return float(self.eigenvalues @ np.square(self.left)) / 2

    @property
    def amplification(self) -> float:
        """Expected excess for noise of variance 1."""
        return float(self.amplifications.sum())

    def excess(self, variance: float) -> float:
        """Expected excess where each coordinate of the mean gradient has noise of this variance, in each step."""
        return self.bias + variance * self.amplification


def propagate(estimate: PilotEstimate, steps: Steps, horizon: int) -> Propagation:
    """Follow a start at zero and noise through `horizon` steps."""
    h, vectors = np.linalg.eigh(estimate.curvature)
    left = average_weights(steps, horizon) @ errors(h, -vectors.T @ estimate.best, steps, horizon)
    return Propagation(h, left, h * np.square(influences(h, steps, horizon)).sum(0) / 2)


def errors(eigenvalues: Array, start: Array, steps: Steps, horizon: int) -> Array:
    """Error of theta_1 .. theta_{T+1} without noise, along each eigenvector, from that of theta_1: shape (T + 1, d)."""
    factors = 1 - _lengths(steps, horizon)[:, None] * eigenvalues
    found: Array = np.vstack([np.ones_like(eigenvalues), np.cumprod(factors, axis=0)]) * start
    return found


def influences(eigenvalues: Array, steps: Steps, horizon: int) -> Array:
    """By how much noise of 1 in the gradient of each step moves the result against it: shape (T, d)."""
    lengths, weights = _lengths(steps, horizon), average_weights(steps, horizon)
    found = np.empty((horizon, len(eigenvalues)))
    tail = weights[horizon] * np.ones_like(eigenvalues)  # of an error of theta_{k+1}, through it and all that follow
    for k in range(horizon - 1, -1, -1):
        found[k] = lengths[k] * tail
        tail = weights[k] + (1 - lengths[k] * eigenvalues) * tail
    return found


def _lengths(steps: Steps, horizon: int) -> Array:
    return np.array([steps.length(k, horizon) for k in range(1, horizon + 1)])


def average_weights(steps: Steps, horizon: int) -> Array:
    """Weights of theta_1 .. theta_{T+1} in the result: shape (T + 1,)."""
    iterates = np.eye(horizon + 1)
    average = np.zeros(horizon + 1)
    for k in range(1, horizon + 1):
        average = steps.average(average, iterates[k - 1], iterates[k], k, horizon)
    return average
