"""The second order of a loss: what boosting adds up, what a split gains, and what a leaf says. Numbers in, numbers out.

    g, h       first and second derivative of the loss by the score
    score      G^2 / (H + r)                              of sums G, H over the records of a node
    gain       score(left) + score(right) - score(both)   twice by how much the split lowers the loss, to second order
    leaf       -G / (H + r)

Source : Chen & Guestrin 2016, equations 5 to 7.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy

from hedgerow.core.arrays import Array

Loss = Literal["logistic", "squared"]
FLOOR = 1e-12
"""Denominators are at least this."""


def loss_parts(loss: Loss, y: Array, score: Array) -> tuple[Array, Array, Array]:
    """First and second derivative by the score, and the loss itself; each of the shape of `score`."""
    if loss == "squared":
        return score - y, np.ones_like(y), (score - y) ** 2 / 2
    p = scipy.special.expit(score)
    return p - y, p * (1 - p), np.logaddexp(0, score) - y * score


def newton_score(first: Array, second: Array, regularisation: float) -> Array:
    """G^2 / (H + r) of sums of first and second derivatives."""
    found: Array = first**2 / np.maximum(second + regularisation, FLOOR)
    return found


def newton_step(first: Array, second: Array, regularisation: float) -> Array:
    """-G / (H + r): what is added to the scores of a leaf, before a learning rate."""
    found: Array = -first / np.maximum(second + regularisation, FLOOR)
    return found
