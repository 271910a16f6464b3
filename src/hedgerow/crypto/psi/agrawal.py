"""Alignment by powers modulo a safe prime, Agrawal's commutative encryption: as printed with a toy prime, and mended.

    as printed                                            mended
    x = h(v): last 8 bytes of SHA-1, highest first        x = (272 bytes of SHAKE-256 of salt and v)^2 mod p
    p = 9223372036854771239, of 63 bits                   p of 2048 bits, RFC 3526 group 14; p = 2 q + 1, q prime
    e given, odd or even                                  e uniform from 1 to q - 1, so coprime to q
    f_e(x) = x^e mod p                                    the same

Of the six numbers that the thesis hashes, none is a square modulo p, though its domain is the squares, and two are above p.
Its e_A is even, so every Y_A is a square, and x and p - x become one; its e_B is odd, so no Y_B is: the Legendre symbol tells
which key made a number. Logarithms modulo 63 bits are no work for a laptop. So `Agrawal.toy` repeats what is printed, and
nothing uses it.

The mended one carries the same masks in the letters of `star`, which count before they show. It costs about 80 times what masks
on curve25519 cost; take it where curves may not be used.

Source   : Agrawal, Evfimievski & Srikant 2003, section 3.3; Sempere 2024, section 3.1, Algorithm 4. Differs: both sides learn,
           as the thesis's example has it; its "lexicographically" is the order of the numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hedgerow.core.arrays import Array
from hedgerow.core.question import travels
from hedgerow.core.randomness import Entropy
from hedgerow.errors import MessageRefused

from ..cohort import lawful_least
from ..integers import jacobi, library, power, whole
from ..peers import Peer, meet
from ..streams import fresh
from .alignment import Masked
from .ids import IdRules
from .interface import AlignedRows

GROUP_14 = int(
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DDEF9519B3CD3A431B"
    "302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE6"
    "49286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB9ED529077096966D"
    "670C354E4ABC9804F1746C08CA18217C32905E462E36CE3BE39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF695581718"
    "3995497CEA956AE515D2261898FA051015728E5A8AACAA68FFFFFFFFFFFFFFFF",
    16,
)
"""The safe prime of RFC 3526, section 3."""

TOY_PRIME = 9223372036854771239
TOY_KEYS = (2671390701970302872, 325637035052474817)


@dataclass(frozen=True)
class ToyRun:
    """Every number of Algorithm 4 as the thesis prints it; a toy that hides nothing.

    Attributes
    ----------
    x_a, x_b : lists of int
        Hashes.
    y_a, y_b : lists of int
        Their powers, in the order of the ids.
    z_a, z_b : lists of int
        Powers of the powers, in the order of the sorted `y_a` and `y_b`.
    common_a, common_b : lists of str
        What each side finds to be common, in its own order.
    """

    x_a: list[int]
    x_b: list[int]
    y_a: list[int]
    y_b: list[int]
    z_a: list[int]
    z_b: list[int]
    common_a: list[str]
    common_b: list[str]


@travels
@dataclass(frozen=True)
class Agrawal:
    """Find the people whom parties have in common, by powers modulo a safe prime of 2048 bits.

    Parameters
    ----------
    least, most, ratio, normal, small_domain
        As for `X25519`.
    """

    least: int = 10
    most: int = 100_000
    ratio: float = 100.0
    normal: str = "nfkc-casefold"
    small_domain: str = "refused"

    def __post_init__(self) -> None:
        _ = self.rules
        lawful_least(self.least)

    @property
    def name(self) -> str:
        """How a study names the protocol."""
        return "agrawal"

    @cached_property
    def rules(self) -> IdRules:
        """What lists must be."""
        return IdRules(self.least, self.most, self.ratio, self.normal, self.small_domain)

    @property
    def shows(self) -> Mapping[str, str]:
        """Who learns what, a sentence for each role."""
        from .x25519 import X25519

        return X25519(least=self.least).shows

    def read(self, values: Sequence[Any] | Array) -> list[bytes]:
        """Bring a column of ids into the normal form; refuse (HR-413), at home, what cannot be aligned."""
        return self.rules.read(values)

    def peer(
        self, me: str, names: tuple[str, ...], ids: Sequence[bytes], *, entropy: Entropy | None = None
    ) -> Peer[AlignedRows]:
        """Return the side of the party `me` among `names`; see `X25519.peer`."""
        return Masked(Squares(), self.rules).rows(me, names, ids, entropy or fresh)

    @staticmethod
    def toy(alice: Sequence[str], bob: Sequence[str], keys: tuple[int, int] = TOY_KEYS, prime: int = TOY_PRIME) -> ToyRun:
        """Repeat the thesis's example, number by number. It hides nothing: see the module."""
        sides = {"alice": _toy_side("bob", alice, keys[0], prime), "bob": _toy_side("alice", bob, keys[1], prime)}
        (x_a, y_a, z_b, common_a), (x_b, y_b, z_a, common_b) = meet(sides).values()
        return ToyRun(x_a, x_b, y_a, y_b, z_a, z_b, common_a, common_b)


def _toy_side(other: str, ids: Sequence[str], key: int, prime: int) -> Peer[tuple[list[int], list[int], list[int], list[str]]]:
    """One side of Algorithm 4, made symmetrical: steps 1 to 4, 5 and 6, 7."""
    x = [int.from_bytes(hashlib.sha1(id.encode()).digest()[-8:], "big") for id in ids]
    y = [pow(number, key, prime) for number in x]
    came = yield {other: _eights(sorted(y))}
    twice = [pow(number, key, prime) for number in _numbers(came[other])]
    came = yield {other: _eights(twice)}
    mine = dict(zip(sorted(y), _numbers(came[other]), strict=True))
    return x, y, twice, [id for id, number in zip(ids, y, strict=True) if mine[number] in set(twice)]


def _eights(numbers: Iterable[int]) -> bytes:
    return b"".join(number.to_bytes(8, "big") for number in numbers)


def _numbers(raw: bytes) -> list[int]:
    return [int.from_bytes(raw[i : i + 8], "big") for i in range(0, len(raw), 8)]


@dataclass(frozen=True)
class Exponent:
    """A secret exponent."""

    number: int = field(repr=False)
    prime: int = field(repr=False)

    def mask(self, elements: bytes) -> bytes:
        """Return each element to this power, in order."""
        size, p, e = (self.prime.bit_length() + 7) // 8, whole(self.prime), whole(self.number)
        split = (elements[i : i + size] for i in range(0, len(elements), size))
        return b"".join(int(power(whole(int.from_bytes(y, "big")), e, p)).to_bytes(size, "big") for y in split)


class Squares:
    """The squares modulo a safe prime p = 2 q + 1: a group of prime order q, in which masks are powers."""

    name, size, piece = "squares modulo RFC 3526 group 14", 256, 1 << 10

    def elements_of(self, ids: Iterable[bytes], salt: bytes) -> bytes:
        """Hash ids to squares: 2176 bits modulo p, so that no square is likelier by more than 2^-128, and squared."""
        begun = hashlib.shake_256(b"hedgerow psi squares\0" + bytes([len(salt)]) + salt)
        found = bytearray()
        for id in ids:
            state = begun.copy()
            state.update(id)
            found += pow(int.from_bytes(state.digest(272), "big") % GROUP_14, 2, GROUP_14).to_bytes(self.size, "big")
        return bytes(found)

    def check(self, raw: bytes) -> None:
        """Return if bytes are squares modulo p other than 0 and 1; refuse (HR-242) otherwise."""
        for i in range(0, len(raw), self.size):
            y = int.from_bytes(raw[i : i + self.size], "big")
            if not 1 < y < GROUP_14 or _symbol(y) != 1:
                raise MessageRefused(
                    "a number that came is no square modulo p, or trivial.", remedy="Nothing was computed from it."
                )

    def fresh(self, entropy: Entropy) -> Exponent:
        """Draw an exponent, uniform from 1 to q - 1: 64 bits more than q has, so that the bias is below 2^-64."""
        q = GROUP_14 // 2
        return Exponent(1 + int.from_bytes(entropy(self.size + 8), "big") % (q - 1), GROUP_14)

    def pair(self, entropy: Entropy) -> tuple[Exponent, Exponent]:
        """Draw an exponent, and its inverse modulo q."""
        drawn = self.fresh(entropy)
        return drawn, Exponent(pow(drawn.number, -1, GROUP_14 // 2), GROUP_14)


def _symbol(y: int) -> int:
    """Return the Legendre symbol of y modulo p."""
    gmp = library()
    return jacobi(y, GROUP_14) if gmp is None else int(gmp.legendre(y, GROUP_14))
