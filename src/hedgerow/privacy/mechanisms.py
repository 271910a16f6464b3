"""Mechanisms over sums: noise on the integer grid, added by the server, by aggregators, in shares by all, or by each party.

    law                 noise on the grid        grid                       event
    gaussian            discrete Gaussian        4096 steps to the noise    gaussian
    laplace             discrete Laplace         4096 steps to the noise    laplace
    skellam             Skellam                  4096 steps to the noise    skellam
    geometric           discrete Laplace         whole numbers              pure
    discrete gaussian   discrete Gaussian        whole numbers              gaussian, of a multiplier a little lower

The last two are for counts: whole numbers come in and whole numbers go out. The other grids are finer where records need it
(see `grid`): the step of a bound that has one, on which nothing is rounded, or one on which rounding adds next to nothing.

What discrete noise costs. The discrete Gaussian has at most the Renyi divergences of the Gaussian for integer shifts
(Canonne, Kamath, Steinke 2020, Theorem 7 and Corollary 9), and the discrete Laplace of scale b steps is exactly
(1/b)-private per step of l1 distance (Ghosh, Roughgarden, Sundararajan 2009). The curve of (epsilon, delta) of a discrete
law is a sum in place of an integral, which can lie above it where the summand has its kink:

    discrete Laplace    that of a Laplace with 1/z + 2 ln cosh(1/(2b)) <= 1/z + 1/(4 b^2) in place of 1/z
    discrete Gaussian   by Euler's formula that of a Gaussian with z / (1 + 1/(24 sigma^2)) to first order

At 4096 steps that is an epsilon higher by 1.5e-8, below every digit that is printed; the geometric mechanism states its
pure epsilon, and the discrete Gaussian on whole numbers takes three times the correction.

Shares. Each party adds noise of which `least` parties' add up to the whole, and a total of fewer is refused. Shares of
Skellam and of Laplace noise (Polya differences) add up to the stated law exactly. Discrete Gaussians do not, but the
ratio of the two probability functions is within 1 +- tau in every coordinate, with tau = 10 sum_(k<n) exp(-2 pi^2 s^2 k
/ (k + 1)) for shares of s steps (Kairouz, Liu, Steinke 2021, Theorem 5). Shares below 3 steps are refused; from there on
tau < 1e-37 n, which adds less than 1e-20 to epsilon for 1e8 coordinates and a million parties. Neighbours differ in
whether a unit's data are counted; a party answers, with its share, in either case. `least` counts parties that keep
their noise to themselves: those that tell the server add nothing to anybody's protection.

Aggregators of additive shares. Each of the k adds the whole noise to its own total, and knows that of no other. Whoever sees
the released total and learns the noise of k - 1 of them still faces that of the last one, which is what a server would have
added: so the event is the same, with the multiplier z. Whoever learns none faces sqrt(k) z, which is not claimed. The price is
an error sqrt(k) times as large. Nobody sees an exact total, no party's row has noise in it, and of how few parties a total is
does not matter to the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import Bound, Bounds, each_bound, unit_of
from hedgerow.core.events import Event
from hedgerow.core.mechanism import Mechanism, NoiseRuns, Position, Sampler
from hedgerow.core.randomness import Entropy
from hedgerow.errors import BudgetInvalid, suggestion

from .grid import Block, plan, to_steps
from .noise import (
    LARGEST_POLYA_SCALE,
    LARGEST_SCALE,
    LARGEST_SKELLAM_SCALE,
    discrete_gaussian,
    discrete_laplace,
    grid_step,
    polya_difference,
    skellam,
)
from .within import within

Law = Literal["gaussian", "laplace", "skellam", "geometric", "discrete gaussian"]

WHOLE: tuple[Law, ...] = ("geometric", "discrete gaussian")
"""Laws on whole numbers."""

LEAST_STEPS = 4096.0
"""At least so many grid steps go to the scale of the noise, except for laws on whole numbers."""

LEAST_SHARE = 3.0
"""Smallest standard deviation, in grid steps, of a discrete Gaussian that others are added to, or that stands for a
Gaussian."""


@dataclass(frozen=True)
class Noise(Mechanism):
    """What all laws share: rounding at the party, noise where `at` says, one event.

    Parameters
    ----------
    law : {"gaussian", "laplace", "skellam", "geometric", "discrete gaussian"}
    noise_multiplier : float
        Gaussian, Skellam: standard deviation over the l2 radius of the bound. Laplace, geometric: scale over its l1 radius.
    at : {"server", "aggregators", "shares", "party"}
        Who adds the noise. Each of several aggregators adds all of it.
    least : int
        For `shares`: the whole noise is made of so many parties' shares, and a total of fewer is refused.
    aggregators : int
        For `aggregators`: how many add it. The channel fills it in.
    """

    law: Law
    noise_multiplier: float
    at: Position = "server"
    least: int = 0
    aggregators: int = 0

    def __post_init__(self) -> None:
        if self.law not in get_args(Law):
            raise BudgetInvalid(f"no law of noise is called {self.law!r}.", remedy=suggestion(str(self.law), get_args(Law)))
        checked(self.noise_multiplier)
        if self.at not in get_args(Position):
            places = "Noise is added at 'server', at 'aggregators', in 'shares', or at 'party'."
            raise BudgetInvalid(f"noise at {self.at!r} is unknown.", remedy=places)
        if (self.least < 1) == (self.at == "shares"):
            raise BudgetInvalid(
                f"noise at {self.at!r} made of the shares of {self.least} parties.",
                remedy="least=... is for at='shares': how many parties will certainly answer and keep their noise secret.",
            )

        if self.aggregators and self.at != "aggregators":
            raise BudgetInvalid(
                f"noise at {self.at!r} that {self.aggregators} aggregators add.",
                remedy="Leave aggregators out: the channel knows how many there are where at='aggregators'.",
            )

    def added_by(self, aggregators: int) -> Noise:
        """Return the noise where so many aggregators add it, if it is theirs."""
        return replace(self, aggregators=aggregators) if self.at == "aggregators" else self

    @property
    def record_step(self) -> float | None:
        """One for laws on whole numbers, which records then add."""
        return 1.0 if self.law in WHOLE else None

    # ---- what it costs ----------------------------------------------------------------------------------------------
    def event(self, bounds: Bounds) -> Event:
        """Return the cost of one release.

        At the server, at aggregators and in shares, neighbours differ by the presence of one unit. At the party, neighbours
        are any two contributions that the party might make, whose distance is twice a party-level radius.
        """
        multiplier = self.noise_multiplier / (2 if self.at == "party" and unit_of(bounds) == "party" else 1)
        if self.law == "geometric":
            return Event("pure", epsilon=1 / multiplier)
        if self.law == "skellam":
            return Event("skellam", multiplier, steps=LEAST_STEPS)
        if self.law == "discrete gaussian":
            return Event("gaussian", multiplier / (1 + 1 / (8 * self._sigma(bounds) ** 2)))
        return Event(self.law, multiplier)

    def _sigma(self, bounds: Bounds) -> float:
        """The least standard deviation of a discrete Gaussian on whole numbers; refused where it is no Gaussian."""
        radius = min(bound.radius for bound in each_bound(bounds))
        sigma = self.noise_multiplier * radius
        if sigma < LEAST_SHARE:
            raise BudgetInvalid(
                f"{self}, at a radius of {radius:g}, has a standard deviation of {sigma:g} on whole numbers, below "
                f"{LEAST_SHARE:g}, where it costs more than a Gaussian.",
                remedy="Use Geometric, or Gaussian, whose grid is finer than whole numbers.",
            )
        return sigma

    def fit(self, bounds: Bounds, layout: Layout) -> None:
        """Refuse noise of so many coordinates that it cannot be drawn, or of shares too small to add up.

        Raises
        ------
        BudgetInvalid (HR-214)
            The rounding of a record-level sum needs noise of more steps than can be drawn, or a share of Gaussian noise is
            below 3 steps.
        """
        scales = [block.scale for block in self._plan(bounds, layout)]
        if max(scales) > self._largest:
            raise BudgetInvalid(
                f"{self} on {layout.size} coordinates needs noise of {max(scales):.3g} grid steps, over {self._largest:g}.",
                remedy="Ask for fewer numbers at once, lower the multiplier, or clip per party.",
            )
        if self.law in ("gaussian", "discrete gaussian") and self.at == "shares":
            share = min(scales) / math.sqrt(self.least)
            if share < LEAST_SHARE:
                raise BudgetInvalid(
                    f"shares of {self} have a standard deviation of {share:.3g} grid steps, below {LEAST_SHARE:g}; they would "
                    "not add up to a discrete Gaussian.",
                    remedy="Use Skellam, whose shares add up exactly, or rely on fewer parties.",
                )

    def enough(self, answered: int) -> None:
        """Refuse a total of so few shares that its noise is not whole.

        Raises
        ------
        BudgetInvalid (HR-214)
            Fewer than `least` parties answered.
        """
        if answered < self.least:
            raise BudgetInvalid(
                f"{answered} parties answered, and the noise of {self} is whole only with {self.least}: nothing is released.",
                remedy="Ask more parties, or rely on fewer: a smaller least=... adds more noise to each share.",
                asked=True,
            )

    def noise_deviation(self, bounds: Bounds, layout: Layout, parties: float, use: int = 0) -> dict[str, float]:
        """Return the standard deviation of the noise in each number of each key, summed over all who add it."""
        found: dict[str, float] = {}
        aggregators = float(max(self.aggregators, 1))
        times = {"server": 1.0, "aggregators": aggregators, "shares": parties / max(self.least, 1), "party": parties}[self.at]
        for block in self._plan(bounds, layout):
            level = block.step * math.sqrt(times) * block.scale
            if self.law in ("laplace", "geometric"):
                level *= math.sqrt(0.5) / (block.scale * math.sinh(0.5 / block.scale))  # exact also for a small scale
            found |= {key: level for key, part in layout.slices.items() if block.part.start <= part.start < block.part.stop}
        return found

    def grid(self, bounds: Bounds, layout: Layout) -> list[tuple[slice, Bound, float]]:
        """The parts of a contribution with the bound of each and the step of its grid."""
        return [(block.part, block.bound, block.step) for block in self._plan(bounds, layout)]

    def reach(self, bounds: Bounds, layout: Layout, records: float = 1.0) -> float:
        """Return how many grid steps a party's contribution may reach, noise included but for a chance of about 1e-15.

        Parameters
        ----------
        records : float
            Largest sum of record weights at one party, of each of which the bound is where it is per record.
        """
        tail = self._tail if self.at in ("shares", "party") else 0.0
        found = 0.0
        for block in self._plan(bounds, layout):
            times = records if block.bound.unit == "record" else 1.0
            found = max(found, times * block.bound.radius / block.step + tail * block.scale)
        return found

    @property
    def _tail(self) -> float:
        """Scales of the noise beyond which it lies with a chance of about 1e-15."""
        return 36.0 if self.law in ("laplace", "geometric") else 8.0

    # ---- noise at aggregators ---------------------------------------------------------------------------------------
    def each_adds(self, bounds: Bounds, layout: Layout) -> NoiseRuns:
        """Return what each aggregator draws: what `at_server` would add to the same total."""
        runs: list[tuple[int, float]] = []
        for block in self._plan(bounds, layout):
            size, before = block.part.stop - block.part.start, runs[-1] if runs else (0, 0.0)
            if before[1] == block.scale:
                runs[-1] = before[0] + size, block.scale
            elif size:
                runs.append((size, block.scale))
        return NoiseRuns(self.law, tuple(runs))

    def added_reach(self, bounds: Bounds, layout: Layout) -> float:
        """Return how many grid steps the noise of all aggregators may reach together but for a chance of about 1e-15."""
        scale = max((block.scale for block in self._plan(bounds, layout)), default=0.0)
        return max(self.aggregators, 1) * self._tail * scale if self.at == "aggregators" else 0.0

    @property
    def sampler(self) -> Sampler:
        """By which aggregators in this process draw."""
        return drawn

    # ---- what it does -----------------------------------------------------------------------------------------------
    def at_party(self, rows: Array, bounds: Bounds, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Round rows of shape (parties, size) to the grid; add each party's noise or share of it where parties add it."""
        self.fit(bounds, layout)  # whose shape need not have been known before
        planned = self._plan(bounds, layout)
        steps = to_steps(rows, planned)
        if self.at in ("shares", "party"):
            steps = steps.astype(np.int64)
            for i in range(len(steps)):
                steps[i] = self._add(steps[i], planned, entropies(i))
        return steps

    def at_server(self, total: Array, bounds: Bounds, layout: Layout, entropy: Entropy) -> Array:
        """Add the server's noise, if it is the server's, to an integer total of shape (size,), and return its units."""
        planned = self._plan(bounds, layout)
        return in_units(self._add(total, planned, entropy) if self.at == "server" else total, planned)

    def within(self, rows: Array, bounds: Bounds, layout: Layout, parties: int = 1) -> Array:
        """Which rows are within party-level bounds, where the party has added no noise; see `within`."""
        seen = self._plan(bounds, layout) if self.at == "server" else []
        return within(rows, seen, parties)

    def _add(self, steps: Array, planned: list[Block], entropy: Entropy) -> Array:
        noisy = steps.copy()
        for block in planned:
            noisy[block.part] += self._draw(block.scale, block.part.stop - block.part.start, entropy)
        return noisy

    def _draw(self, scale: float, size: int, entropy: Entropy) -> Array:
        """Draw what one adder adds, in steps."""
        if self.at != "shares":
            return drawn(self.law, scale, size, entropy)
        if self.law in ("laplace", "geometric"):
            return polya_difference(scale, self.least, size, entropy)
        return drawn(self.law, scale / math.sqrt(self.least), size, entropy)

    def _plan(self, bounds: Bounds, layout: Layout) -> list[Block]:
        norm = 1 if self.law in ("laplace", "geometric") else 2
        return planned_for(bounds, layout, self.noise_multiplier, norm, whole=self.law in WHOLE, largest=self._largest)

    @property
    def _largest(self) -> float:
        """Most grid steps for the scale of the noise."""
        if self.law == "skellam":
            return LARGEST_SKELLAM_SCALE
        return LARGEST_POLYA_SCALE if self.law in ("laplace", "geometric") and self.at == "shares" else LARGEST_SCALE

    def __str__(self) -> str:
        name = "".join(word.capitalize() for word in self.law.split())
        places = {"shares": f"in shares of {self.least} parties", "aggregators": f"at each of {self.aggregators} aggregators"}
        where = places.get(self.at, f"at the {self.at}") if self.least or self.aggregators else f"at the {self.at}"
        return f"{name}({self.noise_multiplier:g}) {where}"


def drawn(law: str, scale: float, size: int, entropy: Entropy) -> Array:
    """Draw whole noise of a law, shape (size,), int64, in steps of its grid.

    Raises
    ------
    BudgetInvalid (HR-214)
        There is no such law, or the scale is out of its range.
    """
    if law not in get_args(Law):
        raise BudgetInvalid(f"no law of noise is called {law!r}.", remedy=suggestion(law, get_args(Law)))
    if law == "skellam":
        return skellam(scale, size, entropy)
    return (discrete_laplace if law in ("laplace", "geometric") else discrete_gaussian)(scale, size, entropy)


def checked(multiplier: float) -> None:
    """Refuse a noise multiplier that is not a finite number above zero."""
    if not (math.isfinite(multiplier) and multiplier > 0):
        raise BudgetInvalid(
            f"a noise multiplier of {multiplier!r} is not a finite number above zero.",
            remedy="For no noise leave the mechanism out; the ledger then says that the release is not private.",
        )


def in_units(steps: Array, planned: list[Block]) -> Array:
    """Turn grid steps of shape (size,) into the units of the contribution."""
    released: Array = steps.astype(float)
    for block in planned:
        released[block.part] *= block.step
    return released


def planned_for(
    bounds: Bounds, layout: Layout, multiplier: float, norm: int, *, whole: bool = False, largest: float = 0.0
) -> list[Block]:
    """Return the grid and noise of a contribution, worked out once."""
    items = bounds if isinstance(bounds, Bound) else tuple(bounds.items())
    return _planned(items, layout, multiplier, norm, whole, largest)


@lru_cache(maxsize=64)
def _planned(
    bounds: Bounds | tuple[tuple[str, Bounds], ...], layout: Layout, multiplier: float, norm: int, whole: bool, largest: float
) -> list[Block]:
    found = dict(bounds) if isinstance(bounds, tuple) else bounds
    return plan(found, layout, multiplier, norm, _one if whole else grid_step, whole=whole, largest=largest)  # type: ignore[arg-type]


def _one(scale: float) -> float:
    return 1.0


def Gaussian(noise_multiplier: float, at: Position = "server", least: int = 0) -> Noise:
    """Gaussian noise with standard deviation `noise_multiplier` times the bound's l2 radius."""
    return Noise("gaussian", noise_multiplier, at, least)


def Laplace(noise_multiplier: float, at: Position = "server", least: int = 0) -> Noise:
    """Laplace noise with scale `noise_multiplier` times the bound's l1 radius: 1 / noise_multiplier of epsilon a release."""
    return Noise("laplace", noise_multiplier, at, least)


def Skellam(noise_multiplier: float, at: Position = "server", least: int = 0) -> Noise:
    """Skellam noise with standard deviation `noise_multiplier` times the bound's l2 radius; its shares add up exactly."""
    return Noise("skellam", noise_multiplier, at, least)


def Geometric(noise_multiplier: float, at: Position = "server", least: int = 0) -> Noise:
    """Whole-number noise on counts, two-sided geometric: 1 / noise_multiplier of epsilon a release."""
    return Noise("geometric", noise_multiplier, at, least)


def DiscreteGaussian(noise_multiplier: float, at: Position = "server", least: int = 0) -> Noise:
    """Whole-number noise on counts, with standard deviation `noise_multiplier` times the l2 radius and at least 3."""
    return Noise("discrete gaussian", noise_multiplier, at, least)
