"""How a plan's payments follow from its price, so that whoever reads the page can multiply: price n^2 / (s n + A a)."""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.market.coalitions import precisions
from hedgerow.report import Grid

from .owners_plan import OwnersPlan, PlannedOwner, money

DIGITS = 9
"""Significant digits of s, A and a: enough for the second decimal of a payment of a million."""


def delivered(plan: OwnersPlan, part: tuple[PlannedOwner, ...]) -> tuple[Array, Array]:
    """Variance of each owner's noise on a coordinate of its sum, and its precision."""
    n, epsilons = np.array([one.records for one in part], float), np.array([one.epsilon for one in part])
    a = plan.noise.variance(epsilons)
    return a, precisions(n, a, plan.known.sampling, plan.known.amplification)


def payments_grid(plan: OwnersPlan, part: tuple[PlannedOwner, ...]) -> Grid:
    """What each of these owners, which take part, delivers and is paid."""
    rows = []
    for one, variance, precision in zip(part, *(each.tolist() for each in delivered(plan, part)), strict=True):
        rows.append((one.name, one.records, _told(variance), _told(precision), money(one.payment or 0.0)))
    s, amplification = _told(plan.known.sampling), _told(plan.known.amplification)
    before = f" Each is paid its cost of epsilon {plan.spent:g}, which was spent before, too." if plan.spent else ""
    note = (
        f"Precision is n² / (s n + A a), with n records, s = {s}, A = {amplification}, and a the variance of the owner's "
        f"noise on each number of its sum. A payment is the price of {plan.price!r} times it.{before}"
    )
    return Grid("Payments", ("owner", "records n", "variance a", "precision", "payment"), tuple(rows), note)


def _told(value: float) -> str:
    return f"{value:.{DIGITS}g}"
