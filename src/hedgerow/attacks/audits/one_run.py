"""Lower bounds on epsilon from one run, by guesses about canaries that are in or out by fair coins.

    m canaries, each in by a coin of its own. The auditor says "in" of the r with the highest scores; v of them are.

    any mechanism   Steinke, Nasr & Jagielski, NeurIPS 2023, Theorem 5.2: the probability of v right guesses is at most
                        beta + 2 m delta alpha,    beta  = P[Bin(r, e^eps / (1 + e^eps)) >= v]
                                                   alpha = max over 1 <= i <= v of (P[Bin >= v - i] - beta) / i
    a family        Mahloujifar, Melis & Chaudhuri 2024, Algorithm 3 (k = 2): with f^-(x) the least false-alarm rate at power x,
                        R = level v / m,   h = level (r - v) / m
                        for i = v - 1 .. 0:    h' = max(h, f^-(R));   R += i / (r - i) (h' - h);   h = h'
                        the trade-off function is refuted where R + h > r / m

The bound is the largest epsilon, or the largest parameter of the family, that is refuted. The second bound is up to twice as
large and assumes that the run's trade-off function belongs to the family: Gaussian ones, or those of the accountant's own
mechanism at other noise. The first assumes nothing. The number of guesses is chosen from a grid after the scores are seen, so
each place of the grid has its share of the level (Bonferroni).

Half of the guesses are "out" of the lowest scores, which both theorems allow; `ends="top"` guesses as above.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.core.events import Charge, Event, Parts
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.accounting import Adjacency, epsilon, gaussian_epsilon
from hedgerow.privacy.accounting.losses import ROUGH
from hedgerow.privacy.accounting.trade_off import GaussianTradeOff, TradeOff, trade_off_of

_MOST_EPSILON = 64.0
_MOST_LEAK = 0.1
"""Delta times canaries: beyond it the term of delta takes the bound away, whatever leaks."""


class TradeOffFamily(Protocol):
    """Trade-off functions of one parameter, which leak more the larger it is."""

    @property
    def name(self) -> str:
        """What the parameter is."""

    @property
    def most(self) -> float:
        """The largest parameter that is tried."""

    @property
    def close(self) -> float:
        """The share of the parameter to which it is found."""

    def at(self, leak: float) -> TradeOff:
        """The function at a parameter above 0."""

    def epsilon(self, leak: float, delta: float) -> float:
        """The epsilon of that function at `delta`."""


@dataclass(frozen=True)
class GaussianFamily:
    """One Gaussian release; the parameter is mu, one over the noise multiplier."""

    name: str = "Gaussian mu"
    most: float = 40.0
    close: float = 1e-8

    def at(self, leak: float) -> TradeOff:
        return GaussianTradeOff(leak)

    def epsilon(self, leak: float, delta: float) -> float:
        return gaussian_epsilon(1 / leak, delta)


@dataclass(frozen=True)
class NoiseFamily:
    """Everything that was charged, with all noise divided by one number: the parameter, 1 as accounted.

    Parameters
    ----------
    charges : tuple of Charge
        Cohorts with their events, of Gaussian, Laplace or Skellam noise, sampled or not.
    adjacency : {"add-remove", "replace-one"}
        As of `hedgerow.privacy.accounting.epsilon`.
    """

    charges: tuple[tuple[Charge, int], ...]
    adjacency: Adjacency = "add-remove"
    name: str = "the accounted noise over"
    most: float = 20.0
    close: float = 1e-4

    @classmethod
    def of(cls, charges: Iterable[Charge], adjacency: Adjacency = "add-remove") -> NoiseFamily:
        """Of charges, equal ones counted.

        Raises
        ------
        SettingsInvalid (HR-511)
            A mechanism is known by its epsilon, so that no noise of it can be scaled, or has no noise.
        """
        family = cls(tuple(Counter(charges).items()), adjacency)
        for event in (event for charge, _ in family.charges for event in _events(charge)):
            if event.kind not in ("gaussian", "laplace", "skellam", "none") or event.count < 1 or not event.noise_multiplier:
                raise SettingsInvalid(
                    f"a release {event} has no noise that could be scaled.",
                    remedy="Use the Gaussian family, or the bound for any mechanism.",
                )
        return family

    def at(self, leak: float) -> TradeOff:
        return _at(self, leak)

    def epsilon(self, leak: float, delta: float) -> float:
        return epsilon(self.at_noise(leak), delta=delta, adjacency=self.adjacency)

    def at_noise(self, leak: float) -> Counter[Charge]:
        """The charges with their noise divided by a number."""
        return Counter({(drawn, tuple(_over(event, leak) for event in events)): n for (drawn, events), n in self.charges})


def p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float = 0.0) -> float:
    """Largest probability of so many right guesses under (epsilon, delta)-privacy (Steinke et al. 2023, Theorem 5.2)."""
    m, r, v = canaries, guesses, right
    q = float(scipy.special.expit(epsilon))
    beta = float(_at_least(np.array([v]), r, q)[0])
    if delta == 0:
        return min(1.0, beta)
    i = np.arange(1, v + 1)
    alpha = max(0.0, float(((_at_least(v - i, r, q) - beta) / i).max(initial=0.0)))
    return min(1.0, beta + 2 * m * delta * alpha)


def least_epsilon(canaries: int, guesses: int, right: int, delta: float = 0.0, level: float = 0.05) -> float:
    """Largest epsilon that the guesses refute, whatever the mechanism; 0 where they refute none.

    Parameters
    ----------
    canaries, guesses, right : int
        m, r and v; r at most m, v at most r.
    delta : float
        Far below one over the number of canaries.
    level : float
        Probability, at most, that the bound is above the truth.

    Raises
    ------
    SettingsInvalid (HR-511)
        Counts that cannot be, a level outside (0, 1), or a delta that the theorem cannot bear at so many canaries.
    """
    checked_counts(canaries, guesses, right, delta, level)
    return _largest(lambda epsilon: p_value(canaries, guesses, right, epsilon, delta) < level, _MOST_EPSILON)


def refutes(canaries: int, guesses: int, right: int, function: TradeOff, level: float = 0.05) -> bool:
    """Whether v of r guesses about m canaries are too many for a trade-off function (Mahloujifar et al. 2024, Algorithm 3)."""
    m, r, v = canaries, guesses, right
    certain, missed = level * v / m, level * (r - v) / m
    for i in range(v - 1, -1, -1):
        if certain + missed > r / m:  # both only grow
            return True
        more = max(missed, function.false_alarms(min(certain, 1.0)))
        if more == missed:
            break
        certain, missed = certain + i / (r - i) * (more - missed), more
    return certain + missed > r / m


def least_leak(canaries: int, guesses: int, right: int, family: TradeOffFamily | None = None, level: float = 0.05) -> float:
    """Largest parameter of a family that the guesses refute, by default a Gaussian mu; 0 where they refute none.

    Raises
    ------
    SettingsInvalid (HR-511)
        Counts that cannot be, or a level outside (0, 1).
    """
    checked_counts(canaries, guesses, right, 0.0, level)
    known: TradeOffFamily = family or GaussianFamily()
    return _most_refuted(canaries, guesses, right, known, level)


@displayed
@dataclass(frozen=True)
class OneRunBound:
    """What guesses about canaries prove of epsilon.

    Attributes
    ----------
    canaries : int
        In and out together.
    delta : float
        At which epsilons are.
    level : float
        Probability, at most, that a bound is above the truth: of each bound by itself.
    any_mechanism : float
        Epsilon, at least, whatever the mechanism is.
    of_family : float
        Epsilon, at least, if the run's trade-off function belongs to the family.
    family : str
        Its name.
    leak : float
        The largest parameter of the family that is refuted.
    guesses, right : int
        Of the place of the grid that proves most by the family.
    """

    canaries: int
    delta: float
    level: float
    any_mechanism: float
    of_family: float
    family: str
    leak: float
    guesses: int
    right: int

    def above(self, epsilon: float) -> bool:
        """Whether either bound exceeds an accounted epsilon."""
        return max(self.any_mechanism, self.of_family) > epsilon

    def __str__(self) -> str:
        return (
            f"epsilon >= {self.of_family:.2f} ({self.family} {self.leak:.3g}), >= {self.any_mechanism:.2f} (any mechanism) "
            f"at delta {self.delta:g}; {self.right} of {self.guesses} guesses about {self.canaries} canaries were right, "
            f"level {self.level:g}"
        )


def one_run_bounds(
    scores_in: Array,
    scores_out: Array,
    delta: float,
    level: float = 0.05,
    *,
    family: TradeOffFamily | None = None,
    places: int = 5,
    ends: Literal["top", "both"] = "both",
) -> OneRunBound:
    """Return both bounds from the scores of one run's canaries.

    Parameters
    ----------
    scores_in, scores_out : arrays of shape (n,)
        Higher for what looks like being in. Each canary was in by a fair coin of its own, tossed before the run.
    delta : float
        At which epsilon is accounted; at most 0.1 over the number of canaries.
    level : float
        Of each bound, over all numbers of guesses together.
    family : TradeOffFamily, optional
        `GaussianFamily()` by default. `NoiseFamily.of(ledger.charges(unit))` for subsampled noise.
    places : int
        Numbers of guesses that are tried, from 8 to all canaries; each has its share of the level.
    ends : {"top", "both"}
        Whether only "in" is guessed, of the highest scores, or half of the guesses are "out", of the lowest. "top" proves more
        where a canary that is in is seldom sampled, so that it looks as if it were out. Choose before the scores are seen.

    Raises
    ------
    SettingsInvalid (HR-511)
        Fewer than 16 canaries, scores that are no numbers, a level outside (0, 1), or a delta that is too large for so many.
    """
    inside = np.concatenate([np.ones(np.size(scores_in), int), np.zeros(np.size(scores_out), int)])
    scores = np.concatenate([np.ravel(scores_in), np.ravel(scores_out)]).astype(float)
    m = len(scores)
    if m < 16 or np.isnan(scores).any():
        raise SettingsInvalid(
            f"{m} canaries, or scores that are no numbers.", remedy="Score at least 16 canaries, some hundred are useful."
        )
    order = np.argsort(-scores, kind="stable")
    counts = _counts(inside[order], np.unique(np.geomspace(8, m, places).astype(int)), ends)
    share = level / len(counts)
    checked_counts(m, *counts[-1], delta, share)
    known: TradeOffFamily = family or GaussianFamily()
    by_any = max(least_epsilon(m, *count, delta, share) for count in counts)
    leak, best = 0.0, counts[0]
    for count in counts:
        if leak == 0 or refutes(m, *count, known.at(leak), share):
            found = _most_refuted(m, *count, known, share, leak)
            leak, best = (found, count) if found > leak else (leak, best)
    epsilon = known.epsilon(leak, delta) if leak > 0 else 0.0
    return OneRunBound(m, delta, level, by_any, epsilon, known.name, leak, *best)


def _counts(inside: Array, numbers: Array, ends: str) -> list[tuple[int, int]]:
    """Guesses and right ones, of canaries by falling score."""
    found, m = [], len(inside)
    for r in map(int, numbers):
        low = min(r // 2, m // 2) if ends == "both" else 0
        found.append((r, int(inside[: r - low].sum() + (low - inside[m - low :].sum() if low else 0))))
    return found


def checked_counts(canaries: int, guesses: int, right: int, delta: float, level: float) -> None:
    """Refuse counts that cannot be, and a delta that makes the bound void."""
    if not 0 <= right <= guesses <= canaries or guesses < 1:
        raise SettingsInvalid(
            f"{right} right guesses of {guesses} about {canaries} canaries.",
            remedy="Right ones are among the guesses, one each.",
        )
    if not 0 < level < 1 or not 0 <= delta < 1:
        raise SettingsInvalid(f"level {level!r} at delta {delta!r}.", remedy="Both are probabilities; 0.05 and 1e-5 are usual.")
    if canaries * delta > _MOST_LEAK * (1 + 1e-9):
        raise SettingsInvalid(
            f"delta {delta:g} is not far below one over {canaries} canaries: the bound from one run would say nothing.",
            remedy=f"Use at most {math.floor(_MOST_LEAK / delta)} canaries, or a smaller delta.",
        )


def _most_refuted(m: int, r: int, v: int, family: TradeOffFamily, level: float, least: float = 0.0) -> float:
    return _largest(lambda leak: refutes(m, r, v, family.at(leak), level), family.most, least, family.close)


def _largest(refuted: Callable[[float], bool], most: float, least: float = 0.0, close: float = 1e-8) -> float:
    """Largest refuted parameter, to a share of it that is `close`: what is below it is refuted too."""
    low, high = least, max(2 * least, 0.125)
    if least == 0 and not refuted(1e-4):
        return 0.0
    while refuted(high):
        if high >= most:
            return most
        low, high = high, min(2 * high, most)
    while high - low > close * high:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _at_least(count: Array, n: int, q: float) -> Array:
    """P[Bin(n, q) >= count]."""
    inside = np.clip(count, 1, n)
    found = scipy.special.betainc(inside, n - inside + 1, q)
    return np.asarray(np.where(count <= 0, 1.0, np.where(count > n, 0.0, found)))


@lru_cache(maxsize=256)
def _at(family: NoiseFamily, leak: float) -> TradeOff:
    return trade_off_of(family.at_noise(leak), family.adjacency, ROUGH)


def _over(event: Event | Parts, leak: float) -> Event | Parts:
    if isinstance(event, Parts):
        return Parts(tuple(tuple(_less(one, leak) for one in part) for part in event.events))
    return _less(event, leak)


def _less(event: Event, leak: float) -> Event:
    return replace(event, noise_multiplier=event.noise_multiplier / leak, steps=event.steps / leak)


def _events(charge: Charge) -> Iterator[Event]:
    for event in charge[1]:
        yield from (event,) if isinstance(event, Event) else (one for part in event.events for one in part)
