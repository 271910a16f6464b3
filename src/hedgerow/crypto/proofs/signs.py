"""Dot products of a row with random vectors of -1, 0 and 1, of which probabilities are 1/4, 1/2, 1/4.

A sign is b0 + b1 - 1 of two bits of a stream: four signs to a byte, each vector beginning at a byte of its own. On shares the
products are matrix products in float32 of the shares' bytes: sums stay below 2^24, so all are exact.

Source   : PINE (Rothblum, Omri, Chen, Talwar 2023), section 4; draft-chen-cfrg-vdaf-pine.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hedgerow.core.arrays import Array

from .field import Field
from .field64 import Field64
from .xof import ByteStream

_COLUMNS = 1 << 12  # signs of a vector at a time: 255 times as many stay below 2^24
_BYTES = np.arange(256)[:, None] >> np.arange(0, 8, 2)
_FOUR = ((_BYTES & 1) + (_BYTES >> 1 & 1) - 1).astype(np.float32)
_QUADRUPLES = np.ascontiguousarray(_FOUR).view(np.complex128).reshape(-1)  # 16 bytes, looked up as one number


def sign_blocks(reader: ByteStream, vectors: int, length: int) -> Iterator[tuple[int, Array]]:
    """Give the first column and the signs, float32 of shape (vectors, columns), of one block after another."""
    raw = np.frombuffer(reader.read(vectors * -(-length // 4)), np.uint8).reshape(vectors, -1)
    for at in range(0, length, _COLUMNS):
        block = np.take(_QUADRUPLES, raw[:, at // 4 : (at + _COLUMNS) // 4]).view(np.float32)
        yield at, block[:, : length - at]


def dots(field: Field, reader: ByteStream, vectors: int, row: Array) -> Array:
    """Return the dot products, shape (vectors,), of a row or a share of it, in the field."""
    if isinstance(field, Field64):
        return _dots64(field, reader, vectors, row)
    total = field.zeros(vectors)
    for at, signs in sign_blocks(reader, vectors, len(row)):
        whole = field.of(signs.astype(np.int64))
        total = field.add(total, field.product(whole, row[at : at + signs.shape[1], None])[:, 0])
    return total


def _dots64(field: Field64, reader: ByteStream, vectors: int, row: Array) -> Array:
    """Sum the products with bytes, whose weights are 2^0, 2^8, .., 2^56; |sums| stay below 2^53 for rows of up to 2^45."""
    total = np.zeros((vectors, 8))
    octets = np.ascontiguousarray(row, "<u8").view(np.uint8).reshape(-1, 8)
    for at, signs in sign_blocks(reader, vectors, len(row)):
        total += signs @ octets[at : at + signs.shape[1]].astype(np.float32)
    weights = np.array([1 << 8 * i for i in range(8)], np.uint64)
    return field.sum(field.mul(field.of(total.astype(np.int64)), weights))


def squared_norm(row: Array) -> int:
    """Return the exact sum of squares of an int64 row: by halves of 16 bits in float64, or one by one from 2^32 on."""
    size = np.abs(row.astype(np.int64)).view(np.uint64)
    if size.size and int(size.max()) >> 32:
        return sum(int(value) ** 2 for value in row)
    low, high = (size & np.uint64(0xFFFF)).astype(np.float64), (size >> np.uint64(16)).astype(np.float64)
    total = 0
    for at in range(0, len(row), 1 << 20):
        a, b = low[at : at + (1 << 20)], high[at : at + (1 << 20)]
        total += int(a @ a) + (int(a @ b) << 17) + (int(b @ b) << 32)
    return total
