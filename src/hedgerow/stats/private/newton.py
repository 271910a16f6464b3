"""Noisy Newton steps of a logistic regression: where they start, by what matrix they go, and how long they may be.

    gram        <- noisy sum of x x' / 4
    at zero     rate   <- 1/2 + (first number of the noisy score) / (sum of the constant)      kept off 0 and 1 by its noise
                theta  <- (log(rate / (1 - rate)), 0, ..., 0)                              the model of the constant alone
    there       matrix <- 4 rate (1 - rate) gram                                       its information, with nothing asked
    later       matrix <- the information last released
    a step      matrix, its eigenvalues not below zero, raised by the size of its noise; the first one no longer than `LONGEST`

The majoriser X'X / 4 (Boehning & Lindsay 1988) would need no information, but where a class is rare it is 1 / (4 p (1 - p))
times too large: at a rate of 5 percent a step by it makes a fifth of its way. Steps by an information are as fast as Newton's.
The first one may overshoot where a group's rate is far from the common one, which the limit and the next information mend.

Source : Newton's method, with the scale of its noise as Levenberg's damping.
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow.core.arrays import Array

LONGEST = 3.0
"""Of any one column, the most that the first step changes log-odds from one end of its range to the other."""


def null_model(score: float, constants: float, noise: float) -> float:
    """Log-odds of the model of the constant alone, by its noisy score at zero.

    Parameters
    ----------
    score : float
        Sum of (y - 1/2) c, where c is the constant's number in a row.
    constants : float
        Sum of c, as released.
    noise : float
        Standard deviation of the score's noise.
    """
    total = max(constants, 1e-300)
    least = min(0.5, 2 * noise / total + 1e-12)
    rate = min(max(0.5 + score / total, least), 1 - least)
    return math.log(rate / (1 - rate))


def raised(matrix: Array, noise: float) -> Array:
    """A noisy matrix with eigenvalues not below zero, raised by the size of its noise."""
    values, vectors = np.linalg.eigh(matrix)
    floor = max(math.sqrt(len(matrix)) * noise, 1e-9 * float(values[-1]), 1e-300)
    found: Array = (vectors * (np.maximum(values, 0.0) + floor)) @ vectors.T
    return found


def damped(matrix: Array, noise: float, score: Array, longest: float = math.inf) -> Array:
    """A step by a noisy matrix, none of whose numbers is above `longest`."""
    step: Array = np.linalg.solve(raised(matrix, noise), score)
    return step * min(1.0, longest / max(float(np.abs(step).max()), 1e-300))
