"""Prime fields whose numbers travel as little-endian words: the interface, and Python's whole numbers as its arithmetic.

`Field128` is here for conformance with published vectors only: its numbers are Python objects, about a thousand times slower
than the words of `Field64`, and rounds never use it.

Every operation is elementwise with broadcasting, so leading axes are free: parties, proofs, checks. A word that is not below
the modulus is refused where bytes become numbers, before any arithmetic.

Source   : VDAF (draft-irtf-cfrg-vdaf-20), section 6.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import MessageRefused, SettingsInvalid

from .xof import ByteStream


class Field:
    """A prime field with 2^k-th roots of unity; this arithmetic is for numbers of any size, as Python objects.

    modulus   q
    size      bytes of an encoded number
    adicity   the largest k for which 2^k divides q - 1
    root      a generator of the 2^adicity-th roots of unity
    dtype     of arrays
    exact     up to how many terms `product` is cheaper than a transform; 0: never
    """

    modulus: int
    size: int
    adicity: int
    root: int
    dtype: Any = object
    exact: int = 0

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def of(self, values: Any) -> Array:
        """Return whole numbers of either sign as numbers of the field, shape kept."""
        given = np.asarray(values, object)
        out = np.empty(given.shape, self.dtype)
        out.reshape(-1)[:] = [int(value) % self.modulus for value in given.reshape(-1)]
        return out

    def constant(self, value: int) -> Array:
        """Return one number of the field, of shape ()."""
        return self.of(value)

    def zeros(self, shape: int | tuple[int, ...]) -> Array:
        """Return zeros."""
        out = np.empty(shape, self.dtype)
        out[...] = 0
        return out

    def centred(self, a: Array) -> Array:
        """Return numbers between -q/2 and q/2, as Python's whole numbers or int64 where the field's words are 8 bytes."""
        out = np.empty(a.shape, object)
        out.reshape(-1)[:] = [int(v) - self.modulus if int(v) > self.modulus // 2 else int(v) for v in a.reshape(-1)]
        return out

    def add(self, a: Array, b: Array) -> Array:
        """Return a + b."""
        return np.asarray((a + b) % self.modulus, self.dtype)

    def sub(self, a: Array, b: Array) -> Array:
        """Return a - b."""
        return np.asarray((a - b) % self.modulus, self.dtype)

    def mul(self, a: Array, b: Array) -> Array:
        """Return a b."""
        return np.asarray((a * b) % self.modulus, self.dtype)

    def sum(self, a: Array, axis: int = -1) -> Array:
        """Return the exact sum along an axis."""
        return np.asarray(a.sum(axis=axis) % self.modulus, self.dtype)

    def product(self, a: Array, b: Array) -> Array:
        """Return the matrix product of a, shape (..., m, k), and b, shape (..., k, n)."""
        return np.asarray((a @ b) % self.modulus, self.dtype)

    def encode(self, a: Array) -> bytes:
        """Return a vector's words, little-endian."""
        return b"".join(int(value).to_bytes(self.size, "little") for value in a)

    def decode(self, raw: bytes | memoryview, n: int) -> Array:
        """Return the n numbers of which `raw` is the encoding.

        Raises `MessageRefused` for another length, and for a word that is not below the modulus: a second encoding of the
        same share would give an aggregator's hash and arithmetic different inputs.
        """
        self._lengths(raw, n)
        words = [int.from_bytes(raw[at : at + self.size], "little") for at in range(0, len(raw), self.size)]
        if any(word >= self.modulus for word in words):
            self._beyond()
        return self.of(words)

    def stream(self, reader: ByteStream, n: int) -> Array:
        """Return n uniform numbers from a stream; words at or above the modulus are left out, never reduced."""
        found: list[int] = []
        while len(found) < n:
            raw = reader.read(self.size * (n - len(found)))
            words = (int.from_bytes(raw[at : at + self.size], "little") for at in range(0, len(raw), self.size))
            found += [word for word in words if word < self.modulus]
        return self.of(found)

    def _lengths(self, raw: bytes | memoryview, n: int) -> None:
        if len(raw) != n * self.size:
            raise MessageRefused(
                f"{len(raw)} bytes where {n} numbers of {self.size} bytes are due.",
                remedy="Both ends must name the same proof, sizes included.",
            )

    def _beyond(self) -> None:
        raise MessageRefused("a word is not below the field's modulus.", remedy="The sender must encode numbers of the field.")


class Field128(Field):
    """q = 2^66 * 4611686018427387897 + 1, in Python objects: for conformance with published vectors, not for rounds."""

    modulus = 2**66 * 4611686018427387897 + 1
    size = 16
    adicity = 66
    root = pow(7, 4611686018427387897, modulus)


def log2_exact(n: int, field: Field) -> int:
    """Return k for n = 2^k; a field without n-th roots of unity is refused."""
    k = n.bit_length() - 1
    if n < 1 or n != 1 << k or k > field.adicity:
        raise SettingsInvalid(f"{n} points in a field with 2^{field.adicity} roots of unity.", remedy="Prove shorter rows.")
    return k
