"""Families of generalised linear models: what differs between linear, logistic and count regressions.

Gaussian, binomial and Poisson have their canonical links; gamma and negative binomial the logarithm, with the expected
information.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.special import expit, gammaln, xlogy

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, l1, l2, linf
from hedgerow.errors import SettingsInvalid

from .design import Design

FamilyName = Literal["gaussian", "binomial", "poisson", "gamma", "negative binomial"]

FARTHEST = 300.0
"""Linear predictors of a log link beyond this are cut off: exponentials stay finite, and the step is halved."""


@dataclass(frozen=True)
class Family:
    """A distribution of the target given the linear predictor `eta`.

    Attributes
    ----------
    mean : callable
        From `eta` to the expected target.
    variance : callable
        From the expected target to a record's weight in the information; of canonical links the target's variance, in
        units of the dispersion.
    deviance : callable
        From target and `eta` to each record's deviance.
    residual_limit : float or None
        Largest |target - mean|; `None` where the target's range decides.
    variance_limit : float
        Largest weight in the information; infinite where means are unbounded.
    gain : callable or None
        From the expected target to the factor of the residual in the score; 1 for canonical links.
    pearson : callable or None
        From target and expected target to the squared residual in units of its variance, for a dispersion.
    saturated : callable or None
        From target to the log-likelihood of a perfect fit, where it is not zero; of a gamma up to terms in the dispersion.
    log_link : bool
    """

    name: FamilyName
    mean: Callable[[Array], Array]
    variance: Callable[[Array], Array]
    deviance: Callable[[Array, Array], Array]
    residual_limit: float | None
    variance_limit: float
    gain: Callable[[Array], Array] | None = None
    pearson: Callable[[Array, Array], Array] | None = None
    saturated: Callable[[Array], Array] | None = None
    log_link: bool = False

    @property
    def free_dispersion(self) -> bool:
        """Whether a variance is estimated besides the coefficients."""
        return self.name in ("gaussian", "gamma")

    def bounds(self, spec: Design) -> dict[str, Bound] | None:
        """Return by how much one record moves the sums that may be asked for through noise; `None` where undeclared.

        A linear regression's residual has no bound but at coefficients of zero, where it is the target; there its score
        and deviance are X'y and y'y.
        """
        row, w = spec.row_limit, spec.weight_limit
        residual = spec.response_limit if self.residual_limit is None else self.residual_limit
        if row is None or w is None or residual is None or self.log_link:
            return None
        score = l2(w * row * residual or w, "record")
        information = l2(w * row**2 * self.variance_limit or w, "record")
        found = {"score": score, "information": information, "n": linf(w, "record")}
        return found if self.residual_limit is not None else found | {"deviance": l1(w * residual**2 or w, "record")}


def _ones(mean: Array) -> Array:
    return np.ones_like(mean)


def _identity(eta: Array) -> Array:
    return eta


def _exp(eta: Array) -> Array:
    found: Array = np.exp(np.clip(eta, -FARTHEST, FARTHEST))
    return found


def _squared_error(y: Array, eta: Array) -> Array:
    return (y - eta) ** 2


def _bernoulli_variance(mean: Array) -> Array:
    return mean * (1.0 - mean)


def _bernoulli_deviance(y: Array, eta: Array) -> Array:
    return 2.0 * np.logaddexp(0.0, np.where(y > 0.5, -eta, eta))


def _poisson_deviance(y: Array, eta: Array) -> Array:
    return 2.0 * (xlogy(y, y) - y * eta - y + _exp(eta))


def _poisson_saturated(y: Array) -> Array:
    return xlogy(y, y) - y - gammaln(y + 1.0)


def _gamma_deviance(y: Array, eta: Array) -> Array:
    return 2.0 * (eta - np.log(y) + y * _exp(-eta) - 1.0)


def _relative(y: Array, mean: Array) -> Array:
    return (y / mean - 1.0) ** 2


def _minus_log(y: Array) -> Array:
    return -np.log(y)


def _reciprocal(mean: Array) -> Array:
    return 1.0 / mean


GAUSSIAN = Family("gaussian", _identity, _ones, _squared_error, None, 1.0)
BINOMIAL = Family("binomial", expit, _bernoulli_variance, _bernoulli_deviance, 1.0, 0.25)
POISSON = Family("poisson", _exp, _identity, _poisson_deviance, None, np.inf, saturated=_poisson_saturated, log_link=True)
GAMMA = Family("gamma", _exp, _ones, _gamma_deviance, None, 1.0, _reciprocal, _relative, _minus_log, log_link=True)


@lru_cache(maxsize=64)
def negative_binomial(alpha: float) -> Family:
    """Counts with mean m and variance m + alpha m^2 (NB2), log link; a Poisson distribution where alpha is zero."""
    if not (np.isfinite(alpha) and alpha >= 0):
        raise SettingsInvalid(
            f"a dispersion alpha of {alpha!r}.", remedy="alpha is zero or above: the variance is m + alpha m^2."
        )
    if alpha == 0:
        return Family(**{**vars(POISSON), "name": "negative binomial"})

    def variance(mean: Array) -> Array:
        return mean / (1.0 + alpha * mean)

    def gain(mean: Array) -> Array:
        return 1.0 / (1.0 + alpha * mean)

    def deviance(y: Array, eta: Array) -> Array:
        grown = np.log1p(alpha * y) - np.log1p(alpha * _exp(eta))
        return 2.0 * (xlogy(y, y) - y * eta - (y + 1.0 / alpha) * grown)

    def saturated(y: Array) -> Array:
        shape = 1.0 / alpha
        ways = gammaln(y + shape) - gammaln(shape) - gammaln(y + 1.0)
        return ways + xlogy(y, alpha * y) - (y + shape) * np.log1p(alpha * y)

    return Family("negative binomial", _exp, variance, deviance, None, 1.0 / alpha, gain, saturated=saturated, log_link=True)


FAMILIES: dict[str, Family] = {family.name: family for family in (GAUSSIAN, BINOMIAL, POISSON, GAMMA, negative_binomial(1.0))}


def law_of(family: FamilyName, alpha: float = 1.0) -> Family:
    """Return a family; `alpha` is the dispersion of a negative binomial."""
    return negative_binomial(float(alpha)) if family == "negative binomial" else FAMILIES[family]
