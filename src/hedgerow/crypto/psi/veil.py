"""Veils: tables that give each of many tags a value, and every other tag a random one, without telling which tags are theirs.

    value(tag) = T[a] xor T[b] xor T[c]           a, b, c from a hash of the tag, one in each third of the table

The table is uniform if the values are: what is in it shows only to who knows tags and values. It is filled by peeling: a place
that one tag alone uses is set last, and that tag is taken away; where nothing is left to take, another hash is tried.

Source: Dong, Chen & Wen 2013 for such tables (garbled Bloom filters); Graf & Lemire 2020 (xor filters) for places and peeling.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Entropy

from .tags import TAG_BYTES

TRIES = 64
"""Hashes that are tried; each fails once in some hundred times at most."""


@dataclass(frozen=True)
class Veil:
    """A table of values.

    Attributes
    ----------
    table : uint8 array of shape (places, 12)
    choice : int
        The hash that was used.
    """

    table: Array
    choice: int

    @classmethod
    def over(cls, tags: Array, values: Array, salt: bytes, entropy: Entropy) -> Veil:
        """Fill a table.

        Parameters
        ----------
        tags, values : uint8 arrays of shape (n, 12)
            No tag stands twice; values cannot be told from uniform ones.
        """
        third = third_of(len(tags))
        for choice in range(TRIES):
            places = _places(tags, third, salt, choice)
            peeled = _peeled(places, 3 * third)
            if peeled is None:
                continue
            table = np.frombuffer(bytearray(entropy(3 * third * TAG_BYTES)), np.uint8).reshape(-1, TAG_BYTES)
            for taken, own in reversed(peeled):
                table[own] = 0
                table[own] = values[taken] ^ np.bitwise_xor.reduce(table[places[taken]], axis=1)
            return cls(table, choice)
        raise ArithmeticError("tags have no table")  # once in 2^300 times

    def values(self, tags: Array, salt: bytes) -> Array:
        """Return the values of tags, uint8 of shape (n, 12)."""
        found: Array = np.bitwise_xor.reduce(self.table[_places(tags, len(self.table) // 3, salt, self.choice)], axis=1)
        return found


def third_of(n: int) -> int:
    """Places in a third of a table of n tags; it depends on n alone."""
    return -(-13 * n // 30) + 16


def _places(tags: Array, third: int, salt: bytes, choice: int) -> Array:
    """Where a tag's three entries stand, shape (n, 3)."""
    begun = hashlib.blake2b(key=salt, digest_size=12, person=b"hedgerow veil", salt=bytes([choice]))
    raw = bytearray()
    for tag in np.ascontiguousarray(tags):
        state = begun.copy()
        state.update(tag.tobytes())
        raw += state.digest()
    words = np.frombuffer(bytes(raw), "<u4").reshape(-1, 3).astype(np.uint64)
    places: Array = (words * np.uint64(third) >> np.uint64(32)).astype(np.int64) + third * np.arange(3)
    return places


def _peeled(places: Array, size: int) -> list[tuple[Array, Array]] | None:
    """Return which tags are taken away in each turn, and the place that each of them alone uses; None if some stay."""
    uses = np.bincount(places.ravel(), minlength=size)
    who = np.zeros(size, np.int64)
    np.bitwise_xor.at(who, places.ravel(), np.repeat(np.arange(len(places)), 3))
    turns, left = [], len(places)
    while left:
        alone = np.flatnonzero(uses == 1)
        if not len(alone):
            return None
        taken, first = np.unique(who[alone], return_index=True)
        turns.append((taken, alone[first]))
        np.subtract.at(uses, places[taken].ravel(), 1)
        np.bitwise_xor.at(who, places[taken].ravel(), np.repeat(taken, 3))
        left -= len(taken)
    return turns
