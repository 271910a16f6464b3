"""Families of generalised linear models with their canonical links: what differs between linear and logistic regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, l1, l2, linf

from .design import Design

FamilyName = Literal["gaussian", "binomial"]


@dataclass(frozen=True)
class Family:
    """A distribution of the target given the linear predictor `eta`.

    Attributes
    ----------
    mean : callable
        From `eta` to the expected target.
    variance : callable
        From the expected target to its variance, in units of the dispersion.
    deviance : callable
        From target and `eta` to each record's deviance.
    residual_limit : float or None
        Largest |target - mean|; `None` where the target's range decides.
    variance_limit : float
        Largest variance.
    """

    name: FamilyName
    mean: Callable[[Array], Array]
    variance: Callable[[Array], Array]
    deviance: Callable[[Array, Array], Array]
    residual_limit: float | None
    variance_limit: float

    def bounds(self, spec: Design) -> dict[str, Bound] | None:
        """Return by how much one record moves the sums that may be asked for through noise; `None` where undeclared.

        A linear regression's residual has no bound but at coefficients of zero, where it is the target; there its score
        and deviance are X'y and y'y.
        """
        row, w = spec.row_limit, spec.weight_limit
        residual = spec.response_limit if self.residual_limit is None else self.residual_limit
        if row is None or w is None or residual is None:
            return None
        score = l2(w * row * residual or w, "record")
        information = l2(w * row**2 * self.variance_limit or w, "record")
        found = {"score": score, "information": information, "n": linf(w, "record")}
        return found if self.residual_limit is not None else found | {"deviance": l1(w * residual**2 or w, "record")}


def _ones(mean: Array) -> Array:
    return np.ones_like(mean)


def _identity(eta: Array) -> Array:
    return eta


def _squared_error(y: Array, eta: Array) -> Array:
    return (y - eta) ** 2


def _bernoulli_variance(mean: Array) -> Array:
    return mean * (1.0 - mean)


def _bernoulli_deviance(y: Array, eta: Array) -> Array:
    return 2.0 * np.logaddexp(0.0, np.where(y > 0.5, -eta, eta))


GAUSSIAN = Family("gaussian", _identity, _ones, _squared_error, None, 1.0)
BINOMIAL = Family("binomial", expit, _bernoulli_variance, _bernoulli_deviance, 1.0, 0.25)
FAMILIES: dict[str, Family] = {family.name: family for family in (GAUSSIAN, BINOMIAL)}
