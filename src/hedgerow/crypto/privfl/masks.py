"""Masks over the whole of a Paillier key, and totals that show nothing else, whatever the questioner encrypted.

    reply    V_i + r_i  modulo n       uniform: r_i is uniform below n, and the ciphertext's randomness is replaced
    limbs    r_i = sum_k l_ik 2^(e k)  modulo n, with limbs of w > e bits, which others add up:  L_k = sum_i l_ik
    total    sum_i reply_i - sum_k L_k 2^(e k) = sum_i V_i  modulo n

Everything here is a homomorphism modulo n, so replies and limbs together tell the sum of the V_i modulo n and no more. It
matters: if only `r_i` modulo 2^64 is added up, the total shows how many replies wrapped around n. A server that encrypts
numbers far beyond the model's range knows each reply, so it learns of every single `V_i` whether it is above a known number.

Limbs overlap: they are 42 bits wider than they are apart, so that a sum of representations fits very many of them. Given the
sums over two parties or more, each party's `r_i` is uniform but for 2^-40 with each limb. A word of 64 bits holds the
sum of a limb over all parties, so it never wraps around.

Numbers lie side by side in one plaintext, 64 bits for the total of each.

Source : packing and masking are usual; masks of the whole key, and their sum in overlapping limbs, are our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Entropy
from hedgerow.errors import RangeExceeded

from ..paillier import PaillierPublic
from ..streams import fresh

HIDING = 40
"""Statistical distances are below 2 to the power of minus this, for each limb."""
WORD = 64
RING = 1 << WORD


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
    """How whole numbers, whose totals are below 2^63, lie side by side below a modulus n."""

    n: int

    @property
    def each(self) -> int:
        """How many numbers one ciphertext holds."""
        return (self.n.bit_length() - 2) // WORD

    def parts(self, size: int) -> list[slice]:
        """Which of `size` numbers go into each ciphertext."""
        return [slice(start, min(start + self.each, size)) for start in range(0, size, self.each)]

    def side_by_side(self, numbers: Sequence[int]) -> int:
        """Put whole numbers into slots."""
        return sum(number << (WORD * i) for i, number in enumerate(numbers))

    def packed(self, public: PaillierPublic, rows: Sequence[int]) -> int:
        """Put the ciphertexts of several numbers side by side into one."""
        whole = rows[-1]
        for row in rows[-2::-1]:
            whole = public.add(public.multiply(whole, RING), row)
        return whole

    def unpacked(self, plain: int, size: int) -> Array:
        """The numbers in a plaintext, modulo 2^64, shape (size,)."""
        half = RING // 2
        lifted = signed(plain, self.n) + self.side_by_side([half] * self.each)  # so that no number is below zero
        return np.array([((lifted >> (WORD * i)) - half) % RING for i in range(size)], dtype=np.uint64)


@dataclass(frozen=True)
class Limbs:
    """Masks below n as sums of overlapping limbs, whose sums over parties are taken in words.

    Parameters
    ----------
    n : int
    parties : int
        For how many parties' sum a word has room.
    """

    n: int
    parties: int

    def __post_init__(self) -> None:
        if self.apart < 1:
            raise RangeExceeded(
                f"masks of {self.parties} parties have no room in words of {WORD} bits.",
                remedy="Ask fewer parties at once: at most 2^21 - 1.",
                asked=False,
            )

    @property
    def bits(self) -> int:
        """Of a limb."""
        return WORD - self.parties.bit_length()

    @property
    def apart(self) -> int:
        """Bits from one limb to the next."""
        return self.bits - HIDING - 2

    @property
    def count(self) -> int:
        """Limbs of a mask; together they reach 42 bits beyond n."""
        return -(-self.n.bit_length() // self.apart)

    def fresh(self, entropy: Entropy = fresh) -> Array:
        """Draw the limbs of a mask, shape (count,)."""
        drawn = np.frombuffer(entropy(self.count * WORD // 8), "<u8")
        return np.asarray(drawn >> np.uint64(WORD - self.bits), dtype=np.uint64)

    def value(self, limbs: Array) -> int:
        """The mask, or sum of masks, of these limbs, modulo n."""
        whole: list[int] = limbs.tolist()
        return sum(limb << (self.apart * k) for k, limb in enumerate(whole)) % self.n


def blinded(public: PaillierPublic, ciphertext: int, plain: int, entropy: Entropy = fresh) -> int:
    """Add a plaintext to a ciphertext, and the n-th power of a uniform unit of n, so that nothing of its history is left."""
    n = public.n
    unit = 1 + uniform_below(n - 1, entropy)  # by chance no unit: the reply is spoilt then, and tells less
    return public.add(ciphertext, public.encrypt(signed(plain, n), unit))


def signed(number: int, n: int) -> int:
    """The number modulo n that lies between -n/2 and n/2."""
    number %= n
    return number - n if 2 * number > n else number
