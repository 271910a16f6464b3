"""Rows of records as whole numbers modulo 2^64, in parts that fit letters, and in orders that the hub does not know."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.crypto.keys import derive
from hedgerow.crypto.sealing import PairSecrets
from hedgerow.crypto.streams import NONCE_BYTES, keystream
from hedgerow.errors import ContributionInvalid, MessageRefused, RangeExceeded

FRACTION = 32
"""Bits after the point."""

PART = 1 << 24
"""Bytes of a letter at most."""

ZERO = bytes(NONCE_BYTES)


def rows_of(made: object, n: int, what: str) -> Array:
    """What a local function returned, as an array with a row for each of n records.

    Raises
    ------
    ContributionInvalid (HR-222)
    """
    rows = np.asarray(made)
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or len(rows) != n or rows.dtype.kind not in "fiub":
        raise ContributionInvalid(
            f"{what} returned an array of shape {np.shape(made)} and type {rows.dtype}, and there are {n} records.",
            remedy="Return an array of shape (n, k): columns of an aligned party are in order already.",
        )
    return rows


def encoded(rows: Array, parties: int) -> Array:
    """Numbers as whole multiples of 2^-32 modulo 2^64.

    Raises
    ------
    RangeExceeded (HR-243)
        A total of so many parties might not fit.
    """
    rows = np.asarray(rows, np.float64)
    largest = 2.0 ** (62 - FRACTION) / max(1, parties)
    if not np.isfinite(rows).all() or (rows.size and np.abs(rows).max() > largest):
        raise RangeExceeded(
            f"a row is not finite, or beyond {largest:g}.", remedy="Scale columns to about one: ranges are declared for that."
        )
    return np.rint(np.ldexp(rows, FRACTION)).astype(np.int64).view(np.uint64)


def decoded(words: Array) -> Array:
    """The numbers of words."""
    return np.ldexp(words.view(np.int64).astype(np.float64), -FRACTION)


def masked(words: Array, shared: PairSecrets, others: tuple[str, ...], context: bytes, what: str) -> Array:
    """Words behind masks that cancel among these parties: each pair shares a stream, which the first in order adds."""
    flat = words.reshape(-1).copy()
    for other in others:
        if other == shared.me:
            continue
        stream = np.frombuffer(keystream(derive(shared.secret(other), what, context), ZERO, flat.nbytes), np.uint64)
        flat = flat + stream if shared.me < other else flat - stream
    return flat.reshape(words.shape)


def secret_order(key: bytes, n: int) -> Array:
    """The order that a key gives n rows: row j of what is sent is row `order[j]` of the party."""
    drawn = np.frombuffer(keystream(key, ZERO, 8 * n), np.uint64)
    order: Array = np.argsort(drawn, kind="stable")
    return order


def parts(raw: bytes) -> Iterator[bytes]:
    """Cut bytes for letters; there is one part at least."""
    for start in range(0, max(1, len(raw)), PART):
        yield raw[start : start + PART]


def of_shape(raw: bytes, dtype: str, shape: tuple[int, ...], sender: str) -> Array:
    """Numbers that came, of the shape that was announced.

    Raises
    ------
    MessageRefused (HR-242)
    """
    if len(raw) != np.dtype(dtype).itemsize * int(np.prod(shape)):
        raise MessageRefused(f"{sender} sent {len(raw)} bytes for an array of shape {shape}.", remedy="Nothing of it was used.")
    return np.frombuffer(raw, dtype).reshape(shape)
