"""Noise of owners' answers, as a variance of each coordinate of a sum."""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.learn.queries.answers import Answers


def variances(answers: Answers) -> dict[str, float]:
    """Variance, by owner, that an answer's noise adds to each coordinate of a sum of gradients, before it is weighed.

    Laplace noise of scale b has the variance 2 b^2, Gaussian noise of deviation sigma has sigma^2.
    """
    each = 2.0 if answers.law == "laplace" else 1.0
    return {owner: each * (noise * answers.bound.radius) ** 2 for owner, noise in answers.multipliers}


def mean_variance(answers: Answers, records: Array, weights: Array | None = None) -> float:
    """Variance of each coordinate of the mean gradient, where owner l has records[l] records and the public weight w[l].

    sum_l w_l^2 Var_l / (sum_l w_l n_l)^2, owners in the order of `answers.epsilons`; by default with the answers' own weights.
    """
    a = np.array(list(variances(answers).values()))
    own = [answers.weight(owner) for owner, _ in answers.epsilons]
    w = np.asarray(own if weights is None else weights, float)
    return float(np.square(w) @ a / (w @ np.asarray(records, float)) ** 2)
