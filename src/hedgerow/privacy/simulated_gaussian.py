"""Gaussian noise in floating point, for simulations that have to be quick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import Bound, Bounds
from hedgerow.core.cohort import Cohort
from hedgerow.core.events import Event
from hedgerow.core.mechanism import Mechanism
from hedgerow.core.randomness import Entropy, Streams
from hedgerow.errors import BudgetInvalid

from .grid import Block, to_steps
from .mechanisms import Noise, checked, in_units


@dataclass(frozen=True)
class SimulatedGaussian(Mechanism):
    """Gaussian noise of floating-point numbers, for simulation only: quick, and its low bits give away what it was added to.

    The server adds numbers that are on no grid; a party adds them rounded to the grid. It is refused unless randomness
    comes from a seed, and the ledger has its name.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation over the l2 radius of the bound.
    at : {"server", "party"}
        Who adds the noise.
    """

    noise_multiplier: float
    at: Literal["server", "party"] = "server"

    def __post_init__(self) -> None:
        if self.at not in ("server", "party"):
            raise BudgetInvalid(f"simulated noise at {self.at!r}.", remedy="It is added at 'server' or at 'party'.")
        checked(self.noise_multiplier)

    @property
    def _exact(self) -> Noise:
        return Noise("gaussian", self.noise_multiplier, self.at)

    def taken(self, use: int, streams: Streams, cohort: Cohort) -> SimulatedGaussian:
        """Return this mechanism for a question; refuse, before anybody is asked, randomness without a seed."""
        if streams.seed is None:
            raise BudgetInvalid(
                f"{self} was asked for noise of the operating system's entropy, as a deployment draws it.",
                remedy="Use Gaussian: its noise is on a grid, and gives nothing away.",
            )
        return self

    def event(self, bounds: Bounds) -> Event:
        """Return the cost that the noise would have if its numbers were real."""
        return self._exact.event(bounds)

    def fit(self, bounds: Bounds, layout: Layout) -> None:
        """Refuse noise that the mechanism on the grid refuses."""
        self._exact.fit(bounds, layout)

    def noise_deviation(self, bounds: Bounds, layout: Layout, parties: float, use: int = 0) -> dict[str, float]:
        """Return the standard deviation of the noise in each number of each key."""
        return self._exact.noise_deviation(bounds, layout, parties)

    def grid(self, bounds: Bounds, layout: Layout) -> list[tuple[slice, Bound, float]]:
        """The parts of a contribution with the bound of each and the step of its grid."""
        return self._exact.grid(bounds, layout)

    def at_party(self, rows: Array, bounds: Bounds, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Round rows to the grid; add each party's noise, rounded, where `at` is "party"."""
        planned = self._exact._plan(bounds, layout)
        steps = to_steps(rows, planned)
        if self.at == "party":
            steps = steps.astype(np.int64)
            for i in range(len(steps)):
                steps[i] += np.rint(self._draw(planned, entropies(i))).astype(np.int64)
        return steps

    def at_server(self, total: Array, bounds: Bounds, layout: Layout, entropy: Entropy) -> Array:
        """Add the server's noise, if it is the server's, and return the units of the contribution."""
        planned = self._exact._plan(bounds, layout)
        return in_units(total + self._draw(planned, entropy) if self.at == "server" else total, planned)

    def within(self, rows: Array, bounds: Bounds, layout: Layout, parties: int = 1) -> Array:
        """Which rows are within party-level bounds."""
        return self._exact.within(rows, bounds, layout, parties)

    def _draw(self, planned: list[Block], entropy: Entropy) -> Array:
        rng = np.random.Generator(np.random.Philox(key=int.from_bytes(entropy(16), "little")))
        return np.concatenate([rng.normal(scale=block.scale, size=block.part.stop - block.part.start) for block in planned])

    def __str__(self) -> str:
        return f"SimulatedGaussian({self.noise_multiplier:g}), in floating point and not for deployment, at the {self.at}"
