"""Paillier's encryption: sums and multiples of numbers that only the holder of the key can read.

    E(m) = (1 + n)^m * rho^n  modulo n^2               n = p q, rho a secret unit
    E(a) * E(b) = E(a + b)          E(a)^k = E(k a)     in the whole numbers modulo n, read from -n/2 to n/2

The holder of `PaillierKey` decrypts; everybody else computes. What was computed still shows how: `linear` of the same
ciphertexts with the same coefficients gives the same bytes, and the key's holder can take randomness apart. Whoever sends a
result back calls `rerandomise` on it first, and nothing of the way there is left but the number.

Randomness rho = h^r is read from a table of powers of a random square h.
    encrypt       r of 400 bits: hides m from those who lack the key (Damgard, Jurik & Nielsen's variant with exponents that
                  are short against the order of h, which is assumed to stay hard)
    rerandomise   r of 64 bits more than n, times a random one of four representatives: rho is within 2^-64 of uniform if
                  n is what `PaillierKey.fresh` makes and h generates the squares, which a random one does but for a chance
                  below 1 in 500; it then hides all but a residue modulo one large factor of p - 1 or q - 1
A key made otherwise, by its holder's bad intent, may hide less: pin a key that is trusted to be honest, or ask for a proof
of its form. `PaillierPublic` refuses only what a look at n can show.

A 2048-bit key is about as strong as 112 bits, a 3072-bit key as 128. Computing takes longer for some numbers than for
others (`integers`): nobody who could time it closely may share the machine. Encryption of this kind can be altered by
anybody on the way, in a way that keeps it readable: send it inside signed or sealed messages.

Source   : Paillier 1999; Damgard, Jurik & Nielsen 2010, section 4.2, for the randomness. Differs: h is the party's own,
           and squares are supplemented by signs. Products of powers after Straus 1964.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import KeyInvalid, MessageRefused, RangeExceeded

from .integers import (
    FixedBase,
    common_divisor,
    fresh_prime,
    inverse,
    jacobi,
    power,
    probably_prime,
    products,
    small_product,
    whole,
)
from .streams import fresh

SECURE_BITS = 2048
DEFAULT_BITS = 3072
LARGEST_BITS = 16384
SHORT_EXPONENT_BITS = 400
EXCESS_BITS = 64


class PaillierPublic:
    """The public key: encrypts, and computes on what was encrypted.

    Ciphertexts are whole numbers below n^2. Hundreds of parties of one process can share an object, and with it the table.

    Parameters
    ----------
    n : int
        The modulus.
    insecure : bool
        Allow keys below 2048 bits, for tests.

    Raises
    ------
    KeyInvalid (HR-244)
        n is too small or too large, even, prime, a square, or has a factor below 2^16.
    """

    def __init__(self, n: int, *, insecure: bool = False) -> None:
        self.n = int(n)
        self.bits = self.n.bit_length()
        self.ciphertext_bytes = (2 * self.bits + 7) // 8
        _check_modulus(self.n, insecure)
        self._n, self._square = whole(self.n), whole(self.n * self.n)
        self._stock: list[Any] = []

    def encrypt(self, m: int, r: int | None = None) -> int:
        """Return a fresh encryption of a whole number, |m| < n/2; with a given unit r, the one with that randomness."""
        rho = self._mask(SHORT_EXPONENT_BITS) if r is None else power(whole(r), self._n, self._square)
        return int(self._plain(m) * rho % self._square)

    def add(self, c1: int, c2: int) -> int:
        """Return an encryption of the sum of two encrypted numbers."""
        return int(whole(c1) * c2 % self._square)

    def add_plain(self, c: int, m: int) -> int:
        """Return an encryption of an encrypted number plus m, |m| < n/2."""
        return int(self._plain(m) * c % self._square)

    def multiply(self, c: int, k: int) -> int:
        """Return an encryption of an encrypted number times k, which may be negative."""
        try:
            return int(power(whole(c), int(k), self._square))
        except ValueError:
            raise _not_a_ciphertext() from None

    def linear(self, ciphertexts: Sequence[int], coefficients: Sequence[int] | Array) -> int:
        """Return an encryption of sum_j coefficients[j] * m_j."""
        return self.matrix(ciphertexts, [coefficients])[0]

    def matrix(self, ciphertexts: Sequence[int], rows: Sequence[Sequence[int] | Array] | Array) -> list[int]:
        """Return encryptions of a matrix of whole numbers times the encrypted vector.

        Parameters
        ----------
        ciphertexts : sequence of d
        rows : whole numbers of shape (rows, d)
            May be negative and of any size; results beyond n/2 wrap around, which the caller rules out beforehand.
        """
        exponents = [[_integer(k) for k in row] for row in rows]
        if any(len(row) != len(ciphertexts) for row in exponents):
            raise RangeExceeded(
                f"{len(ciphertexts)} ciphertexts against rows of {sorted({len(row) for row in exponents})} coefficients.",
                remedy="Give a matrix with one column for each ciphertext.",
            )
        try:
            return [int(c) for c in products([whole(c) for c in ciphertexts], exponents, self._square)]
        except ValueError:
            raise _not_a_ciphertext() from None

    def rerandomise(self, c: int) -> int:
        """Return another encryption of the same number, from which nothing but the number can be told."""
        try:
            mask = self._stock.pop()
        except IndexError:
            mask = self._long_mask()
        return int(mask * c % self._square)

    def stock(self, count: int) -> None:
        """Prepare randomness for so many calls of `rerandomise`, while nobody waits; each is used once."""
        self._stock.extend(self._long_mask() for _ in range(count))

    def check(self, ciphertexts: Sequence[int]) -> None:
        """Return if all are units modulo n^2; raise MessageRefused (HR-242) otherwise."""
        product = whole(1)
        for c in ciphertexts:
            if not 0 < c < self._square:
                raise _not_a_ciphertext()
            product = product * c % self._n
        if common_divisor(product, self._n) != 1:
            raise _not_a_ciphertext()

    def pack(self, ciphertexts: Sequence[int]) -> bytes:
        """Return ciphertexts as bytes of equal length, the highest first."""
        return b"".join(int(c).to_bytes(self.ciphertext_bytes, "big") for c in ciphertexts)

    def unpack(self, raw: bytes, count: int) -> list[int]:
        """Return `count` ciphertexts, checked."""
        size = self.ciphertext_bytes
        if len(raw) != count * size:
            raise MessageRefused(f"{len(raw)} bytes for {count} ciphertexts.", remedy=f"A ciphertext has {size} bytes.")
        ciphertexts = [int.from_bytes(raw[i * size : (i + 1) * size], "big") for i in range(count)]
        self.check(ciphertexts)
        return ciphertexts

    def to_bytes(self) -> bytes:
        """Return n, the highest byte first."""
        return self.n.to_bytes((self.bits + 7) // 8, "big")

    @classmethod
    def from_bytes(cls, raw: bytes, *, insecure: bool = False) -> PaillierPublic:
        """Return the key with this modulus, checked; the same object for the same bytes, so that its table is made once."""
        if not raw or len(raw) > LARGEST_BITS // 8 or raw[0] == 0:
            raise KeyInvalid(f"a modulus of {len(raw)} bytes.", remedy="Pass what `to_bytes` returned.")
        return _public(bytes(raw), insecure)

    @cached_property
    def digest(self) -> bytes:
        """32 bytes that stand for the key, for pinning."""
        return hashlib.sha256(b"hedgerow paillier\0" + self.to_bytes()).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PaillierPublic) and self.n == other.n

    def __hash__(self) -> int:
        return hash(self.n)

    def __repr__(self) -> str:
        return f"PaillierPublic({self.bits} bits, digest={self.digest.hex()[:16]})"

    def _plain(self, m: int) -> Any:
        """Return (1 + n)^m modulo n^2."""
        m = _integer(m)
        if 2 * abs(m) >= self.n:
            raise RangeExceeded(
                f"a number of {m.bit_length()} bits does not fit a Paillier key of {self.bits}.",
                remedy="Encode with fewer bits, or choose a larger key.",
            )
        return (1 + m * self._n) % self._square

    def _mask(self, bits: int) -> Any:
        """Return h^(n r) for a uniform exponent r of so many bits."""
        return self._table.power(int.from_bytes(fresh(bits // 8), "big"))

    def _long_mask(self) -> Any:
        """Return the n-th power of a nearly uniform unit."""
        choice = fresh(1)[0]
        mask = self._mask((self.bits + 7) // 8 * 8 + EXCESS_BITS)
        if choice & 1:
            mask = mask * self._turn % self._square
        return self._square - mask if choice & 2 else mask

    @cached_property
    def _table(self) -> FixedBase:
        """Powers of h^n, for a random square h."""
        x = self._unit()
        return FixedBase(power(x * x % self._n, self._n, self._square), self._square)

    @cached_property
    def _turn(self) -> Any:
        """The n-th power of a unit that is neither a square nor minus one."""
        while True:
            x = self._unit()
            if jacobi(int(x), self.n) == -1:
                return power(x, self._n, self._square)

    def _unit(self) -> Any:
        """Return a uniform unit modulo n."""
        while True:
            x = int.from_bytes(fresh(self.bits // 8 + 9), "big") % self.n  # 64 bits more than n: the bias is below 2^-64
            if common_divisor(x, self._n) == 1:
                return whole(x)


class PaillierKey:
    """The private key: two primes.

    Parameters
    ----------
    p, q : int
        As `fresh` makes them; others are refused where a look can show it.
    insecure : bool
        Allow keys below 2048 bits, for tests.
    """

    def __init__(self, p: int, q: int, *, insecure: bool = False) -> None:
        self.public = PaillierPublic(p * q, insecure=insecure)
        if p == q or not (probably_prime(p) and probably_prime(q)) or math.gcd(p * q, (p - 1) * (q - 1)) != 1:
            raise KeyInvalid(
                "the factors of a Paillier key are not two fit primes.", remedy="Make keys with PaillierKey.fresh()."
            )
        self._p, self._q = whole(p), whole(q)
        self._p_square, self._q_square = self._p * self._p, self._q * self._q
        self._p_scale, self._q_scale = inverse(-self._q % self._p, self._p), inverse(-self._p % self._q, self._q)
        self._p_of_q = inverse(self._p, self._q)

    @classmethod
    def fresh(cls, bits: int = DEFAULT_BITS, *, insecure: bool = False) -> Self:
        """Return a key from the operating system's entropy.

        The primes are of equal length, 3 modulo 4, far apart, and p - 1 and q - 1 share no factor but 2 and have no other
        below 2^16.
        """
        least = 128 if insecure else SECURE_BITS
        if not least <= bits <= LARGEST_BITS or bits % 16:
            raise KeyInvalid(
                f"a Paillier key of {bits} bits.", remedy=f"Choose 2048, 3072 or 4096 (least {least}, multiples of 16)."
            )
        while True:
            p, q = fresh_prime(bits // 2), fresh_prime(bits // 2)
            if math.gcd(p - 1, q - 1) == 2 and abs(p - q).bit_length() > bits // 2 - 64:
                return cls(p, q, insecure=insecure)

    def decrypt(self, c: int) -> int:
        """Return the number, from -n/2 to n/2, that a ciphertext holds; refuse (HR-242) what is not a ciphertext."""
        self.public.check([c])
        c = whole(c)
        p, q = self._p, self._q
        at_p = (power(c % self._p_square, p - 1, self._p_square) - 1) // p * self._p_scale % p
        at_q = (power(c % self._q_square, q - 1, self._q_square) - 1) // q * self._q_scale % q
        m = int(at_p + p * ((at_q - at_p) * self._p_of_q % q))
        return m - self.public.n if 2 * m > self.public.n else m

    def to_bytes(self) -> bytes:
        """Return both primes, for the holder's own store."""
        size = (max(int(self._p), int(self._q)).bit_length() + 7) // 8
        return int(self._p).to_bytes(size, "big") + int(self._q).to_bytes(size, "big")

    @classmethod
    def from_bytes(cls, raw: bytes, *, insecure: bool = False) -> Self:
        """Return the key that was stored."""
        if not raw or len(raw) % 2 or len(raw) > LARGEST_BITS // 8:
            raise KeyInvalid(f"a private Paillier key of {len(raw)} bytes.", remedy="Pass what `to_bytes` returned.")
        half = len(raw) // 2
        return cls(int.from_bytes(raw[:half], "big"), int.from_bytes(raw[half:], "big"), insecure=insecure)

    def __repr__(self) -> str:
        return f"PaillierKey({self.public.bits} bits)"


@lru_cache(maxsize=8)
def _public(raw: bytes, insecure: bool) -> PaillierPublic:
    """Return one object for each modulus."""
    return PaillierPublic(int.from_bytes(raw, "big"), insecure=insecure)


def _check_modulus(n: int, insecure: bool) -> None:
    """Refuse what no Paillier modulus is."""
    bits = n.bit_length()
    if n < 15 or bits > LARGEST_BITS or (bits < SECURE_BITS and not insecure):
        reason = f"has {bits} bits; it needs {SECURE_BITS} to {LARGEST_BITS}"
    elif n % 2 == 0 or (not insecure and common_divisor(small_product() % n, n) != 1):
        reason = "has a factor below 2^16"
    elif math.isqrt(n) ** 2 == n or probably_prime(n):
        reason = "is not a product of two primes"
    else:
        return
    raise KeyInvalid(f"a Paillier modulus {reason}.", remedy="Ask its holder for one made by PaillierKey.fresh().")


def _integer(k: Any) -> int:
    """Return k as a Python integer; refuse fractions."""
    if isinstance(k, bool | np.bool_) or not isinstance(k, int | np.integer):
        raise RangeExceeded(f"{k!r} is not a whole number.", remedy="Encode numbers in fixed point first.")
    return int(k)


def _not_a_ciphertext() -> MessageRefused:
    return MessageRefused("a number is not a Paillier ciphertext under this key.", remedy="Nothing of it was used.")
