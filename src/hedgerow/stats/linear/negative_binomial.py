"""Counts with mean m and variance m + alpha m^2 (NB2); the logarithm of the mean is the linear predictor."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, xlogy

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from .loss import Loss, Parts, exponential
from .poisson import POISSON

TITLE = "negative binomial regression"


@lru_cache(maxsize=64)
def negative_binomial(alpha: float) -> Loss:
    """The loss for a dispersion `alpha`, with the expected curvature; that of a Poisson distribution where it is zero."""
    if not (np.isfinite(alpha) and alpha >= 0):
        raise SettingsInvalid(
            f"a dispersion alpha of {alpha!r}.", remedy="alpha is zero or above: the variance is m + alpha m^2."
        )
    if alpha == 0:
        return replace(POISSON, name="negative binomial", title=TITLE)
    shape = 1.0 / alpha

    def parts(y: Array, eta: Array, width: float) -> Parts:
        mean = exponential(eta)
        return {
            "value": lambda: xlogy(y, y) - y * eta - (y + shape) * (np.log1p(alpha * y) - np.log1p(alpha * mean)),
            "slope": lambda: 1.0 / (1.0 + alpha * mean) * (mean - y),
            "curvature": lambda: mean / (1.0 + alpha * mean),
            "saturated": lambda: (
                gammaln(y + shape) - gammaln(shape) - gammaln(y + 1.0) + xlogy(y, alpha * y) - (y + shape) * np.log1p(alpha * y)
            ),
        }

    return replace(POISSON, name="negative binomial", title=TITLE, parts=parts, power=0.0)
