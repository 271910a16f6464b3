"""Private questions that are refused before anybody is asked, since no distance between neighbours is known for them."""

from __future__ import annotations

import math
from typing import Any

from hedgerow.errors import CohortTooSmall, UnlawfulChannel

from .arrays import Layout
from .events import Sampling
from .ledger import Entry, Ledger
from .query import Query

MOVED = {
    "fixed": "one party more would push another out, whose later answers differ as well",
    "records": "what parties keep may tell of records that are not in the sample",
}
"""Why a cohort of this kind and what parties keep do not go together."""


def refuse_unknown_distance(query: Query, sampling: Sampling, layout: Layout | None, *, moves_state: bool) -> None:
    """Refuse a cohort whose sampling does not cover everything that the answer depends on.

    Parameters
    ----------
    layout : Layout or None
        Keys and shapes of the answer, where they are known.
    moves_state : bool
        Whether the answer may depend on what parties keep, or change it.
    """
    shield, kind = query.shield, sampling.kind
    if kind == "records" and shield.unit == "party":
        raise UnlawfulChannel(
            f"{query.name} is bounded per party, but its cohort is a sample of records.",
            remedy="Bound it per record, or sample parties: sample(rate=...).",
        )
    if shield.mechanism is None or (shield.at_parties and kind != "records"):
        return
    if moves_state and kind in MOVED:
        raise UnlawfulChannel(
            f"{query.name} reads what parties keep, or leaves something there, and its cohort is {sampling}: {MOVED[kind]}.",
            remedy="Sample by a rate, sample(rate=...), or ask everybody.",
        )
    if layout is None and kind == "poisson" and query.verb != "each":
        raise UnlawfulChannel(
            f"the cohort of {query.name} may be empty, and without a known shape of its total that would show.",
            remedy="Give the federation a schema, and the local function a result of a fixed shape.",
        )


RARE = 2.0**-40
"""Chance of a cohort too small to hide its rows that is accepted of a rate."""


def refuse_telling_size(query: Query, sampling: Sampling, parties: int, least: int) -> None:
    """Refuse a rate of which cohorts may be too small to hide their rows: that one was would tell who is in it, unpaid.

    Parameters
    ----------
    parties : int
        In the federation.
    least : int
        The smallest cohort whose total is formed; only an empty one is answered, by noise.
    """
    if sampling.kind != "poisson" or query.shield.mechanism is None or query.shield.at_parties:
        return
    others, rate = parties - 1, sampling.rate
    few = sum(_binomial(others, k, rate) for k in range(min(least, others + 1))) if rate < 1 else 0.0
    if few > RARE:
        raise CohortTooSmall(
            f"a cohort of {query.name}, drawn from {parties} parties at a rate of {rate:g}, has fewer than {least} with a "
            f"chance of {few:.2g}, and that it was refused would tell of who is in it.",
            remedy="Take a higher rate, or a cohort of a fixed size: sample(size=...).",
        )


def _binomial(n: int, k: int, rate: float) -> float:
    """Chance of k among n."""
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(rate) + (n - k) * math.log1p(-rate))


def refuse_unpaid(ledger: Ledger, entry: Entry) -> None:
    """Refuse a prepaid question about another unit, bound or cohort than was paid for."""
    payment = ledger.payment(entry.mechanism)
    if payment is None or _terms(payment) != _terms(entry):
        paid = "nothing" if payment is None else f"bound {payment.bound}, clip {payment.clip}, {payment.sampling}"
        raise UnlawfulChannel(
            f"{entry.query}, bound {entry.bound}, clip {entry.clip}, {entry.sampling}, would be covered by "
            f"{entry.mechanism}, and what was paid for is {paid}.",
            remedy="Keep bound, clip and cohort the same in all questions of one mechanism.",
        )


def _terms(entry: Entry) -> tuple[Any, ...]:
    drawn = entry.sampling.kind in ("poisson", "records", "fixed")
    return entry.unit, entry.bound, entry.clip, entry.sampling.kind, (entry.sampling, entry.cohort) if drawn else (), entry.part
