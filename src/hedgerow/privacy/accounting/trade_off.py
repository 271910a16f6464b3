"""Trade-off functions: how seldom a test of two neighbours errs, from a guarantee, from Gaussian noise, from an accountant.

A test that accuses the absent with probability alpha (false alarms) accuses those who are there with at most power(alpha). One
less the power is the trade-off function f of Dong, Roth & Su (J. R. Stat. Soc. B 84, 2022).

    (epsilon, delta)    power = min(delta + e^eps alpha, 1 - e^-eps (1 - delta - alpha), 1)      Wasserman & Zhou 2010
    Gaussian of mu      power = Phi(Phi^-1(alpha) + mu)                                          mu = 1 / noise multiplier
    accountant          power = min over epsilon >= 0 of that of (epsilon, delta(epsilon))       Dong et al., Proposition 2.12

The last is a minimum of lines, which a chain of corners describes exactly. Any set of epsilons gives an upper bound on the
power, so a finite one is on the safe side. The larger delta of both neighbours is taken: the function holds for a unit more and
for one without, and is its own inverse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy

from hedgerow.core.events import Charge
from hedgerow.errors import BudgetInvalid

from . import bounds, composition, losses
from .costs import Adjacency, Costs, costs
from .distribution import Array, Losses

POINTS = 2000
"""Epsilons of an accountant's curve."""


class TradeOff(Protocol):
    """What a test of two neighbours can reach."""

    def power(self, false_alarms: float) -> float:
        """The largest probability to accuse who is there, at this probability to accuse who is not."""

    def false_alarms(self, power: float) -> float:
        """The least probability to accuse who is not there, at this power."""

    @property
    def area(self) -> float:
        """Area under the curve of power against false alarms: the largest chance to tell one who is in from one who is not."""

    @property
    def advantage(self) -> float:
        """The largest power less false alarms."""


@dataclass(frozen=True)
class GaussianTradeOff:
    """Of one Gaussian release.

    Parameters
    ----------
    mu : float
        Distance of neighbours over the standard deviation of the noise, at least 0. Of n releases without sampling at the noise
        multiplier z it is sqrt(n) / z.
    """

    mu: float

    def __post_init__(self) -> None:
        if not 0 <= self.mu < math.inf:
            raise BudgetInvalid(
                f"mu {self.mu!r} is not a finite number from 0 on.", remedy="It is one over the noise multiplier."
            )

    def power(self, false_alarms: float) -> float:
        return float(scipy.special.ndtr(scipy.special.ndtri(false_alarms) + self.mu))

    def false_alarms(self, power: float) -> float:
        return float(scipy.special.ndtr(scipy.special.ndtri(power) - self.mu))

    @property
    def area(self) -> float:
        return float(scipy.special.ndtr(self.mu / math.sqrt(2)))

    @property
    def advantage(self) -> float:
        return float(scipy.special.erf(self.mu / math.sqrt(8)))


@dataclass(frozen=True, eq=False)
class TradeOffCurve:
    """A chain of corners with straight lines between them.

    Attributes
    ----------
    alarms, powers : arrays of shape (n,)
        Probabilities at the corners, neither of them falling; from no false alarms to a power of 1.
    """

    alarms: Array
    powers: Array

    @classmethod
    def of_budget(cls, epsilon: float, delta: float = 0.0) -> TradeOffCurve:
        """Of every mechanism that is (epsilon, delta)-private.

        Raises
        ------
        BudgetInvalid (HR-214)
            `epsilon` is negative or no number, or `delta` is no probability.
        """
        if not (0 <= epsilon < math.inf and 0 <= delta <= 1):
            raise BudgetInvalid(
                f"epsilon {epsilon!r} at delta {delta!r}.", remedy="Epsilon is a finite number from 0 on, delta a probability."
            )
        return cls.of_curve(np.array([epsilon]), np.array([delta]))

    @classmethod
    def of_curve(cls, epsilons: Array, deltas: Array) -> TradeOffCurve:
        """Of a privacy curve.

        Parameters
        ----------
        epsilons, deltas : arrays of shape (n,)
            Pairs that hold, epsilons rising from 0 or above.
        """
        slopes, starts = _lowest(np.exp(np.minimum(epsilons, 700.0)), np.clip(deltas, 0.0, 1.0))
        alarms = (starts[:-1] - starts[1:]) / np.diff(slopes)  # where two neighbouring lines meet
        powers = starts[:-1] + slopes[:-1] * alarms
        half = ((1 - starts) / (1 + slopes)).max()  # where the lines meet their mirror images
        below, above = alarms[::-1], powers[::-1]
        below, above = np.append(below[below < half], half), np.append(above[below < half], 1 - half)
        first = starts[-1]
        x = np.concatenate([[0.0], below, 1 - above[-2::-1], [1 - first, 1.0]])
        y = np.concatenate([[first], above, 1 - below[-2::-1], [1.0, 1.0]])
        return cls(np.clip(np.maximum.accumulate(x), 0, 1), np.clip(np.maximum.accumulate(y), 0, 1))

    def power(self, false_alarms: float) -> float:
        return float(np.interp(false_alarms, self.alarms, self.powers))

    def false_alarms(self, power: float) -> float:
        place = int(np.searchsorted(self.powers, power))  # the first corner that is at least so high
        if place == 0:
            return 0.0
        (x0, x1), (y0, y1) = self.alarms[place - 1 : place + 1], self.powers[place - 1 : place + 1]
        return float(x0 + (x1 - x0) * (power - y0) / (y1 - y0))

    @property
    def area(self) -> float:
        return float(np.diff(self.alarms) @ (self.powers[1:] + self.powers[:-1]) / 2)

    @property
    def advantage(self) -> float:
        return float((self.powers - self.alarms).max())


def budget_power(false_alarms: float, epsilon: float, delta: float = 0.0) -> float:
    """Return the largest power against everything that is (epsilon, delta)-private, in closed form."""
    low = math.exp(min(epsilon, 700.0)) * false_alarms + delta
    high = 1 - math.exp(-epsilon) * (1 - delta - false_alarms)
    return min(1.0, low, max(high, 0.0))


def budget_advantage(epsilon: float, delta: float = 0.0) -> float:
    """Return the largest power less false alarms against it: (e^eps - 1 + 2 delta) / (e^eps + 1)."""
    half = math.tanh(epsilon / 2)
    return half + delta * (1 - half)


def trade_off_of(charges: Iterable[Charge], adjacency: Adjacency, grid: float = losses.GRID) -> TradeOff:
    """Return the trade-off function of everything in `charges` together, by the accountant's own privacy curve.

    Parameters
    ----------
    charges : iterable of Charge
        Cohorts with their events, as of `epsilon`.
    adjacency : {"add-remove", "replace-one"}
        Whether neighbours differ by a unit that is there or not.
    grid : float
        Of privacy losses. A coarser one is quicker and still an upper bound on the power.

    Returns
    -------
    TradeOff
        `GaussianTradeOff`, exactly, where all noise is Gaussian without sampling; else corners of the privacy loss
        distribution, or of Renyi divergences where a mechanism has none. Without any release it is the diagonal, and where
        something was released without noise every test is possible.

    Raises
    ------
    BudgetInvalid (HR-214)
        As of `epsilon`.
    """
    bounds._check(adjacency, "tightest")
    return of_costs(costs(charges, adjacency), grid)


def of_costs(found: Costs, grid: float = losses.GRID) -> TradeOff:
    """The same of mechanisms as accountants see them."""
    if not found:
        return GaussianTradeOff(0.0)
    if any(cost.open for cost, _ in found):
        return TradeOffCurve.of_budget(0.0, 1.0)
    z = bounds._exact(found)
    if z:
        return GaussianTradeOff(1 / z)
    total = losses.total_loss(found, grid)
    return _of_renyi(found) if total is None else of_losses(total)


def of_losses(total: Losses, points: int = POINTS) -> TradeOffCurve:
    """Of distributions of privacy losses."""
    both = total.both()
    most = max(float(one.losses[-1]) for one in both)
    epsilons = np.linspace(0.0, max(most, 0.0), points)
    deltas = np.maximum(*(one.delta(epsilons) for one in both))
    return TradeOffCurve.of_curve(epsilons, np.asarray(deltas))


def _of_renyi(found: Costs) -> TradeOffCurve:
    """Of Renyi divergences: Skellam noise on vectors has no distribution of losses."""
    most = bounds._epsilon(found, 1e-12 + 2 * composition.leak(found), "rdp")
    epsilons = np.linspace(0.0, min(most, 700.0), 200)
    deltas = np.array([bounds._delta(found, float(epsilon), "rdp") for epsilon in epsilons])
    return TradeOffCurve.of_curve(epsilons, deltas)


def _lowest(slopes: Array, starts: Array) -> tuple[Array, Array]:
    """Lines power = start + slope alpha that are least somewhere: the lower hull of the points (slope, start)."""
    kept = [0]
    for place in range(1, len(slopes)):
        if starts[place] >= starts[kept[-1]]:  # steeper, and no lower anywhere
            continue
        while len(kept) > 1 and _not_below(slopes, starts, kept[-2], kept[-1], place):
            kept.pop()
        kept.append(place)
    return slopes[kept], starts[kept]


def _not_below(x: Array, y: Array, first: int, middle: int, last: int) -> bool:
    """Whether the middle point is on or above the line from the first to the last."""
    return bool((y[middle] - y[first]) * (x[last] - x[first]) >= (y[last] - y[first]) * (x[middle] - x[first]))
