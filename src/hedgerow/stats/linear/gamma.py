"""Targets above zero whose deviation is in proportion to their mean; the logarithm of the mean is the linear predictor."""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Array

from .loss import Loss, Parts, exponential


def _parts(y: Array, eta: Array, width: float) -> Parts:
    mean = exponential(eta)
    return {
        "value": lambda: eta - np.log(y) + y * exponential(-eta) - 1.0,
        "slope": lambda: (1.0 / mean) * (mean - y),
        "curvature": lambda: np.ones_like(eta),  # the expected one
        "pearson": lambda: (y / mean - 1.0) ** 2,
        "saturated": lambda: -np.log(y),
    }


GAMMA = Loss(
    "gamma",
    _parts,
    mean=exponential,
    link=np.log,
    title="gamma regression",
    ratio="ratio of means",
    positive=True,
    log_link=True,
    power=2.0,
    free_dispersion=True,
)
