"""A latent normal law of codes: cut points from histograms, correlations from sums of products of scores.

    p_jc      share of code c of column j                     t_jc = Phi^-1(p_j0 + ... + p_jc)
    Z         ~ N(0, R);  code j of a record is the c with  t_j(c-1) < Z_j <= t_jc
    s_j       score of each code, a number that follows from p_j alone:  E[Z | code],  held to [-reach, reach]
    a_jk      = E[s_j(Z) h_k(Z)],  h_k the normalised Hermite polynomials
    g(rho)    = sum over k of a_ik a_jk rho^k  = E[s_i(Z_i) s_j(Z_j)]           Mehler 1866
    R_ij      the rho at which g(rho) is what records give,  m_ij = (sum of s_i s_j) / n

A score of few levels, or one that is cut at the reach, has a product that is weaker than the correlation behind it. g says by
how much, so that R_ij is right for two levels as for hundreds, where a product of scores itself would be drawn towards zero. g
rises with rho, as scores rise with codes (Lancaster 1957), and is inverted by halving.

Behind noise of standard deviation tau in m_ij, what it says beyond independence is kept to the part
1 / (1 + (tau / (g'(0) r))^2), r being `USUAL`. R is made positive definite by a floor under its eigenvalues and scaled to ones
on its diagonal. All of this is post-processing.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from hedgerow.core.arrays import Array

TERMS = 64
"""Powers of rho; what is left out is below 1e-3 of g at 0.95, for two levels, and nothing for many."""
HIGHEST = 0.999
"""No correlation is further from zero."""
USUAL = 0.3
"""Size of a correlation that is nothing unusual, to which noise is compared."""
FLOOR = 1e-4
"""Under the eigenvalues of a correlation matrix."""
FARTHEST = 8.0
"""No score is further from zero."""


def shares_of(counts: Array, sigma: float, *, alike: Array) -> Array:
    """Shares of codes from their counts (..., codes), which add up to 1; equal ones where nothing was counted.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise in each count. With it, counts are moved by one number for all and cut at zero, so that
        their total stays.
    alike : array of shape (codes,), bool
        Codes that have about as many records as their neighbours, as bins of a number have: their noise is smoothed first.
    """
    size = counts.shape[-1]
    flat = counts.reshape(-1, size).astype(float)
    if sigma > 0:
        if alike.any():
            flat[:, alike] = [smoothed(row, sigma) for row in flat[:, alike]]
        flat = np.stack([onto_simplex(row, max(row.sum(), 0.0)) for row in flat])
    total = flat.sum(-1, keepdims=True)
    found: Array = np.where(total > 0, flat / np.where(total > 0, total, 1.0), 1 / size)
    return found.reshape(counts.shape)


def onto_simplex(x: Array, total: float) -> Array:
    """The nearest numbers at or above zero with a given total: shape (m,)."""
    falling = np.sort(x)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, len(x) + 1)
    at = np.flatnonzero(falling > over)
    found: Array = np.maximum(x - (over[at[-1]] if len(at) else over[0]), 0.0)
    return found


def smoothed(counts: Array, sigma: float) -> Array:
    """Noisy counts of neighbouring bins (m,), of which each level of detail is kept as far as it is more than noise.

    Differences of halves, quarters and so on (Haar) are shrunk level by level by 1 - k sigma^2 / |d|^2, k being how many they
    are (James & Stein 1961). Their total stays.
    """
    m = len(counts)
    depth = math.ceil(math.log2(m))
    means = np.concatenate([counts, np.full(2**depth - m, counts[-1:].mean())])
    details = []
    for level in range(depth):
        left, right = means[0::2], means[1::2]
        d, variance = (left - right) / 2, sigma**2 / 2 ** (level + 1)
        there = max(1, m // 2 ** (level + 1))
        details.append(d * max(0.0, 1 - there * variance / max(float(d @ d), 1e-300)))
        means = (left + right) / 2
    for d in reversed(details):
        means = np.stack([means + d, means - d], axis=-1).ravel()
    found = means[:m]
    return np.asarray(found + (counts.sum() - found.sum()) / m)


def cut_scale(p: Array) -> Array:
    """Cut points of codes with shares p (codes,) on the latent scale: shape (codes + 1,), from -inf to inf."""
    below = np.concatenate([[0.0], np.cumsum(p)])
    below[np.cumsum(np.append(p, 0.0)[::-1])[::-1] <= 0] = 1.0  # nothing lies above
    below[-1] = 1.0
    return np.asarray(ndtri(np.minimum(below, 1.0)))


def scores_of(p: Array, reach: float = math.inf) -> Array:
    """A score for each code, ascending: its mean on the latent scale, shape (codes,).

    With a reach, scores beyond it are cut and all are stretched until the farthest is there, so that the signal is as large as
    the bound of what a record adds.
    """
    t = cut_scale(p)
    density = _density(t)
    inside = p > 1e-12
    means = np.divide(density[:-1] - density[1:], p, out=np.zeros_like(p), where=inside)
    found = np.where(inside, means, np.clip(t[:-1], -FARTHEST, FARTHEST))
    found = np.maximum.accumulate(np.clip(found, -min(reach, FARTHEST), min(reach, FARTHEST)))
    farthest = np.abs(found).max()
    if math.isfinite(reach) and farthest > 0:
        found = np.clip(found * (reach / farthest), -reach, reach)
    return found


def hermite(p: Array, scores: Array) -> Array:
    """Coefficients of a score in Hermite polynomials: shape (TERMS + 1,)."""
    t = cut_scale(p)
    x, before, now = np.where(np.isfinite(t), t, 0.0), np.zeros_like(t), _density(t)  # h_k times the density
    found = [float(p @ scores)]
    for k in range(1, TERMS + 1):
        found.append(float(scores @ (now[:-1] - now[1:])) / math.sqrt(k))
        before, now = now, (x * now - math.sqrt(k - 1) * before) / math.sqrt(k)
    return np.array(found)


def correlations(moments: Array, one: Array, other: Array, tau: Array | float = 0.0) -> Array:
    """Latent correlations of pairs of columns, from the mean products of their scores.

    Parameters
    ----------
    moments : array of shape (pairs,)
    one, other : arrays of shape (pairs, TERMS + 1)
        Hermite coefficients of the two scores.
    tau : float or array of shape (pairs,)
        Standard deviation of the noise in moments.
    """
    terms = (one * other).T  # (TERMS + 1, pairs)
    slope = np.maximum(terms[1], 0.0)
    told = slope > 1e-9
    worth = 1 / (1 + np.square(np.asarray(tau) / np.where(told, slope * USUAL, 1.0)))
    wanted = terms[0] + worth * (moments - terms[0])
    low, high = np.full(len(moments), -HIGHEST), np.full(len(moments), HIGHEST)
    for _ in range(48):
        middle = (low + high) / 2
        below = _polynomial(terms, middle) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(told, (low + high) / 2, 0.0)


def positive(pairs: Array, d: int) -> Array:
    """The correlation matrix (d, d) of its upper triangle (pairs,), made positive definite where it is not."""
    R = np.eye(d)
    R[np.triu_indices(d, 1)] = pairs
    R = np.triu(R) + np.triu(R, 1).T
    values, vectors = np.linalg.eigh(R)
    if values[0] >= FLOOR:
        return R
    R = (vectors * np.maximum(values, FLOOR)) @ vectors.T
    scale = np.sqrt(np.diag(R))
    R = R / np.outer(scale, scale)
    np.fill_diagonal(R, 1.0)
    return np.asarray((R + R.T) / 2)


def _polynomial(terms: Array, rho: Array) -> Array:
    found = np.zeros_like(rho)
    for coefficient in terms[::-1]:
        found = found * rho + coefficient
    return found


def _density(t: Array) -> Array:
    found: Array = np.exp(-np.square(t) / 2) / math.sqrt(2 * math.pi)
    return found
