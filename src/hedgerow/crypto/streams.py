"""Streams of uniform bytes: masks from shared keys, and bulk randomness from the operating system's.

A mask is the stream of a key that two parties share, read as little-endian whole numbers modulo 2^16, 2^32 or 2^64. One adds
it, the other subtracts it. A row that carries the stream of one key that the reader lacks is uniform. The stream is that of
AES-256-CTR, and for rows of up to 2 KiB that of SHAKE128, which has no key schedule to set up and costs a third there.

    row <- row + sum over neighbours of  sign * stream(key)        modulo 2^bits

The cost is the stream itself. For long rows the loop over chunks is outside, so that the chunk of the row stays in the
cache while all neighbours pass; for short rows all streams go to one buffer, which is added up at once.

Source   : NIST SP 800-38A, section 6.5, and FIPS 202, section 6.2; the loop is our own.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Entropy
from hedgerow.errors import KeyInvalid, SettingsInvalid

NONCE_BYTES = 16

ZERO_NONCE = bytes(NONCE_BYTES)
"""For keys of one stream."""

_CHUNK = 1 << 17  # bytes of a row that stay in the second-level cache
SHORT = 1 << 11
"""Rows of up to so many bytes are masked with SHAKE128."""

_LABEL = b"hedgerow mask\0"
_BATCH = 512  # open streams at a time
_SPARE = 16  # what OpenSSL wants beyond the end of its output
_ZERO = memoryview(bytes(_CHUNK))


def _stream(key: bytes, mode: CTR) -> CipherContext:
    """Return the open AES-256-CTR stream of a key."""
    try:
        return Cipher(AES256(key), mode).encryptor()
    except (ValueError, TypeError):
        raise KeyInvalid(f"a stream key of {len(key)} bytes; it has 32 bytes.", remedy="Use `derive`.") from None


def _mode(nonce: bytes) -> CTR:
    """Return counter mode that begins at `nonce`."""
    if len(nonce) != NONCE_BYTES:
        raise KeyInvalid(
            f"a nonce of {len(nonce)} bytes; it has {NONCE_BYTES}.", remedy="Use a digest's first 16 bytes, or zeros."
        )
    return CTR(bytes(nonce))


def keystream(key: bytes, nonce: bytes, n: int) -> bytes:
    """Return the first n bytes of the AES-256-CTR stream of a 32-byte key whose counter begins at the 16-byte `nonce`."""
    return _stream(key, _mode(nonce)).update(bytes(n))


def mask_bytes(key: bytes, nonce: bytes, n: int) -> bytes:
    """Return the n bytes by which a key masks a row of n bytes."""
    if n > SHORT:
        return keystream(key, nonce, n)
    if len(key) != 32:
        raise KeyInvalid(f"a stream key of {len(key)} bytes; it has 32 bytes.", remedy="Use `derive`.")
    return hashlib.shake_128(_LABEL + key + nonce).digest(n)


def add_streams(row: Array, keys: Sequence[bytes], signs: Sequence[int] | Array, nonce: bytes) -> None:
    """Add the stream of each key, with its sign, to a row.

    Parameters
    ----------
    row : array of shape (d,)
        uint16, uint32 or uint64, contiguous; changed in place, modulo 2^bits.
    keys : sequence of k keys of 32 bytes
        No key may serve twice with one nonce.
    signs : sequence of k numbers
        Above zero adds, below zero subtracts; zero is refused.
    nonce : bytes
        16 bytes, the same for all k streams.
    """
    if row.ndim != 1 or row.dtype not in (np.uint16, np.uint32, np.uint64) or not row.flags.c_contiguous:
        raise SettingsInvalid(
            f"a row of {row.dtype} with shape {row.shape} cannot be masked.",
            remedy="Encode it first, as a contiguous vector of uint16, uint32 or uint64.",
        )
    plus = [key for key, sign in zip(keys, signs, strict=True) if sign > 0]
    minus = [key for key, sign in zip(keys, signs, strict=True) if sign < 0]
    if len(plus) + len(minus) < len(keys):
        raise SettingsInvalid("a stream has the sign 0.", remedy="Give +1 or -1, or leave the stream out.")
    mode = _mode(nonce)
    for kept, ufunc in ((plus, np.add), (minus, np.subtract)):
        if row.nbytes <= SHORT:
            _add_short(row, [mask_bytes(key, nonce, row.nbytes) for key in kept], ufunc)
            continue
        for first in range(0, len(kept), _BATCH):
            _add_long(row, [_stream(key, mode) for key in kept[first : first + _BATCH]], ufunc)


def _add_long(row: Array, streams: list[CipherContext], ufunc: np.ufunc) -> None:
    """Pass chunk after chunk of the row, all streams through each."""
    scratch = np.empty(_CHUNK + _SPARE, np.uint8)
    numbers = scratch[:_CHUNK].view(row.dtype.newbyteorder("<"))
    per_chunk, room = len(numbers), scratch.data
    for start in range(0, len(row), per_chunk):
        part = row[start : start + per_chunk]
        mask, zero = numbers[: len(part)], _ZERO[: part.nbytes]
        for stream in streams:
            stream.update_into(zero, room)
            ufunc(part, mask, out=part)


def _add_short(row: Array, masks: list[bytes], ufunc: np.ufunc) -> None:
    """Collect all masks as rows of one table and add its total."""
    numbers = np.frombuffer(b"".join(masks), row.dtype.newbyteorder("<")).reshape(len(masks), len(row))
    ufunc(row, np.add.reduce(numbers, axis=0, dtype=row.dtype), out=row)


def fresh(n: int) -> bytes:
    """Return n uniform bytes from the operating system's entropy, stretched by AES-256-CTR when there are many."""
    return os.urandom(n) if n <= 256 else keystream(os.urandom(32), bytes(NONCE_BYTES), n)


def uniform_below(p: int, size: int | tuple[int, ...], entropy: Entropy = fresh) -> Array:
    """Return uniform whole numbers in [0, p), uint32 if p <= 2^32, else uint64 (p <= 2^64).

    Numbers are cut to the bit length of p - 1 and drawn again where they are not below p: a remainder would favour the
    small ones.
    """
    if not 1 <= p <= 2**64:
        raise SettingsInvalid(f"uniform numbers below {p}.", remedy="Give a bound from 1 to 2^64.")
    word = np.dtype("<u4" if p <= 2**32 else "<u8")
    mask, top = word.type((1 << (p - 1).bit_length()) - 1), word.type(p - 1)

    def draw(n: int) -> Array:
        words: Array = np.frombuffer(entropy(n * word.itemsize), word) & mask
        return words

    shape = (size,) if isinstance(size, int) else size
    values = draw(int(np.prod(shape, dtype=np.int64)))
    again = np.flatnonzero(values > top)
    while again.size:
        values[again] = draw(again.size)
        again = again[values[again] > top]
    shaped: Array = values.reshape(shape)
    return shaped
