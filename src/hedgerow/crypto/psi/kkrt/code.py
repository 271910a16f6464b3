"""Items, code words and tags: what both peers compute from an id, a salt and a row.

    digest   BLAKE2b(id) under the salt as key, 32 bytes: an item of 128 bits, and 32 bits for each of three functions
    code     AES of the item and the function's number, under four keys: 512 bits
    tag      four steps of AES(x) + x, x = state + a quarter of the row, from the bin's number; its first 80 bits

The code takes the function's number, so an item has another word, and another tag, under each of its functions. Distinct
items' words differ in 128 of 512 bits or more but for a chance below 2^-128 (V. Kolesnikov et al. 2016, section 3.3), so a tag
of another item hangs on 128 unknown bits or more. A tag of 80 bits is 40 + 2 log2(10^6): among a million tags on each side a
false match has a chance below 2^-40.

Assumes  : AES under a public key behaves like a fixed random permutation (correlation-robust hash), BLAKE2b like a function
           drawn at random.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES128, AES256
from cryptography.hazmat.primitives.ciphers.modes import ECB

from hedgerow.core.arrays import Array

from .cuckoo import FUNCTIONS

SALT_BYTES = 32
TAG_BYTES = 10
NAME_BYTES = 16
"""Bytes of the name under which both know a common record, after the protocol."""

_BLOCK = 16
_PART = 1 << 15  # rows that are computed at a time
_SPARE = 16  # what OpenSSL wants beyond the end of its output


@dataclass(frozen=True)
class Items:
    """A party's items under one salt.

    Attributes
    ----------
    words : uint64 array of shape (n, 2)
        The 128 bits of each item.
    hashes : uint32 array of shape (3, n)
        32 bits of each item for each function.
    """

    words: Array
    hashes: Array

    @classmethod
    def of(cls, ids: Sequence[bytes], salt: bytes) -> Items:
        """Return the items of n ids; the salt has 32 bytes."""
        words = np.empty((len(ids), 2), "<u8")
        hashes = np.empty((FUNCTIONS, len(ids)), "<u4")
        blake2b = hashlib.blake2b
        for start in range(0, len(ids), _PART):
            part = ids[start : start + _PART]
            joined = b"".join([blake2b(id, digest_size=32, key=salt).digest() for id in part])
            digests = np.frombuffer(joined, "<u8").reshape(-1, 4)
            words[start : start + len(part)] = digests[:, :2]
            hashes[:, start : start + len(part)] = digests[:, 2:].copy().view("<u4")[:, :FUNCTIONS].T
        return cls(words, hashes)

    def __len__(self) -> int:
        return len(self.words)

    def bins(self, size: int) -> Array:
        """Return each item's bin in the region of each function, uint32 of shape (3, n)."""
        return np.stack([((one.astype(np.uint64) * np.uint64(size)) >> np.uint64(32)).astype(np.uint32) for one in self.hashes])

    def names(self, key: bytes) -> Array:
        """Return the names under a key of 32 bytes that both peers know and no letter carries: uint8 of shape (n, 16)."""
        return _encrypted(AES256(key), self.words).view(np.uint8).reshape(-1, NAME_BYTES)


class Code:
    """Code words and tags under one salt."""

    def __init__(self, salt: bytes) -> None:
        keys = hashlib.shake_256(b"hedgerow kkrt code\0" + salt).digest(5 * _BLOCK)
        *self._word_keys, self._tag_key = (AES128(keys[i : i + _BLOCK]) for i in range(0, len(keys), _BLOCK))

    def words(self, items: Array, function: int) -> Array:
        """Return the code words of items, uint64 of shape (n, 2), under one function: uint64 of shape (n, 8)."""
        tagged = items ^ np.array([0, function + 1], np.uint64)
        found = np.empty((len(items), 8), "<u8")
        for i, key in enumerate(self._word_keys):
            found[:, 2 * i : 2 * i + 2] = _encrypted(key, tagged)
        return found

    def tags(self, rows: Array, bins: Array) -> Array:
        """Return the tags of rows, uint64 of shape (n, 8), in their bins: uint8 of shape (n, 10)."""
        found = np.empty((len(rows), TAG_BYTES), np.uint8)
        for start in range(0, len(rows), _PART):
            part = rows[start : start + _PART]
            state = np.zeros((len(part), 2), "<u8")
            state[:, 0] = bins[start : start + _PART]
            for i in range(0, 8, 2):
                state ^= part[:, i : i + 2]
                state ^= _encrypted(self._tag_key, state)
            found[start : start + _PART] = state.view(np.uint8)[:, :TAG_BYTES]
        return found


def _encrypted(key: AES128 | AES256, blocks: Array) -> Array:
    """Return each block of 16 bytes, uint64 of shape (n, 2), under a key."""
    blocks = np.ascontiguousarray(blocks)
    out = np.empty(blocks.nbytes + _SPARE, np.uint8)
    if len(blocks):
        Cipher(key, ECB()).encryptor().update_into(blocks.view(np.uint8).ravel().data, out.data)
    return out[: blocks.nbytes].view("<u8").reshape(-1, 2)
