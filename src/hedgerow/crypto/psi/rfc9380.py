"""Hashing to curve25519 as RFC 9380 says: the suite curve25519_XMD:SHA-512_ELL2_RO_, for who wants a standard.

    u0, u1 = hash_to_field(id)      point = 8 (elligator2(u0) + elligator2(u1))

It takes about five times as long as hashing until the curve is met, which `curve.points_of` does, and is as uniform. The number
of steps does not depend on the id, but the arithmetic is that of Python or gmpy2, not constant in time.

Source: RFC 9380, sections 5.3.1 (expand_message_xmd), 5.2, 6.7.1, 8.5 and, for vectors, J.4.1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from ..integers import inverse, power, whole
from .curve import FIELD, A, Curve25519

_BLOCK = 128  # bytes of a block of SHA-512
_LENGTH = 48  # bytes from which an element of the field is taken
_ROOT = pow(2, (FIELD - 1) // 4, FIELD)  # of minus one

Point = tuple[Any, Any]


class StandardCurve25519(Curve25519):
    """The group with the standard's hash."""

    name = "curve25519 by RFC 9380"

    def elements_of(self, ids: Iterable[bytes], salt: bytes) -> bytes:
        """Hash ids to the curve, with the salt in the standard's tag."""
        tag = b"hedgerow-psi-V01-CS02-with-curve25519_XMD:SHA-512_ELL2_RO_" + salt
        return b"".join(int(hashed(id, tag)[0]).to_bytes(32, "little") for id in ids)


def hashed(message: bytes, tag: bytes) -> Point:
    """Return both coordinates of the point of a message; `tag` has at most 255 bytes and separates uses."""
    p = _field()
    raw = expanded(message, tag, 2 * _LENGTH)
    first, second = (mapped(whole(int.from_bytes(raw[i : i + _LENGTH], "big") % FIELD)) for i in (0, _LENGTH))
    point = added(first, second)
    for _ in range(3):
        point = added(point, point)
    return point[0] % p, point[1] % p


def expanded(message: bytes, tag: bytes, n: int) -> bytes:
    """Return n uniform bytes, at most 255 times 64."""
    if len(tag) > 255 or not 0 < n <= 255 * 64:
        raise ValueError("a tag has at most 255 bytes, and 16320 bytes are the most")
    suffix = tag + bytes([len(tag)])
    first = hashlib.sha512(bytes(_BLOCK) + message + n.to_bytes(2, "big") + b"\0" + suffix).digest()
    block, found = bytes(64), b""
    for i in range(1, -(-n // 64) + 1):
        block = hashlib.sha512(bytes(x ^ y for x, y in zip(first, block, strict=True)) + bytes([i]) + suffix).digest()
        found += block
    return found[:n]


def mapped(u: Any) -> Point:
    """Map a field element to a point of the curve (Elligator 2)."""
    p = _field()
    below = (1 + 2 * u * u) % p
    x = -A * (inverse(below, p) if below else 1) % p
    y = _root(_right_side(x))
    odd = 1
    if y is None:
        x, odd = (-x - A) % p, 0
        y = _root(_right_side(x))
    assert y is not None  # one of the two has a root
    return x, y if y % 2 == odd else p - y


def added(one: Point, other: Point) -> Point:
    """Return the sum of two points of which none is minus the other."""
    p = _field()
    (x, y), (z, t) = one, other
    if x == z:
        if (y + t) % p == 0:  # once in 2^250 ids
            raise ArithmeticError("an id has no point")
        slope = (3 * x * x + 2 * A * x + 1) * inverse(2 * y % p, p) % p
    else:
        slope = (t - y) * inverse((z - x) % p, p) % p
    found = (slope * slope - A - x - z) % p
    return found, (slope * (x - found) - y) % p


@lru_cache(maxsize=1)
def _field() -> Any:
    return whole(FIELD)


def _right_side(x: Any) -> Any:
    return ((x + A) * x + 1) * x % _field()


def _root(square: Any) -> Any | None:
    """Return a square root, or None."""
    p = _field()
    root = power(square, (FIELD + 3) // 8, p)
    if root * root % p == square:
        return root
    root = root * _ROOT % p
    return root if root * root % p == square else None
