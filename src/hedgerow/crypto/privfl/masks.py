"""Masks over the whole of a Paillier key: a reply that carries one tells its reader nothing, whatever it was asked.

Modulo n, a plaintext plus a uniform number is uniform; modulo n squared, a ciphertext times the n-th power of a uniform
unit has uniform randomness. So a masked reply is uniform among all ciphertexts, whatever the questioner encrypted, and
its content is told by the masks alone, of which others form a total.

Numbers lie side by side in one plaintext, in slots that are 41 bits wider than they are, so that a reply of twenty numbers
needs one or two masks and decryptions. Masks whose slots would carry into the next are drawn again, which is the only
distance from uniform: below 2^-40 for each slot.

Source : packing and masking are usual; that masks are of the whole key, and not of 104 bits, is our own: it costs nothing
once replies are packed, and a server that encrypts numbers far beyond the model's range gains nothing by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Entropy

from ..paillier import PaillierPublic
from ..streams import fresh

HIDING = 40
"""Statistical distances are below 2 to the power of minus this, for each slot."""
RING = 1 << 64


def uniform_below(bound: int, entropy: Entropy = fresh) -> int:
    """A uniform whole number from 0 to `bound` - 1, by rejection."""
    bits = (bound - 1).bit_length()
    size = -(-bits // 8)
    while True:
        found = int.from_bytes(entropy(size), "little") & ((1 << bits) - 1)
        if found < bound:
            return found


@dataclass(frozen=True)
class Slots:
    """How numbers lie side by side below a modulus.

    Parameters
    ----------
    n : int
        The modulus.
    bits : int
        Of a number, with its sign.
    """

    n: int
    bits: int

    @property
    def width(self) -> int:
        """Bits of a slot."""
        return self.bits + HIDING + 1

    @property
    def each(self) -> int:
        """How many numbers one ciphertext holds."""
        return (self.n.bit_length() - 1 - HIDING) // self.width

    @property
    def half(self) -> int:
        """Is added to what a slot holds, so that it is not below zero."""
        return 1 << (self.bits - 1)

    def parts(self, size: int) -> list[slice]:
        """Which of `size` numbers go into each ciphertext."""
        return [slice(start, min(start + self.each, size)) for start in range(0, size, self.each)]

    def fresh_mask(self, size: int, entropy: Entropy = fresh) -> tuple[int, list[int]]:
        """Draw a mask for up to `each` numbers.

        Returns
        -------
        mask : int
            Uniform below n among those that let no slot carry.
        numbers : list of int
            What it holds in each slot, modulo 2^64.
        """
        top, low = self.n - (1 << (self.width * self.each)), (1 << self.width) - 1
        while True:
            mask = uniform_below(self.n, entropy)
            held = [(mask >> (self.width * i)) & low for i in range(self.each)]
            if mask < top and all(slot < (1 << self.width) - (1 << self.bits) for slot in held):
                return mask, [slot % RING for slot in held[:size]]

    def side_by_side(self, numbers: Sequence[int]) -> int:
        """Put whole numbers into slots."""
        return sum((number + self.half) << (self.width * i) for i, number in enumerate(numbers))

    def packed(self, public: PaillierPublic, rows: Sequence[int]) -> int:
        """Put the ciphertexts of several numbers side by side into one."""
        whole = rows[-1]
        for row in rows[-2::-1]:
            whole = public.add(public.multiply(whole, 1 << self.width), row)
        return whole

    def unpacked(self, plain: int, size: int) -> Array:
        """The numbers in a decrypted reply modulo 2^64, shape (size,); still masked."""
        plain, low = plain % self.n, (1 << self.width) - 1
        return np.array([(((plain >> (self.width * i)) & low) - self.half) % RING for i in range(size)], dtype=np.uint64)


def blinded(public: PaillierPublic, ciphertext: int, plain: int, entropy: Entropy = fresh) -> int:
    """Add a plaintext to a ciphertext, and the n-th power of a uniform unit of n, so that nothing of its history is left."""
    n = public.n
    unit = 1 + uniform_below(n - 1, entropy)  # no unit with a chance below 2^-1000, which would factor n
    return public.add(ciphertext, public.encrypt(signed(plain, n), unit))


def signed(number: int, n: int) -> int:
    """The number modulo n that lies between -n/2 and n/2."""
    number %= n
    return number - n if 2 * number > n else number
