"""Tags: short hashes of elements that all keys have masked, how equal ones are found, and secret orders."""

from __future__ import annotations

import hashlib

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Entropy
from hedgerow.errors import MessageRefused

from ..messages import digest

TAG_BYTES = 12
"""Among 2^40 pairs of tags two are equal by chance once in 2^56 times."""


def tags_of(elements: bytes, size: int, salt: bytes) -> Array:
    """Return short hashes of elements of `size` bytes, uint8 of shape (n, 12)."""
    begun = hashlib.sha256(digest("psi tag", salt))
    found = bytearray()
    for i in range(0, len(elements), size):
        state = begun.copy()
        state.update(elements[i : i + size])
        found += state.digest()[:TAG_BYTES]
    return np.frombuffer(bytes(found), np.uint8).reshape(-1, TAG_BYTES)


def matches(left: Array, right: Array) -> tuple[Array, Array]:
    """Return the positions of equal rows of two arrays of tags, in the order of the tags.

    Parameters
    ----------
    left, right : uint8 arrays of shape (n, 12) and (m, 12)
        No row stands twice in either.
    """
    both = np.ascontiguousarray(np.concatenate([left, right]))
    head = np.ascontiguousarray(both[:, :8]).view(">u8").ravel().astype(np.uint64)
    tail = np.ascontiguousarray(both[:, 8:12]).view(">u4").ravel().astype(np.uint32)
    order = np.lexsort((tail, head))  # stable: equal rows stand left before right
    equal = (head[order[1:]] == head[order[:-1]]) & (tail[order[1:]] == tail[order[:-1]])
    first, second = order[:-1][equal], order[1:][equal]
    if np.any(first >= len(left)) or np.any(second < len(left)):
        raise MessageRefused("a tag came twice.", remedy="Ids of a list are distinct; so are their tags.")
    return first.astype(np.int64), second.astype(np.int64) - len(left)


def refuse_repeats(rows: Array) -> None:
    """Refuse (HR-242) an array of shape (n, bytes) in which a row stands twice."""
    rows = np.ascontiguousarray(rows)
    if len(rows) and len(np.unique(rows.view(f"V{rows.shape[1]}"))) != len(rows):
        raise MessageRefused("an element came twice.", remedy="Ids of a list are distinct; so is what they become.")


def permutation(n: int, entropy: Entropy) -> Array:
    """Return a secret order of n things."""
    return np.frombuffer(entropy(8 * n), "<u8").argsort(kind="stable") if n else np.zeros(0, np.int64)
