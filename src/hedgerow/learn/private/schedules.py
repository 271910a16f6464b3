"""How many parties join in each round, how much noise each round adds, and what both cost together.

Early in training updates are alike, so that few parties tell enough and little privacy need be spent; late in training they
differ and cancel, and it takes many. So cohorts may grow from round to round (Geyer et al. 2017, section 6).

    rates       q_t, each party joins round t by itself with this probability
    multipliers z_t, noise over the clip; with `noise="distortion"` z_t grows as sqrt(q_t), so that sigma_t^2 / m_t, which the
                paper calls distortion, is the same in every round, and a small early cohort pays for a large late one
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import Bound, Bounds
from hedgerow.core.cohort import Cohort
from hedgerow.core.events import Charge, Event, Sampling
from hedgerow.core.mechanism import Mechanism, Position
from hedgerow.core.randomness import Entropy, Streams
from hedgerow.errors import BudgetInvalid, SettingsInvalid
from hedgerow.privacy import Gaussian, Noise
from hedgerow.privacy.accounting import Accountant, epsilon
from hedgerow.privacy.accounting.calibration import least_noise

Growth = Literal["constant", "linear", "geometric"]
Spread = Literal["constant", "distortion"]


def grown(first: float, last: float | None, rounds: int, growth: Growth = "geometric") -> tuple[float, ...]:
    """A sampling rate for each round.

    Parameters
    ----------
    first, last : float
        Rates of the first and the last round, in (0, 1]; the same in all rounds without a last one.
    growth : {"constant", "linear", "geometric"}
        By equal steps or by equal factors.
    """
    last = first if last is None else last
    if growth not in get_args(Growth) or rounds < 1 or not (0 < first <= 1 and 0 < last <= 1):
        raise SettingsInvalid(
            f"rates from {first} to {last} over {rounds} rounds, growth {growth!r}.",
            remedy=f"Rates lie in (0, 1]; growth is one of {', '.join(get_args(Growth))}; at least one round.",
        )
    shares = [t / max(rounds - 1, 1) for t in range(rounds)]
    if growth == "constant":
        return (first,) * rounds
    if growth == "linear":
        return tuple(first + share * (last - first) for share in shares)
    return tuple(first * (last / first) ** share for share in shares)


@dataclass(frozen=True)
class BudgetedSchedule:
    """A schedule for a budget.

    Attributes
    ----------
    rates, noise_multipliers : tuple of float
        q_t and z_t for each round.
    epsilon, delta : float
        What all rounds cost together.
    """

    rates: tuple[float, ...]
    noise_multipliers: tuple[float, ...]
    epsilon: float
    delta: float

    @property
    def rounds(self) -> int:
        return len(self.rates)

    @property
    def uploads(self) -> float:
        """Expected number of contributions of one party; times the parties, the paper's communication costs."""
        return math.fsum(self.rates)

    def noise(self, parties: int) -> tuple[float, ...]:
        """Standard deviation of the noise on a round's mean update, over the clip, in each coordinate."""
        return tuple(z / (q * parties) for q, z in zip(self.rates, self.noise_multipliers, strict=True))

    @property
    def mechanism(self) -> Any:
        """What to protect a federation with: Gaussian noise, by schedule where it differs between rounds."""
        z = self.noise_multipliers
        return Gaussian(z[0]) if len(set(z)) == 1 else ScheduledGaussian(z)

    def charges(self) -> Counter[Charge]:
        """What the ledger will be charged."""
        return _charges(self.rates, self.noise_multipliers)


def plan(
    epsilon: float,
    delta: float,
    *,
    rounds: int | Sequence[int],
    rate: float,
    last_rate: float | None = None,
    growth: Growth = "geometric",
    noise: Spread = "constant",
    accountant: Accountant = "tightest",
    score: Callable[[BudgetedSchedule], float] | None = None,
) -> BudgetedSchedule:
    """Choose the least noise with which a schedule of cohorts stays within a budget.

    Parameters
    ----------
    epsilon, delta : float
        The budget, per party; the plan never exceeds it.
    rounds : int or sequence of int
        How many rounds; of several numbers the one with the best score is taken.
    rate, last_rate, growth
        As of `grown`.
    noise : {"constant", "distortion"}
        The same multiplier in each round, or one that grows with the root of the rate.
    score : callable, optional
        From a plan to a number, of which more is better; by default the root of the rounds over the noise on the mean of
        the last round: how far a signal that is the same in each round would stand out.
    accountant : str
        As of `hedgerow.privacy.epsilon`. Where each round differs, the tightest takes seconds for every round; "rdp" is quick
        and asks for a few percent more noise.

    Raises
    ------
    SettingsInvalid (HR-511), BudgetInvalid (HR-214)
    """
    if noise not in get_args(Spread):
        raise SettingsInvalid(f"noise is {noise!r}.", remedy=f"Choose one of {', '.join(get_args(Spread))}.")
    if not isinstance(rounds, int):
        plans = [
            plan(epsilon, delta, rounds=n, rate=rate, last_rate=last_rate, growth=growth, noise=noise, accountant=accountant)
            for n in rounds
        ]
        if not plans:
            raise SettingsInvalid("rounds is empty.", remedy="Give at least one number of rounds.")
        return max(plans, key=score or (lambda one: math.sqrt(one.rounds) / one.noise(1)[-1]))
    rates = grown(rate, last_rate, rounds, growth)
    shape = [math.sqrt(q / rates[-1]) if noise == "distortion" else 1.0 for q in rates]

    def charges(z: float) -> Counter[Charge]:
        return _charges(rates, [z * factor for factor in shape])

    z = least_noise(charges, epsilon, delta, accountant=accountant)
    multipliers = tuple(z * factor for factor in shape)
    return BudgetedSchedule(rates, multipliers, _epsilon(_charges(rates, multipliers), delta, accountant), delta)


def _epsilon(charges: Counter[Charge], delta: float, accountant: Accountant) -> float:
    return epsilon(charges, delta=delta, adjacency="add-remove", accountant=accountant)


def _charges(rates: Sequence[float], multipliers: Sequence[float]) -> Counter[Charge]:
    """One Gaussian release from each cohort, with everybody asked at rate one."""
    pairs = Counter(zip(rates, multipliers, strict=True))
    return Counter(
        {(Sampling("poisson", q) if q < 1 else Sampling(), (Event("gaussian", z),)): n for (q, z), n in pairs.items()}
    )


@dataclass(frozen=True)
class ScheduledGaussian(Mechanism):
    """Gaussian noise whose multiplier is given for each question: the first one asks with the first, and so on.

    Parameters
    ----------
    noise_multipliers : tuple of float
        One for each question; a further question is refused.
    at : {"server", "party"}
    """

    noise_multipliers: tuple[float, ...]
    at: Position = "server"
    use: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        for z in self.noise_multipliers:
            Gaussian(z, self.at)  # refuses what is no multiplier
        if not self.noise_multipliers:
            raise BudgetInvalid("a schedule of noise without a round.", remedy="Give one multiplier for each question.")
        if self.use >= len(self.noise_multipliers):
            raise BudgetInvalid(
                f"question {self.use + 1} has no noise: the schedule has {len(self.noise_multipliers)} multipliers.",
                remedy="Plan as many rounds as you ask.",
            )

    @property
    def key(self) -> str:
        return f"ScheduledGaussian({self.noise_multipliers!r}, {self.at})"

    def taken(self, use: int, streams: Streams, cohort: Cohort) -> ScheduledGaussian:
        """The mechanism of question number `use`, counted from zero; each is charged with its own noise."""
        return replace(self, use=use)

    @property
    def now(self) -> Noise:
        """The noise of this question."""
        return Gaussian(self.noise_multipliers[self.use], self.at)

    def event(self, bounds: Bounds) -> Event:
        return self.now.event(bounds)

    def fit(self, bounds: Bounds, layout: Layout) -> None:
        self.now.fit(bounds, layout)

    def grid(self, bounds: Bounds, layout: Layout) -> list[tuple[slice, Bound, float]] | None:
        """The parts of a contribution with the bound of each and the step of its grid."""
        return self.now.grid(bounds, layout)

    def at_party(self, rows: Array, bounds: Bounds, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        return self.now.at_party(rows, bounds, layout, entropies)

    def within(self, rows: Array, bounds: Bounds, layout: Layout, parties: int = 1) -> Array:
        return self.now.within(rows, bounds, layout, parties)

    def at_server(self, total: Array, bounds: Bounds, layout: Layout, entropy: Entropy) -> Array:
        return self.now.at_server(total, bounds, layout, entropy)

    def noise_deviation(self, bounds: Bounds, layout: Layout, parties: float, use: int = 0) -> dict[str, float] | None:
        return replace(self, use=use).now.noise_deviation(bounds, layout, parties)

    def __str__(self) -> str:
        z = self.noise_multipliers
        return f"Gaussian({z[0]:.4g} to {z[-1]:.4g} in {len(z)} questions) at the {self.at}"
