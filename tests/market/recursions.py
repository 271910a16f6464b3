"""The recursion of gradient queries on a parabola, run many times: what forecasts are compared with."""

import numpy as np


def runs(estimate, steps, horizon, draw, times):
    """Excess of each run, of shape (times,); draw(shape) is the noise of the mean gradient."""
    theta = average = np.zeros((times, len(estimate.best)))
    for k in range(1, horizon + 1):
        gradient = (theta - estimate.best) @ estimate.curvature + draw(theta.shape)
        moved = steps.move(theta, gradient, k, horizon)
        theta, average = moved, steps.average(average, theta, moved, k, horizon)
    error = average - estimate.best
    return np.einsum("ri,ij,rj->r", error, estimate.curvature, error) / 2
