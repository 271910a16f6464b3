"""Variance of the noise on an owner's sum as a function of its epsilon, with its derivative, for many owners at once.

    Laplace    a(eps) = 2 (k T r / eps)^2              a' = -2 a / eps
    Gaussian   a(eps) = (k r)^2 T / mu(eps)^2          a' = -2 a mu' / mu

    r  radius: largest length of one record's gradient, l1 for Laplace, l2 for Gaussian       T  horizon
    k  how many records neighbours differ by: 1 for add-remove, 2 for replace-one

mu is one over the deviation of one Gaussian release at (eps, delta). With m(x) = Phi(-x) / phi(x) and x = eps / mu - mu / 2

    delta = phi(x) (m(x) - m(x + mu)),    hence    d log delta / d log mu = mu / (m(x) - m(x + mu)),    mu' = m(x + mu)

Newton's steps on log delta against log mu start below the root, max(2 eps / (z + sqrt(z^2 + 2 eps)), 2 Phi^-1((1 + delta) / 2))
with z = Phi^-1(1 - delta), and climb to it.

Source: Balle and Wang 2018, Theorem 8, as in `hedgerow.privacy.accounting`, whose `gaussian_noise` finds one at a time; the two
agree to 1e-11 (a test). Noise of a run follows from `Answers`, never from here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.errors import BudgetInvalid
from hedgerow.learn.queries.answers import MARGIN, Answers, Neighbours, NoiseLaw, multiplier

STEPS = 60
"""Newton's steps at most; some six are taken."""

EPSILONS = np.geomspace(1e-3, 100, 401)
"""Where mu is known beforehand, once for each delta."""


@dataclass(frozen=True)
class SumNoise:
    """What an epsilon makes of the noise on a sum of gradients.

    Parameters
    ----------
    law : {"laplace", "gaussian"}
    horizon : int
        Questions over which an owner's epsilon is spent.
    radius : float
        Largest length of one record's gradient: l1 for Laplace noise, l2 for Gaussian noise.
    neighbours : {"replace-one", "add-remove"}
    delta : float
        For Gaussian noise.

    Raises
    ------
    BudgetInvalid (HR-214)
        A value is out of its range.
    """

    law: NoiseLaw
    horizon: int
    radius: float
    neighbours: Neighbours = "add-remove"
    delta: float = 0.0

    def __post_init__(self) -> None:
        multiplier(self.law, 1.0, self.horizon, self.neighbours, self.delta if self.law == "laplace" else 0.5)
        if self.law == "gaussian" and not 0 < self.delta < 1:
            raise BudgetInvalid(f"Gaussian noise with a delta of {self.delta!r}.", remedy="Give one in (0, 1), e.g. 1e-6.")
        if not (math.isfinite(self.radius) and self.radius > 0):
            raise BudgetInvalid(f"a radius of {self.radius!r}.", remedy="Give the largest length of a record's gradient.")

    @classmethod
    def of(cls, answers: Answers) -> SumNoise:
        """The noise of these answers, at any epsilon."""
        return cls(answers.law, answers.horizon, answers.bound.radius, answers.neighbours, answers.delta)

    def variance(self, epsilon: Array) -> Array:
        """Variance of each coordinate of a sum; same shape as epsilon, whose values are above 0."""
        return self.variance_and_slope(epsilon)[0]

    def variance_and_slope(self, epsilon: Array) -> tuple[Array, Array]:
        """The variance and its derivative by epsilon."""
        e = np.asarray(epsilon, float)
        moved = self.radius * (2 if self.neighbours == "replace-one" else 1)
        if self.law == "laplace":
            a = 2 * np.square(self.horizon * moved / e)
            return a, -2 * a / e
        charged = e * (1 - MARGIN)
        mu = separation(charged, self.delta)
        a = moved**2 * self.horizon / np.square(mu)
        return a, -2 * a * (1 - MARGIN) * _mills(charged / mu + mu / 2) / mu


def separation(epsilon: Array, delta: float) -> Array:
    """Return mu, distance of neighbours over deviation, of one Gaussian release at (epsilon, delta); same shape as epsilon."""
    e = np.asarray(epsilon, float)
    mu = _below(e, delta)
    if e.size > len(EPSILONS):
        known = np.log(_tabled(delta))
        start = np.exp(np.interp(np.log(e), np.log(EPSILONS), known))
        mu = np.where((e >= EPSILONS[0]) & (e <= EPSILONS[-1]), start, mu)
    return _climbed(mu, e, delta)


@lru_cache(maxsize=16)
def _tabled(delta: float) -> Array:
    """mu at EPSILONS, from which Newton's steps for many epsilons begin: two are left of six."""
    return _climbed(_below(EPSILONS, delta), EPSILONS, delta)


def _below(e: Array, delta: float) -> Array:
    """A mu that is too small."""
    far = -scipy.special.ndtri(delta)
    root = np.sqrt(far * far + 2 * e)
    found: Array = np.maximum(2 * e / (far + root) if far > 0 else root - far, 2 * scipy.special.ndtri((1 + delta) / 2))
    return found


def _climbed(mu: Array, e: Array, delta: float) -> Array:
    """Newton's steps from near mu, or from below."""
    for _ in range(STEPS):
        x = e / mu - mu / 2
        gap = _mills(x) - _mills(x + mu)
        log_delta = np.log(gap) - x * x / 2 - 0.5 * math.log(2 * math.pi)
        step = (math.log(delta) - log_delta) * gap / mu
        mu = mu * np.exp(step)
        if np.abs(step).max(initial=0.0) < 1e-8:  # the next would be below 1e-15
            break
    return mu


def _mills(x: Array) -> Array:
    ratio: Array = math.sqrt(math.pi / 2) * scipy.special.erfcx(x / math.sqrt(2))
    return ratio
