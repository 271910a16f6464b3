"""The learner's price: it names the one that is best for itself, knowing how owners answer (a Stackelberg game).

    maximise over price   -value x (bias + 1 / Q) / f* - price x Q,      Q(price) = sum_l q_l(answer_l(price))

Q rises with the price, smoothly but where an owner enters, jumps from its lowest epsilon into its range or reaches its highest.
These prices are known exactly (`Supply.entries`), and the best price is often one of them: just what makes somebody take part.

    1  each owner's supply as a table of price and precision, between these prices
    2  the learner's gain at all of them and on a grid of prices between, by the tables
    3  the best few, exactly, with owners' exact answers; around the best, the smooth pieces on either side by Brent's method

A price at which somebody enters is taken a billionth higher, so that the owner gains by entering.

Source: derived for `hedgerow.market`.
"""

from __future__ import annotations

import numpy as np
import scipy

from hedgerow.core.arrays import Array

from .posted import LearnerTerms, OwnerTerms, PostedPrice, Supply, post, posted_nothing

BETWEEN = 257
"""Prices of the grid."""

ABOVE = 1e-9
"""By so much of itself a price lies above one at which an owner is indifferent."""

SMALLEST = 1e-100
"""Least price, where precision is worth nothing and costs nothing."""

EXACTLY = 5
"""Prices that are looked at exactly before the best is refined."""


def best_price(owners: OwnerTerms, learner: LearnerTerms) -> PostedPrice:
    """Find the price that leaves the learner with most, and post it: 0 where nobody's precision is worth its price.

    Without a number of `LearnerTerms.nothing` the learner buys from somebody.
    """
    supply = Supply(owners, learner)

    def net(price: float) -> float:
        epsilons = supply.answers(price)
        part = epsilons > 0
        q = supply.precision(np.where(part, epsilons, owners.lowest))[part].sum()
        return -learner.value * learner.relative_fitness(float(q)) - price * float(q)

    prices = candidate_prices(supply)
    roughly = _tabled(supply, prices)
    with np.errstate(divide="ignore"):
        nets = np.where(roughly > 0, -learner.value * (learner.bias + 1 / roughly) / learner.least - prices * roughly, -np.inf)
    best, at = max((net(float(prices[k])), k) for k in np.argsort(nets)[-EXACTLY:])
    price = float(prices[at])
    for low, high in ((at - 1, at), (at, at + 1)):
        if low < 0 or high >= len(prices):
            continue
        found = scipy.optimize.minimize_scalar(
            lambda t: -net(float(np.exp(t))),
            bounds=(float(np.log(prices[low])), float(np.log(prices[high]))),
            method="bounded",
            options={"xatol": 1e-6},
        )
        if -found.fun > best:
            best, price = -found.fun, float(np.exp(found.x))
    if -learner.value * learner.nothing >= best:
        return posted_nothing(supply)
    return post(price, owners, learner, supply)


def candidate_prices(supply: Supply) -> Array:
    """All prices at which somebody's answer jumps or stops rising, and a grid between: in rising order."""
    entry, _, jump = supply.entries
    known = np.concatenate([np.concatenate([entry, jump]) * (1 + ABOVE), supply.table[1][-1]])
    known = known[np.isfinite(known) & (known > 0)]
    if not entry.all():  # an owner without a cost sells at any price: also at a billionth of what precision is worth
        learner, q = supply.learner, float(supply.precision(supply.owners.highest).sum())
        known = np.append(known, max(ABOVE * learner.value / (learner.least * q * q), SMALLEST))
    return np.unique(np.concatenate([known, np.geomspace(known.min(), known.max(), BETWEEN)]))


def _tabled(supply: Supply, prices: Array) -> Array:
    """Q at these prices, by each owner's table."""
    owners = supply.owners
    entry, enters, jump = supply.entries
    with np.errstate(divide="ignore"):
        asked, sold = (np.log(part) for part in supply.table[1:])
    low = supply.precision(owners.lowest)
    at = np.log(prices)
    total = np.zeros(len(prices))
    for k in range(len(owners)):
        inside = np.exp(np.interp(at, asked[:, k], sold[:, k]))
        before = enters[k] == owners.lowest[k]
        q = np.where(prices < jump[k], low[k], inside) if before and np.isfinite(jump[k]) else inside
        total += np.where(prices > entry[k], q, 0.0)
    return total
