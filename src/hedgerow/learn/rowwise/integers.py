"""Clipped gradients of records as whole numbers, and their sums without rounding.

A record's gradient in a linear layer is an outer product u (x) a. With S the clip and step a power of two (`whole_step(S)`),
a limit L = floor(S / step) in [2^24, 2^25) holds for the record's length in steps:

    A, scale, N   = whole(a)            A = rint(a scale), |A| about 2^11 to 2^12, N = |A|^2 exactly
    squared      += lengths(u, ...)     |u|^2 N / scale^2, over all layers
    factor        = min(weight, S (1 - 2.5e-4) / length)
    U, used       = shorten(u, ...)     U = rint(u factor / (scale step)); used = |U|^2 N exactly
    if the sum of `used` over the layers is beyond L^2: once more with U cut off towards zero; else it counts as zero
    total        += U (x) A             exactly, in int64

Gradients that are formed one by one are cut to steps directly (`steps`, `add_steps`). `within` adds what the layers of a record
used, in whole numbers, and compares it with the limit: no rounded number decides whether the bound holds.

Sizes: |A| >= 2^10.5 unless A is zero, so |U| <= 2^25 / 2^10.5 < 2^15, products stay below 2^25 (1 + 2^-10), and sums of fewer
than 2^38 records fit int64.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from hedgerow.errors import SettingsInvalid

from .folds import fold, squares
from .subnormals import ieee

BITS = 12  # |A| is at most 2^12 before rounding
SHORTEST = 1 << 21  # a squared length below it is refused: the row is too long and even for 16 bits
SMALLEST, LARGEST = 2.0**-115, 2.0**127
MARGIN = 1 - 2.5e-4  # rounding U changes its length by 7e-5 of itself (one standard deviation) where one layer is all there is
TOO_LONG = 1 << 52
"""What stands for the squared length of a record that is far beyond every limit, which are below 2^50."""
MOST = 1 << 51  # of a squared length that is computed exactly
RECORDS = 1 << 20  # float64 products of so many int16 pairs are exact


@ieee
def whole(a: np.ndarray, one: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows as whole numbers of 16 bits.

    Parameters
    ----------
    a : float32 array of shape (m, n)
    one : bool
        Whether a one is appended, for the bias.

    Returns
    -------
    A : int16 array of shape (m, n + one)
        rint(a scale).
    scale : float64 array of shape (m,)
        Powers of two. NaN for a row that is not finite or longer than 2^127, which is zero in A; 1 for a row that is shorter
        than 2^-115, which counts as zero.
    length : int64 array of shape (m,)
        Squared length of A; -1 for a row that 16 bits would not describe (of 2^24 equal numbers, say), which is
        zero in A: such a record's gradient must be formed.
    """
    m, n = a.shape
    size = np.sqrt(squares(a) + float(one)) * (1 + 2.0**-20)
    there = (size >= SMALLEST) & (size <= LARGEST)
    scale = np.where(
        there, np.ldexp(1.0, BITS - np.frexp(np.where(there, size, 1.0))[1]), np.where(size < SMALLEST, 1.0, np.nan)
    )
    found = np.zeros((m, n + one), np.int16)
    with_zeros = np.where(there, scale, 0.0).astype(np.float32)[:, None]
    values = a if there.all() else np.where(there[:, None], a, np.float32(0))
    scaled = values * with_zeros
    found[:, :n] = np.rint(scaled, out=scaled)
    if one:
        found[:, n] = np.rint(with_zeros[:, 0])
    length = _squares(found)
    short = there & (length < SHORTEST)
    if short.any():
        found[short], length[short] = 0, -1
    return found, scale, length


def _squares(rows: np.ndarray) -> np.ndarray:
    """Exact squared lengths of integer rows below 2^28 whose sum stays below 2^63."""
    return np.einsum("ij,ij->i", rows, rows, dtype=np.int64, casting="safe")


@ieee
def lengths(g: np.ndarray, scale: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Squared lengths of the outer products of g and A / scale: float64 of shape (m,)."""
    return squares(g) * np.maximum(length, 0).astype(np.float64) / (scale * scale)


@ieee
def factors(squared: np.ndarray, weight: np.ndarray, radius: float) -> np.ndarray:
    """By what records are multiplied: min(weight, radius (1 - 2.5e-4) / length), zero where that is not finite; float64."""
    with_room = radius * MARGIN / np.sqrt(np.maximum(squared, 1e-200))
    found = np.minimum(weight.astype(np.float64), with_room)
    return np.where(np.isfinite(squared) & np.isfinite(found), found, 0.0)


@ieee
def shorten(
    g: np.ndarray, factor: np.ndarray, scale: np.ndarray, length: np.ndarray, step: float, cut: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Clipped gradients at a layer's output as whole numbers.

    Parameters
    ----------
    g : float32 array of shape (m, n)
    factor, scale, length : arrays of shape (m,)
        As `factors` and `whole` return them.
    step : float
        A power of two.
    cut : bool array of shape (m,), optional
        Records whose numbers are cut off towards zero; those of the others are rounded.

    Returns
    -------
    U : int16 array of shape (m, n)
        g factor / (scale step); zero for records of factor zero, and for those that 16 bits do not hold.
    used : int64 array of shape (m,)
        Squared length of U (x) A in steps, exact; TOO_LONG for those that 16 bits do not hold.
    """
    live = (factor != 0.0) & (length > 0)
    by = np.where(live, factor / scale / step, 0.0)
    values = g * by[:, None]
    values = np.rint(values) if cut is None else np.where(cut[:, None], np.trunc(values), np.rint(values))
    values[~live] = 0.0
    beyond = ~(np.abs(values) <= 32767.0).all(1)
    values[beyond] = 0.0
    found = values.astype(np.int16)
    own = _squares(found)
    used = own * np.where(live, length, 0)
    beyond |= own.astype(np.float64) * length > MOST
    found[beyond], used[beyond] = 0, TOO_LONG
    return found, used


@ieee
def steps(g: np.ndarray, factor: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Formed gradients as whole numbers of steps, cut off towards zero.

    Parameters
    ----------
    g : float32 array of shape (m, d)
    factor : float64 array of shape (m,)
    step : float
        A power of two.

    Returns
    -------
    V : int32 array of shape (m, d)
        trunc(g factor / step); zero for records of factor zero, and for those whose squared length is beyond 2^51.
    used : int64 array of shape (m,)
        Squared length of V, exact; TOO_LONG for those where it is beyond 2^51.
    """
    live = factor != 0.0
    values = np.trunc(g * np.where(live, factor / step, 0.0)[:, None])
    values[~live] = 0.0
    beyond = ~(fold(values * values) <= 2.0 * MOST)  # so that the exact sum below does not overflow
    values[beyond] = 0.0
    found = values.astype(np.int32)
    used = _squares(found)
    beyond |= used > MOST
    found[beyond], used[beyond] = 0, TOO_LONG
    return found, used


def within(used: Iterable[np.ndarray], radius: float, step: float) -> np.ndarray:
    """Whether each record's contribution is no longer than the radius: bool of shape (m,), decided in whole numbers.

    Parameters
    ----------
    used : iterable of int64 arrays of shape (m,)
        Squared lengths, in steps, of what the layers add.
    radius, step : float
        The clip, and a power of two of which it has less than 2^25.
    """
    limit = math.floor(radius / step)  # exact: dividing by a power of two only changes the exponent
    if not 1 <= limit < 1 << 25 or math.frexp(step)[0] != 0.5:
        raise SettingsInvalid(
            f"a clip of {radius!r} in steps of {step!r}: it takes a power of two, of which the clip has fewer than 2^25.",
            remedy="Take hedgerow.core.bound.whole_step(clip).",
        )
    total: np.ndarray | int = 0
    for one in used:
        total = np.minimum(total + one, TOO_LONG)
    return np.asarray(total <= limit * limit)


def add_outer(u: np.ndarray, a: np.ndarray, total: np.ndarray) -> None:
    """Add the outer products of all records to `total`, exactly.

    Parameters
    ----------
    u, a : int16 arrays of shapes (m, k) and (m, l)
    total : int64 array of shape (k, l)
        Changed in place. Float64 products of 2^20 records are whole numbers below 2^53, exact in any order.
    """
    for first in range(0, len(u), RECORDS):
        part = slice(first, first + RECORDS)
        total += (u[part].T.astype(np.float64) @ a[part].astype(np.float64)).astype(np.int64)


def add_steps(v: np.ndarray, total: np.ndarray) -> None:
    """Add int32 rows of shape (m, d) to `total`, int64 of shape (d,), in place and exactly."""
    total += v.sum(0, dtype=np.int64)
