"""What an owner offers: records, the epsilons that it would spend, and what an epsilon costs it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hedgerow.errors import SettingsInvalid


@dataclass(frozen=True)
class OwnerOffer:
    """Terms on which an owner would take part.

    Parameters
    ----------
    records : int
        A public number: certified, or released by a private count. Where records have weights, their sum, as sums are weighted.
    epsilon : (lowest, highest)
        What it could be asked to spend over everything; twice the same number for exactly this one, and no other.
    cost : float, optional
        c of c (e^epsilon - 1), in the learner's currency.
    """

    records: int
    epsilon: tuple[float, float]
    cost: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, tuple | list) or len(self.epsilon) != 2:
            raise SettingsInvalid(f"an epsilon of {self.epsilon!r}.", remedy="Give the lowest and the highest: (0.2, 3.0).")
        low, high = self.epsilon
        if isinstance(self.records, bool) or not isinstance(self.records, int) or self.records < 1:
            raise SettingsInvalid(f"an owner of {self.records!r} records.", remedy="Give a whole number of at least 1.")
        if not 0 < low <= high < math.inf:
            raise SettingsInvalid(f"epsilons from {low!r} to {high!r}.", remedy="Give two finite numbers above zero.")
        if self.cost is not None and not 0 <= self.cost < math.inf:
            raise SettingsInvalid(f"a cost of {self.cost!r}.", remedy="Give a finite number of at least 0.")
