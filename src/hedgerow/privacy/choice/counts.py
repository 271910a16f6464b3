"""The truncated geometric mechanism: a count with noise, never outside the range that a count can have.

Noise beyond the range is put on its ends, which is post-processing and costs nothing. For a single count with pure
epsilon every loss function's optimal answer can be read off this release (Ghosh, Roughgarden, Sundararajan 2009).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import Bound, Bounds
from hedgerow.core.events import Event
from hedgerow.core.mechanism import Mechanism
from hedgerow.core.randomness import Entropy
from hedgerow.errors import BudgetInvalid

from ..mechanisms import Noise


@dataclass(frozen=True)
class TruncatedGeometric(Mechanism):
    """Whole-number noise on counts that are known to lie in [low, high].

    Parameters
    ----------
    noise_multiplier : float
        Scale over the bound's l1 radius: 1 / noise_multiplier of epsilon a release.
    low, high : int
        Public: the smallest and largest count there can be, such as the number of invited persons. Never from data.
    """

    noise_multiplier: float
    low: int
    high: int
    at: Literal["server"] = "server"

    def __post_init__(self) -> None:
        if not (isinstance(self.low, int) and isinstance(self.high, int) and self.low < self.high):
            raise BudgetInvalid(
                f"counts between {self.low!r} and {self.high!r}.", remedy="Give whole numbers, the smaller first."
            )
        _ = self._noise

    @property
    def _noise(self) -> Noise:
        return Noise("geometric", self.noise_multiplier)

    @property
    def record_step(self) -> float | None:
        """One: records add whole numbers."""
        return self._noise.record_step

    def event(self, bounds: Bounds) -> Event:
        """Return the cost of one release."""
        return self._noise.event(bounds)

    def fit(self, bounds: Bounds, layout: Layout) -> None:
        """Refuse noise that cannot be drawn."""
        self._noise.fit(bounds, layout)

    def grid(self, bounds: Bounds, layout: Layout) -> list[tuple[slice, Bound, float]] | None:
        """The parts of a contribution with the bound of each and the step of its grid."""
        return self._noise.grid(bounds, layout)

    def at_party(self, rows: Array, bounds: Bounds, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Round rows to whole numbers."""
        return self._noise.at_party(rows, bounds, layout, entropies)

    def within(self, rows: Array, bounds: Bounds, layout: Layout, parties: int = 1) -> Array:
        """Which rows are within party-level bounds."""
        return self._noise.within(rows, bounds, layout, parties)

    def at_server(self, total: Array, bounds: Bounds, layout: Layout, entropy: Entropy) -> Array:
        """Add noise, and put what lies beyond the range on its ends."""
        released: Array = np.clip(self._noise.at_server(total, bounds, layout, entropy), self.low, self.high)
        return released

    def __str__(self) -> str:
        return f"TruncatedGeometric({self.noise_multiplier:g}) in [{self.low}, {self.high}] at the server"
