"""Streams of bytes from a seed, a domain and a message: TurboSHAKE128 for published vectors, SHAKE128 for rounds.

`TURBO_SHAKE128` is VDAF's XOF in plain Python, under 1 MB/s: for conformance. `SHAKE128` is that of Python's standard library,
some 300 MB/s, with the same input format; a random-oracle candidate too, but a party that follows VDAF to the letter does not
interoperate with it. `EARLY_TURBO_SHAKE128` has the input format and seeds of VDAF drafts 8 to 12, which PINE's vectors use.

    input    length of domain (2 bytes, little-endian) | domain | length of seed (1 byte) | seed | message
    domain   version | class | algorithm (4 bytes) | usage (2 bytes) | context

Source   : RFC 9861 (TurboSHAKE), FIPS 202 (SHAKE), VDAF (draft-irtf-cfrg-vdaf-20), section 6.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

_WORD = (1 << 64) - 1
_RATE = 168
_ROUND_CONSTANTS = (
    0x000000008000808B,
    0x800000000000008B,
    0x8000000000008089,
    0x8000000000008003,
    0x8000000000008002,
    0x8000000000000080,
    0x000000000000800A,
    0x800000008000000A,
    0x8000000080008081,
    0x8000000000008080,
    0x0000000080000001,
    0x8000000080008008,
)  # the last 12 of Keccak-f[1600]'s 24
_ROTATIONS = ((0, 36, 3, 41, 18), (1, 44, 10, 45, 2), (62, 6, 43, 15, 61), (28, 55, 25, 21, 56), (27, 20, 39, 8, 14))
_LANES = tuple((x + 5 * y, y + 5 * ((2 * x + 3 * y) % 5), _ROTATIONS[x][y]) for x in range(5) for y in range(5))
_CHI = tuple((i, i - i % 5 + (i + 1) % 5, i - i % 5 + (i + 2) % 5) for i in range(25))

Bytes = bytes | bytearray | memoryview


class ByteStream(Protocol):
    """A stream that is read on."""

    def read(self, n: int) -> bytes: ...


class NumberSource(Protocol):
    """What reads numbers from a stream: a field."""

    def stream(self, reader: ByteStream, n: int) -> Array: ...


def _keccak_p(a: list[int]) -> list[int]:
    """Return Keccak-p[1600, 12] of a state of 25 lanes."""
    for constant in _ROUND_CONSTANTS:
        c = [a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20] for x in range(5)]
        d = [c[x - 1] ^ ((c[(x + 1) % 5] << 1 | c[(x + 1) % 5] >> 63) & _WORD) for x in range(5)]
        b = [0] * 25
        for source, target, turn in _LANES:
            lane = a[source] ^ d[source % 5]
            b[target] = (lane << turn | lane >> (64 - turn)) & _WORD
        a = [b[i] ^ (~b[j] & b[k]) for i, j, k in _CHI]
        a[0] ^= constant
    return a


class TurboShake128:
    """TurboSHAKE128 with domain byte 1, in plain Python."""

    def __init__(self, *message: Bytes) -> None:
        padded = bytearray(b"".join(bytes(part) for part in message)) + b"\x01"
        padded += bytes(-len(padded) % _RATE)
        padded[-1] ^= 0x80
        state = [0] * 25
        for at in range(0, len(padded), _RATE):
            for lane in range(_RATE // 8):
                state[lane] ^= int.from_bytes(padded[at + 8 * lane : at + 8 * lane + 8], "little")
            state = _keccak_p(state)
        self._state, self._left = state, self._block(state)

    @staticmethod
    def _block(state: list[int]) -> bytes:
        return b"".join(lane.to_bytes(8, "little") for lane in state[: _RATE // 8])

    def read(self, n: int) -> bytes:
        """Return the next n bytes."""
        parts, have = [self._left], len(self._left)
        while have < n:
            self._state = _keccak_p(self._state)
            parts.append(self._block(self._state))
            have += _RATE
        whole = b"".join(parts)
        self._left = whole[n:]
        return whole[:n]


class Shake128:
    """SHAKE128 of `hashlib`.

    `digest` begins at the first byte each time, so a later read squeezes at least twice what there is: the work is linear.
    """

    def __init__(self, *message: Bytes) -> None:
        self._hash = hashlib.shake_128()
        for part in message:
            self._hash.update(part)
        self._made, self._at = b"", 0

    def read(self, n: int) -> bytes:
        """Return the next n bytes."""
        first, self._at = self._at, self._at + n
        if self._at > len(self._made):
            self._made = self._hash.digest(max(self._at, 2 * len(self._made)))
        return self._made if n == len(self._made) else self._made[first : self._at]


@dataclass(frozen=True)
class Xof:
    """An extendable-output function with the input format of VDAF.

    Parameters
    ----------
    name : str
        Part of what a proof is described by.
    make : callable
        From parts of a message to a `ByteStream`.
    seed_bytes : int
        Length of seeds.
    early : bool
        The input format of VDAF drafts 8 to 12: one byte for the domain's length, none for the seed's.
    """

    name: str
    make: Callable[..., Any]
    seed_bytes: int = 32
    early: bool = False

    def open(self, seed: bytes, domain: bytes, *message: Bytes) -> ByteStream:
        """Return the stream of a seed in a domain about a message."""
        if len(domain) >= (1 << 8 if self.early else 1 << 16):
            raise SettingsInvalid(
                f"a domain of {len(domain)} bytes.", remedy="Give a context's digest in place of the context."
            )
        head = bytes([len(domain)]) + domain if self.early else len(domain).to_bytes(2, "little") + domain + bytes([len(seed)])
        reader: ByteStream = self.make(head + seed, *message)
        return reader


TURBO_SHAKE128 = Xof("turboshake128", TurboShake128)
EARLY_TURBO_SHAKE128 = Xof("turboshake128-early", TurboShake128, 16, early=True)
SHAKE128 = Xof("shake128", Shake128)


@dataclass(frozen=True)
class Domain:
    """The XOF of one algorithm, whose uses and contexts are kept apart.

    Parameters
    ----------
    xof : Xof
    prefix : bytes
        Version, class and algorithm.
    """

    xof: Xof
    prefix: bytes

    def open(self, usage: int, ctx: bytes, seed: bytes, *message: Bytes) -> ByteStream:
        """Return the stream of a seed for a usage in a context."""
        return self.xof.open(seed, self.prefix + usage.to_bytes(2, "big") + ctx, *message)

    def seed(self, usage: int, ctx: bytes, seed: bytes, *message: Bytes) -> bytes:
        """Return a seed that follows from another and a message."""
        return self.open(usage, ctx, seed, *message).read(self.xof.seed_bytes)

    def joint(self, usage: int, ctx: bytes, parts: list[bytes]) -> bytes:
        """Return the seed that follows from the parts of all aggregators."""
        return self.seed(usage, ctx, bytes(self.xof.seed_bytes), b"".join(parts))

    def numbers(self, field: NumberSource, n: int, usage: int, ctx: bytes, seed: bytes, *message: Bytes) -> Array:
        """Return n uniform numbers of a field."""
        return field.stream(self.open(usage, ctx, seed, *message), n)
