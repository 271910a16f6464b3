"""Log-loss: the log-odds of a binary target are the linear predictor."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logit

from hedgerow.core.arrays import Array

from .loss import Loss, Parts


def _parts(y: Array, eta: Array, width: float) -> Parts:
    mean = expit(eta)
    return {
        "value": lambda: np.logaddexp(0.0, np.where(y > 0.5, -eta, eta)),
        "slope": lambda: mean - y,
        "curvature": lambda: mean * (1.0 - mean),
    }


def _most(eta: float, residual: float, width: float) -> dict[str, float]:
    return {"value": math.log(2.0) + eta, "slope": 1.0, "curvature": 0.25}


BINOMIAL = Loss(
    "binomial",
    _parts,
    _most,
    mean=expit,
    link=logit,
    title="logistic regression",
    ratio="odds ratio",
    binary=True,
    log_odds=True,
)
