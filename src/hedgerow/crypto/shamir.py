"""Shamir's secret sharing over GF(p), p = 2^21 - 9, for many 32-byte secrets at once.

    a secret of 32 bytes  ->  13 limbs of 20 bits
    f(x) = limb + c_1 x + ... + c_{t-1} x^{t-1}  modulo p         c_i uniform in [0, p), the last included
    holder i (0-based) holds f(i + 1) of every limb               any t of them give f(0), fewer give nothing

Products of numbers below 2^21 are below 2^42 and up to 2048 of them add up below 2^53, so a matrix product in float64 is
exact and linear algebra does the work. No table is indexed by a secret and no branch depends on one; the division
behind the remainder is as regular as the processor's.

Shares carry no proof: whoever combines them checks the secret against a commitment.

Source   : Shamir 1979. The limbs and the exact products are our own.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Entropy
from hedgerow.crypto.streams import fresh, uniform_below
from hedgerow.errors import MessageRefused, SettingsInvalid

P = 2**21 - 9
LIMBS = 13
SECRET_BYTES = 32
SHARE_BYTES = 35
LARGEST_THRESHOLD = 2048

_LIMB_BITS = 20
_SHARE_BITS = 21
_AT_A_TIME = 1 << 15  # numbers of a batch that are worked on together, for the cache


def split(secrets: Array, n: int, t: int, entropy: Entropy = fresh) -> Array:
    """Return shares of every secret for n holders, of whom any t can open it.

    Parameters
    ----------
    secrets : uint8 array of shape (m, 32)
    n, t : int
        Holders and threshold, 2 <= t <= n, t <= 2048. With t = 1 every share would be the secret.

    Returns
    -------
    uint32 array of shape (n, m, 13)
        Holder i has x = i + 1.
    """
    secrets = np.asarray(secrets)
    if secrets.dtype != np.uint8 or secrets.ndim != 2 or secrets.shape[1] != SECRET_BYTES:
        raise SettingsInvalid(
            f"secrets of {secrets.dtype} with shape {secrets.shape}.", remedy="Give a uint8 array of shape (m, 32)."
        )
    if not 2 <= t <= min(n, LARGEST_THRESHOLD) or n >= P:
        raise SettingsInvalid(
            f"shares for n={n} holders with threshold t={t}.",
            remedy=f"Choose 2 <= t <= n, t <= {LARGEST_THRESHOLD} (beyond it products are not exact), n < {P}.",
        )
    return _shares(_limbs(secrets).reshape(-1), n, t, P, entropy).reshape(n, len(secrets), LIMBS)


def combine(xs: Array, shares: Array) -> Array:
    """Return the secrets that shares open. Leading axes are batches, each with holders of its own.

    Parameters
    ----------
    xs : whole numbers of shape (..., t)
        Where the shares were taken: holder i has x = i + 1. Zero and repetitions are refused.
    shares : whole numbers of shape (..., t, m, 13)

    Returns
    -------
    uint8 array of shape (..., m, 32)

    Raises
    ------
    MessageRefused (HR-242)
        Points are repeated, zero or outside the field, shares are outside it, or the result is not 32 bytes: then some
        share is wrong. A wrong share may also give wrong bytes; compare them with a commitment.
    """
    xs, shares = np.asarray(xs), np.asarray(shares)
    if xs.dtype.kind not in "iu" or shares.dtype.kind not in "iu":
        raise MessageRefused(f"shares of {shares.dtype} at points of {xs.dtype}.", remedy="Both are whole numbers.")
    if xs.ndim < 1 or shares.shape[:-2] != xs.shape or shares.ndim != xs.ndim + 2 or shares.shape[-1] != LIMBS:
        raise MessageRefused(
            f"points of shape {xs.shape} with shares of shape {shares.shape}.",
            remedy="Shapes are (..., t) and (..., t, m, 13).",
        )
    *batch, t, m, _ = shares.shape
    if not 1 <= t <= LARGEST_THRESHOLD:
        raise MessageRefused(f"{t} shares; 1 to {LARGEST_THRESHOLD} can be combined.", remedy="Send as many as the threshold.")
    if shares.size and (shares.min() < 0 or shares.max() >= P):
        raise MessageRefused("a share is outside the field.", remedy="Unpack shares with `unpack`, which checks them.")
    points, values = xs.reshape(-1, t).astype(np.int64), shares.reshape(-1, t, m * LIMBS)
    limbs = np.empty((len(points), m * LIMBS), np.int64)
    step = max(1, _AT_A_TIME // (t * max(1, m)))
    for first in range(0, len(points), step):
        some = slice(first, first + step)
        weights = at_zero(points[some], P).astype(np.float64)
        limbs[some] = _rest((weights[:, None, :] @ values[some].astype(np.float64))[:, 0].astype(np.int64), P)
    return _unlimbed(limbs.reshape(-1, LIMBS)).reshape(*batch, m, SECRET_BYTES)


def at_zero(xs: Array, p: int = P) -> Array:
    """Return the Lagrange weights at zero of each row of points, int64 of shape (batches, t): f(0) = sum_i weight_i f(x_i)."""
    if xs.size and (xs.min() < 1 or xs.max() >= p):
        raise MessageRefused("a share was taken at zero or outside the field.", remedy="Holder i (from 0) has x = i + 1.")
    ordered = np.sort(xs, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        raise MessageRefused(
            "two shares are of one holder.", remedy="Send one share from each of as many holders as the threshold."
        )
    below, above = xs.copy(), np.ones(len(xs), np.int64)
    for j in range(xs.shape[1]):
        gap = xs[:, j, None] - xs
        gap[:, j] = 1
        below = _rest(below * (gap + p), p)
        above = _rest(above * xs[:, j], p)
    return _rest(above[:, None] * _power(below, p - 2, p), p)


def _shares(limbs: Array, n: int, t: int, p: int, entropy: Entropy) -> Array:
    """Return the shares, uint32 of shape (n, limbs), of numbers in GF(p)."""
    coefficients = np.empty((t, len(limbs)))
    coefficients[0] = limbs
    coefficients[1:] = uniform_below(p, (t - 1, len(limbs)), entropy)
    return _rest((_powers(n, t, p) @ coefficients).astype(np.int64), p).astype(np.uint32)


@lru_cache(maxsize=8)
def _powers(n: int, t: int, p: int) -> Array:
    """Return (i + 1)^j modulo p, float64 of shape (n, t)."""
    xs = np.arange(1, n + 1, dtype=np.int64)
    columns = np.ones((t, n), np.int64)
    for j in range(1, t):
        columns[j] = _rest(columns[j - 1] * xs, p)
    powers: Array = np.ascontiguousarray(columns.T, dtype=np.float64)
    powers.flags.writeable = False
    return powers


def _rest(values: Array, p: int) -> Array:
    """Return values modulo p; a division by one number is vectorised where a remainder is not."""
    rest: Array = values - values // p * p
    return rest


def _power(base: Array, exponent: int, p: int) -> Array:
    """Return base**exponent modulo p, elementwise."""
    result = np.ones_like(base)
    for bit in bin(exponent)[2:]:
        result = _rest(result * result, p)
        if bit == "1":
            result = _rest(result * base, p)
    return result


def _limbs(secrets: Array) -> Array:
    """Return limbs of 20 bits, int64 of shape (m, 13): five bytes make two limbs."""
    padded = np.zeros((len(secrets), 35), np.int64)
    padded[:, :SECRET_BYTES] = secrets
    five = padded.reshape(-1, 7, 5)
    even = five[..., 0] | five[..., 1] << 8 | (five[..., 2] & 15) << 16
    odd = five[..., 2] >> 4 | five[..., 3] << 4 | five[..., 4] << 12
    return np.stack([even, odd], axis=-1).reshape(-1, 14)[:, :LIMBS]


def _unlimbed(limbs: Array) -> Array:
    """Return the 32 bytes of each row of limbs; refuse limbs that no 32 bytes have."""
    if (limbs >> _LIMB_BITS).any() or (limbs[:, -1] >> (8 * SECRET_BYTES - _LIMB_BITS * (LIMBS - 1))).any():
        raise MessageRefused("shares do not open a secret: one of them is wrong.", remedy="Nothing was revealed.")
    pairs = np.concatenate([limbs, np.zeros_like(limbs[:, :1])], axis=1).reshape(-1, 7, 2)
    even, odd = pairs[..., 0], pairs[..., 1]
    five = np.stack([even, even >> 8, even >> 16 | (odd & 15) << 4, odd >> 4, odd >> 12], axis=-1)
    return five.astype(np.uint8).reshape(-1, 35)[:, :SECRET_BYTES]


def pack(share: Array) -> bytes:
    """Return one holder's shares of m secrets, of shape (m, 13), as 35 m bytes."""
    return packed(np.asarray(share)[None])[0]


def packed(shares: Array) -> list[bytes]:
    """Return every holder's shares as bytes: shape (n, m, 13) gives n times 35 m bytes."""
    if shares.ndim != 3 or shares.shape[2] != LIMBS or (shares.size and shares.max() >= P):
        raise SettingsInvalid(f"shares of shape {shares.shape}.", remedy="Pack what `split` returned.")
    numbers = shares.astype(np.uint64)
    words = np.zeros((*shares.shape[:2], 5), "<u8")
    for limb in range(LIMBS):
        word, bit = divmod(limb * _SHARE_BITS, 64)
        words[..., word] |= numbers[..., limb] << np.uint64(bit)
        if bit + _SHARE_BITS > 64:
            words[..., word + 1] |= numbers[..., limb] >> np.uint64(64 - bit)
    raw = np.ascontiguousarray(words.view(np.uint8)[..., :SHARE_BYTES])
    return [row.tobytes() for row in raw]


def unpack(raw: bytes, m: int) -> Array:
    """Return the shares, uint32 of shape (m, 13), in 35 m bytes; refuse numbers outside the field and stray bits."""
    share: Array = unpacked([raw], m)[0]
    return share


def unpacked(raws: list[bytes], m: int) -> Array:
    """Return the shares in n packs of m secrets, uint32 of shape (n, m, 13)."""
    for raw in raws:
        if len(raw) != m * SHARE_BYTES:
            raise MessageRefused(f"{len(raw)} bytes for shares of {m} secrets.", remedy=f"A share has {SHARE_BYTES} bytes.")
    padded = np.zeros((len(raws), m, 40), np.uint8)
    padded[..., :SHARE_BYTES] = np.frombuffer(b"".join(raws), np.uint8).reshape(len(raws), m, SHARE_BYTES)
    words = padded.view("<u8")
    shares = np.empty((len(raws), m, LIMBS), np.uint32)
    for limb in range(LIMBS):
        word, bit = divmod(limb * _SHARE_BITS, 64)
        number = words[..., word] >> np.uint64(bit)
        if bit + _SHARE_BITS > 64:
            number |= words[..., word + 1] << np.uint64(64 - bit)
        shares[..., limb] = number & np.uint64((1 << _SHARE_BITS) - 1)
    if (shares >= P).any() or (words[..., 4] >> np.uint64(LIMBS * _SHARE_BITS - 256)).any():
        raise MessageRefused("a packed share is outside the field or has stray bits.", remedy="Nothing of it was used.")
    return shares
