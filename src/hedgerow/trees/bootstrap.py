"""The bootstrap of a forest, drawn at the parties: how often a tree draws a record.

    weight of record i at party p in tree b  ~  Poisson(1), from the i-th word of Philox(key of seed, b and p)

A record's draws follow from the public seed, the number of the tree, the name of its party and its place there, and from
nothing else: every level of a tree sees the same weights, a run that is resumed repeats them, and no engine changes them.
Poisson(1) is what multinomial sampling with replacement tends to, and parties need not know how many records others have.

Source : Breiman 2001 for the bootstrap; Oza & Russell 2001 for Poisson weights.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np

from hedgerow.core.arrays import Array

MOST_DRAWS = 20
"""More than so often no record is drawn: a Poisson(1) variable is larger with a probability of 8e-21, below 2^-64."""


def _limits() -> Array:
    """The words from which a Poisson(1) variable is at least 1, 2, ..."""
    below, total = [], 0
    scale = 2**64 / math.e
    for k in range(MOST_DRAWS):
        total += int(scale / math.factorial(k))
        below.append(min(total, 2**64 - 1))
    return np.array(below, np.uint64)


LIMITS = _limits()


def words(seed: int, place: str, size: int) -> Array:
    """The first 64-bit words of the stream of a place: shape (size,)."""
    key = hashlib.blake2b(f"{seed}/{place}".encode(), digest_size=16).digest()
    return np.random.Philox(key=int.from_bytes(key, "little")).random_raw(size)


def draws(seed: int, party: str, n: int, trees: int) -> Array:
    """How often each tree draws each of n records of a party: shape (trees, n), float64."""
    found = np.empty((trees, n))
    for b in range(trees):
        found[b] = np.searchsorted(LIMITS, words(seed, f"tree {b} at {party}", n), side="right")
    return found


def subsets(seed: int, level: int, n_open: int, n_features: int, size: int) -> Array:
    """Draw `size` features for each open node of a level, ascending: shape (n_open, size)."""
    drawn = words(seed, f"features of level {level}", n_open * n_features).reshape(n_open, n_features)
    return np.sort(np.argsort(drawn, axis=1, kind="stable")[:, :size], axis=1)
