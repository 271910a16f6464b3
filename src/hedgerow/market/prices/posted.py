"""Posted prices: a learner names one price for a unit of precision, and each owner answers with the epsilon that pays it best.

    q_l(eps) = n_l^2 / (s n_l + A a(eps))        precision: what owner l adds to 1 / (excess - bias) under the best weights
    payment    price x q_l(eps)
    cost       c_l (e^eps - 1)
    answer     the eps in [lo_l, hi_l] where payment - cost is largest; 0, left out, where it is nowhere above 0

What an owner earns depends on the price and on its own epsilon, on no other owner: the answer is a dominant strategy, which no
coalition of owners can better, and nobody loses by taking part. The learner then searches one number (`best_price`).

The answer, exactly. As a function of q the cost C first bends down and then up: with R(eps) = q'(eps) / e^eps, dC/dq = c / R,
and R rises to one peak and falls from there.

    Laplace    log R = const + log eps - 2 log(1 + k eps^2) - eps; its slope has the sign of 1 - eps - 3 k eps^2 - k eps^3,
               which falls.
    Gaussian   along mu, the slope has the sign of 1 - r^2 - 4 k mu^2 / (1 + k mu^2) - mu (y + 2 r), with y = eps / mu + mu / 2
               and r = 1 / m(y) - y; that it falls through zero once is checked numerically (a test), not proved.

So payment - cost has at most one maximum inside, on the falling side of R, where price R = c. It is compared with lo and with
staying away.

Not seen: records that differ from owner to owner; whether records and costs are declared truthfully. An owner that overstates
its records is paid more and spoils the result: certify them, or pay by a released count.

Source: derived for `hedgerow.market`; Wu 2019, chapter 4, asks for such a compensation. Costs: Hsu et al. 2014.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid
from hedgerow.market.coalitions import best_weights, precisions

from .searches import falling_root, highest
from .sum_noise import SumNoise

NODES = 65
"""Epsilons of an owner's table of supply, between which its answer is then searched exactly."""

TRIED = 65
"""Epsilons of each owner at which a deviation is looked for, before the best of them is refined."""


@dataclass(frozen=True)
class OwnerTerms:
    """What owners declare: one of each for every owner, all arrays of shape (owners,).

    Parameters
    ----------
    records : array
        n, above 0. A public number: declared and certified, or a released count.
    cost : array
        c, at least 0: epsilon costs its owner c (e^eps - 1), in the learner's currency.
    lowest, highest : array
        The epsilons that an owner accepts, 0 < lowest <= highest.

    Raises
    ------
    SettingsInvalid (HR-511)
        Shapes differ, or a value is out of its range.
    """

    records: Array
    cost: Array
    lowest: Array
    highest: Array

    def __post_init__(self) -> None:
        for name in ("records", "cost", "lowest", "highest"):
            object.__setattr__(self, name, np.atleast_1d(np.asarray(getattr(self, name), float)))
        arrays = (self.records, self.cost, self.lowest, self.highest)
        if self.records.ndim != 1 or len({array.shape for array in arrays}) > 1 or not len(self.records):
            raise SettingsInvalid(
                f"terms of owners of shapes {', '.join(str(array.shape) for array in arrays)}.",
                remedy="Give records, cost, lowest and highest of every owner, one number each.",
            )
        right = (self.records > 0) & (self.cost >= 0) & (self.lowest > 0) & (self.lowest <= self.highest)
        right &= np.isfinite(self.records) & np.isfinite(self.cost) & (self.highest <= LARGEST)
        if not right.all():
            at = int(np.argmin(right))
            n, c, lo, hi = (array[at] for array in arrays)
            raise SettingsInvalid(
                f"owner {at + 1} has {n:g} records, the cost {c:g}, and accepts epsilons from {lo:g} to {hi:g}.",
                remedy=f"Records are above 0, costs at least 0, and epsilons lie above 0 and up to {LARGEST:g}, lowest first.",
            )

    def __len__(self) -> int:
        return len(self.records)

    def costs(self, epsilon: Array) -> Array:
        """c (e^eps - 1); epsilon of shape (..., owners)."""
        found: Array = self.cost * np.expm1(epsilon)
        return found


LARGEST = 500.0
"""Largest epsilon of terms: e^epsilon is a number up to some 700."""


@dataclass(frozen=True)
class LearnerTerms:
    """What precision does for a learner.

    Parameters
    ----------
    noise : SumNoise
        Of an owner's sum, by its epsilon.
    sampling, amplification, bias : float
        `PilotEstimate.sampling`, `Propagation.amplification`, `Propagation.bias`.
    least : float
        f(theta*), above 0: relative fitness is excess over this.
    value : float
        What one unit less of relative fitness is worth, in the learner's currency.
    nothing : float
        Relative fitness of what the learner has without anybody, such as coefficients of zero; infinite if it wants a result at
        any price.
    """

    noise: SumNoise
    sampling: float
    amplification: float
    bias: float
    least: float
    value: float
    nothing: float = math.inf

    def __post_init__(self) -> None:
        numbers = (self.sampling, self.amplification, self.bias, self.least, self.value)
        right = min(numbers) >= 0 and self.least > 0 and self.amplification > 0 and self.nothing >= 0
        if not right or not np.isfinite(numbers).all():
            raise SettingsInvalid(
                f"sampling {self.sampling:g}, amplification {self.amplification:g}, bias {self.bias:g}, "
                f"least loss {self.least:g}, value {self.value:g}, without anybody {self.nothing:g}.",
                remedy="All are at least 0, amplification and least loss above 0; only the last may be infinite.",
            )

    def relative_fitness(self, precision: float) -> float:
        """Expected relative fitness of owners whose precisions add up to this: (bias + 1 / precision) / f*."""
        return (self.bias + 1 / precision) / self.least if precision > 0 else self.nothing


@dataclass(frozen=True)
class PostedPrice:
    """What follows from a price: all arrays of shape (owners,).

    Attributes
    ----------
    price : float
        For a unit of precision; 0 where the learner buys nothing.
    epsilons : array
        0 where an owner is left out.
    precisions : array
        n^2 / (s n + A a), 0 where an owner is left out.
    weights : array
        Public factors n / (s n + A a), the largest being 1; 0 where an owner is left out.
    payments, costs : array
    deviation_gains : array
        What an owner would earn more by its best other epsilon in its range, or by staying away; at least 0.
    entry_prices : array
        The least price at which an owner takes part.
    relative_fitness : float
        Forecast, a mean over runs; where nobody takes part, that of nothing.
    value : float
        Of one unit of relative fitness.
    """

    price: float
    epsilons: Array
    precisions: Array
    weights: Array
    payments: Array
    costs: Array
    deviation_gains: Array
    entry_prices: Array
    relative_fitness: float
    value: float

    @property
    def takes_part(self) -> Array:
        """Whose epsilon is above 0: array of bool."""
        found: Array = self.epsilons > 0
        return found

    @property
    def surplus(self) -> Array:
        """What each owner earns after its cost."""
        return self.payments - self.costs

    @property
    def paid(self) -> float:
        """All payments."""
        return float(self.payments.sum())

    @property
    def net(self) -> float:
        """What the learner is left with: -value x relative fitness - payments."""
        return -(self.value * self.relative_fitness if self.value else 0.0) - self.paid


@dataclass(frozen=True)
class Supply:
    """How much precision owners sell at a price: what of it does not depend on the price is found once.

    Parameters
    ----------
    owners : OwnerTerms
    learner : LearnerTerms
    """

    owners: OwnerTerms
    learner: LearnerTerms

    def precision(self, epsilon: Array) -> Array:
        """q(eps); epsilon of shape (..., owners)."""
        return self._precision_and_log_rate(epsilon)[0]

    def answers(self, price: float) -> Array:
        """The epsilon with which each owner answers; 0 where it stays away."""
        inside = self._inside(price)
        stay = self.gains(price, self.owners.lowest) >= self.gains(price, inside)
        best = np.where(stay, self.owners.lowest, inside)
        answered: Array = np.where(self.gains(price, best) > 0, best, 0.0)
        return answered

    def gains(self, price: float, epsilon: Array) -> Array:
        """Payment less cost; epsilon of shape (..., owners), above 0."""
        found: Array = price * self.precision(epsilon) - self.owners.costs(epsilon)
        return found

    def deviation_gains(self, price: float, epsilons: Array) -> Array:
        """What each owner would earn more by another epsilon than this: looked for over its range, without the theory above."""
        own = np.where(epsilons > 0, self.gains(price, np.where(epsilons > 0, epsilons, 1.0)), 0.0)
        tried = np.exp(np.linspace(self._low, self._high, TRIED))
        gains = self.gains(price, tried)
        at = gains.argmax(0)
        ends = [np.take_along_axis(tried, np.clip(at + k, 0, TRIED - 1)[None], 0)[0] for k in (-1, 1)]
        refined = self.gains(price, highest(lambda e: self.gains(price, e), *ends))
        best: Array = np.maximum(np.maximum(gains.max(0), refined), 0.0)
        found: Array = np.maximum(best - own, 0.0)
        return found

    @cached_property
    def peak(self) -> Array:
        """Where a unit of precision costs least more than the last: the peak of R in [lowest, highest]."""
        found: Array = np.exp(highest(lambda t: self._precision_and_log_rate(np.exp(t))[1], self._low, self._high))
        return found

    def tangent(self, epsilon: Array, precision: Array) -> Array:
        """From where cost over precision, counted from a point of the cost curve, is least: one epsilon for each owner."""

        def falling(t: Array) -> Array:
            q, log_rate = self._precision_and_log_rate(np.exp(t))
            found: Array = np.expm1(np.exp(t)) - np.expm1(epsilon) - (q - precision) * np.exp(-log_rate)
            return found

        found: Array = np.exp(falling_root(falling, np.log(self.peak), self._high))
        return found

    @cached_property
    def entries(self) -> tuple[Array, Array, Array]:
        """The least price at which each owner takes part, the epsilon there, and the price of a jump from it, or infinity."""
        low, none = self.owners.lowest, np.zeros(len(self.owners))
        efficient = self.tangent(none, none)
        by_low, by_efficient = (self.owners.costs(e) / self.precision(e) for e in (low, efficient))
        enters = np.where(by_low <= by_efficient, low, efficient)
        start = self.precision(low)
        second = self.tangent(low, start)
        with np.errstate(divide="ignore", invalid="ignore"):
            jump = (self.owners.costs(second) - self.owners.costs(low)) / (self.precision(second) - start)
        jumps = (by_low <= by_efficient) & (second > low * (1 + 1e-6)) & np.isfinite(jump)
        return np.minimum(by_low, by_efficient), enters, np.where(jumps, jump, np.inf)

    @cached_property
    def _low(self) -> Array:
        return np.log(self.owners.lowest)

    @cached_property
    def _high(self) -> Array:
        return np.log(self.owners.highest)

    @cached_property
    def table(self) -> tuple[Array, Array, Array]:
        """Epsilons of the falling side of R, the price at which an owner gives each, and its precision: (nodes, owners) all."""
        nodes = np.exp(np.linspace(np.log(self.peak), self._high, NODES)).clip(self.owners.lowest, self.owners.highest)
        q, log_rate = self._precision_and_log_rate(nodes)
        return nodes, np.maximum.accumulate(self.owners.cost * np.exp(-log_rate), axis=0), q

    def _inside(self, price: float) -> Array:
        """Where price R = c on the falling side of R, or the end that is nearest."""
        nodes, asked, _ = self.table
        after = (asked < price).sum(0)
        ends = [np.take_along_axis(nodes, np.clip(after + k, 0, NODES - 1)[None], 0)[0] for k in (-1, 0)]
        with np.errstate(divide="ignore"):
            wanted = np.maximum(np.log(self.owners.cost) - np.log(price), -1e300)
        root = falling_root(lambda t: self._precision_and_log_rate(np.exp(t))[1] - wanted, *map(np.log, ends))
        return np.exp(root).clip(*ends)

    def _precision_and_log_rate(self, epsilon: Array) -> tuple[Array, Array]:
        """q and log R = log q' - eps, where q' = -q^2 A a' / n^2."""
        a, slope = self.learner.noise.variance_and_slope(epsilon)
        n, s, amplification = self.owners.records, self.learner.sampling, self.learner.amplification
        q = precisions(np.broadcast_to(n, a.shape).ravel(), a.ravel(), s, amplification).reshape(a.shape)
        return q, np.log(-slope * amplification) + 2 * np.log(q / n) - epsilon


def post(price: float, owners: OwnerTerms, learner: LearnerTerms, supply: Supply | None = None) -> PostedPrice:
    """Post a price for a unit of precision, and let every owner answer.

    Parameters
    ----------
    price : float
        Above 0, in the learner's currency.
    supply : Supply, optional
        Of the same owners and learner, where it has been made before.

    Raises
    ------
    SettingsInvalid (HR-511)
        The price is not a finite number above 0.
    """
    if not (math.isfinite(price) and price > 0):
        raise SettingsInvalid(f"a price of {price!r}.", remedy="Give a finite number above 0.")
    sold = supply or Supply(owners, learner)
    return _posted(price, sold.answers(price), sold)


def posted_nothing(supply: Supply) -> PostedPrice:
    """What follows from buying nothing: the price 0, and nobody takes part."""
    return _posted(0.0, np.zeros(len(supply.owners)), supply)


def _posted(price: float, epsilons: Array, sold: Supply) -> PostedPrice:
    """What follows from a price and answers to it."""
    owners, learner = sold.owners, sold.learner
    part = epsilons > 0
    some = np.where(part, epsilons, owners.lowest)
    q = np.where(part, sold.precision(some), 0.0)
    weights = np.zeros(len(owners))
    if part.any():
        a = learner.noise.variance(epsilons[part])
        weights[part] = best_weights(owners.records[part], a, learner.sampling, learner.amplification)
    return PostedPrice(
        price,
        epsilons,
        q,
        weights,
        price * q,
        np.where(part, owners.costs(some), 0.0),
        sold.deviation_gains(price, epsilons),
        sold.entries[0],
        learner.relative_fitness(float(q.sum())),
        learner.value,
    )
