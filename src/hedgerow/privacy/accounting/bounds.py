"""What a list of charges costs, by the accountant of one's choice.

A charge is a cohort and the events that were released from it (`core.events`); `costs` says what the way in which it was
drawn means. Every accountant gives an upper bound on epsilon at the same delta, or infinity, so the smallest of them is a
bound too:

    basic      epsilons and deltas add                                      `composition`
    advanced   Dwork, Rothblum & Vadhan 2010, or `basic` where it is smaller `composition`
    zcdp       zero-concentrated (Bun & Steinke 2016)                       `composition`
    rdp        Renyi divergences (Mironov 2017), converted as in Canonne, Kamath & Steinke 2020          `renyi`
    moments    Renyi divergences at the orders 2 to 33, converted as in 2017, which is how many published numbers were
               computed; valid, and never below `rdp`
    pld        privacy loss distributions on a grid of 1e-4, rounded up; exact where all is Gaussian without sampling
    tightest   the least of all but `moments`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Literal, get_args

from hedgerow.core.events import Charge
from hedgerow.errors import BudgetInvalid, suggestion

from . import composition, losses, renyi
from .costs import Adjacency, Costs, Use, as_one_gaussian, costs
from .gaussian import gaussian_delta, gaussian_epsilon

Accountant = Literal["pld", "rdp", "zcdp", "advanced", "basic", "moments", "tightest"]

_LARGEST_FOR_PLD = 50.0  # the grid of a larger epsilon takes many seconds, and no such epsilon protects anybody
_SMALLEST_FOR_PLD = 1e-12  # below this delta the rounding of Fourier transforms counts
_LEAST_DELTA = 1e-300


def epsilon(charges: Iterable[Charge], *, delta: float, adjacency: Adjacency, accountant: Accountant = "tightest") -> float:
    """Return an epsilon at which everything in `charges` together is (epsilon, delta)-differentially private.

    Parameters
    ----------
    charges : iterable of Charge
        Cohorts with their events. Equal charges are composed by their count, so thousands of rounds are cheap; a `Counter`
        of charges is taken as so many of each.
    delta : float
        In [0, 1). At 0 every accountant gives the sum of the pure epsilons.
    adjacency : {"add-remove", "replace-one"}
        Neighbours differ by one unit that is there or not, or in the data of one unit. It has no default, as an epsilon
        means little without it.
    accountant : {"tightest", "pld", "rdp", "zcdp", "advanced", "basic", "moments"}
        `tightest` is the smallest of all but `moments`. It leaves out `pld` where the others exceed 50.

    Returns
    -------
    float
        0 when nothing was released, infinity when something was released without noise, or at delta 0 with noise that has no
        pure epsilon, as Gaussian noise.

    Raises
    ------
    BudgetInvalid (HR-214)
        `delta`, `adjacency`, `accountant`, a number of an event or a sampling rate is out of its range, or the kind of an
        event or of a sampling is unknown.
    """
    if not 0 <= delta < 1:
        raise BudgetInvalid(
            f"delta {delta:g} is not between 0 and 1",
            remedy="Choose it well below one over the number of units; 0 where all noise is Laplace's or otherwise pure.",
        )
    _check(adjacency, accountant)
    return _epsilon(costs(charges, adjacency), delta, accountant)


def delta(charges: Iterable[Charge], *, epsilon: float, adjacency: Adjacency, accountant: Accountant = "tightest") -> float:
    """Return a delta at which everything in `charges` together is (epsilon, delta)-differentially private.

    The privacy curve read the other way, for rules that fix epsilon and stop when delta has grown to a threshold.

    Parameters
    ----------
    epsilon : float
        At least 0.
    charges, adjacency, accountant
        As of `epsilon`. `tightest` leaves out `pld` where the others exceed 0.5.

    Returns
    -------
    float
        0 when nothing was released or a pure epsilon covers it, 1 when something was released without noise.

    Raises
    ------
    BudgetInvalid (HR-214)
        `epsilon` is negative, or as `epsilon`.
    """
    if not 0 <= epsilon < math.inf:
        raise BudgetInvalid(f"epsilon {epsilon:g} is not a finite number from 0 on", remedy="Values from 0.1 to 10 are usual.")
    _check(adjacency, accountant)
    return _delta(costs(charges, adjacency), epsilon, accountant)


def _check(adjacency: str, accountant: str) -> None:
    if adjacency not in get_args(Adjacency):
        raise BudgetInvalid(f"no adjacency is called {adjacency!r}", remedy=suggestion(adjacency, get_args(Adjacency)))
    if accountant not in get_args(Accountant):
        raise BudgetInvalid(f"no accountant is called {accountant!r}", remedy=suggestion(accountant, get_args(Accountant)))


@lru_cache(maxsize=512)
def _epsilon(costs: Costs, delta: float, accountant: Accountant, grid: float = losses.GRID) -> float:
    if not costs:
        return 0.0
    if any(cost.open for cost, _ in costs):
        return math.inf
    if delta == 0:
        return composition.basic(costs, -composition.leak(costs))
    if accountant == "tightest":
        quick = min(_epsilon(costs, delta, name) for name in _QUICK)
        return quick if quick > _LARGEST_FOR_PLD and not _exact(costs) else min(quick, _pld(costs, delta, grid))
    if accountant == "pld":
        return _pld(costs, delta, grid)
    return _QUICK.get(accountant, _moments)(costs, delta - composition.leak(costs))


@lru_cache(maxsize=512)
def _delta(costs: Costs, epsilon: float, accountant: Accountant) -> float:
    if not costs:
        return 0.0
    if any(cost.open for cost, _ in costs):
        return 1.0
    if accountant == "tightest":
        quick = min(_delta(costs, epsilon, name) for name in _QUICK)
        return quick if (quick > 0.5 or quick == 0) and not _exact(costs) else min(quick, _pld_delta(costs, epsilon))
    if accountant == "pld":
        return _pld_delta(costs, epsilon)
    if accountant == "rdp":
        return min(1.0, composition.leak(costs) + composition.renyi_delta(costs, epsilon))
    return _inverted(costs, epsilon, accountant)


def _inverted(costs: Costs, epsilon: float, accountant: Accountant) -> float:
    """Return the least delta whose epsilon is small enough, to a thousandth and from above."""
    leaked = composition.leak(costs)
    if accountant == "basic" and composition.basic(costs, 0.0) <= epsilon:
        return min(1.0, leaked)
    price = _QUICK.get(accountant, _moments)
    low, high = math.log(_LEAST_DELTA), 0.0
    if price(costs, 1 - 1e-12) > epsilon:
        return 1.0
    if price(costs, _LEAST_DELTA) <= epsilon:
        return min(1.0, leaked + _LEAST_DELTA)
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if price(costs, math.exp(middle)) <= epsilon else (middle, high)
    return min(1.0, leaked + math.exp(high))


def _moments(costs: Costs, delta: float) -> float:
    if delta <= 0:
        return math.inf
    return renyi.classic_epsilon(renyi.total_curve(costs, renyi.MOMENTS), delta, renyi.MOMENTS)


_QUICK: dict[str, Callable[[Costs, float], float]] = {
    "basic": composition.basic,
    "advanced": composition.advanced,
    "zcdp": composition.zcdp,
    "rdp": composition.renyi,
}


def _pld(costs: Costs, delta: float, grid: float) -> float:
    z = _exact(costs)
    if z:
        return gaussian_epsilon(z, delta)
    total = losses.total_loss(costs, grid) if delta >= _SMALLEST_FOR_PLD else None
    return math.inf if total is None else total.epsilon(delta)


def _pld_delta(costs: Costs, epsilon: float) -> float:
    z = _exact(costs)
    if z:
        return gaussian_delta(z, epsilon)
    total = losses.total_loss(costs)
    return 1.0 if total is None else min(1.0, max(_SMALLEST_FOR_PLD, total.delta(epsilon)))


def _exact(costs: Costs) -> float:
    """Return the multiplier of the one Gaussian that everything together is, without sampling; 0 where it is none."""
    uses = [(losses.unsampled(cost), count) for cost, count in costs if isinstance(cost, Use)]
    plain = all(use.kind == "gaussian" and use.rate == 1 for use, _ in uses) and len(uses) == len(costs)
    return as_one_gaussian(uses)[0][0].noise_multiplier if plain else 0.0
