"""The accountants read backwards: noise for a budget, rounds for a noise, and the largest sampling rate.

Each answer is on the safe side: its own epsilon was computed and is at most what was asked for. Epsilon grows with rounds,
rate and the inverse of the noise, so the search is for the largest of these that fits. Quick accountants find the
neighbourhood, and the accountant of choice is asked only there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Literal

from hedgerow.core.events import Charge, Event, Sampling
from hedgerow.errors import BudgetInvalid, suggestion

from . import bounds
from .bounds import Accountant
from .costs import Adjacency, costs
from .losses import GRID, ROUGH

Law = Literal["gaussian", "laplace"]
Drawn = Literal["all", "poisson", "records", "fixed", "given"]

_MOST_NOISE, _LEAST_NOISE = 1e9, 1e-3
_MOST_ROUNDS = 10**12
_LEAST_RATE = 1e-9


def calibrate(
    target_epsilon: float,
    delta: float,
    *,
    rounds: int = 1,
    rate: float = 1.0,
    law: Law = "gaussian",
    sampling: Drawn = "poisson",
    accountant: Accountant = "tightest",
    adjacency: Adjacency = "add-remove",
) -> float:
    """Return the least noise multiplier at which so many rounds stay within a budget, to 1e-4 and never below it.

    Parameters
    ----------
    target_epsilon, delta : float
        The budget.
    rounds : int
        Cohorts, each asked once.
    rate : float
        Probability that a unit is in the cohort; counts for `poisson` and `records`, and for `fixed` with `replace-one`.
    law : {"gaussian", "laplace"}
        Of the noise.
    sampling : {"poisson", "records", "all", "fixed", "given"}
        How cohorts are drawn (`core.events.Sampling`).
    accountant, adjacency
        As of `epsilon`.

    Raises
    ------
    BudgetInvalid (HR-214)
        A value is out of its range, or no noise is enough.

    Examples
    --------
    >>> round(calibrate(1.0, 1e-5, rounds=100), 1)
    37.3
    """
    _check(target_epsilon, rounds)

    def charges(z: float) -> Counter[Charge]:
        return Counter({charge_of(z, rate=rate, law=law, sampling=sampling): rounds})

    return least_noise(charges, target_epsilon, delta, accountant=accountant, adjacency=adjacency)


def least_noise(
    charges: Callable[[float], Counter[Charge]],
    target_epsilon: float,
    delta: float,
    *,
    accountant: Accountant = "tightest",
    adjacency: Adjacency = "add-remove",
    price: Callable[[Counter[Charge]], float] | None = None,
) -> float:
    """Return the least noise multiplier at which charges stay within a budget, to 1e-4 and never below it.

    Parameters
    ----------
    charges : callable
        From a noise multiplier to everything that is charged with it; more noise never costs more.
    price : callable, optional
        Epsilon of charges, in place of the accountant: `Budget.spent` of a budget with a filter.

    Notes
    -----
    Other parameters, and what it raises, as of `calibrate`.
    """
    _check(target_epsilon, 1)
    prices = _prices(lambda inverse: charges(1 / inverse), delta, adjacency, accountant)
    if price is not None:
        prices = [(lambda inverse: price(charges(1 / inverse)), 2.0, 1e-4)]
    inverse = _largest(prices, target_epsilon, 1.0, 1 / _MOST_NOISE, 1 / _LEAST_NOISE)
    if inverse is None:
        raise BudgetInvalid(
            f"no noise multiplier up to {_MOST_NOISE:g} keeps everything at delta {delta:g} within epsilon "
            f"{target_epsilon:g} by the accountant {accountant!r}",
            remedy="Ask fewer rounds, sample at a lower rate, allow more epsilon, or use accountant='tightest'.",
        )
    return 1 / inverse


def most_rounds(
    noise_multiplier: float,
    *,
    epsilon: float,
    delta: float,
    rate: float = 1.0,
    law: Law = "gaussian",
    sampling: Drawn = "poisson",
    accountant: Accountant = "tightest",
    adjacency: Adjacency = "add-remove",
) -> int:
    """Return how many rounds at this noise a budget allows. Parameters as of `calibrate`."""
    charge = charge_of(noise_multiplier, rate=rate, law=law, sampling=sampling)
    return rounds_left(charge, epsilon=epsilon, delta=delta, accountant=accountant, adjacency=adjacency)


def rounds_left(
    charge: Charge,
    *,
    epsilon: float,
    delta: float,
    spent: Iterable[Charge] = (),
    accountant: Accountant = "tightest",
    adjacency: Adjacency = "add-remove",
) -> int:
    """Return how many times `charge` may come on top of what was spent; at most 1e12.

    Parameters
    ----------
    charge : Charge
        One round: its sampling and its events.
    epsilon, delta : float
        The budget.
    spent : iterable of Charge
        What was released before, as `ledger.charges(unit)` gives it.
    """
    _check(epsilon, 1)
    before = Counter(spent)
    prices = _prices(lambda n: before + Counter({charge: int(n)}), delta, adjacency, accountant)
    return int(_largest(prices, epsilon, 1, 1, _MOST_ROUNDS, whole=True) or 0)


def largest_rate(
    noise_multiplier: float,
    *,
    epsilon: float,
    delta: float,
    rounds: int,
    law: Law = "gaussian",
    accountant: Accountant = "tightest",
    adjacency: Adjacency = "add-remove",
) -> float:
    """Return the largest Poisson sampling rate at which so many rounds fit; 0 where not even one in a billion does."""
    _check(epsilon, rounds)

    def charges(rate: float) -> Counter[Charge]:
        return Counter({charge_of(noise_multiplier, rate=rate, law=law): rounds})

    return _largest(_prices(charges, delta, adjacency, accountant), epsilon, 0.01, _LEAST_RATE, 1.0) or 0.0


def charge_of(noise_multiplier: float, *, rate: float = 1.0, law: Law = "gaussian", sampling: Drawn = "poisson") -> Charge:
    """Return one round: a cohort that is asked for one noisy sum."""
    if law not in ("gaussian", "laplace"):
        raise BudgetInvalid(f"no noise is called {law!r}", remedy=suggestion(law, ("gaussian", "laplace")))
    return Sampling(sampling, rate), (Event(law, noise_multiplier),)


Price = Callable[[float], float]


def _prices(
    charges: Callable[[float], Counter[Charge]], delta: float, adjacency: Adjacency, accountant: Accountant
) -> list[tuple[Price, float, float]]:
    """Return accountants from quick to exact, each with the factor by which it steps and how close it ends."""
    bounds.epsilon((), delta=delta, adjacency=adjacency, accountant=accountant)  # refuses what is out of range

    def by(name: Accountant, grid: float = GRID) -> Price:
        return lambda x: bounds._epsilon(costs(charges(x), adjacency), delta, name, grid)

    if accountant not in ("pld", "tightest"):
        return [(by(accountant), 2.0, 1e-4)]
    return [(by("rdp"), 2.0, 0.02), (by(accountant, ROUGH), 1.1, 0.002), (by(accountant), 1.002, 1e-4)]


def _largest(
    prices: list[tuple[Price, float, float]], target: float, start: float, least: float, most: float, *, whole: bool = False
) -> float | None:
    """Return the largest value whose price by the last accountant is at most `target`; `None` if not even `least` is."""
    found: float | None = start
    for price, factor, close in prices:
        low, high = _around(price, target, found or least, factor, (least, most), whole)
        found = low if low is None or high is None else _between(price, target, low, high, close, whole)
    return found


def _around(
    price: Price, target: float, x: float, factor: float, ends: tuple[float, float], whole: bool
) -> tuple[float | None, float | None]:
    """Return a value that fits and a larger one that does not, in ever longer steps from `x`; `None` for one beyond."""
    least, most = ends
    low, high = (x, None) if price(x) <= target else (None, x)
    while low is None or high is None:
        y = low * factor if low is not None else high / factor  # type: ignore[operator]
        y = (math.ceil(y) if low is not None else math.floor(y)) if whole else y
        y = min(max(y, least), most)
        if y in (low, high):
            break
        low, high = (y, high) if price(y) <= target else (low, y)
        factor *= factor
    return low, high


def _between(price: Price, target: float, low: float, high: float, close: float, whole: bool) -> float:
    """Return a value that fits, `close` to one that does not: regula falsi on logarithms, and bisection where it creeps."""
    p_low, p_high, creeps = price(low), price(high), False
    while high - low > (1 if whole else close * low):
        width = math.log(high / low)
        fraction = 0.5
        if not creeps and 0 < p_low < p_high < math.inf:
            fraction = math.log(target / p_low) / math.log(p_high / p_low)
            beyond = 0.4 * close / width  # just beyond the estimate, so that both ends close in
            fraction = min(max(fraction + (beyond if fraction < 0.5 else -beyond), beyond), 1 - beyond)
        x = low * math.exp(width * min(max(fraction, 0.0), 1.0))
        x = min(max(round(x), low + 1), high - 1) if whole else x
        if not low < x < high:
            break
        p = price(x)
        low, p_low, high, p_high = (x, p, high, p_high) if p <= target else (low, p_low, x, p)
        creeps = not creeps and math.log(high / low) > width / 2
    return low


def _check(epsilon: float, rounds: int) -> None:
    if not 0 < epsilon < math.inf:
        raise BudgetInvalid(
            f"epsilon {epsilon:g} is not a finite number above 0", remedy="Values between 0.1 (strong) and 10 (weak) are usual."
        )
    if rounds < 1:
        raise BudgetInvalid(f"{rounds:g} rounds are not a plan", remedy="Plan at least one round.")
