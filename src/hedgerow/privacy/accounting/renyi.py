"""Renyi divergences of mechanisms, as curves over orders.

    gaussian     order / (2 z^2); on a Poisson sample Mironov, Talwar & Zhang 2019, on one of fixed size Wang, Balle &
                 Kasiviswanathan 2019, Theorem 27
    laplace      Mironov 2017, Proposition 6
    pure         randomised response (Mironov 2017, Proposition 5), the worst mechanism of an epsilon
    exponential  the worst of all pairs whose privacy loss has a range of epsilon (Dong, Durfee & Rogers 2020); at most
                 order epsilon^2 / 8 (Cesar & Rogers 2021)
    skellam      Agarwal, Kairouz & Liu 2021, Theorem 3.5, at whole orders; between them the next order bounds it

On a Poisson sample any mechanism with a pure epsilon costs at most what randomised response of that epsilon costs on the
sample: given who else was drawn, the likelihood ratio r of a unit's presence has mean 1 and lies between e^-epsilon and
e^epsilon. Both divergences are means of convex functions of r, so they are largest where r takes only the two ends.
The same curve without sampling is a bound too, since divergences are jointly quasi-convex.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from .costs import Batch, Cost, Costs, Use, amplified
from .sampled import sampled_gaussian

Curve = NDArray[np.float64]
Orders = tuple[float, ...]

ORDERS: Orders = (*(1 + k / 10 for k in range(1, 100)), *map(float, range(11, 64)), 128.0, 256.0, 512.0, 1024.0)
"""Those of `dp_accounting`, so that its published numbers are met."""

MOMENTS: Orders = tuple(map(float, range(2, 34)))
"""Orders up to 33: the moments up to 32 that Abadi et al. 2016 computed."""


def total_curve(costs: Costs, orders: Orders = ORDERS) -> Curve:
    """Return the divergence of everything together at each order; what leaks by definition (`leak`) is left out."""
    return sum((count * curve(cost, orders) for cost, count in costs), start=np.zeros(len(orders)))


def epsilon_of(divergences: Curve, delta: float, orders: Orders = ORDERS) -> float:
    """Return the least epsilon over orders (Canonne, Kamath & Steinke 2020, Proposition 12).

    Nothing is spent where the total variation, at most sqrt(1 - e^-divergence) (Bretagnolle & Huber 1979), is below delta.
    The numbers are those of `dp_accounting`, which takes more memory than a station that only decides should have.
    """
    if delta <= 0:
        return 0.0 if delta == 0 and not np.any(divergences) else math.inf
    found = [_epsilon_at(alpha, float(value), delta) for alpha, value in zip(orders, divergences, strict=True)]
    return max(0.0, min(found)) if not np.isnan(found).any() else math.inf


def _epsilon_at(alpha: float, divergence: float, delta: float) -> float:
    if divergence < 0 or delta**2 + math.expm1(-divergence) > 0:
        return 0.0
    if alpha <= 1.01:  # rounding leaves no digits
        return math.inf
    return divergence + math.log1p(-1 / alpha) - math.log(delta * alpha) / (alpha - 1)


def delta_of(divergences: Curve, epsilon: float, orders: Orders = ORDERS) -> float:
    """Return the least delta over orders: the same proposition, solved for delta.

    It is at most the total variation too, which is at most sqrt(1 - e^-divergence) (Bretagnolle & Huber 1979).
    """
    alpha = np.array(orders)
    logs = (alpha - 1) * (divergences - epsilon + np.log1p(-1 / alpha)) - np.log(alpha)
    return float(min(math.exp(min(0.0, float(np.min(logs)))), math.sqrt(-math.expm1(-float(np.min(divergences))))))


def classic_epsilon(divergences: Curve, delta: float, orders: Orders) -> float:
    """Return the least epsilon over orders by Mironov 2017, Proposition 3, as published before 2020."""
    return float(np.min(divergences - math.log(delta) / (np.array(orders) - 1)))


@lru_cache(maxsize=8192)
def curve(cost: Cost, orders: Orders = ORDERS) -> Curve:
    """Return the divergence of one use at each order; infinity at orders where it cannot be computed."""
    if isinstance(cost, Batch):
        plain = sum((count * curve(use, orders) for use, count in cost.uses), start=np.zeros(len(orders)))
        everything = math.fsum(count * use._replace(delta=0.0).pure for use, count in cost.uses)
        return _least(plain, everything, cost.rate, orders)
    if cost.kind == "gaussian":
        return _sampled_gaussian(cost, orders)
    if cost.kind == "laplace":
        return _least(_laplace(cost, orders), 1 / cost.noise_multiplier, cost.rate, orders, cost.exchanged)
    if cost.kind == "exponential":
        return _least(range_curve(cost.epsilon, orders), cost.epsilon, cost.rate, orders, cost.exchanged)
    if cost.kind == "skellam":
        return skellam_curve(cost.noise_multiplier, cost.steps, orders)
    return _least(response_curve(cost.epsilon, 1.0, orders), cost.epsilon, cost.rate, orders, cost.exchanged)


def response_curve(epsilon: float, rate: float = 1.0, orders: Orders = ORDERS) -> Curve:
    """Return the divergences of randomised response on a Poisson sample: the larger of both directions."""
    alpha = np.array(orders)
    least = math.log1p(rate * math.expm1(epsilon)) if epsilon < 700 else epsilon
    bound = np.minimum(alpha * least**2 / 2, least)
    if epsilon > 700:
        return bound
    without = scipy.special.expit(np.array([-epsilon, epsilon]))
    with_unit = (1 - rate) * without + rate * without[::-1]
    told = rate * math.tanh(epsilon / 2)
    ratio = np.log1p(told * np.array([1, -1]) / without) if epsilon < 1 else np.log(with_unit) - np.log(without)
    worst = np.maximum(_two_points(alpha, without, ratio), _two_points(alpha, with_unit, -ratio))
    # A pure epsilon bounds every order by alpha epsilon^2 / 2 (Bun & Steinke 2016, Proposition 1.4) and by itself, which
    # also holds where rounding left nothing of the sum.
    return np.minimum(np.where(worst > 0, worst, math.inf), bound)


def range_curve(epsilon: float, orders: Orders = ORDERS) -> Curve:
    """Return the largest divergences of a mechanism whose privacy loss lies in [t - epsilon, t] for some t.

    With two outcomes of losses t and t - epsilon, and y = e^t, the sum over outcomes of P^a Q^(1-a) is proportional to
    A y^(a-1) - B y^a with A = e^epsilon - e^(-(a-1) epsilon), B = 1 - e^(-(a-1) epsilon). It is largest at
    y = (1 - 1/a) A / B, if that lies in [1, e^epsilon].
    """
    alpha = np.array(orders)
    bound = np.minimum(alpha * epsilon**2 / 8, epsilon)
    if epsilon > 30:  # the exponentials leave no digits; every divergence is close to epsilon
        return bound
    shrunk = -np.expm1(-(alpha - 1) * epsilon)
    t = np.clip(np.log1p(-1 / alpha) + np.log(math.expm1(epsilon) + shrunk) - np.log(shrunk), 0.0, epsilon)
    p = np.exp(t) * np.expm1(epsilon - t) / math.expm1(epsilon)  # the outcome of loss t, under P
    with np.errstate(divide="ignore"):
        terms = np.stack([np.log(p) + (alpha - 1) * t, np.log1p(-p) + (alpha - 1) * (t - epsilon)])
    found = np.logaddexp(terms[0], terms[1]) / (alpha - 1)
    return np.minimum(np.where(found > 0, found, math.inf), bound)


def skellam_curve(noise_multiplier: float, steps: float, orders: Orders = ORDERS) -> Curve:
    """Return the divergences of Skellam noise of `steps` grid steps on neighbours `steps / noise_multiplier` steps apart.

    Theorem 3.5 of Agarwal, Kairouz & Liu 2021 with the variance mu, the l2 distance D2 and the l1 distance D1, which for
    whole numbers is at most D2^2.
    """
    whole = np.ceil(np.array(orders))
    mu, square = steps**2, (steps / noise_multiplier) ** 2
    extra = np.minimum(((2 * whole - 1) * square + 6 * square) / (4 * mu**2), 3 * square / (2 * mu))
    return np.asarray(whole * square / (2 * mu) + extra)


def _two_points(alpha: Curve, weights: Curve, ratio: Curve) -> Curve:
    """Return ln E r^alpha / (alpha - 1) where ln r is `ratio` with these weights, and E r = 1."""
    exponents = alpha[:, None] * ratio
    if exponents.max() < 1:  # E r^alpha - 1 without cancellation of the linear term
        beyond = (weights * (np.expm1(exponents) - alpha[:, None] * np.expm1(ratio))).sum(axis=1)
        return np.asarray(np.log1p(beyond) / (alpha - 1))
    with np.errstate(divide="ignore"):
        terms = np.log(weights) + exponents
    return np.asarray(np.logaddexp(terms[:, 0], terms[:, 1]) / (alpha - 1))


def _least(plain: Curve, epsilon: float, rate: float, orders: Orders, exchanged: bool = False) -> Curve:
    """Return the smaller of the curve without sampling and that of the sampled pure epsilon, where there is one."""
    if rate == 1 or not math.isfinite(epsilon):
        return plain
    if exchanged:  # of the sampled epsilon itself: the likelihood ratio has another form where a unit is exchanged
        epsilon, rate = amplified(epsilon, rate), 1.0
    return np.asarray(np.minimum(plain, response_curve(epsilon, rate, orders)))


def _laplace(use: Use, orders: Orders) -> Curve:
    import dp_accounting
    from dp_accounting import rdp

    event = dp_accounting.LaplaceDpEvent(use.noise_multiplier)
    return _positive(rdp.RdpAccountant(orders).compose(event).rdp)


def _sampled_gaussian(use: Use, orders: Orders) -> Curve:
    if use.rate == 1:
        return np.array(orders) / (2 * use.noise_multiplier**2)
    if use.exchanged:
        return _exchanged_gaussian(use, orders)
    return _positive(sampled_gaussian(use.rate, use.noise_multiplier, orders))


def _exchanged_gaussian(use: Use, orders: Orders) -> Curve:
    """Return the curve on a sample of fixed size; orders above 128 take too long and are left out.

    Computed here, since the accountant of `dp_accounting` 0.6 leaves out a factor 2 in the distance of neighbours.
    Between whole orders the cumulant (order - 1) times divergence is convex (Wang, Balle & Kasiviswanathan, Corollary 10).
    """
    alpha = np.minimum(np.array(orders), 128.0)
    whole = np.unique(np.concatenate([[1.0], np.floor(alpha), np.ceil(alpha)]))
    moments = _log_moments(use.noise_multiplier, 2 * math.ceil(whole[-1] / 2))
    cumulants = [_log_of_sample(use.rate, use.noise_multiplier, moments, int(k)) for k in whole]
    found = np.interp(alpha, whole, cumulants) / (alpha - 1)
    return _positive(np.where(np.array(orders) > 128, math.inf, found))


def _log_of_sample(rate: float, z: float, moments: Curve, order: int) -> float:
    """Return the cumulant at a whole order: Theorem 27, with the least of its bounds for each term."""
    if order < 2:
        return 0.0
    j = np.arange(2, order + 1)
    lower, upper = moments[2 * (j // 2)], moments[2 * ((j + 1) // 2)]
    terms = np.minimum(math.log(4) + (lower + upper) / 2, math.log(2) + (j - 1) * j / (2 * z**2))
    two = 1 / z**2  # the divergence of order 2
    terms[0] = min(math.log(4) + two + math.log(-math.expm1(-two)), two + math.log(2))
    ways = scipy.special.gammaln([order + 1.0]) - scipy.special.gammaln(j + 1) - scipy.special.gammaln(order - j + 1)
    terms += j * math.log(rate) + ways
    return float(np.logaddexp.reduce(np.concatenate([[0.0], terms])))


def _log_moments(z: float, most: int) -> Curve:
    """Return ln E (r - 1)^k for even k up to `most`, where r is the likelihood ratio of two Gaussians; odd k are left at zero.

    The integrand is analytic and nowhere negative, so a sum over equal steps has all digits. The alternating sum by which the
    theorem is stated loses them where z is large. Below a z of 1/2 another bound of the theorem is smaller: infinity here.
    """
    if z < 0.5:
        return np.full(most + 1, math.inf)
    step = 1 / 16
    x = np.arange(-40.0, 40.0 + most / z, step)
    u = x / z - 1 / (2 * z**2)
    with np.errstate(divide="ignore"):
        log_ratio = np.log(-np.expm1(-np.abs(u))) + np.maximum(u, 0.0)
    found = np.zeros(most + 1)
    for k in range(2, most + 1, 2):
        found[k] = scipy.special.logsumexp(k * log_ratio - x * x / 2) + math.log(step) - 0.5 * math.log(2 * math.pi)
    return found


def _positive(divergences: Iterable[float]) -> Curve:
    """Where cancellation leaves nothing positive, the divergence is unknown rather than zero."""
    found = np.asarray(divergences, dtype=np.float64)
    return np.where(found > 0, found, math.inf)
