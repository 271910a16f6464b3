"""One Gaussian release, exactly: the privacy curve of Balle & Wang (ICML 2018, Theorem 8) and its inverses.

With z the standard deviation over the l2 distance of neighbours,

    delta(epsilon) = Phi(1/(2z) - epsilon z) - e^epsilon Phi(-1/(2z) - epsilon z)

The classic formula z = sqrt(2 ln(1.25/delta)) / epsilon is not used anywhere: it is proved for epsilon < 1 only, and above
it is too small. At (8, 1e-3) it gives 0.4721, whose delta is 1.31e-3.

Where delta is small the two terms underflow, or agree in most of their digits. So the difference is taken of Mills ratios
m(x) = Phi(-x) / phi(x) instead: e^epsilon phi(-1/(2z) - epsilon z) equals phi(1/(2z) - epsilon z), hence

    delta(epsilon) = phi(x) (m(x) - m(x + 1/z)),    x = epsilon z - 1/(2z)
"""

from __future__ import annotations

import math
from functools import lru_cache

import scipy

_SMALL = 1e-5  # below this distance the difference of two Mills ratios is their slope times the distance
_UP = 1 + 1e-12  # results of root finding are moved to the safe side by more than its tolerance


def gaussian_log_delta(noise_multiplier: float, epsilon: float) -> float:
    """Return the logarithm of delta(epsilon) of a Gaussian release, accurate also where delta underflows."""
    apart = 1 / noise_multiplier
    x = epsilon * noise_multiplier - apart / 2
    if apart < _SMALL:
        middle = x + apart / 2
        gap = apart * (1 - middle * _mills(middle))
    elif x < 0:  # delta is not small unless neighbours are close
        return math.log(scipy.special.ndtr(-x) - math.exp(-x * x / 2) / math.sqrt(2 * math.pi) * _mills(x + apart))
    else:
        gap = _mills(x) - _mills(x + apart)
    if gap <= 0:  # so far out that the two ratios are equal as floats: the first alone is an upper bound
        gap = _mills(x)
    return -x * x / 2 - 0.5 * math.log(2 * math.pi) + math.log(gap)


def gaussian_delta(noise_multiplier: float, epsilon: float) -> float:
    """Return the least delta at which a Gaussian release is (epsilon, delta)-private."""
    return min(1.0, math.exp(gaussian_log_delta(noise_multiplier, epsilon)))


@lru_cache(maxsize=4096)
def gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """Return the least epsilon at which a Gaussian release is (epsilon, delta)-private.

    Parameters
    ----------
    noise_multiplier : float
        Above 0.
    delta : float
        In (0, 1).
    """
    wanted = math.log(delta)
    if gaussian_log_delta(noise_multiplier, 0.0) <= wanted:
        return 0.0
    # the loss is normal with mean 1/(2z^2) and deviation 1/z, and a tail beyond t deviations is below exp(-t^2/2)
    highest = 0.5 / noise_multiplier**2 + math.sqrt(-2 * wanted) / noise_multiplier
    if not math.isfinite(highest):
        return math.inf
    find = scipy.optimize.brentq
    root: float = find(lambda e: gaussian_log_delta(noise_multiplier, e) - wanted, 0.0, highest * _UP, rtol=1e-13)
    return root * _UP


@lru_cache(maxsize=4096)
def gaussian_noise(epsilon: float, delta: float) -> float:
    """Return the least noise multiplier at which one Gaussian release is (epsilon, delta)-private: never below it.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In (0, 1).
    """
    wanted = math.log(delta)

    def too_much(log_z: float) -> float:
        return gaussian_log_delta(math.exp(log_z), epsilon) - wanted

    low = high = 0.0
    while too_much(low) <= 0:
        low -= 1.0
    while too_much(high) > 0:
        high += 1.0
    return math.exp(scipy.optimize.brentq(too_much, low, high, rtol=1e-13, xtol=1e-13)) * _UP


def _mills(x: float) -> float:
    return math.sqrt(math.pi / 2) * float(scipy.special.erfcx(x / math.sqrt(2)))
