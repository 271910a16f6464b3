"""Columns of bits that come from streams, and their transposition into rows.

A seed's stream is a column. KKRT needs rows: 512 columns of m bits become m rows of 64 bytes. Words of 64 bits are turned as
8 x 8 bits by three exchanges, and bytes by numpy, in parts that stay in the cache.

Source   : H. S. Warren, Hacker's Delight, section 7-3, for the 8 x 8 transposition; the loop is our own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR

from hedgerow.core.arrays import Array

WIDTH = 512
"""Columns, and bits of a code word."""
ROW_BYTES = WIDTH // 8

_PART = 1 << 13  # bytes of a column that are turned at a time
_SPARE = 16  # what OpenSSL wants beyond the end of its output
_EXCHANGES = tuple(
    (np.uint64(shift), np.uint64(mask))
    for shift, mask in ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0))
)


class Columns:
    """512 columns of bits, read on from part to part: each is the AES-256-CTR stream of a seed that serves nothing else."""

    def __init__(self, seeds: Sequence[bytes]) -> None:
        mode = CTR(bytes(16))
        self._streams = [Cipher(AES256(seed), mode).encryptor() for seed in seeds]

    def next(self, n: int) -> Array:
        """Return the next n bits of all columns, uint8 of shape (512, n / 8); n is a multiple of 8."""
        n //= 8
        columns = np.empty((len(self._streams), n + _SPARE), np.uint8)
        zeros = memoryview(bytes(n))
        for column, stream in zip(columns, self._streams, strict=True):
            stream.update_into(zeros, column.data)
        return columns[:, :n]


def rows_of(columns: Array) -> Array:
    """Turn columns of bits, uint8 of shape (512, n / 8), into rows, uint64 of shape (n, 8).

    Bit j of row i is bit i of column j, where bits of a byte are counted from the lowest.
    """
    n = columns.shape[1]
    rows = np.empty((8 * n, ROW_BYTES), np.uint8)
    for start in range(0, n, _PART):
        part = columns[:, start : start + _PART]
        k = part.shape[1]
        words = np.array(part.reshape(ROW_BYTES, 8, k).transpose(0, 2, 1), order="C").reshape(-1).view("<u8")
        for shift, mask in _EXCHANGES:
            moved = (words ^ (words >> shift)) & mask
            words ^= moved
            words ^= moved << shift
        rows[8 * start : 8 * (start + k)] = words.view(np.uint8).reshape(ROW_BYTES, 8 * k).T
    return rows.view("<u8")
