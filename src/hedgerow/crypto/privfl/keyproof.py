"""A proof that a Paillier key is well formed, made once and checked by every party.

Masks hide all of a reply if every ciphertext modulo n squared is one of a plaintext, and that is so if n has no divisor
in common with the number of its units. Taking the n-th power is then a permutation of the units, and whoever knows the
factors can give the n-th root of any; otherwise at most one unit in 2^16 has a root, because no factor of n is below 2^16.
The units are hashes of n, so that nobody chose them: eight roots leave a chance of 2^-128 for each key that a cheat tries.

Source : Goldberg, Reyzin, Sagga & Baldimtsi 2019, certification of Paillier moduli. Differs: SHAKE-256 makes the units.
"""

from __future__ import annotations

import hashlib
import math

from hedgerow.crypto.messages import MessageForm, Octets
from hedgerow.errors import KeyInvalid

from ..cohort import cut
from ..integers import common_divisor, power, small_product
from ..paillier import LARGEST_BITS, PaillierKey, PaillierPublic

ROOTS = 8
"""Units whose roots are shown."""

_LONGEST = LARGEST_BITS // 8
KEY = MessageForm("privfl key", modulus=Octets(16, _LONGEST), roots=Octets(0, ROOTS * _LONGEST))


def prove(key: PaillierKey) -> bytes:
    """The key's public half with the roots of its units."""
    n, both = key.public.n, key.to_bytes()
    p, q = (int.from_bytes(part, "big") for part in cut(both, 2, len(both) // 2))
    root, modulus = pow(n, -1, math.lcm(p - 1, q - 1)), key.public.to_bytes()
    roots = b"".join(int(power(unit, root, n)).to_bytes(len(modulus), "big") for unit in _units(n, modulus))
    return KEY.pack(modulus=modulus, roots=roots)


def checked_key(proof: bytes, least_bits: int, *, insecure: bool = False) -> PaillierPublic:
    """Return the key of a proof.

    Raises
    ------
    MessageRefused (HR-242), KeyInvalid (HR-244)
        The proof is malformed; the key is too short, more than twice as long as it must be, or not well formed.
    """
    modulus, roots = KEY.unpack(proof)
    public = PaillierPublic.from_bytes(modulus, insecure=insecure)
    if not least_bits <= public.bits <= 2 * least_bits:  # a longer one would keep the other side busy for very long
        raise KeyInvalid(f"a Paillier key of {public.bits} bits.", remedy=f"This party wants {least_bits} to twice as many.")
    n = public.n
    shown = [int.from_bytes(part, "big") for part in cut(roots, ROOTS, len(modulus))]
    proved = all(0 < root < n and power(root, n, n) == unit for root, unit in zip(shown, _units(n, modulus), strict=True))
    if not proved or common_divisor(small_product(), n) != 1:
        raise KeyInvalid("a Paillier key is not proved to be well formed, so replies to it could tell more than a total.")
    return public


def _units(n: int, modulus: bytes) -> list[int]:
    """Numbers below n that nobody chose; each is made of 16 bytes more than n has, so that none is likelier by 2^-128."""
    each = len(modulus) + 16
    stream = hashlib.shake_256(b"hedgerow/privfl units\0" + modulus).digest(each * ROOTS)
    return [int.from_bytes(part, "big") % n for part in cut(stream, ROOTS, each)]
