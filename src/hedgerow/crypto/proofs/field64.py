"""The field of q = 2^64 - 2^32 + 1 in words of numpy.

    2^64 = 2^32 - 1, 2^96 = -1     mod q

so a product of 128 bits is reduced by shifts and three additions. Each operation is a sequence of passes over blocks that stay
in the second-level cache. Sums of many products are matrix products of limbs of 22 bits in float64, which are exact while
every sum is below 2^53: 512 terms.

The passes do not branch on values, but Python does not run in constant time.

Source   : VDAF (draft-irtf-cfrg-vdaf-20), section 6.1.2 (Field64); the reduction is the usual one for this prime.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.core.arrays import Array

from .field import Field
from .xof import ByteStream

_U = np.uint64
_Q = _U(2**64 - 2**32 + 1)
_E = _U(2**32 - 1)  # 2^64 mod q
_LOW = _U(2**32 - 1)
_HALF = _U(32)
_LIMB = 22
_MASK = _U((1 << _LIMB) - 1)
_BLOCK = 1 << 13


class Field64(Field):
    """Words of 8 bytes below q = 2^64 - 2^32 + 1, as uint64 arrays."""

    modulus = 2**64 - 2**32 + 1
    size = 8
    adicity = 32
    root = pow(7, 2**32 - 1, modulus)
    dtype = np.uint64
    exact = 512

    def of(self, values: Any) -> Array:
        """Return whole numbers of either sign as numbers of the field; int64 arrays at the speed of numpy."""
        if isinstance(values, np.ndarray) and values.dtype.kind == "i":
            words = values.astype(np.int64).view(_U)
            return words - (values < 0) * _E  # 2^64 - k stands for -k, and q - k is due
        return super().of(values)

    def centred(self, a: Array) -> Array:
        """Return numbers between -q/2 and q/2 as int64."""
        return (a + (a > _U(self.modulus // 2)) * _E).view(np.int64)

    def zeros(self, shape: int | tuple[int, ...]) -> Array:
        return np.zeros(shape, _U)

    def add(self, a: Array, b: Array) -> Array:
        return _in_blocks(_add, a, b)

    def sub(self, a: Array, b: Array) -> Array:
        return _in_blocks(_sub, a, b)

    def mul(self, a: Array, b: Array) -> Array:
        return _in_blocks(_mul, a, b)

    def sum(self, a: Array, axis: int = -1) -> Array:
        """Return the exact sum of up to 2^32 numbers along an axis: halves of 32 bits are summed apart."""
        low = np.asarray((a & _LOW).sum(axis=axis, dtype=_U))
        high = np.asarray((a >> _HALF).sum(axis=axis, dtype=_U))
        shifted = self.mul(high - (high >= _Q) * _Q, np.full(1, 1 << 32, _U)).reshape(high.shape)
        return self.add(low - (low >= _Q) * _Q, shifted)

    def product(self, a: Array, b: Array) -> Array:
        """Return the matrix product of a, shape (..., m, k), and b, shape (..., k, n), for any k."""
        return self.limb_product(limbs(a), b)

    def limb_product(self, left: Array, b: Array) -> Array:
        """Return `product` of a matrix that is given by its `limbs`, shape (..., 3 m, k)."""
        terms, total = b.shape[-2], None
        for at in range(0, terms, self.exact):
            part = _limb_product(left[..., at : at + self.exact], b[..., at : at + self.exact, :])
            total = part if total is None else self.add(total, part)
        return total if total is not None else self.zeros((*left.shape[:-2], left.shape[-2] // 3, b.shape[-1]))

    def encode(self, a: Array) -> bytes:
        return np.ascontiguousarray(a, "<u8").tobytes()

    def decode(self, raw: bytes | memoryview, n: int) -> Array:
        self._lengths(raw, n)
        words = np.frombuffer(raw, "<u8")
        if n and words.max() >= _Q:
            self._beyond()
        return words.astype(_U)

    def stream(self, reader: ByteStream, n: int) -> Array:
        words = np.frombuffer(reader.read(8 * n), "<u8")
        while (beyond := words >= _Q).any():  # one word in 2^32
            words = words[~beyond]
            words = np.concatenate([words, np.frombuffer(reader.read(8 * (n - len(words))), "<u8")])
        return words.astype(_U)


def limbs(a: Array) -> Array:
    """Return the limbs of 22, 22 and 20 bits of a, shape (..., m, k), one above the other: float64, shape (..., 3 m, k)."""
    return np.concatenate([_limb(a, i) for i in range(3)], axis=-2)


def _limb(a: Array, i: int) -> Array:
    shifted = a >> _U(_LIMB * i) if i else a
    part: Array = (shifted & _MASK if i < 2 else shifted).view(np.int64).astype(np.float64)
    return part


def _limb_product(left: Array, b: Array) -> Array:
    """Return left @ b for at most 512 terms.

    The limbs' products stand for multiples of 2^0, 2^22, 2^44, 2^66, 2^88; below they are g[0] .. g[4], each below 2^55.
    """
    m = left.shape[-2] // 3
    parts = [left @ _limb(b, i) for i in range(3)]
    g: list[Array] = []
    for weight in range(5):
        of_weight = [
            parts[i][..., j * m : (j + 1) * m, :].astype(np.int64).view(_U)
            for i in range(3)
            for j in range(3)
            if i + j == weight
        ]
        g.append(of_weight[0])
        for other in of_weight[1:]:
            g[weight] += other
    low, high = g[0], g[1] >> _U(42)
    for word in (g[1] << _U(22), g[2] << _U(44)):
        low = low + word
        high += low < word
    high += g[2] >> _U(20)
    high += g[3] << _U(2)
    high += (g[4] & _U(0xFF)) << _U(24)
    minus = (high >> _HALF) + (g[4] >> _U(8))  # what is a multiple of 2^96 = -1
    high &= _LOW
    borrow = low < minus
    low -= minus
    low -= borrow * _E
    plus = (high << _HALF) - high
    low += plus
    low += ((low < plus) | (low >= _Q)) * _E
    return low


def _in_blocks(kernel: Any, a: Array, b: Array) -> Array:
    """Apply an elementwise operation block after block."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    out = np.empty(shape, _U)
    flat, x, y = out.reshape(-1), _flat(a, shape), _flat(b, shape)
    if flat.size <= _BLOCK:
        kernel(x, y, flat, np.empty((6, flat.size), _U))
        return out
    scratch = np.empty((6, _BLOCK), _U)
    for at in range(0, flat.size, _BLOCK):
        part = flat[at : at + _BLOCK]
        kernel(x[at : at + _BLOCK], y[at : at + _BLOCK], part, scratch[:, : part.size])
    return out


def _flat(a: Array, shape: tuple[int, ...]) -> Array:
    """Return a as one vector of the size of `shape`; copied only where its axes are repeated."""
    if a.shape == shape:
        return a.reshape(-1)
    if a.size == 1:
        return np.broadcast_to(a.reshape(-1), (int(np.prod(shape)),))
    return np.broadcast_to(a, shape).reshape(-1)


def _add(a: Array, b: Array, out: Array, scratch: Array) -> None:
    np.add(a, b, out=out)
    over = out < a  # a carry of 2^64 = 2^32 - 1, or a result that is not below q: 2^32 - 1 is added either way
    over |= out >= _Q
    np.multiply(over, _E, out=scratch[0])
    out += scratch[0]


def _sub(a: Array, b: Array, out: Array, scratch: Array) -> None:
    np.multiply(a < b, _E, out=scratch[0])
    np.subtract(a, b, out=out)
    out -= scratch[0]


def _mul(a: Array, b: Array, out: Array, scratch: Array) -> None:
    low, mid, t, u, v, high = scratch
    np.bitwise_and(a, _LOW, out=low)  # a0
    np.right_shift(a, _HALF, out=t)  # a1
    np.bitwise_and(b, _LOW, out=u)  # b0
    np.right_shift(b, _HALF, out=v)  # b1
    np.multiply(t, v, out=high)
    t *= u  # a1 b0
    v *= low  # a0 b1
    low *= u  # a0 b0
    np.right_shift(low, _HALF, out=mid)
    np.bitwise_and(t, _LOW, out=u)
    mid += u
    mid += v
    t >>= _HALF
    high += t
    np.right_shift(mid, _HALF, out=t)
    high += t
    mid <<= _HALF
    low &= _LOW
    low += mid  # the product is high 2^64 + low
    np.right_shift(high, _HALF, out=t)
    high &= _LOW
    np.multiply(low < t, _E, out=u)
    low -= t
    low -= u
    np.left_shift(high, _HALF, out=out)
    out -= high
    low += out
    over = low < out
    over |= low >= _Q
    np.multiply(over, _E, out=u)
    np.add(low, u, out=out)
