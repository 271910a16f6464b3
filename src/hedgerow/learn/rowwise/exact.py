"""Products whose rows are independent, on any BLAS: operands cut to grids on which a float64 product is exact.

    row i of the left operand      whole numbers up to 2^p, times a power of two of its own
    column j of the right one      whole numbers up to 2^q, times a power of two of its own
    p + q + ceil(log2 K) <= 53     so that every partial sum of K products is a whole number that float64 holds

An exact sum has no order: a row of the result depends on the right operand and on that row, not on how many rows there are,
where it stands, threads or addresses. The cutting errs by about 1e-7 of |a| |b|, as float32 does. This is the first slice of
Ozaki, Ogita, Oishi and Rump (Numerical Algorithms 59, 2012). A row with a number that is not finite becomes NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .subnormals import ieee

LEAST_EXPONENT = -100  # rows below 2^-100 are cut to the grid of that size, so that their scale is a float32
AT_ONCE = 1 << 22  # gathered numbers that are held in memory


@dataclass(frozen=True, eq=False)
class ExactPacked:
    """The right operand of products, of shape (k, n), as whole numbers and the powers of two of its columns."""

    k: int
    n: int
    whole: np.ndarray
    power: np.ndarray
    bits: int


def bits_of(terms: int) -> tuple[int, int]:
    """Bits of the left and of the right operand in exact sums of so many terms; the left ones fit float32."""
    room = 53 - max(terms - 1, 1).bit_length()
    left = min(24, room // 2)
    return left, min(24, room - left)


def _cut(values: np.ndarray, bits: int, axes: int | tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers up to 2^bits as float64, and the power of two of their unit: NaN where something is not finite."""
    largest = np.maximum(values.max(axes, keepdims=True, initial=0), -values.min(axes, keepdims=True, initial=0))
    exponent = np.maximum(np.frexp(largest)[1], LEAST_EXPONENT)
    finite = np.isfinite(largest)
    if not finite.all():
        values, exponent = np.where(finite, values, np.float32(0)), np.where(finite, exponent, 0)
    scaled = values * np.ldexp(np.float32(1), bits - exponent)
    np.rint(scaled, out=scaled)
    return scaled.astype(np.float64), np.where(finite, np.ldexp(1.0, exponent - bits), np.nan)


@ieee
def packed(b: np.ndarray) -> ExactPacked:
    """Make a float32 array of shape (k, n) ready to be a right operand."""
    k, n = b.shape
    left, right = bits_of(k)
    whole, power = _cut(b, right, 0)
    return ExactPacked(k, n, whole, power, left)


def _finish(exact: np.ndarray, power: np.ndarray, start: np.ndarray | None, relu: bool) -> np.ndarray:
    exact *= power
    if start is not None:
        exact += start
    out = exact.astype(np.float32)
    return np.maximum(np.float32(0), out, out=out) if relu else out


@ieee
def multiply(a: np.ndarray, b: ExactPacked, start: np.ndarray | None = None, relu: bool = False) -> np.ndarray:
    """Return a @ b + start of shape (m, n), for float32 rows of shape (m, k)."""
    whole, power = _cut(a, b.bits, 1)
    return _finish(whole @ b.whole, power * b.power, start, relu)


def _gathers(whole: np.ndarray, where: np.ndarray, terms: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Some records at a time, (records, places, k)."""
    index = where[:, None] + terms
    each = max(1, AT_ONCE // max(index.size, 1))
    for first in range(0, len(whole), each):
        part = slice(first, first + each)
        yield part, np.take(whole[part], index, axis=1)


@ieee
def gathered(
    x: np.ndarray, where: np.ndarray, terms: np.ndarray, b: ExactPacked, start: np.ndarray | None = None, relu: bool = False
) -> np.ndarray:
    """Products of what is gathered from each record; see `kernels.gathered`."""
    whole, power = _cut(x, b.bits, 1)
    exact = np.empty((len(x), len(where), b.n))
    for part, rows in _gathers(whole, where, terms):
        np.matmul(rows, b.whole, out=exact[part])
    return _finish(exact, power[:, :, None] * b.power, start, relu)


@ieee
def outer_gathered(x: np.ndarray, where: np.ndarray, terms: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Sums over places of outer products, for each record; see `kernels.outer_gathered`."""
    left, right = bits_of(len(where))
    (whole, power), (slopes, unit) = _cut(x, left, 1), _cut(g, right, 1)
    exact = np.empty((len(x), len(terms), g.shape[2]))
    for part, rows in _gathers(whole, where, terms):
        np.matmul(rows.transpose(0, 2, 1), slopes[part], out=exact[part])
    return _finish(exact, power[:, :, None] * unit, None, False)
