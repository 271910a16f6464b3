"""Theorems 2 and 3 of Wu 2019, as printed and mended, beside which forecasts stand.

    S = sum_l 1 / eps_l^2;   v = 8 Xi^2 T^2 S / n^2   of one coordinate;   B^2 = G^2 + p v   of a whole noisy gradient

                 printed                                   mended
    Theorem 2    8 Xi^2 rho S / (L n^2)                    2 B^2 / (L (T + 1))               steps 2 / (L (k + 1)), average ~ k
    (3.8)        32 Xi^2 rho S / (L^2 n^2) + eps / (4 L)   (2 / L) of the bound on f         by strong convexity at theta*
    Theorem 3    c2 Xi sqrt(S) / n, c2 to be fitted        D^2 om_T / (2 s_T) + B^2 / 2 sum_k om_k s_k

What is wrong with the printed ones, in the order of the proofs:

- a gradient has p coordinates, each with noise of variance v: the bounds lack a factor p (Theorem 2) or its root;
- (A.1) lacks lambda / 2 before the noise, which may be left out for lambda <= 2 only;
- steps rho / (T^2 k) add up to rho (1 + ln T) / T^2 at most (`travelled`), so that the sum that should diverge to minus
  infinity is finite, no k_0 <= T follows, and the iterate stays where it began: Theorem 2 does not hold, whatever rho;
- (A.2) says |theta - theta*|^2 <= 4 (f - f*) / L; 2 (f - f*) / L is true. (3.8) has eps / (4 L), its proof eps / (8 L^2), and
  (3.7) with (A.2) gives 4 eps / L;
- Theorem 3 has no term that stays as eps grows, but steps leave an excess at any fixed T, so c2 would depend on eps;
- (A.3) claims that zeta_k - zeta_{k-1} <= 2 / (sqrt(T) T (T + 1)), which is 2.0e-5 at T = 100, where it is 6.6e-4 (`zetas`).

Mended, Theorem 2 is that of Lacoste-Julien, Schmidt, Bach 2012 with noise counted in full, for the rule `strongly-convex` with
its first step 2 / L; Theorem 3 follows from |theta_{k+1} - theta*|^2 <= |theta_k - theta*|^2 - 2 s_k (f - f*) + s_k^2 B^2,
summed with the weights om_k of (3.6), which grow, so that om_k / s_k does. Both are bounds, true and far above what is
achieved; `forecast` is what to expect.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.queries.steps import Steps

from .propagation import average_weights


def openness(epsilons: Sequence[float]) -> float:
    """S: the sum of 1 / eps^2 over owners."""
    if not epsilons or min(epsilons) <= 0:
        raise SettingsInvalid(f"epsilons {list(epsilons)}.", remedy="Give one above zero for each owner.")
    return math.fsum(1 / epsilon**2 for epsilon in epsilons)


def theorem_2_printed(xi: float, rho: float, convexity: float, n: float, epsilons: Sequence[float]) -> float:
    """The noise term of (3.7): 8 Xi^2 rho / (L n^2) S.

    Parameters
    ----------
    xi : float
        Largest l1-length of a record's gradient.
    rho : float
        Of the steps rho / (T^2 k).
    convexity : float
        L.
    n : float
        Records of all owners.
    """
    return 8 * xi**2 * rho / (convexity * n**2) * openness(epsilons)


def distance_printed(
    xi: float, rho: float, convexity: float, n: float, epsilons: Sequence[float], slack: float
) -> dict[str, float]:
    """(3.8) in its three versions, for a slack of (3.7): as printed, as its proof ends, and as (3.7) and (A.2) give it."""
    noise = 32 * xi**2 * rho / (convexity**2 * n**2) * openness(epsilons)
    return {
        "printed": noise + slack / (4 * convexity),
        "appendix": noise + slack / (8 * convexity**2),
        "mended": noise + 4 * slack / convexity,
    }


def distance(excess: float, convexity: float) -> float:
    """Largest |theta - theta*|^2 of a model with this excess: 2 / L times it, half of what (A.2) says."""
    return 2 * excess / convexity


def travelled(rho: float, horizon: int) -> float:
    """Sum of the steps rho / (T^2 k) of Algorithm 1 as printed: how far gradients of length 1 move it."""
    return rho / horizon**2 * math.fsum(1 / k for k in range(1, horizon + 1))


def noise_of(xi: float, horizon: int, n: float, epsilons: Sequence[float]) -> float:
    """v: variance of one coordinate of the mean gradient, as in (A.1) for Theorem 1's noise."""
    return 8 * (xi * horizon / n) ** 2 * openness(epsilons)


def theorem_2(convexity: float, horizon: int, steepest: float, variance: float, coordinates: int) -> float:
    """Theorem 2 mended: a bound on the expected excess under the rule `strongly-convex` with the first step 2 / L.

    Parameters
    ----------
    steepest : float
        G: largest l2-length of the gradient of f in the box.
    variance : float
        v, in each of p `coordinates`, of whatever law.
    """
    return 2 * (steepest**2 + coordinates * variance) / (convexity * (horizon + 1))


def theorem_3_printed(c2: float, xi: float, n: float, epsilons: Sequence[float]) -> float:
    """(3.9): c2 Xi / n sqrt(S); c2 has to be fitted."""
    return c2 * xi / n * math.sqrt(openness(epsilons))


def theorem_3(steps: Steps, horizon: int, steepest: float, variance: float, coordinates: int) -> float:
    """Theorem 3 mended: a bound on the expected excess under Algorithm 2, for any convex loss and noise of mean zero.

    Parameters
    ----------
    steps : Steps
        With the rule `algorithm-2`; its box has the diameter D = 2 box sqrt(p).
    steepest, variance, coordinates
        As of `theorem_2`.

    Raises
    ------
    SettingsInvalid (HR-511)
        Another rule: the sum needs weights over steps that grow.
    """
    if steps.rule != "algorithm-2":
        raise SettingsInvalid(f"Theorem 3 under the rule {steps.rule!r}.", remedy="Take 'algorithm-2'.")
    weights = average_weights(steps, horizon)[:horizon]
    lengths = np.array([steps.length(k, horizon) for k in range(1, horizon + 1)])
    diameter = 2 * steps.box * math.sqrt(coordinates)
    squared = steepest**2 + coordinates * variance
    return float(diameter**2 * weights[-1] / (2 * lengths[-1]) + squared / 2 * (weights @ lengths))


def zetas(horizon: int) -> Array:
    """zeta_k of appendix A.3, k = 1 .. T: the weights of theta_1 .. theta_T in the average (3.6)."""
    return average_weights(Steps("algorithm-2"), horizon)[:horizon]


def zeta_claimed(horizon: int) -> float:
    """What appendix A.3 says of the differences of `zetas`: at most 2 / (sqrt(T) T (T + 1)). It is false."""
    return 2 / (math.sqrt(horizon) * horizon * (horizon + 1))
