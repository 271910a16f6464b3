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
