"""Tags and names in order, and where one's own stand among them: all of their bytes are compared."""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Array


def keys_of(tags: Array) -> tuple[Array, Array]:
    """Cut tags of 10 or 16 bytes, uint8 of shape (n, 10 or 16), into numbers: the first 64 bits, and the others."""
    tags = np.ascontiguousarray(tags)
    return tags[:, :8].copy().view("<u8").ravel(), tags[:, 8:].copy().view(f"<u{tags.shape[1] - 8}").ravel()


def order_of(tags: Array) -> Array:
    """Return the order of tags by all of their bytes: it keeps nothing of the order in which they were made."""
    high, low = keys_of(tags)
    order: Array = np.argsort(high)
    if bool((np.diff(high[order]) == 0).any()):  # among a million, once in thirty million times
        order = np.lexsort((low, high))
    return order


def in_order(tags: Array) -> bool:
    """Whether tags stand in the order of `order_of`, none of them twice."""
    high, low = keys_of(tags)
    later = (high[1:] > high[:-1]) | ((high[1:] == high[:-1]) & (low[1:] > low[:-1]))
    return bool(later.all())


def places(tags: Array, listed: Array) -> Array:
    """Return where each of n tags stands in a list, -1 where it does not: int64 of shape (n,).

    Parameters
    ----------
    tags : uint8 array of shape (n, bytes)
    listed : uint8 array of shape (m, bytes)
        In order.
    """
    found = np.full(len(tags), -1)
    high, low = keys_of(tags)
    there_high, there_low = keys_of(listed)
    seeking = np.argsort(high)  # searching in order is several times quicker than at random
    at = np.searchsorted(there_high, high[seeking])
    while len(seeking):
        inside = at < len(there_high)
        at, seeking = at[inside], seeking[inside]
        alike = there_high[at] == high[seeking]
        at, seeking = at[alike], seeking[alike]
        equal = there_low[at] == low[seeking]
        found[seeking[equal]] = at[equal]
        at, seeking = at[~equal] + 1, seeking[~equal]
    return found
