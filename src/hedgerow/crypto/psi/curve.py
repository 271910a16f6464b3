"""Points of curve25519 by their u-coordinates: ids hashed to them, masked by secret scalars, checked when they come.

    point_of(id)      u = SHA-512(label, salt, counter, id) mod 2^255, the counter raised until u < p lies on the curve
    mask(s, u)        u-coordinate of s P, where P has coordinate u; masks commute
    check(us)         canonical, on the curve and not on its twist, not of small order, none twice

A hash that is taken as u directly lies on the twist half of the time, and masks keep it there: a bit of each hash would show.
So ids are hashed until they are on the curve (about two tries), and what comes from others must be. Scalars are multiples of
8, so that a masked point lies in the subgroup of prime order. The u-coordinate alone tells P from -P, which does no harm.

gmpy2 decides what is on the curve 13 times as fast as Python's numbers. PyNaCl masks without holding Python's lock; OpenSSL's
X25519 does it otherwise, as fast on one core. Masks take the same time for all scalars; hashing to the curve does not, for
different ids: who can time it closely, on the same machine, may learn from it.

Source: RFC 7748, section 5; try-and-increment as ECVRF-TAI of RFC 9381, section 5.4.1.1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from hedgerow.core.randomness import Entropy
from hedgerow.errors import MessageRefused

from ..integers import library, whole

POINT_BYTES = 32
FIELD = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
A = 486662

_ORDER_EIGHT = (
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
SMALL_ORDER = frozenset({0, 1, FIELD - 1, *_ORDER_EIGHT})
"""u-coordinates of the points of order 1, 2, 4 and 8, of the curve and its twist."""


@lru_cache(maxsize=1)
def _curve_test() -> Callable[[int], bool]:
    """Return what decides whether a field element is the u-coordinate of a point of the curve, other than u = 0."""
    p, a, one = whole(FIELD), whole(A), whole(1)
    gmp = library()
    if gmp is None:
        half = (FIELD - 1) // 2
        return lambda u: pow(((u + A) * u + 1) * u, half, FIELD) == 1
    legendre: Any = gmp.legendre
    return lambda u: bool(legendre(((u + a) * u + one) * u % p, p) == 1)


def on_curve(u: int) -> bool:
    """Whether 0 < u < p is the u-coordinate of a point of the curve, not of its twist."""
    return 0 < u < FIELD and _curve_test()(u)


def points_of(ids: Iterable[bytes], salt: bytes) -> bytes:
    """Hash ids to the curve: uniform among the u-coordinates of its points, 32 bytes each.

    Parameters
    ----------
    ids : iterable of bytes
    salt : bytes
        What the parties drew together; another salt gives other points.
    """
    tries = [hashlib.sha512(b"hedgerow psi curve25519\0" + bytes([len(salt)]) + salt + bytes([i])) for i in range(128)]
    test, points = _curve_test(), bytearray()
    for id in ids:
        for begun in tries:
            state = begun.copy()
            state.update(id)
            u = int.from_bytes(state.digest()[:32], "little") & (2**255 - 1)
            if u < FIELD and test(u):
                break
        else:  # once in 2^128 ids
            raise ArithmeticError("an id has no point")
        points += u.to_bytes(32, "little")
    return bytes(points)


def check(raw: bytes) -> None:
    """Return if bytes are points that an honest party may send: see above.

    Raises
    ------
    MessageRefused (HR-242)
        One is not; nothing was computed from any.
    """
    test, size = _curve_test(), POINT_BYTES
    if len(raw) % size:
        raise MessageRefused(f"{len(raw)} bytes are no points of {size}.", remedy="Nothing was computed from them.")
    for i in range(0, len(raw), size):
        u = int.from_bytes(raw[i : i + size], "little")
        if u >= FIELD or u in SMALL_ORDER or not test(u):
            raise MessageRefused(
                "a number that came is no point of curve25519, or one of small order.",
                remedy="Nothing was computed from what came with it.",
            )


class Scalar:
    """A secret number that masks points, clamped as RFC 7748 says: a multiple of 8, of 255 bits.

    Parameters
    ----------
    raw : bytes
        32 bytes; `fresh` draws them.
    """

    __slots__ = ("_mask", "_raw")

    def __init__(self, raw: bytes) -> None:
        self._raw = clamped(raw)
        self._mask = _masker(self._raw)

    @classmethod
    def fresh(cls, entropy: Entropy) -> Scalar:
        """Draw one."""
        return cls(entropy(32))

    @classmethod
    def invertible(cls, entropy: Entropy) -> tuple[Scalar, Scalar]:
        """Draw one, and the one that takes its mask off again: both clamped, their product 1 modulo the order."""
        while True:
            number = int.from_bytes(clamped(entropy(32)), "little")
            if number % ORDER == 0:
                continue
            inverse = pow(number, -1, ORDER)
            # a multiple of 8 that is `inverse` modulo the order, by the Chinese remainder theorem
            back = inverse + ORDER * (-inverse * pow(ORDER, -1, 8) % 8)
            if 2**254 <= back < 2**255:
                return cls(number.to_bytes(32, "little")), cls(back.to_bytes(32, "little"))

    def mask(self, elements: bytes) -> bytes:
        """Return each point times this number, in order, as one piece of bytes."""
        mask, size = self._mask, POINT_BYTES
        return b"".join([mask(elements[i : i + size]) for i in range(0, len(elements), size)])

    def __repr__(self) -> str:
        return "Scalar()"


def clamped(raw: bytes) -> bytes:
    """Return 32 bytes with the bits set that RFC 7748 sets."""
    first, last = raw[0] & 248, (raw[31] & 127) | 64
    return bytes([first]) + raw[1:31] + bytes([last])


def _masker(raw: bytes) -> Callable[[bytes], bytes]:
    """Return what multiplies a point; libsodium's where PyNaCl is installed, OpenSSL's otherwise."""
    multiply = _sodium()
    if multiply is not None:
        return lambda point: multiply(raw, point)
    key, load = X25519PrivateKey.from_private_bytes(raw), X25519PublicKey.from_public_bytes
    return lambda point: key.exchange(load(point))


@lru_cache(maxsize=1)
def _sodium() -> Callable[[bytes, bytes], bytes] | None:
    try:
        from nacl.bindings import crypto_scalarmult
    except ImportError:
        return None
    found: Callable[[bytes, bytes], bytes] = crypto_scalarmult
    return found


class Curve25519:
    """The group of alignments by masks on curve25519."""

    name, size, piece = "curve25519", POINT_BYTES, 1 << 16

    def elements_of(self, ids: Iterable[bytes], salt: bytes) -> bytes:
        """Hash ids to the curve."""
        return points_of(ids, salt)

    def check(self, raw: bytes) -> None:
        """Refuse what is no point of the curve, or of small order."""
        check(raw)

    def fresh(self, entropy: Entropy) -> Scalar:
        """Draw a mask."""
        return Scalar.fresh(entropy)

    def pair(self, entropy: Entropy) -> tuple[Scalar, Scalar]:
        """Draw a mask, and the one that takes it off again; what is left is the point without its part of small order."""
        return Scalar.invertible(entropy)
