"""The form of values on the wire: marks, limits, and types of arrays; `hedgerow.wire.values` says what they mean."""

from __future__ import annotations

MOST = 1 << 30
"""Bytes of a message, at most."""

MOST_HEAD = 1 << 26
"""Bytes of a head, at most: each may be a token, and take eight bytes while it is read."""

MAGIC = b"HGV\x01"
"""First bytes of a message; the last of them is the version."""

DEPTH = 64
"""Values lie in each other at most so deep."""

LARGE = 1 << 12
"""Bytes from which a byte string lies in the body, so that it is copied once."""

LONGEST = 1 << 13
"""Bytes of an integer, at most."""

EDGE = 16
"""Arrays begin at a multiple of so many bytes."""

DTYPES = frozenset(
    ["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"],
)
"""Types of arrays and numpy scalars that travel."""
