"""What votes would have cost by their outcome: data-dependent accounting of GNMax, Confident-GNMax and LNMax, for reports.

    log q   <= log sum_{j != *} Q((n* - n_j) / (sqrt(2) sigma)),  at most log(1 - 1/C)         GNMax misses the plurality
    mu2 = sigma sqrt(-log q),  mu1 = mu2 + 1,  e1 = mu1 / sigma^2,  e2 = mu2 / sigma^2
    RDP(a)  <= log((1 - q) A^(a - 1) + q B^(a - 1)) / (a - 1)
               A = (1 - q) / (1 - (q exp(e2))^((mu2 - 1) / mu2)),   B = exp(e1) / q^(1 / (mu1 - 1))
               where a <= mu1, mu2 > 1 and log q <= (mu2 - 1) e2 - mu2 (log1p(1 / (mu1 - 1)) + log1p(1 / (mu2 - 1)))
            <= a / sigma^2                                                                      anywhere

Such an epsilon follows from the votes, so it is a secret itself: to print it is a release that nobody has charged (Papernot et
al. 2018, section 4.2, smooth it with noise of its own), and a ledger debits before it asks, when there are no votes yet. So it
is a value of a kind of its own, `Unreleasable`, which no event takes: the guarantee of `hedgerow.learn.pate` is that of its
Gaussian release, whatever the votes are.

Source: Papernot et al. 2018, Propositions 7, 8 and 10, Theorem 6; LNMax: Papernot et al. 2017, Theorem 3 and Lemma 4. In both
a vote of one teacher may change, so that two counts move by one each: a / sigma^2, and 2 gamma for noise of scale 1 / gamma.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from hedgerow.core.arrays import Array
from hedgerow.errors import BudgetInvalid

ORDERS = np.unique(np.concatenate([1 + np.logspace(-1.5, 0, 20), np.arange(2.0, 100.0), np.logspace(2, 3, 60)]))
"""Renyi orders at which curves are added up."""


@dataclass(frozen=True)
class Unreleasable:
    """An epsilon that follows from the records: for the eyes of who may see the exact votes, and for no ledger.

    It is no number on purpose: whoever needs one writes `.secret`, and has been told.
    """

    secret: float
    delta: float

    def __str__(self) -> str:
        return f"{self.secret:.3f} (data-dependent: unreleasable, and no guarantee until it is smoothed)"

    def __float__(self) -> float:
        raise BudgetInvalid(
            "an epsilon that follows from the votes is no cost that can be charged.",
            remedy="Charge the data-independent epsilon; this one is a secret like the votes that it follows from.",
        )


# ---- how sure a vote is -------------------------------------------------------------------------------------------------
def log_miss_gnmax(votes: Array, sigma: float) -> float:
    """Log of a bound of the chance that GNMax misses the plurality of the votes (C,); Proposition 7."""
    ordered = np.sort(np.asarray(votes, float))[::-1]
    tails = special.log_ndtr(-(ordered[0] - ordered[1:]) / (math.sqrt(2) * sigma))
    return min(float(special.logsumexp(tails)), math.log1p(-1 / len(ordered)))


def log_miss_lnmax(votes: Array, scale: float) -> float:
    """Log of the same with Laplace noise of this scale, 1 / gamma; Lemma 4 of 2017."""
    ordered = np.sort(np.asarray(votes, float))[::-1]
    gaps = (ordered[0] - ordered[1:]) / scale
    return min(float(special.logsumexp(np.log(2 + gaps) - math.log(4) - gaps)), math.log1p(-1 / len(ordered)))


def log_answered(votes: Array, threshold: float, sigma: float) -> float:
    """Log of the chance that the largest vote passes a noisy check."""
    return float(special.log_ndtr((float(np.max(votes)) - threshold) / sigma))


# ---- Renyi curves -------------------------------------------------------------------------------------------------------
def rdp_free(sigma: float, orders: Array = ORDERS) -> Array:
    """Of a noisy maximum, or of the whole noisy votes, whatever they are: one teacher moves them by sqrt(2)."""
    return np.asarray(orders, float) / sigma**2


def rdp_gnmax(votes: Array, sigma: float, orders: Array = ORDERS) -> Array:
    """Of a noisy maximum of these votes; Theorem 6 with Proposition 8."""
    return _dependent(log_miss_gnmax(votes, sigma), sigma, orders)


def rdp_check(votes: Array, threshold: float, sigma: float, orders: Array = ORDERS) -> Array:
    """Of a noisy comparison of the largest vote with a threshold, whatever it says: sensitivity 1, so at sqrt(2) sigma."""
    answered = log_answered(votes, threshold, sigma)
    refused = math.log1p(-math.exp(answered)) if answered < -1e-15 else -math.inf
    return _dependent(min(answered, refused), math.sqrt(2) * sigma, orders)


def rdp_lnmax(votes: Array, scale: float, orders: Array = ORDERS) -> Array:
    """Of a maximum with Laplace noise; Theorem 3 of 2017, for the pure epsilon 2 / scale."""
    a, epsilon, log_q = np.asarray(orders, float), 2 / scale, log_miss_lnmax(votes, scale)
    free = np.array([_pure(epsilon, order) for order in a])
    if not math.exp(log_q) < math.expm1(epsilon) / math.expm1(2 * epsilon):
        return free
    stays = math.log1p(-math.exp(log_q))
    kept = stays + (a - 1) * (stays - math.log1p(-math.exp(epsilon + log_q)))
    found: Array = np.minimum(np.logaddexp(kept, log_q + (a - 1) * epsilon) / (a - 1), free)
    return found


def _pure(epsilon: float, order: float) -> float:
    """Renyi divergence of randomised response, which no epsilon-private mechanism exceeds."""
    if order * epsilon > 300:
        return epsilon
    ratio = (math.sinh(order * epsilon) - math.sinh((order - 1) * epsilon)) / math.sinh(epsilon)
    return min(epsilon, math.log(ratio) / (order - 1))


def _dependent(log_q: float, sigma: float, orders: Array) -> Array:
    """Theorem 6 for an outcome that is missed with at most this chance; never above the curve that needs no votes."""
    a = np.asarray(orders, float)
    free = a / sigma**2
    if log_q == -math.inf:
        return np.zeros_like(a)
    second = sigma * math.sqrt(-log_q) if log_q < 0 else 0.0
    if second <= 1:
        return free
    first = second + 1
    e1, e2 = first / sigma**2, second / sigma**2
    small = log_q <= (second - 1) * e2 - second * (math.log1p(1 / (first - 1)) + math.log1p(1 / (second - 1)))
    if not small:
        return free
    stays = math.log1p(-math.exp(log_q))
    log_a = stays - math.log1p(-math.exp((log_q + e2) * (1 - 1 / second)))
    log_b = e1 - log_q / (first - 1)
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.logaddexp(stays + (a - 1) * log_a, log_q + (a - 1) * log_b) / (a - 1)
    lawful = (a <= first) & np.isfinite(found)
    return np.where(lawful, np.minimum(np.maximum(found, 0.0), free), free)


# ---- epsilon ------------------------------------------------------------------------------------------------------------
def epsilon_of(curve: Array, delta: float, orders: Array = ORDERS, *, classic: bool = False) -> float:
    """Epsilon of a Renyi curve: Canonne, Kamath & Steinke 2020, Proposition 12; `classic`: Mironov 2017, as published."""
    a = np.asarray(orders, float)
    found = curve - math.log(delta) / (a - 1)
    if not classic:
        found = found + np.log1p(-1 / a) - np.log(a) / (a - 1)
    return max(0.0, float(np.min(found)))
