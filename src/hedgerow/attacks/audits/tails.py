"""Tail probabilities that the law test needs: exact ones of normal noise, and bounds that hold for any law of known moments.

noncentral t     Z + shift over sqrt(chi^2 / df), by quadrature over the chi
squares below    P[sum (s^2 - x^2) >= t] <= exp(-t^2 / (2 n k s^4)) for independent x of E x^4 = k s^4     (Maurer 2003)
Cantelli         P[X - E X >= t] <= V / (V + t^2)
fourth moment    P[|X| >= t] <= E X^4 / t^4; a weighted sum of independent x has E X^4 <= max(3, k) V^2
Chernoff         P[sum of n squares of binomials, less their mean, >= x] <= exp(-s x) E[exp(s D)]^n, least over s
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from hedgerow.core.arrays import Array

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)
_FAR = 1e-14
"""Probability of a chi that the quadrature leaves out at either end."""


def t_below(t: float, shift: float, freedom: float) -> float:
    """P[T <= t] of the noncentral t with this shift and so many degrees of freedom."""
    spread = scipy.special.chdtri(freedom, np.array([1 - _FAR, _FAR]))
    low, high = np.sqrt(np.maximum(spread, 0.0) / freedom)
    chi = (high + low) / 2 + (high - low) / 2 * _NODES
    squares = freedom * chi**2
    log_density = (
        math.log(2 * freedom) + np.log(chi) + (freedom / 2 - 1) * np.log(squares) - squares / 2
        - freedom / 2 * math.log(2) - scipy.special.gammaln(freedom / 2)
    )  # fmt: skip
    weights = _WEIGHTS * np.exp(log_density)
    return float(np.clip(weights @ scipy.special.ndtr(t * chi - shift) / weights.sum(), 0, 1))


def t_above(t: float, shift: float, freedom: float) -> float:
    """P[T >= t], accurate where it is small."""
    return t_below(-t, -shift, freedom)


def t_quantile(tail: float, shift: float, freedom: float) -> float:
    """The t that is exceeded with this probability."""
    step = 1 + math.sqrt(1 + shift**2 / (2 * freedom))
    low = high = shift
    while t_above(high, shift, freedom) > tail:
        high += step
    while t_above(low, shift, freedom) < tail:
        low -= step
    return float(scipy.optimize.brentq(lambda t: t_above(t, shift, freedom) - tail, low, high)) if low < high else low


def shifts(t: float, freedom: float, tail: float) -> tuple[float, float]:
    """Shifts at which so large, or so small, a t has this probability: the ends of an interval."""
    step = 5 * math.sqrt(1 + t**2 / (2 * freedom)) - math.log10(tail)
    low = scipy.optimize.brentq(lambda shift: t_above(t, shift, freedom) - tail, t - 4 * step, t + step)
    high = scipy.optimize.brentq(lambda shift: t_below(t, shift, freedom) - tail, t - step, t + 4 * step)
    return float(low), float(high)


def chi_below(squares: float, freedom: float) -> float:
    """P[chi^2 <= squares]."""
    return float(scipy.special.chdtr(freedom, squares))


def chi_above(squares: float, freedom: float) -> float:
    """P[chi^2 >= squares]."""
    return float(scipy.special.chdtrc(freedom, squares))


def cantelli(excess: float, variance: float) -> float:
    """Bound on the probability to exceed a mean by so much."""
    return variance / (variance + excess**2) if excess > 0 else 1.0


def fourth(excess: float, variance: float, kurtosis: float) -> float:
    """Bound on the probability that a weighted sum of independent numbers is so far from its mean, on either side."""
    return min(1.0, max(3.0, kurtosis) * variance**2 / excess**4) if excess > 0 else 1.0


def squares_below(share: float, n: float, kurtosis: float) -> float:
    """Bound on the probability that the mean square of n independent numbers is at most this share of its expectation."""
    return math.exp(-n * (1 - share) ** 2 / (2 * kurtosis)) if share < 1 else 1.0


def binomial(hits: int, n: int, rate: float) -> tuple[float, float]:
    """P[Bin(n, rate) >= hits] and P[Bin(n, rate) <= hits]."""
    if rate == 1:
        return 1.0, float(hits == n)
    above = 1.0 if hits == 0 else float(scipy.special.betainc(hits, n - hits + 1, rate))
    below = 1.0 if hits == n else float(scipy.special.betaincc(hits + 1, n - hits, rate))
    return above, below


def dispersion(counts: Array, n: int, rate: float) -> tuple[float, float]:
    """Bounds on the probability that counts of Bin(n, rate) differ from their mean as much, and as little, as these do."""
    values = np.arange(n + 1)
    logs = (
        scipy.special.gammaln(n + 1) - scipy.special.gammaln(values + 1) - scipy.special.gammaln(n - values + 1)
        + scipy.special.xlogy(values, rate) + scipy.special.xlog1py(n - values, -rate)
    )  # fmt: skip
    variance = n * rate * (1 - rate)
    squares = (values - n * rate) ** 2 / variance
    seen = float(((np.asarray(counts) - n * rate) ** 2).mean() / variance)

    def bound(sign: float) -> float:
        def exponent(log_s: float) -> float:
            s = sign * math.exp(log_s)
            powers = logs + s * squares
            most = float(powers.max())
            return most + math.log(float(np.exp(powers - most).sum())) - s * seen

        least = scipy.optimize.minimize_scalar(exponent, bounds=(-12.0, 8.0), method="bounded").fun
        return math.exp(min(0.0, len(counts) * least))

    return bound(1.0) if seen > 1 else 1.0, bound(-1.0) if seen < 1 else 1.0
