"""What a growing list of charges costs, kept up to date debit by debit: one more takes as long after ten as after ten thousand.

A `Running` decides as `bounds.epsilon` of the whole list would. It keeps counts of mechanisms, the sum of their Renyi
curves, and once Renyi divergences admit nothing more the privacy loss distribution of everything composed so far. Sums that
grow one by one are rounded otherwise than sums over the whole list, so each of them gives a range that holds the value of
the whole list. Only where a limit lies inside that range is the whole list priced.

For privacy filters it keeps the sums that they add up (`filters`), as exactly as they are over the whole list.

What a question costs does not depend on how many questions were asked. It grows with the number of different mechanisms for
the accountants `zcdp`, `advanced` and `basic`, and where the whole list is priced.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import NamedTuple, TypeGuard

import numpy as np

from hedgerow.core.events import Debit, Event, Sampling

from . import bounds, filters, losses, renyi
from .bounds import Accountant
from .costs import Adjacency, CohortCost, Cost, Costs, Use, in_order
from .distribution import Losses
from .filters import Lost, Measure
from .gaussian import gaussian_epsilon

SLACK = 1e-9
"""Relative error of a running sum. Rounding contributes less than `_ANEW` times 2e-16."""

_ANEW = 1 << 16  # additions after which a sum is made anew from the counts
_LOSS_SLACK = 1e-6  # relative error of an epsilon read from a distribution
_FOURIER = 1e-13  # of delta, for each use: what one Fourier transform rounds and cuts off, measured below 1e-15


class Change(NamedTuple):
    """What one debit changes: counts of mechanisms that are gained, and those that a growing cohort loses for them."""

    gained: Counter[Cost]
    lost: Counter[Cost]


class Sums(NamedTuple):
    """Of some mechanisms: how many protect nothing, how many are not Gaussian without sampling, and what those that are add."""

    n_open: int = 0
    n_rest: int = 0
    precision: float = 0.0
    leak: float = 0.0

    def plus(self, costs: Iterable[tuple[Cost, int]], sign: int = 1) -> Sums:
        n_open, n_rest, precision, leak = self
        for cost, count in costs:
            n = sign * count
            leak += n * cost.leak
            if cost.open:
                n_open += n
            elif _plain(cost):
                precision += n / cost.noise_multiplier**2
            else:
                n_rest += n
        return Sums(n_open, n_rest, precision, leak)


class RunningCurve:
    """A sum of Renyi curves; infinite divergences are counted apart, so that they can be taken off again.

    Attributes
    ----------
    n : int
        Additions since it was made.
    """

    def __init__(self, orders: renyi.Orders, costs: Iterable[tuple[Cost, int]] = ()) -> None:
        self.orders, self.n = orders, 0
        self._finite, self._infinite = np.zeros(len(orders)), np.zeros(len(orders), np.int64)
        self.add(costs)
        self.n = 0

    def add(self, costs: Iterable[tuple[Cost, int]], sign: int = 1) -> None:
        for cost, count in costs:
            if not cost.open:
                found = renyi.curve(cost, self.orders)
                known = np.isfinite(found)
                self._finite += sign * count * np.where(known, found, 0.0)
                self._infinite += sign * count * ~known
                self.n += 1

    def copy(self) -> RunningCurve:
        found = RunningCurve(self.orders)
        found._finite, found._infinite, found.n = self._finite.copy(), self._infinite.copy(), self.n
        return found

    @property
    def values(self) -> renyi.Curve:
        return np.where(self._infinite > 0, math.inf, self._finite)


class RunningLoss(NamedTuple):
    """A privacy loss distribution and how many uses are in it; `found` is None of nothing, or where it is `unknown`."""

    found: Losses | None = None
    n: int = 0
    unknown: bool = False

    def plus(self, costs: Counter[Cost]) -> RunningLoss:
        found, n = self.found, self.n
        for cost, count in in_order(+costs):
            one = losses.loss(cost, count) if not self.unknown else None
            if one is None:
                return RunningLoss(None, n, unknown=True)
            found, n = one if found is None else found.compose(one), n + count
        return RunningLoss(found, n, self.unknown)


class Running:
    """Costs of everything that was released.

    Parameters
    ----------
    adjacency : {"add-remove", "replace-one"}
        As of `accounting.epsilon`.

    Attributes
    ----------
    mark : int
        The same for those that are the same (`same`), whatever the order in which they grew; seldom the same for others.
    """

    def __init__(self, adjacency: Adjacency = "add-remove") -> None:
        self.adjacency = adjacency
        self._counts: Counter[Cost] = Counter()
        self._cohorts: dict[Hashable, CohortCost] = {}
        self._sums = Sums()
        self._curves: dict[renyi.Orders, RunningCurve] = {}
        self._lost: dict[Measure, Lost] = {}
        self._last: Hashable = None  # the cohort that may grow next; its costs are not in `_base`
        self._last_costs: Counter[Cost] = Counter()
        self._base: RunningLoss | None = None
        self._pending: Counter[Cost] = Counter()
        self.mark = 0
        self._made: deque[tuple[RunningLoss, Counter[Cost], RunningLoss]] = deque(maxlen=4)

    def add(self, debit: Debit) -> None:
        """Charge a debit."""
        cohort, change = self._change(debit)
        for measure in self._lost:
            self._lost[measure] = self._lost_with(measure, debit.cohort, cohort)
        if not cohort.additive:
            self._settle(debit.cohort)
            if debit.cohort not in self._cohorts:
                self.mark += hash(debit.cohort)
            self._cohorts[debit.cohort] = cohort
        for cost, count in change.lost.items():
            self._counts[cost] -= count
            if not self._counts[cost]:
                del self._counts[cost]
        self._counts.update(change.gained)
        for costs, sign in ((change.gained, 1), (change.lost, -1)):
            self.mark += sum(sign * count * hash(cost) for cost, count in costs.items())
        self._sums = self._sums.plus(change.gained.items()).plus(change.lost.items(), -1)
        for curve in self._curves.values():
            curve.add(change.gained.items())
            curve.add(change.lost.items(), -1)
        if cohort.additive:
            self._pending.update(_rest(change.gained))
        else:
            self._last_costs = _rest(cohort.costs())

    def would(self, debit: Debit, epsilon: float, delta: float, accountant: Accountant = "tightest") -> bool:
        """Whether everything with one more debit is (epsilon, delta)-private by an accountant."""
        _, change = self._change(debit)
        decided = self._decided(change, epsilon, delta, accountant)
        return bounds._epsilon(self.costs(change), delta, accountant) <= epsilon if decided is None else decided

    def stays_within(self, debit: Debit, measure: Measure, epsilon: float, delta: float) -> bool:
        """Whether a filter for (epsilon, delta) admits everything with one more debit."""
        self.lost(measure)
        cohort, _ = self._change(debit)
        return filters.within(measure, self._lost_with(measure, debit.cohort, cohort), epsilon, delta)

    def lost(self, measure: Measure) -> Lost:
        """Return what a filter has added up, as `filters.lost_by` of the whole list."""
        if measure not in self._lost:
            alone, found = Counter(self._counts), Lost()
            for cohort in self._cohorts.values():
                alone.subtract(cohort.costs())
                found = found.plus(filters.cohort_lost(measure, cohort))
            for cost, count in alone.items():
                found = found.plus(filters.cost_lost(measure, cost), count) if count else found
            self._lost[measure] = found
        return self._lost[measure]

    def epsilon(self, delta: float, accountant: Accountant = "tightest") -> float:
        """Return the epsilon of everything, as `accounting.epsilon` of the whole list."""
        return bounds._epsilon(self.costs(), delta, accountant)

    def costs(self, change: Change | None = None) -> Costs:
        """Return every mechanism with the number of its uses, as `costs` of the whole list."""
        return in_order(self._counts if change is None else self._counts - change.lost + change.gained)

    def copy(self) -> Running:
        """Return a copy that grows by itself."""
        found = Running(self.adjacency)
        vars(found).update(vars(self))
        found._counts, found._cohorts, found._pending = Counter(self._counts), dict(self._cohorts), Counter(self._pending)
        found._made, found._lost = self._made.copy(), dict(self._lost)
        found._curves = {orders: curve.copy() for orders, curve in self._curves.items()}
        return found

    def same(self, other: Running) -> bool:
        """Whether everything that comes later will cost the same here and there."""
        return self._counts == other._counts and self._cohorts == other._cohorts

    # ---- inside -----------------------------------------------------------------------------------------------------
    def _change(self, debit: Debit) -> tuple[CohortCost, Change]:
        before = self._cohorts.get(debit.cohort)
        if before is None:
            cohort = _alone(debit.sampling, self.adjacency, debit.event, debit.part)
            return cohort, Change(cohort.costs(), Counter())
        cohort = before.plus(debit.event, debit.part)
        old, new = before.costs(), cohort.costs()
        return cohort, Change(new - old, old - new)

    def _lost_with(self, measure: Measure, key: Hashable, cohort: CohortCost) -> Lost:
        """What a filter has added up, where a cohort that is asked once more costs so much."""
        before = self._cohorts.get(key)
        found = self._lost[measure].plus(filters.cohort_lost(measure, cohort))
        return found if before is None else found.plus(filters.cohort_lost(measure, before), -1)

    def _settle(self, key: Hashable) -> None:
        """Let another cohort be the one that may grow."""
        if self._last == key and key in self._cohorts:
            return
        self._pending.update(self._last_costs)
        if key in self._cohorts:
            self._pending.subtract(_rest(self._cohorts[key].costs()))
        self._last, self._last_costs = key, Counter()

    def _decided(self, change: Change, epsilon: float, delta: float, accountant: Accountant) -> bool | None:
        """The decision, where running sums are enough for it."""
        sums = self._sums.plus(change.gained.items()).plus(change.lost.items(), -1)
        if epsilon == math.inf or sums.n_open:
            return epsilon == math.inf
        if accountant == "tightest" and not sums.n_rest and self._by_losses(change, sums, epsilon, delta):
            return True  # one Gaussian, whose curve is known exactly and quickly
        if accountant in ("rdp", "moments", "tightest"):
            low, high = self._renyi(change, sums, delta, renyi.MOMENTS if accountant == "moments" else renyi.ORDERS)
            fits = _sure(low, high, epsilon)
            if fits is not False or accountant != "tightest":
                return fits
            if high > bounds._LARGEST_FOR_PLD:
                return None
        if accountant in ("pld", "tightest"):
            fits = self._by_losses(change, sums, epsilon, delta)
            return fits if fits is not False or accountant == "pld" else self._by_sums(change, epsilon, delta)
        return None

    def _by_sums(self, change: Change, epsilon: float, delta: float) -> bool:
        """Whether one of the simple theorems of composition is enough."""
        costs = self.costs(change)
        names: tuple[Accountant, ...] = ("zcdp", "advanced", "basic")
        return any(bounds._epsilon(costs, delta, name) <= epsilon for name in names)

    def _renyi(self, change: Change, sums: Sums, delta: float, orders: renyi.Orders) -> tuple[float, float]:
        """A range that holds the epsilon by Renyi divergences."""
        if orders not in self._curves or self._curves[orders].n > _ANEW:
            self._curves[orders] = RunningCurve(orders, self._counts.items())
        curve = self._curves[orders].copy()
        curve.add(change.gained.items())
        curve.add(change.lost.items(), -1)
        convert = renyi.classic_epsilon if orders is renyi.MOMENTS else renyi.epsilon_of
        low, high = (
            convert(curve.values * (1 + error), left, orders) if (left := delta - sums.leak * (1 + error)) > 0 else math.inf
            for error in (-SLACK, SLACK)
        )
        return low, high

    def _by_losses(self, change: Change, sums: Sums, epsilon: float, delta: float) -> bool | None:
        """Whether the privacy loss distribution of everything is enough, where its errors leave no doubt."""
        z = sums.precision**-0.5 if sums.precision > 0 else 0.0
        if not sums.n_rest:
            low, high = (gaussian_epsilon(z * (1 + error), delta) if z else 0.0 for error in (SLACK, -SLACK))
            return _sure(low, high, epsilon)
        if delta < bounds._SMALLEST_FOR_PLD:
            return False
        extra = self._last_costs + _rest(change.gained)
        extra.subtract(_rest(change.lost))
        if min(extra.values(), default=0) < 0:  # an older cohort grows, which is in the base
            return None
        settled = self._settled()
        if change.lost:
            total = self._composed(settled, extra)
        else:  # in two steps, of which the next question finds the results
            total = self._composed(self._composed(settled, self._last_costs), _rest(change.gained))
        if total.found is None:
            return False
        plain = losses.loss(Use("gaussian", z), 1) if z else None
        found = total.found if plain is None else total.found.compose(plain)
        near = (found.delta(epsilon * (1 + sign * _LOSS_SLACK)) for sign in (1, -1))
        low, high = (at + sign * _FOURIER * total.n for at, sign in zip(near, (-1, 1), strict=True))
        return _sure(low, high, delta)

    def _settled(self) -> RunningLoss:
        """The distribution of everything but Gaussians without sampling and the cohort that may grow."""
        if self._base is None or min(self._pending.values(), default=0) < 0:
            self._base, self._pending = RunningLoss().plus(_rest(self._counts) - self._last_costs), Counter()
        self._base = self._composed(self._base, self._pending)
        self._pending = Counter()
        return self._base

    def _composed(self, base: RunningLoss, costs: Counter[Cost]) -> RunningLoss:
        if not +costs:
            return base
        for before, more, found in self._made:
            if before is base and more == costs:
                return found
        found = base.plus(costs)
        self._made.append((base, Counter(costs), found))
        return found


@lru_cache(maxsize=1024)
def _alone(sampling: Sampling, adjacency: Adjacency, event: Event, part: tuple[Hashable, int] | None) -> CohortCost:
    return CohortCost(sampling, adjacency).plus(event, part)


def _sure(low: float, high: float, limit: float) -> bool | None:
    """Whether a value in this range is at most a limit; None where it depends on the value."""
    return True if high <= limit else False if low > limit else None


def _plain(cost: Cost) -> TypeGuard[Use]:
    """Whether it is a Gaussian without sampling, many of which are one."""
    return isinstance(cost, Use) and cost.kind == "gaussian" and losses.unsampled(cost).rate == 1


def _rest(costs: Counter[Cost]) -> Counter[Cost]:
    return Counter({cost: count for cost, count in costs.items() if not _plain(cost)})
