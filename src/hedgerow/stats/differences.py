"""Standardised differences between groups: how far apart they are in units of their own spread, whatever their size.

    numbers           |m1 - m2| / sqrt((s1² + s2²) / 2)
    levels            sqrt(d' S^-1 d),  d = p1 - p2 of all levels but the first,  S = (S1 + S2) / 2,  S_g = diag(p_g) - p_g p_g'

For two levels the second is the first, of the indicator. Of more than two groups the largest of all pairs is told.

Source : Austin 2009; Yang & Dalton 2012 (levels).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from hedgerow.core.arrays import Array


def difference_of_means(mean: Array, variance: Array) -> Array:
    """Largest standardised difference of pairs of groups: both of shape (groups, k), to shape (k,).

    NaN where fewer than two groups are known; zero where two groups are constant and equal, infinite where they are not.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        pairs = [
            np.where(
                mean[a] == mean[b],
                np.where(np.isfinite(variance[a] + variance[b]), 0.0, np.nan),
                np.abs(mean[a] - mean[b]) / np.sqrt((variance[a] + variance[b]) / 2),
            )
            for a, b in combinations(range(len(mean)), 2)
        ]
    return _largest(np.array(pairs).reshape(len(pairs), mean.shape[1]))


def difference_of_levels(counts: Array) -> float:
    """Largest standardised difference of pairs of groups, from counts of shape (groups, levels)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = counts / counts.sum(1, keepdims=True)
    pairs = [[_between(shares[a], shares[b])] for a, b in combinations(range(len(shares)), 2)]
    return float(_largest(np.array(pairs).reshape(len(pairs), 1))[0])


def _between(first: Array, second: Array) -> float:
    if not np.isfinite(first + second).all():
        return float("nan")
    there = (first + second) > 0  # a level that nobody has says nothing, and has no variance
    p, q = first[there][1:], second[there][1:]
    d = p - q
    if not d.any():
        return 0.0
    spread = (np.diag(p) - np.outer(p, p) + np.diag(q) - np.outer(q, q)) / 2
    values, vectors = np.linalg.eigh(spread)
    along = vectors.T @ d
    known = values > 1e-12
    if np.abs(along[~known]).max(initial=0.0) > 1e-9:  # the groups share no level
        return float("inf")
    return float(np.sqrt((along[known] ** 2 / values[known]).sum()))


def _largest(pairs: Array) -> Array:
    """The largest of what is known, along the first axis."""
    known = np.where(np.isnan(pairs), -np.inf, pairs)
    found = known.max(0, initial=-np.inf)
    largest: Array = np.where(found == -np.inf, np.nan, found)
    return largest
