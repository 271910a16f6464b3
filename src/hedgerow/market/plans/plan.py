"""With whom, at which epsilon, at what price: a plan for owners' answers to gradient queries, made before the first of them.

With a value of fitness, and costs
    price     the learner's best one for a unit of precision (`best_price`), rounded up to six digits
    epsilon   each owner's own best answer to it, rounded down to four digits; to more of them, where four would cost the owner
              more than a millionth, or all that it gains
Without
    epsilon   the highest that each owner offers, rounded down to four digits

Then, with these rounded numbers and no others
    weight    n / (s n + A a(epsilon)), the largest being 1, to four digits                     (`best_weights`)
    payment   price n^2 / (s n + A a(epsilon)); and, where a private question was asked before, its cost, to everybody
    forecast  bias + sum_l w_l^2 (s n_l + A a_l) / (sum_l w_l n_l)^2, over f(theta*)            (`excess`)
    interval  5 % and 95 % of the law of one run's sum of squares, wider by the doubt           (`KnownLoss.run_ends`)

So what is printed is what is used, charged and paid.

Releases : nothing. Records and costs are declared by their owners, and s, A, bias and f(theta*) are public or paid for.
Unit     : record.
Source   : derived from `coalitions`, `prices` and `propagation`; Wu 2019, chapters 3 and 4, asks the questions. Advantage:
           Yeom et al. 2018 define it; here it is delta at epsilon 0 of the plan's own noise, which is its least upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, ROUND_UP, Decimal

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.errors import BudgetInvalid, SettingsInvalid
from hedgerow.market.coalitions import best_prefix, best_weights, equal_excess, excess, precisions, weighted_excess
from hedgerow.market.forecasts.known_loss import KnownLoss
from hedgerow.market.prices.posted import LearnerTerms, OwnerTerms, Supply
from hedgerow.market.prices.price_search import best_price
from hedgerow.market.prices.sum_noise import SumNoise, separation

from .owner_offer import OwnerOffer
from .owners_plan import OwnersPlan, PlannedFitness, PlannedOwner

DIGITS, MOST_DIGITS = 4, 12
"""Significant digits of epsilons and weights; and of an epsilon that has to lie nearer to an owner's best answer."""

PRICE_DIGITS = 6
GAIN = 1e-6
"""By so much of the learner's currency rounding may lower what an owner gains."""

SHARE = 0.9
"""Of single runs that lie in the interval."""

FACTORS = (*(float(f) for f in np.geomspace(0.3, 1.0, 4)[:-1]), *(float(f) for f in np.geomspace(1.0, 3.0, 4)))
"""By which all epsilons are multiplied for the curve."""


def plan(
    offers: Mapping[str, OwnerOffer],
    known: KnownLoss,
    noise: SumNoise,
    *,
    value: float | None = None,
    spent: float = 0.0,
    spent_delta: float = 0.0,
    title: str = "",
    digest: str = "",
) -> OwnersPlan:
    """Plan with whom, at which epsilon and at what price to ask.

    Parameters
    ----------
    offers : mapping from owner to OwnerOffer
    known : KnownLoss
        Of the loss and the steps, from public records, a private question, declared bounds or numbers.
    noise : SumNoise
        Law, horizon and radius of the answers: what an epsilon makes of the noise.
    value : float, optional
        What one unit of relative fitness less is worth to the learner; then every offer has a cost. Without it nobody is paid,
        and everybody answers at its highest epsilon.
    spent, spent_delta : float
        Epsilon that each owner spent before, on the private question, at that delta; budgets cover it.
    title, digest : str
        A heading, and what identifies all that the plan is made from.

    Raises
    ------
    SettingsInvalid (HR-511)
        No owner; a value without costs; numbers out of their range.
    BudgetInvalid (HR-214)
        The private question costs as much as an owner offers.
    """
    names = tuple(offers)
    refuse_offers(offers, value, spent)
    n = np.array([offers[name].records for name in names], float)
    low, high = _ranges(offers, spent)
    s, amplification = known.sampling, known.amplification
    price, supply = None, None
    if value is None:
        epsilons = np.array([_rounded_down(h, l, h) for l, h in zip(low, high, strict=True)])
    else:
        if not amplification:
            raise SettingsInvalid(
                f"noise has no part in the result of {noise.horizon} question(s), so that no epsilon is worth a price: the "
                "rule's average is still where it started, or the loss has no curvature.",
                remedy="Ask more questions (rounds), or look at the curvature that [pilot] gives.",
            )
        costs = np.array([float(offers[name].cost or 0.0) for name in names]) * math.exp(spent)
        nothing = math.inf if known.begin is None else known.begin / known.least
        learner = LearnerTerms(noise, s, amplification, known.bias, known.least, value, nothing)
        supply = Supply(OwnerTerms(n, costs, low, high), learner)
        best = best_price(supply.owners, learner)
        if not best.takes_part.any():
            raise SettingsInvalid(
                f"no price is worth paying: coefficients of zero, of relative fitness {nothing:.3g}, cost nothing.",
                remedy="Look at costs, epsilons and records of the owners, or at the value of a unit of relative fitness.",
            )
        price = rounded(best.price, PRICE_DIGITS, ROUND_UP)
        epsilons = _answers(supply, price)
    taken = epsilons > 0
    if not taken.any():
        raise SettingsInvalid("no owner takes part at any price.", remedy="Look at costs and records: the value is too small.")
    a = noise.variance(np.where(taken, epsilons, high))
    weights = np.zeros(len(n))
    weights[taken] = [rounded(w, DIGITS, ROUND_DOWN) for w in best_weights(n[taken], a[taken], s, amplification)]
    owners = _owners(offers, known, noise, epsilons, weights, a, price, supply, spent, spent_delta)
    members = n[taken], a[taken], weights[taken]
    first = best_prefix(n, a, s, amplification, known.bias)
    return OwnersPlan(
        title,
        owners,
        fitness_of(known, *members),
        fitness_of(known, *members, own=True),
        noise,
        price,
        value,
        equal_excess(n, a, s, amplification, known.bias) / known.least,
        weighted_excess(n, a, s, amplification, known.bias) / known.least,
        tuple(name for name, member in zip(names, first.members, strict=True) if member),
        first.excess / known.least,
        spent,
        known,
        digest,
        spent_delta,
    )


def fitness_of(known: KnownLoss, records: Array, variances: Array, weights: Array, *, own: bool = False) -> PlannedFitness:
    """The relative fitness that owners of these records, noise variances and public weights reach together.

    Parameters
    ----------
    records, variances, weights : arrays of shape (owners,)
    own : bool
        On their own records, where only unequal weights lead away from the best theta; else on everybody like them.
    """
    total = float(excess(weights, records, variances, known.sampling, known.amplification, known.bias))
    size = float(weights @ records) ** 2
    variance, share = float(np.square(weights) @ variances) / size, float(np.square(weights) @ records) / size
    fitted = min(share, 1 / float(records.sum())) if own else 0.0
    total, share = total - known.sampling * fitted, share - fitted
    ends = known.run_ends(SHARE, variance, share)
    f = known.least
    saturated = known.begin is not None and total > known.begin
    parts = (known.amplification * variance / f, known.bias / f, known.sampling * share / f)
    return PlannedFitness(total / f, ends[0] / f, ends[1] / f, *parts, saturated, known.doubt(variance, share))


@dataclass(frozen=True)
class ScaledForecast:
    """What would come of all epsilons multiplied by a factor.

    Attributes
    ----------
    factor : float
    fitness : PlannedFitness
        With the best weights of this factor.
    equal : float
        Expected relative fitness with equal weights.
    """

    factor: float
    fitness: PlannedFitness
    equal: float


def scaled(found: OwnersPlan, factors: Sequence[float] = ()) -> tuple[ScaledForecast, ...]:
    """Forecasts of a plan whose epsilons are all multiplied by the same factor, for each of several: `FACTORS` by default.

    Raises
    ------
    SettingsInvalid (HR-511)
        A factor is not above zero.
    """
    wrong = [factor for factor in factors if not 0 < factor < math.inf]
    if wrong:
        raise SettingsInvalid(f"a factor of {wrong[0]!r} on epsilons.", remedy="Give finite factors above zero.")
    known, part = found.known, found.coalition
    n, epsilons = np.array([one.records for one in part], float), np.array([one.epsilon for one in part])
    s, amplification = known.sampling, known.amplification
    forecasts = []
    for factor in factors or FACTORS:
        a = found.noise.variance(epsilons * factor)
        fitness = fitness_of(known, n, a, best_weights(n, a, s, amplification))
        forecasts.append(ScaledForecast(factor, fitness, equal_excess(n, a, s, amplification, known.bias) / known.least))
    return tuple(forecasts)


def advantage(noise: SumNoise, epsilons: Array, spent: float = 0.0, spent_delta: float = 0.0) -> Array:
    """Power less false alarms of the best attack on whether a record took part: 2 P(right) - 1; same shape as epsilons.

    Of Gaussian noise exactly, from the curve of all questions together; of Laplace noise tanh(epsilon / 2), which plain
    addition of epsilons allows. Where neighbours differ by replacing, a record that is there or not moves sums half as far.

    Parameters
    ----------
    epsilons : array
        Of the plan's questions; 0 of owners that are not asked.
    spent, spent_delta : float
        Of the question before, which all owners answered: its noise is Laplace's where that delta is 0.
    """
    e, half = np.asarray(epsilons, float), 2 if noise.neighbours == "replace-one" else 1
    pure = (e if noise.law == "laplace" else 0 * e) + (0.0 if spent_delta else spent)
    mu = np.zeros(e.shape)
    if noise.law == "gaussian":
        mu = np.where(e > 0, separation(np.maximum(e, 1e-12), noise.delta), 0.0)
    if spent and spent_delta:
        mu = np.hypot(mu, separation(np.array([spent]), spent_delta))
    kept = (1 - np.tanh(pure / half / 2)) * (2 - 2 * scipy.special.ndtr(mu / half / 2))  # chances of two overlaps multiply
    found: Array = 1 - kept
    return found


def refuse_offers(offers: Mapping[str, OwnerOffer], value: float | None, spent: float) -> None:
    """Refuse offers of which no plan could be made, whatever is known of the loss; errors as `plan`."""
    if not offers:
        raise SettingsInvalid("a plan of no owner.", remedy="Give at least one offer.")
    free = [name for name, offer in offers.items() if offer.cost is None]
    if value is not None and free:
        raise SettingsInvalid(
            f"no cost of {', '.join(free[:5])}.", remedy="Prices need a cost of every owner; or give no value."
        )
    if value is not None and not 0 < value < math.inf:
        raise SettingsInvalid(f"a value of {value!r}.", remedy="Give what one unit of relative fitness is worth, above zero.")
    poor = [name for name, offer in offers.items() if offer.epsilon[1] <= spent]
    if poor or not 0 <= spent < math.inf:
        raise BudgetInvalid(
            f"the question before the plan costs epsilon {spent!r}, all that {', '.join(poor[:5]) or 'an owner'} offers.",
            remedy="Ask it with a smaller epsilon, or leave these owners out.",
        )


def _ranges(offers: Mapping[str, OwnerOffer], spent: float) -> tuple[Array, Array]:
    """Epsilons that are left for the plan's questions; where the least is spent already, from a hundredth of the rest on."""
    ends = [tuple(_less(end, spent) for end in offer.epsilon) for offer in offers.values()]
    high = np.array([end for _, end in ends])
    low = np.array([end for end, _ in ends])
    return np.where(low > 0, low, high / 100), high


def _answers(supply: Supply, price: float) -> Array:
    """Owners' best answers to a price, rounded down to as few digits as cost them next to nothing."""
    best = supply.answers(price)
    part = best > 0
    owners = supply.owners
    at = np.where(part, best, owners.lowest)
    own = supply.gains(price, at)
    found, open_ = at.copy(), part.copy()
    for digits in range(DIGITS, MOST_DIGITS + 1):
        tried = np.array([_rounded_down(e, l, h, digits) for e, l, h in zip(at, owners.lowest, owners.highest, strict=True)])
        gains = supply.gains(price, tried)
        fine = open_ & (own - gains <= GAIN / 2) & (gains >= 0)
        found, open_ = np.where(fine, tried, found), open_ & ~fine
        if not open_.any():
            break
    return np.where(part, found, 0.0)


def _owners(
    offers: Mapping[str, OwnerOffer],
    known: KnownLoss,
    noise: SumNoise,
    epsilons: Array,
    weights: Array,
    a: Array,
    price: float | None,
    supply: Supply | None,
    spent: float,
    spent_delta: float,
) -> tuple[PlannedOwner, ...]:
    """Each owner's line."""
    n = np.array([offer.records for offer in offers.values()], float)
    q = np.where(epsilons > 0, precisions(n, a, known.sampling, known.amplification), 0.0)
    rest = np.append(0.0, np.cumsum(q)[:-1]) + np.append(np.cumsum(q[::-1])[-2::-1], 0.0)  # a difference would cancel
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.where(q > 0, q / (rest * q.sum()), 0.0)
    if known.begin is not None:  # zeros cost nobody anything
        lost = np.minimum(lost, max(known.begin - known.bias - 1 / q.sum(), 0.0))
    without = lost / known.least
    told = advantage(noise, epsilons, spent, spent_delta)
    gains = np.zeros(len(n)) if supply is None or price is None else supply.deviation_gains(price, epsilons)
    found = []
    for k, (name, offer) in enumerate(offers.items()):
        e = float(epsilons[k])
        one = PlannedOwner(
            name=name,
            records=offer.records,
            budget=_more(e, spent) if e else spent,
            epsilon=e,
            weight=float(weights[k]),
            without=float(without[k]),
            advantage=float(told[k]),
        )
        if price is not None and supply is not None:
            c = float(offer.cost or 0.0)
            one = replace(
                one,
                payment=price * float(q[k]) + c * math.expm1(spent),
                cost=c * math.expm1(one.budget),
                deviation=float(gains[k]),
                entry=float(supply.entries[0][k]),
            )
        found.append(one)
    return tuple(found)


def _rounded_down(value: float, low: float, high: float, digits: int = DIGITS) -> float:
    """A value in a range with so few digits, never above it; below the least that is offered it stays as it is."""
    if low == high or value == low:
        return float(value)
    found = rounded(value, digits, ROUND_DOWN)
    return float(value) if found < low else found


def rounded(value: float, digits: int, how: str) -> float:
    """A value with so many significant digits, up or down as `decimal` has it."""
    exact = Decimal(repr(float(value)))
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), how)) if value else 0.0


def _less(value: float, other: float) -> float:
    """A difference without a binary tail."""
    return float(Decimal(repr(float(value))) - Decimal(repr(float(other))))


def _more(value: float, other: float) -> float:
    """A sum without a binary tail."""
    return float(Decimal(repr(float(value))) + Decimal(repr(float(other))))
