"""Renyi divergences of Gaussian noise on a Poisson sample (Mironov, Talwar & Zhang 2019, Section 3.3), all orders at once.

The divergence of order a is log A / (a - 1) with A = E (1 - q + q r)^a, r = e^((2x - 1) / (2 z^2)) and x of N(0, z^2).
A whole order has the finite sum over k of binom(a, k) (1 - q)^(a - k) q^k e^((k^2 - k) / (2 z^2)). For any other order the
line is cut where q r = 1 - q, each side has an infinite series of its own, and coefficients count without their sign.
The operations and their order are those of `dp_accounting`, which takes each term of each order in Python.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]

_TERMS = (64, 256, 1000)
"""Terms of a series that are tried, until it has converged; an order that needs more is left out."""


def sampled_gaussian(rate: float, z: float, orders: tuple[float, ...]) -> Array:
    """Return the divergence at each order above 1; infinity where its series has not converged after 1000 terms.

    Parameters
    ----------
    rate : float
        Probability that a unit is in the sample, above 0 and below 1.
    z : float
        Noise multiplier.
    """
    alpha = np.array(orders)
    whole = alpha == np.floor(alpha)
    found = np.full(len(alpha), math.inf)
    if whole.any():
        found[whole] = _whole(rate, z, tuple(alpha[whole].tolist()))
    for n in _TERMS:
        left = ~whole & np.isinf(found)
        if left.any():
            found[left] = _others(rate, z, tuple(alpha[left].tolist()), n)
    return np.asarray(found / (alpha - 1))


def _whole(rate: float, z: float, orders: tuple[float, ...]) -> Array:
    alpha, k, ways, starts = _of_sums(orders)
    terms = ways + k * math.log(rate) + (alpha - k) * math.log1p(-rate) + (k * k - k) / (2 * z**2)
    return np.asarray(np.logaddexp.reduceat(terms, starts))


def _others(rate: float, z: float, orders: tuple[float, ...], n: int) -> Array:
    """Return log A at orders that are not whole, from so many terms; infinity where they are too few."""
    i, j, ways = _of_series(orders, n)
    cut, inside, outside = z**2 * math.log(1 / rate - 1) + 0.5, math.log(rate), math.log1p(-rate)
    below = ways + i * inside + j * outside + (i * i - i) / (2 * z**2) + _log_beyond((i - cut) / (math.sqrt(2) * z))
    above = ways + j * inside + i * outside + (j * j - j) / (2 * z**2) + _log_beyond((cut - j) / (math.sqrt(2) * z))
    total = np.logaddexp(np.logaddexp.accumulate(below, axis=1), np.logaddexp.accumulate(above, axis=1))
    fall = (below[:, 1:] < below[:, :-1]) & (above[:, 1:] < above[:, :-1])
    ended = fall & (np.maximum(below, above) < total - 30)[:, 1:]
    last = ended.argmax(axis=1)
    return np.where(ended.any(axis=1), total[np.arange(len(total)), last + 1], math.inf)


def _log_beyond(x: Array) -> Array:
    """Return log(erfc(x) / 2)."""
    return np.asarray(math.log(0.5) + (math.log(2) + scipy.special.log_ndtr(-x * 2**0.5)))


@lru_cache(maxsize=32)
def _of_sums(orders: tuple[float, ...]) -> tuple[Array, Array, Array, NDArray[np.intp]]:
    """Order, k and log binom(order, k) of all terms of whole orders in one row, and where each order begins."""
    lengths = np.array(orders, dtype=np.intp) + 1
    starts = np.cumsum(lengths) - lengths
    alpha = np.repeat(np.array(orders), lengths)
    k = np.arange(lengths.sum(), dtype=np.float64) - np.repeat(starts, lengths)
    return alpha, k, _log_binomial(alpha, k), starts


@lru_cache(maxsize=32)
def _of_series(orders: tuple[float, ...], n: int) -> tuple[Array, Array, Array]:
    """i, order - i and log |binom(order, i)| for each order and the first `n` terms."""
    alpha, i = np.array(orders)[:, None], np.arange(n, dtype=np.float64)[None, :]
    return i, alpha - i, _log_binomial(alpha, i)


def _log_binomial(n: Array, k: Array) -> Array:
    gammaln = scipy.special.gammaln
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
