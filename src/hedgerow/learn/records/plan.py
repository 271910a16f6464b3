"""What a party does by itself in a round of private training, and what that costs each of its records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hedgerow.core.arrays import Layout
from hedgerow.core.events import Charge, Event, Sampling, Unit
from hedgerow.core.mechanism import Plan
from hedgerow.core.randomness import Entropy
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy import Budget, Gaussian

from .clipping import Clipping


@dataclass(frozen=True)
class RecordPlan(Plan):
    """Steps of DP-SGD on a party's own records.

    Parameters
    ----------
    clipping : Clipping
        Of each record's gradient.
    noise_multiplier : float
        Standard deviation of the noise on a sum of clipped gradients, over the clip's radius.
    sampling_rate : float
        Each record joins a step by itself with this probability.
    steps : int
        In a round.
    """

    clipping: Clipping
    noise_multiplier: float
    sampling_rate: float
    steps: int
    unit: Unit = "record"

    def __post_init__(self) -> None:
        wrong = [] if 0 < self.sampling_rate <= 1 else [f"sampling_rate is {self.sampling_rate}"]
        wrong += [] if isinstance(self.steps, int) and self.steps >= 1 else [f"steps is {self.steps}"]
        wrong += [] if math.isfinite(self.noise_multiplier) and self.noise_multiplier > 0 else ["there is no noise"]
        if wrong:
            remedy = "A rate lies in (0, 1], steps are at least one, and noise_multiplier is above zero, such as 1.1."
            raise SettingsInvalid("; ".join(wrong) + ".", remedy=remedy)

    def event(self) -> Event:
        """The cost of one round to each record of a party that takes part in it."""
        return Event("gaussian", self.noise_multiplier, rate=self.sampling_rate, count=self.steps)

    def joining(self, n: int, entropy: Entropy) -> np.ndarray:
        """Draw the records of a step, shape (n,): each by itself, from secret bytes."""
        words = np.frombuffer(entropy(8 * n), np.uint64)
        drawn: np.ndarray = (words >> np.uint64(11)) * 2.0**-53 < self.sampling_rate
        return drawn

    def noisy(self, total: np.ndarray, entropy: Entropy) -> np.ndarray:
        """Round a sum of clipped gradients, shape (d,), to the integer grid, and add the party's noise."""
        mechanism, layout = Gaussian(self.noise_multiplier, at="party"), Layout.of(total)
        steps = mechanism.at_party(total[None], self.clipping.bound, layout, lambda k: entropy)
        return mechanism.at_server(steps[0], self.clipping.bound, layout, entropy)

    def spent(self, rounds: int, budget: Budget) -> float:
        """Epsilon of so many rounds, at the budget's delta."""
        return budget.spent(self._charges(rounds))

    def most_rounds(self, budget: Budget, most: int) -> int:
        """How many rounds the budget allows, at most `most`."""
        return _most_rounds(self, budget, most)

    def _charges(self, rounds: int) -> Sequence[Charge]:
        return [(Sampling(), (self.event(),))] * rounds

    def __str__(self) -> str:
        return f"{self.steps} noisy steps, Gaussian({self.noise_multiplier:g}) at rate {self.sampling_rate:g}"


@lru_cache(maxsize=1024)
def _most_rounds(plan: RecordPlan, budget: Budget, most: int) -> int:
    low, high = 0, 1
    while high <= most and budget.admits(plan._charges(high)):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:  # `low` rounds are allowed, `high` are not, or not asked for
        middle = (low + high) // 2
        low, high = (middle, high) if budget.admits(plan._charges(middle)) else (low, middle)
    return low
