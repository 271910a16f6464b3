"""Cuckoo hashing: every item into one of its three bins, at most one item to a bin, without a stash.

    bins     3 regions of equal size, one for each function; 1.3 n bins in all and 384 more
    start    each item tries one of its functions, at random
    sweep    of those that try one bin one stays; the others, and whoever was there before, try another of their functions

Since each function has a region of its own, the three bins of an item never coincide. Placement fails when some items have
too few bins between them, with a chance below 2^-40 at every size (smallest such group: four items with the same three bins,
n^4/24 (m/3)^-9; more bins than 1.3 n keep this small for small n). Whoever places then draws a fresh salt and says nothing:
that it failed would tell of its items.

Source   : R. Pagh and F. F. Rodler, Cuckoo Hashing, 2004; sizes without a stash: B. Pinkas, T. Schneider and M. Zohner,
           Scalable Private Set Intersection Based on OT Extension, 2018, section 5. Sweeps over all items are our own.
"""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Entropy

FUNCTIONS = 3
SWEEPS = 2000


def region_size(n: int) -> int:
    """Return the bins of each of three regions for n items: a multiple of 64."""
    return 64 * (-(-13 * n // (30 * 64)) + 2)


def place(bins: Array, size: int, entropy: Entropy) -> Array | None:
    """Place items in their bins.

    Parameters
    ----------
    bins : uint32 array of shape (3, n)
        Bin of each item in the region of each function.
    size : int
        Bins of a region.

    Returns
    -------
    int32 array of shape (3 * size,), or None
        Which item lies in each bin, -1 where none does; None if placement failed.
    """
    n = bins.shape[1]
    table = np.full(FUNCTIONS * size, -1, np.int32)
    slots = bins.astype(np.int32) + size * np.arange(FUNCTIONS, dtype=np.int32)[:, None]
    tried = (_drawn(n, entropy) % FUNCTIONS).astype(np.int8)
    trying = np.arange(n, dtype=np.int32)
    for _ in range(SWEEPS):
        slot = slots[tried[trying], trying]
        before = table[slot]
        table[slot] = trying
        stays = table[slot] == trying
        driven = before[stays]
        trying = np.concatenate([trying[~stays], driven[driven >= 0]])
        if not len(trying):
            return table
        tried[trying] = (tried[trying] + 1 + (_drawn(len(trying), entropy) & 1)) % FUNCTIONS
    return None


def _drawn(n: int, entropy: Entropy) -> Array:
    drawn: Array = np.frombuffer(entropy(n), np.uint8)
    return drawn
