"""The ring of whole numbers modulo 2^64: fixed point, and exact products of matrices.

    encode    x -> rint(x 2^f)                     decode    the number from -2^63 to 2^63 - 1, times 2^-f
    product   a' b, exactly, by one product of float64 matrices of 16-bit limbs for each block of rows

A word is four limbs of 16 bits. A product of two limbs is below 2^32, so the sum of up to 2^21 of them is below 2^53, where
float64 is exact in whatever order a library adds. Of the sixteen products of limbs ten count; those of limbs i and j with
i + j above 3 are multiples of 2^64. Blocks are far shorter than 2^21 rows, so that their limbs stay in the cache.

Source : fixed point in a ring, and limbs in float64: our own; the same words as in Mohassel and Zhang 2017 (SecureML),
         section 4.1, whose truncation is not used here: products keep all their bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.arrays import Array
from hedgerow.crypto.streams import NONCE_BYTES, keystream
from hedgerow.errors import ContributionInvalid, MessageRefused, RangeExceeded

WORD = np.dtype("<u8")
BYTES = 8
"""Of a word."""
ROOM = 63
"""Bits of the largest absolute value of a number that is decoded with its sign."""

Words = NDArray[np.uint64]

_LIMB = np.dtype("<u2")
_LIMBS = 4
_BLOCK = 1 << 12  # rows at a time; far below 2^21


def encode(numbers: Array, fraction: int) -> Words:
    """Return numbers of any shape in the ring, rounded to multiples of 2^-fraction.

    Raises
    ------
    ContributionInvalid (HR-222)
        A number is not finite.
    RangeExceeded (HR-243)
        A number reaches 2^62 steps.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.rint(np.asarray(numbers, np.float64) * 2.0**fraction)
        largest = np.abs(steps).max(initial=0.0)
    if not largest < 2.0 ** (ROOM - 1):
        if not np.isfinite(steps).all():
            raise ContributionInvalid(
                "a column has a number that is not finite.", remedy="Look for missing or overflowing values.", asked=True
            )
        raise RangeExceeded(
            f"a number reaches {largest:.3g} steps of 2^-{fraction}, and a word has room for 2^{ROOM - 1}.",
            remedy="Scale columns to about one by their public ranges.",
        )
    return np.ascontiguousarray(steps.astype(np.int64)).view(np.uint64)


def decode(words: Words, fraction: int) -> Array:
    """Return words of any shape as numbers with a sign, in units of 2^-fraction."""
    return signed(words) * 2.0**-fraction


def signed(words: Words) -> NDArray[np.int64]:
    """Return words as whole numbers from -2^63 to 2^63 - 1."""
    return np.ascontiguousarray(words).view(np.int64)


def product(a: Words, b: Words) -> Words:
    """Return a' b modulo 2^64, exactly, for any number of rows.

    Parameters
    ----------
    a : array of shape (n, p)
    b : array of shape (n, q)
    """
    n, p = a.shape
    q = b.shape[1]
    total = np.zeros((p, q), np.uint64)
    for start in range(0, n, _BLOCK):
        rows = slice(start, start + _BLOCK)
        blocks = (_limbs(a[rows]).T @ _limbs(b[rows])).reshape(p, _LIMBS, q, _LIMBS)
        for shift in range(_LIMBS):
            same: Any = sum(blocks[:, i, :, shift - i] for i in range(shift + 1))  # at most 4 * 2^12 * 2^32
            total += same.astype(np.uint64) << np.uint64(16 * shift)
    return total


def _limbs(words: Words) -> Array:
    """The limbs of words (n, p) as float64, shape (n, 4 p), the lowest first."""
    found: Array = np.ascontiguousarray(words, WORD).view(_LIMB).astype(np.float64)
    return found


def uniform(key: bytes, *shape: int) -> Words:
    """Return uniform words: the stream of a key of 32 bytes, which may serve for nothing else."""
    size = BYTES * int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(keystream(key, bytes(NONCE_BYTES), size), WORD).reshape(shape)


def words_of(raw: bytes, shape: tuple[int, int], name: str) -> Words:
    """Return the words of a letter of `name`, refused where they are not as many as the shape says."""
    if len(raw) != shape[0] * shape[1] * BYTES:
        raise MessageRefused(f"{len(raw)} bytes of {name!r} for words of shape {shape}.", remedy="Nothing of it was used.")
    return np.frombuffer(raw, WORD).reshape(shape)
