"""Counts whose variance is their mean; the logarithm of the mean is the linear predictor."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, xlogy

from hedgerow.core.arrays import Array

from .loss import Loss, Parts, exponential


def _parts(y: Array, eta: Array, width: float) -> Parts:
    mean = exponential(eta)
    return {
        "value": lambda: xlogy(y, y) - y * eta - y + mean,
        "slope": lambda: mean - y,
        "curvature": lambda: mean,
        "saturated": lambda: xlogy(y, y) - y - gammaln(y + 1.0),
    }


POISSON = Loss(
    "poisson",
    _parts,
    mean=exponential,
    link=np.log,
    title="Poisson regression",
    ratio="ratio of means",
    counts=True,
    log_link=True,
    power=1.0,
)
