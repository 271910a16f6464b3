"""Yes or no, and numbers: randomised response and mean estimation with noise at the party.

    yes or no   every number in [0, r] is rounded to 0 or r at random, without bias, and said wrongly with chance
                1 / (e^eps + 1)
    a mean      numbers in [-r, r] are rounded to signs v at random, without bias; a vector of signs t is drawn that agrees
                with v in most coordinates with chance e^eps / (e^eps + 1), and disagrees in most else; the total of t is
                multiplied by B, which makes it unbiased

In one dimension the second is the first. In d dimensions its error grows like sqrt(d) where splitting epsilon among the
coordinates grows like d.

Releases : an unbiased estimate of the total; once for each question. The party's signs reach the server.
Unit     : party, neighbours being any two contributions inside the ball; or record, where a party is one record.
Source   : Warner 1965; Duchi, Jordan, Wainwright 2018 (JASA), section 4.2.3. Differs: where d is even, a vector that agrees in
           half of the coordinates is drawn for either answer, which leaves epsilon as it is and makes B smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import Bound, Bounds, describe
from hedgerow.core.events import Event
from hedgerow.core.mechanism import Mechanism, Position
from hedgerow.core.randomness import Entropy
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy.grid import finite

from .chance import WORD, Words, checked, draw, lie, unit_interval
from .scheme import in_blocks

MOST = 2**20


@dataclass(frozen=True)
class Signs(Mechanism):
    """Numbers in a ball of the largest absolute value, said as signs.

    Parameters
    ----------
    law : {"yes or no", "mean"}
        Numbers in [0, r], each of d coordinates at epsilon / d; numbers in [-r, r], all of them together at epsilon.
    epsilon : float
        Of one release.
    records : int, optional
        1 where every party is one record and bounds are per record.
    """

    law: Literal["yes or no", "mean"]
    epsilon: float
    records: int | None = None

    def __post_init__(self) -> None:
        checked(self.epsilon)
        if self.records not in (None, 1):
            raise BudgetInvalid(
                f"{self.records!r} records at each party: a total of several records cannot be taken apart again.",
                remedy="Leave it out and clip per party, or give records=1 where a party is one record.",
            )

    @property
    def at(self) -> Position:
        return "party"

    def event(self, bounds: Bounds) -> Event:
        """Return the cost of one release: epsilon, whatever the bounds."""
        return Event("pure", epsilon=self.epsilon)

    def fit(self, bounds: Bounds, layout: Layout) -> None:
        """Refuse bounds that signs do not keep.

        Raises
        ------
        BudgetInvalid (HR-214)
        """
        self._ball(bounds)
        self.wrong(layout.size)

    def at_party(self, rows: Array, bounds: Bounds, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Turn rows of shape (parties, size) into signs; a last column counts the party."""
        ball, size = self._ball(bounds), layout.size
        shares = np.clip(ball.clip(finite(rows.astype(np.float64, copy=False))) / ball.radius, -1.0, 1.0)
        left = np.ones((len(rows), size + 1), np.int8)

        def some(which: range) -> None:
            words = draw(entropies, which, 2 * size + 1)
            left[which.start : which.stop, :size] = self.signs(shares[which.start : which.stop], words)

        in_blocks(len(rows), 2 * size + 1, MOST, some)
        return left

    def at_server(self, total: Array, bounds: Bounds, layout: Layout, entropy: Entropy) -> Array:
        """Turn the total of all signs into an estimate of the total, of shape (size,)."""
        ball, size = self._ball(bounds), layout.size
        if not total.any():  # nobody was there to report
            return np.zeros(size)
        found: Array = total[:size] * self.factor(size)
        return ball.radius * ((found + total[-1]) / 2 if self.law == "yes or no" else found)

    def signs(self, shares: Array, words: Words) -> Array:
        """Signs of shape (parties, size) for shares in [-1, 1] of the radius, in [0, 1] for a yes or no.

        Words have shape (parties, 2 * size + 1).
        """
        size = shares.shape[1]
        rounding, turning = words[:, :size], words[:, size:]
        if self.law == "yes or no":
            yes = unit_interval(rounding) < np.clip(shares, 0.0, 1.0)
            return np.where(yes ^ (turning[:, :size] < np.uint64(self.wrong(size))), 1, -1)
        wanted = np.where(unit_interval(rounding) < (1 + shares) / 2, 1, -1)
        drawn = np.where(turning[:, :size] >> np.uint64(63), 1, -1)
        agreement = (drawn * wanted).sum(1, keepdims=True)
        honest = np.where(turning[:, size:] < np.uint64(self.wrong(size)), -1, 1)
        return np.where(agreement * honest < 0, -drawn, drawn)

    def wrong(self, size: int) -> int:
        """Words of 2^64 by which an answer is the wrong one."""
        return lie(checked(self.epsilon / size) if self.law == "yes or no" else self.epsilon, 2)

    def factor(self, size: int) -> float:
        """What a total of signs is multiplied by: B of Duchi et al., over the radius."""
        honesty = 1 - 2 * (self.wrong(size) / WORD)
        return 1 / honesty if self.law == "yes or no" else 1 / (honesty * agreement(size))

    def deviation(self, n: float, size: int, radius: float = 1.0) -> float:
        """Largest standard deviation of one number of the release, where n parties report."""
        return radius * math.sqrt(n) * self.factor(size) * (0.5 if self.law == "yes or no" else 1.0)

    def ratio(self, size: int) -> Fraction:
        """The largest factor by which two contributions can differ in the chance of one report."""
        wrong = self.wrong(size)
        return Fraction(WORD - wrong, wrong) ** (size if self.law == "yes or no" else 1)

    def _ball(self, bounds: Bounds) -> Bound:
        if not isinstance(bounds, Bound) or bounds.norm != math.inf:
            raise BudgetInvalid(
                f"{self} cannot say what is bounded by {describe(bounds)}: a sign says how far a number is from zero.",
                remedy="Bound the largest absolute value of all numbers together: clip=linf(1.0).",
            )
        if bounds.unit == "record" and self.records != 1:
            raise BudgetInvalid(
                f"{self} was asked about sums bounded per record: a sum of several cannot be taken apart again.",
                remedy="Where a party is one record, say records=1; else clip per party: clip=linf(1.0).",
            )
        return bounds

    def __str__(self) -> str:
        name = "randomised response" if self.law == "yes or no" else "signs of a mean"
        return f"{name}, epsilon {self.epsilon:g} at the party"


def agreement(size: int) -> float:
    """Expected share of a coordinate in the agreement of random signs: E|s_1 + ... + s_d| / d."""
    if size % 2:
        return float(Fraction(math.comb(size - 1, (size - 1) // 2), 2 ** (size - 1)))
    return float(Fraction(math.comb(size, size // 2), 2**size))


def RandomisedResponse(epsilon: float, records: int | None = None) -> Signs:
    """Warner's randomised response, for numbers in [0, r] such as a yes or no."""
    return Signs("yes or no", epsilon, records)


def Duchi(epsilon: float, records: int | None = None) -> Signs:
    """Mean estimation of Duchi, Jordan and Wainwright, for numbers in [-r, r]."""
    return Signs("mean", epsilon, records)
