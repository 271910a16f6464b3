"""Composition by theorems on (epsilon, delta) and on zCDP, as they came before privacy loss distributions.

    basic      epsilons and deltas add (Dwork & Roth 2014, Theorem 3.16)
    advanced   sum e (exp(e) - 1) + sqrt(2 ln(1/delta') sum e^2), and delta' more delta (Dwork, Rothblum & Vadhan 2010,
               Theorem III.3; Dwork & Roth 2014, Theorem 3.20). Its proof is Azuma's inequality for losses in [-e, e] of
               mean at most e (exp(e) - 1), so the e need not be equal. Where basic composition finds less, as it does for
               large epsilons, whose mean grows with the exponential, that is taken: both are bounds at the same delta
    zcdp       rhos add, then rho + 2 sqrt(rho ln(1/delta)) (Bun & Steinke 2016, Lemmas 1.7 and 3.5). Sampling does not
               amplify zCDP; a pure epsilon is amplified first. Skellam noise has no rho

A mechanism without a pure epsilon gets an equal share of delta and the exact epsilon at that share. What an `approximate`
mechanism leaks is taken off delta first: it is a mixture of a pure one and, with probability delta, of the truth (Kairouz,
Oh & Viswanath 2015).
"""

from __future__ import annotations

import math

from .costs import Batch, Cost, Costs, amplified
from .gaussian import gaussian_epsilon
from .renyi import curve, delta_of, epsilon_of, total_curve

_SHARES = (0.5, 0.25, 0.1, 0.05)
"""Shares of delta for the mechanisms that advanced composition tries; the rest is its own."""


def leak(costs: Costs) -> float:
    """Return the delta that is spent before any is chosen."""
    return math.fsum(count * cost.leak for cost, count in costs)


def basic(costs: Costs, delta: float) -> float:
    """Return the sum of epsilons, at equal shares of delta where that is needed."""
    n_noisy = _noisy(costs)
    if delta < 0 or (n_noisy and delta == 0):
        return math.inf
    return math.fsum(count * single(cost, delta / max(n_noisy, 1)) for cost, count in costs)


def advanced(costs: Costs, delta: float) -> float:
    """Return the bound of advanced composition, or that of basic composition where it is smaller."""
    if delta <= 0:
        return math.inf
    n_noisy = _noisy(costs)
    return min(basic(costs, delta), *(_advanced(costs, delta, share, n_noisy) for share in (_SHARES if n_noisy else (0.0,))))


def _advanced(costs: Costs, delta: float, share: float, n_noisy: int) -> float:
    each = [(single(cost, share * delta / max(n_noisy, 1)), count) for cost, count in costs]
    if max(e for e, _ in each) > 100:  # the mean alone exceeds the sum, and soon overflows
        return math.inf
    mean = math.fsum(count * e * math.expm1(e) for e, count in each)
    squares = math.fsum(count * e * e for e, count in each)
    return mean + math.sqrt(-2 * math.log((1 - share) * delta) * squares)


def zcdp(costs: Costs, delta: float) -> float:
    """Return the epsilon of the sum of rhos."""
    rho = math.fsum(count * rho_of(cost) for cost, count in costs)
    return rho + 2 * math.sqrt(rho * -math.log(delta)) if delta > 0 else math.inf


def single(cost: Cost, delta: float) -> float:
    """Return the epsilon of one use at `delta`, beyond what it leaks."""
    pure = unleaked(cost).pure
    if math.isfinite(pure):
        return pure
    delta /= cost.rate  # on a Poisson sample delta shrinks with the rate, and epsilon is amplified
    if delta >= 1:
        return 0.0
    if isinstance(cost, Batch):
        inside = basic(cost.uses, delta)
    elif cost.kind == "gaussian":
        inside = gaussian_epsilon(cost.noise_multiplier, delta)
    else:
        inside = epsilon_of(curve(cost._replace(rate=1.0)), delta)
    return amplified(inside, cost.rate) if math.isfinite(inside) else inside


def unleaked(cost: Cost) -> Cost:
    """Return the mechanism that is left when it does not leak."""
    if isinstance(cost, Batch):
        return Batch(cost.rate, tuple((use._replace(delta=0.0), count) for use, count in cost.uses))
    return cost._replace(delta=0.0)


def _noisy(costs: Costs) -> int:
    return sum(count for cost, count in costs if not math.isfinite(cost.pure))


def rho_of(cost: Cost) -> float:
    """Return the rho of one use: sampling amplifies a pure epsilon first, and no Gaussian."""
    known = cost.pure**2 / 2 if cost.pure < 1e100 else math.inf
    if isinstance(cost, Batch):
        return min(known, math.fsum(count * rho_of(use) for use, count in cost.uses))
    if cost.kind == "gaussian":
        return 0.5 / cost.noise_multiplier**2
    if cost.kind == "exponential":
        return min(known, cost.epsilon**2 / 8)
    return known


def renyi(costs: Costs, delta: float) -> float:
    """Return the epsilon of the sum of Renyi divergences."""
    return epsilon_of(total_curve(costs), delta) if delta > 0 else math.inf


def renyi_delta(costs: Costs, epsilon: float) -> float:
    """Return the delta of the sum of Renyi divergences, beyond what leaks."""
    return delta_of(total_curve(costs), epsilon)
