"""How a candidate is drawn from whole-number scores, without a floating-point number between scores and choice.

    exponential         P(c) proportional to exp(rate u_c)
    noisy max           argmax of u_c + discrete Laplace noise of scale 1 / rate; of equals the first
    permute and flip    a coin of exp(rate (u_c - max u)) for every candidate, one of the heads at random

In floating point a weight far below the largest vanishes, sums depend on their order, and Gumbel noise has the holes of
every floating-point noise (Mironov 2012; Ilvento 2020 for the exponential mechanism). Here scores are whole numbers of
grid steps and `rate` is a fraction, so a weight relative to the largest, exp(-rate (max u - u_c)), is known exactly: it
is computed to 192 bits and drawn by a uniform number of 128, within a total variation of 2^-100 of the stated law for up
to 2^20 candidates. Weights relative to the largest neither overflow nor vanish together, as logarithms would achieve.
Adding Gumbel noise and taking the largest has the same law as `exponential`, which is drawn directly.

Permute and flip, in words: go through the candidates in random order, stop at the first whose coin shows heads. The best
one's always does. Coins are independent of the order, so the first of the heads is a uniform choice among them.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Entropy

from ..noise import discrete_laplace
from ..tables import BITS, by_blocks, exponential, tabulate, uniform

_FAR = 140  # exp(-140) is below 2^-200


def weights(scores: Array, rate: Fraction) -> list[int]:
    """Return exp(rate (u - max u)) of each score, in fixed point with 192 bits."""
    gaps, which = np.unique(scores.max() - scores, return_inverse=True)
    found = [exponential(-rate * gap) if rate * gap < _FAR else 0 for gap in gaps.tolist()]
    return [found[i] for i in which.ravel().tolist()]


def by_weight(scores: Array, rate: Fraction, size: int, entropy: Entropy) -> Array:
    """Draw `size` candidates of the exponential mechanism; scores are whole numbers of shape (candidates,)."""
    table = tabulate(weights(scores, rate))
    return by_blocks(size, lambda n: table.invert(uniform(n, entropy)))


def by_noise(scores: Array, rate: Fraction, size: int, entropy: Entropy) -> Array:
    """Draw `size` candidates of report-noisy-max."""
    noise = discrete_laplace(float(1 / rate), size * len(scores), entropy)
    chosen: Array = (scores + noise.reshape(size, len(scores))).argmax(1)
    return chosen


def by_coins(scores: Array, rate: Fraction, size: int, entropy: Entropy) -> Array:
    """Draw `size` candidates of permute and flip."""
    m = len(scores)
    ends = [weight >> BITS - 128 for weight in weights(scores, rate)]
    numbers = uniform(size * m, entropy).reshape(size, m, 2)
    high, low = (np.array([min(end, 2**128 - 1) >> shift & 2**64 - 1 for end in ends], np.uint64) for shift in (64, 0))
    heads = (numbers[..., 1] < high) | ((numbers[..., 1] == high) & (numbers[..., 0] < low)) | (scores == scores.max())
    among = uniform(size, entropy)
    picked = [((int(u[1]) << 64 | int(u[0])) * int(n)) >> 128 for u, n in zip(among, heads.sum(1), strict=True)]
    chosen: Array = (heads.cumsum(1) > np.array(picked, np.int64)[:, None]).argmax(1)
    return chosen


# ---- one choice for each row of scores (r, m) -----------------------------------------------------------------------
# Weights are computed in double precision first. Where a uniform number lies so close to what decides that their rounding
# might matter, exact weights decide; so what is drawn is what exact weights would have drawn from the same numbers.
_NEAR = 2.0**-30


def rows_by_weight(scores: Array, rate: Fraction, entropy: Entropy, possible: Array | None = None) -> Array:
    """Draw a candidate of the exponential mechanism for each row."""
    numbers = uniform(len(scores), entropy)
    u = _as_float(numbers)[:, None]
    gaps, likely = _gaps(scores, rate, possible)
    ends = likely.cumsum(1)
    ends /= ends[:, -1:]
    chosen: Array = (ends <= u).sum(1)
    for i in np.flatnonzero((np.abs(ends - u) < _NEAR).any(1)):
        whole = [0 if gap < 0 else _exact(gap, rate) for gap in gaps[i].tolist()]
        chosen[i] = tabulate(whole).invert(numbers[i : i + 1])[0]
    return chosen


def rows_by_noise(scores: Array, rate: Fraction, entropy: Entropy, possible: Array | None = None) -> Array:
    """Draw a candidate of report-noisy-max for each row."""
    noisy = scores + discrete_laplace(float(1 / rate), scores.size, entropy).reshape(scores.shape)
    chosen: Array = (noisy if possible is None else np.where(possible, noisy, np.iinfo(np.int64).min)).argmax(1)
    return chosen


def rows_by_coins(scores: Array, rate: Fraction, entropy: Entropy, possible: Array | None = None) -> Array:
    """Draw a candidate of permute and flip for each row."""
    numbers = uniform(scores.size, entropy)
    among = uniform(len(scores), entropy)
    u = _as_float(numbers).reshape(scores.shape)
    gaps, likely = _gaps(scores, rate, possible)
    heads = (u < likely) | (gaps == 0)
    for i, j in np.argwhere((np.abs(u - likely) < _NEAR) & (gaps > 0)):
        low, high = (int(word) for word in numbers[i * scores.shape[1] + j])
        heads[i, j] = (high << 64 | low) < _exact(int(gaps[i, j]), rate) >> BITS - 128
    picked = [((int(high) << 64 | int(low)) * int(n)) >> 128 for (low, high), n in zip(among, heads.sum(1), strict=True)]
    chosen: Array = (heads.cumsum(1) > np.array(picked, np.int64)[:, None]).argmax(1)
    return chosen


def _gaps(scores: Array, rate: Fraction, possible: Array | None) -> tuple[Array, Array]:
    """How far each score is below its row's best, minus one where it is no candidate, and its weight in double precision."""
    if possible is None:
        gaps: Array = scores.max(1, keepdims=True) - scores
    else:
        best = np.where(possible, scores, np.iinfo(np.int64).min).max(1, keepdims=True)
        gaps = np.where(possible, best - scores, -1)
    return gaps, np.where(gaps < 0, 0.0, np.exp(-float(rate) * np.maximum(gaps, 0)))


def _exact(gap: int, rate: Fraction) -> int:
    return exponential(-rate * gap) if rate * gap < _FAR else 0


def _as_float(numbers: Array) -> Array:
    """Uniform numbers of 128 bits in [0, 1], rounded."""
    high: Array = numbers[:, 1] * 2.0**-64
    return high
