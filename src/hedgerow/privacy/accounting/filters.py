"""Privacy filters: stopping rules that hold also where a question's noise and sampling follow from earlier answers.

Accountants (`bounds`) price a list of charges that was fixed before the first answer: functions and broadcasts may follow
from answers, and a program may stop early, but how noisy a question is and how its cohort is drawn may not (Dong, Roth & Su
2022, Theorem 3.2; Zhu, Dong & Wang 2022). Where these follow from answers too, the rule "go on while the epsilon of what was
asked is within the budget" is not a theorem. After each first answer another second question may be the one whose
distribution of losses hurts most, and each of the two lists alone is within the budget (Rogers, Roth, Ullman & Vadhan 2016;
`tests/privacy/test_filters.py` counts an example). A filter adds up one number for each question, chosen before the first:

    rdp    Renyi divergence of one order a        while the sum is at most B(a)    Feldman & Zrnic 2021, Theorem 3.1
    zcdp   rho                                    while the sum is at most rho     Whitehouse et al. 2023, Theorem 1
    gdp    mu^2 = 1/z^2                           while the sum is at most mu^2    Smith & Thakurta 2022; Koskela et al. 2023
    basic  pure epsilon, and what leaks           while the sums are at most (epsilon, delta)      Rogers et al. 2016

with B(a), rho and mu what converts to (epsilon, delta). Why it holds, for `rdp`: let L be the loss after t questions, and R
the sum of the divergences that were chosen on the way. Given everything before, the next question multiplies
exp((a - 1) (L - R)) by a number of mean at most 1 under the data with the unit. So its mean stays at most 1, and where
R <= B always holds, the mean of exp((a - 1) L) is at most exp((a - 1) B): the divergence of order a of the whole is at most B.

The order is fixed before the first answer. To stop where no order is left, each with the budget of its own, is a bound for a
fixed list only: on each path another order may be the one that is left. Over m orders it takes delta / m for each.

What a unit gives in several parts of a partition, and cohorts that are asked again:

- Of the parts of a partition a unit is in one, which no answer decides. The dearest list of uses counts (`costs.dearest`).
- The first question to a Poisson cohort is amplified. After its answer who was drawn is no longer independent of what is
  known, so a further question to the same cohort counts in full. Of several, that one counts as the first for which
  amplification saves least, so that a sum does not depend on their order.
- What an `approximate` mechanism leaks is a delta beside the losses. Only `basic` has a place for it; elsewhere it is refused.

A filter's guarantee is its limit. How far the sum has come is no epsilon: to stop by an answer and to claim what was used so
far is an odometer, which costs more (Rogers et al. 2016).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

import scipy

from hedgerow.core.events import Charge
from hedgerow.errors import BudgetInvalid, suggestion

from . import renyi
from .composition import rho_of
from .costs import Adjacency, CohortCost, Cost, Use, dearest
from .gaussian import gaussian_epsilon, gaussian_noise

Filter = Literal["rdp", "zcdp", "gdp", "basic"]

ORDERS: renyi.Orders = (2.0, *(order for order in renyi.ORDERS if order >= 3))
"""Among which an order is chosen: below 3 the curve of a sampled Gaussian cannot always be computed, but at 2."""

SLACK = 1e-9
"""Relative error of a sum that grows one by one; rounding contributes less than 2e-16 for each addition."""

NAMES = {
    "rdp": "Renyi filter (Feldman & Zrnic 2021)",
    "zcdp": "zCDP filter (Whitehouse et al. 2023)",
    "gdp": "Gaussian filter (Smith & Thakurta 2022)",
    "basic": "filter of basic composition (Rogers et al. 2016)",
}


class Measure(NamedTuple):
    """What a filter adds up: `order` is that of `rdp`, else 0."""

    filter: Filter
    order: float = 0.0

    def __str__(self) -> str:
        return NAMES[self.filter] + f", order {self.order:g}" * (self.filter == "rdp")


class Lost(NamedTuple):
    """What was added up: how many losses are infinite, the sum of the others, and what leaks beside."""

    n_infinite: int = 0
    loss: float = 0.0
    leak: float = 0.0

    def plus(self, other: Lost, times: int = 1) -> Lost:
        n_infinite = self.n_infinite + times * other.n_infinite
        return Lost(n_infinite, self.loss + times * other.loss, self.leak + times * other.leak)


def measure(filter: Filter, epsilon: float, delta: float, order: float | None = None) -> Measure:
    """Return what a filter for this budget adds up.

    Parameters
    ----------
    order : float, optional
        Of `rdp`; by default the one at which most Gaussians without sampling are admitted, a function of the budget alone.

    Raises
    ------
    BudgetInvalid (HR-214)
        There is no such filter, or an order is given that it does not have, or that is not above 1.
    """
    if filter not in get_args(Filter):
        raise BudgetInvalid(f"no filter is called {filter!r}", remedy=suggestion(filter, get_args(Filter)))
    if filter != "rdp":
        if order is not None:
            raise BudgetInvalid(f"the filter {filter!r} has no order, and {order:g} is given", remedy="Leave the order out.")
        return Measure(filter)
    if order is not None and not 1 < order < math.inf:
        raise BudgetInvalid(f"a Renyi order of {order:g} is not above 1", remedy="Orders such as 2 to 64 are usual.")
    return Measure(filter, _best_order(epsilon, delta) if order is None else float(order))


@lru_cache(maxsize=1024)
def limit(measure: Measure, epsilon: float, delta: float) -> float:
    """Return the largest sum of losses that is (epsilon, delta)-private; what leaks is limited by delta beside it.

    Returns
    -------
    float
        Negative where not even nothing is: an order so low that its conversion alone exceeds epsilon.
    """
    if epsilon == math.inf:
        return math.inf
    if measure.filter == "rdp":  # Canonne, Kamath & Steinke 2020, Proposition 12, solved for the divergence
        return epsilon - _conversion(measure.order, delta)
    if measure.filter == "zcdp":  # Bun & Steinke 2016, Proposition 1.3, solved for rho
        return (epsilon / (math.sqrt(epsilon - math.log(delta)) + math.sqrt(-math.log(delta)))) ** 2
    if measure.filter == "gdp":
        return gaussian_noise(epsilon, delta) ** -2
    return epsilon


def reading(measure: Measure, lost: Lost, delta: float) -> float:
    """Return the least epsilon of a budget at this delta under which as much would have been admitted."""
    if lost.n_infinite or lost.leak > delta:
        return math.inf
    if lost.loss <= 0:
        return 0.0
    if measure.filter == "rdp":
        return max(0.0, lost.loss + _conversion(measure.order, delta))
    if measure.filter == "zcdp":
        return lost.loss + 2 * math.sqrt(lost.loss * -math.log(delta))
    if measure.filter == "gdp":
        return gaussian_epsilon(lost.loss**-0.5, delta)
    return lost.loss


def within(measure: Measure, lost: Lost, epsilon: float, delta: float) -> bool:
    """Tell whether a filter for (epsilon, delta) still admits what has been lost."""
    if epsilon == math.inf:
        return True
    used, leaked = lost.loss * (1 + SLACK), lost.leak * (1 + SLACK)
    return not lost.n_infinite and used <= limit(measure, epsilon, delta) and leaked <= delta


def lost_by(measure: Measure, charges: Iterable[Charge], adjacency: Adjacency = "add-remove") -> Lost:
    """Return what a list of charges adds up to."""
    found = Lost()
    for (sampling, events), times in Counter(charges).items():
        found = found.plus(cohort_lost(measure, CohortCost(sampling, adjacency, events)), times)
    return found


def cohort_lost(measure: Measure, cohort: CohortCost) -> Lost:
    """Return what the questions to one cohort add up to, whatever the order in which they came."""
    uses, rate = Counter(cohort._uses), cohort._rate
    for parts in cohort._parts.values():
        uses.update(dearest(parts.values()))
    first = None
    if rate < 1 and uses.total() == 1:
        first = next(iter(uses))
    elif rate < 1 and uses and not cohort._parts:
        first = min(uses, key=lambda use: _saved(measure, use, rate))
    if first is not None:
        uses -= Counter([first])
        uses[first._replace(rate=rate * first.rate)] += 1
    found = Lost()
    for use, count in uses.items():
        found = found.plus(cost_lost(measure, use), count)
    return found


@lru_cache(maxsize=8192)
def cost_lost(measure: Measure, cost: Cost) -> Lost:
    """Return what one use adds up to."""
    loss = math.inf if cost.open or (cost.leak and measure.filter != "basic") else _loss(measure, cost)
    return Lost(0, loss, cost.leak) if math.isfinite(loss) else Lost(1, 0.0, cost.leak)


def _loss(measure: Measure, cost: Cost) -> float:
    if measure.filter == "rdp":
        return float(renyi.curve(cost, (measure.order,))[0])
    if measure.filter == "zcdp":
        return rho_of(cost)
    if measure.filter == "basic":
        return cost.pure
    if isinstance(cost, Use) and cost.kind == "gaussian":  # sampling does not amplify it: that is no Gaussian any more
        return 1 / cost.noise_multiplier**2
    return _gaussian_of_pure(cost.pure) ** 2


def _gaussian_of_pure(epsilon: float) -> float:
    """Return the least mu at which neighbours at a pure epsilon are as hard to tell as N(0, 1) and N(mu, 1).

    The trade-off of randomised response has its kink at errors of 1/(1 + e^epsilon) each, and that of the two normal
    variables is convex with the same ends, so it lies below where it does so at the kink.
    """
    return -2 * float(scipy.special.ndtri(scipy.special.expit(-epsilon))) if epsilon < 700 else math.inf


def _saved(measure: Measure, use: Use, rate: float) -> float:
    """What sampling takes off one use; infinity where it alone makes the loss finite."""
    whole, drawn = cost_lost(measure, use), cost_lost(measure, use._replace(rate=rate * use.rate))
    return math.inf if whole.n_infinite > drawn.n_infinite else whole.loss - drawn.loss


def _conversion(order: float, delta: float) -> float:
    return math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)


@lru_cache(maxsize=1024)
def _best_order(epsilon: float, delta: float) -> float:
    if epsilon == math.inf:
        return ORDERS[0]
    return max(ORDERS, key=lambda order: (epsilon - _conversion(order, delta)) / order)
