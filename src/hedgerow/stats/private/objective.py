"""Objective and output perturbation: what a minimum of convex losses with noise costs, and the losses.

    theta(b) = argmin  sum of w l(x't, y)  +  penalty/2 |t|^2  +  b't          |x| <= 1, w |l'| <= L, w l'' <= beta < penalty

Objective perturbation releases theta(b) for random b. The map from b to theta is one to one; one record more changes its
determinant by a factor of 1 - beta/penalty at most, and b by l'(theta) x, whose direction does not depend on b:

    e = epsilon - |log(1 - beta/penalty)|,  m = L / sigma                                b ~ N(0, sigma^2 I)
    delta = 2 (Q(e/m - m/2) - exp(e) Q(e/m + m/2))          where e >= m^2/2
          = 1 - 2 exp(e) Q(m)                               where 0 <= e < m^2/2;  1 below

    epsilon = |log(1 - beta/penalty)| + L / scale                                        density of b ~ exp(-|b| / scale)

Output perturbation adds noise to theta(0), which one record more moves by L / penalty at most, and another record in its
place by 2 L / penalty.

Both proofs are of exact minima. A solver that stops at a gradient of length tol is tol / penalty away from one at most, in a
direction that follows from the records; so noise for a distance of 2 tol / penalty is added to what it returns, and paid for
besides. The rounding of floating-point numbers is part of tol. The solver is `hedgerow.stats.private.nearest`.

Source : Kifer, Smith & Thakurta 2012; Redberg, Koskela & Wang 2023 (the exact bound for generalised linear models);
         Chaudhuri, Monteleoni & Sarwate 2011 (output perturbation, noise by its length); Iyengar et al. 2019, Algorithm 1
         (approximate minima). Differs: the penalty is that of the sum, neighbours by one record more, where most of them
         divide by n and replace a record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from scipy import special

from hedgerow.core.arrays import Array
from hedgerow.core.question import travels
from hedgerow.errors import BudgetInvalid, SettingsInvalid
from hedgerow.privacy.accounting.gaussian import gaussian_delta

LossName = Literal["logistic", "svm"]
Neighbours = Literal["add-remove", "replace-one"]


# ---- what it costs ------------------------------------------------------------------------------------------------------
def determinant_cost(penalty: float, curvature: float) -> float:
    """How much of epsilon the Jacobian costs: |log(1 - curvature / penalty)|; infinite unless the penalty is larger."""
    return -math.log1p(-curvature / penalty) if penalty > curvature else math.inf


def objective_delta(epsilon: float, sigma: float, penalty: float, *, lipschitz: float = 1.0, curvature: float = 0.25) -> float:
    """Return the delta of objective perturbation by Gaussian noise, exactly for generalised linear models.

    Parameters
    ----------
    epsilon : float
    sigma : float
        Standard deviation of each number of b.
    penalty : float
        Times |t|^2 / 2, beside the sum of losses; at or below `curvature` nothing is proved, and delta is 1.
    lipschitz, curvature : float
        Largest |l'| and l'' of a record, its weight included.
    """
    e, m = epsilon - determinant_cost(penalty, curvature), lipschitz / sigma
    if e < 0:
        return 1.0
    if e >= m * m / 2:
        return min(1.0, 2 * gaussian_delta(1 / m, e))
    return float(-math.expm1(e + math.log(2) + special.log_ndtr(-m)))


def objective_noise(epsilon: float, delta: float, penalty: float, *, lipschitz: float = 1.0, curvature: float = 0.25) -> float:
    """Return the least sigma at which objective perturbation is (epsilon, delta)-private: never below it.

    Raises
    ------
    BudgetInvalid (HR-214)
        The penalty is too small for this epsilon, whatever the noise.
    """
    refuse_small(epsilon, penalty, curvature)

    def too_much(log_sigma: float) -> float:
        found = objective_delta(epsilon, math.exp(log_sigma), penalty, lipschitz=lipschitz, curvature=curvature)
        return math.log(max(found, 1e-300)) - math.log(delta)

    low = high = 0.0
    while too_much(low) <= 0:
        low -= 1.0
    while too_much(high) > 0:
        high += 1.0
    return float(math.exp(scipy.optimize.brentq(too_much, low, high, rtol=1e-13, xtol=1e-13)) * (1 + 1e-11))


def objective_scale(epsilon: float, penalty: float, *, lipschitz: float = 1.0, curvature: float = 0.25) -> float:
    """Return the scale of noise by its length at which objective perturbation is epsilon-private.

    Raises
    ------
    BudgetInvalid (HR-214)
        The penalty is too small for this epsilon.
    """
    refuse_small(epsilon, penalty, curvature)
    return lipschitz / (epsilon - determinant_cost(penalty, curvature))


def refuse_small(epsilon: float, penalty: float, curvature: float) -> None:
    """Refuse a penalty under which the determinant alone costs more than epsilon."""
    if determinant_cost(penalty, curvature) >= epsilon:
        raise BudgetInvalid(
            f"a penalty of {penalty:g} under losses of curvature {curvature:g}: one record changes the determinant by more "
            f"than epsilon {epsilon:g} allows, whatever the noise.",
            remedy=f"Take a penalty above {curvature / -math.expm1(-epsilon):.6g}; by default it is "
            f"{objective_penalty(epsilon, curvature):.6g}.",
        )


def objective_penalty(epsilon: float, curvature: float = 0.25) -> float:
    """Return the penalty whose determinant costs a quarter of epsilon, 8 at most, and at least 1: a public choice."""
    return max(curvature / -math.expm1(-min(epsilon / 4, 8.0)), 1.0)


def output_distance(penalty: float, *, lipschitz: float = 1.0, neighbours: Neighbours = "add-remove") -> float:
    """Return how far one record moves the exact minimiser at most, in l2."""
    return (1 if neighbours == "add-remove" else 2) * lipschitz / penalty


# ---- losses -------------------------------------------------------------------------------------------------------------
@travels
@dataclass(frozen=True)
class MarginLoss:
    """A loss of a record's predictor eta and target 0 or 1, with |l'| <= 1 and l'' <= `curvature`.

    Parameters
    ----------
    name : {"logistic", "svm"}
        log(1 + exp(eta)) - y eta; or the hinge, smoothed by Huber's parabola between margins 1 - width and 1 + width.
    width : float
        Of the smoothed hinge.
    """

    name: LossName = "logistic"
    width: float = 0.5

    def __post_init__(self) -> None:
        if self.name not in ("logistic", "svm") or not 0 < self.width <= 1:
            raise SettingsInvalid(
                f"a loss {self.name!r} of width {self.width!r}.", remedy="Known: 'logistic' and 'svm', of a width in (0, 1]."
            )

    @property
    def curvature(self) -> float:
        return 0.25 if self.name == "logistic" else 1 / (2 * self.width)

    def slopes(self, eta: Array, y: Array) -> Array:
        """l' at each record, shape (n,)."""
        if self.name == "logistic":
            return np.asarray(special.expit(eta) - y)
        sign = np.where(y > 0.5, 1.0, -1.0)
        return -sign * np.clip((1 + self.width - sign * eta) / (2 * self.width), 0.0, 1.0)

    def curves(self, eta: Array, y: Array) -> Array:
        """l'' at each record, shape (n,)."""
        if self.name == "logistic":
            p = special.expit(eta)
            return np.asarray(p * (1 - p))
        margin = np.where(y > 0.5, eta, -eta)
        return np.where(np.abs(1 - margin) <= self.width, self.curvature, 0.0)
