"""Rules: refusals of a question while nobody has been asked, one function each.

A rule looks at one question with its release, and raises or does nothing. The budget is not among them: the ledger, which is
last, admits the question and writes it in one transaction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hedgerow.errors import CohortTooSmall, UnlawfulChannel

from .channel import Channel, refuse_nobody
from .engine import Outbox
from .events import Sampling
from .ledger import Entry, Ledger


@dataclass(frozen=True)
class Proposal:
    """One question before it is put.

    Attributes
    ----------
    outbox : Outbox
        The question, its release, and the layout of the answer where it is known.
    channel : Channel
    parties : int
        In the federation, which is public.
    moves_state : bool
        Whether the answer may depend on what parties keep, or change it.
    entry : Entry
        As it would be debited.
    ledger : Ledger
    why : str
        Why the layout of the answer is not known.
    disclosed : callable
        Refuses where too many exact numbers would be asked; nothing where nobody knows what parties hold.
    least : int
        Of fewer parties those who add up give no total, whatever the aggregation says.
    """

    outbox: Outbox
    channel: Channel
    parties: int
    moves_state: bool
    entry: Entry
    ledger: Ledger
    why: str = ""
    disclosed: Callable[[], None] = lambda: None
    least: int = 0


Rule = Callable[[Proposal], None]

MOVED = {
    "fixed": "one party more would push another out, whose later answers differ as well",
    "records": "what parties keep may tell of records that are not in the sample",
}
"""Why a cohort of this kind and what parties keep do not go together."""

RARE = 2.0**-40
"""Chance of a cohort too small to hide its rows that is accepted of a rate."""


def spare_answers(proposal: Proposal) -> None:
    """Refuse a race for the first answers where an aggregation adds up whoever answers (HR-211)."""
    question, aggregation = proposal.outbox.question, proposal.channel.aggregation
    if question.verb == "sum" and question.cohort.first is not None and aggregation.hides_rows:
        raise UnlawfulChannel(
            f"sample(size=..., spare=...) counts who answers first, but {aggregation.name} aggregation adds up whoever "
            "answers.",
            remedy="Leave spare out: parties may drop out without it.",
        )


def telling_size(proposal: Proposal) -> None:
    """Refuse a rate of which cohorts may be too small to hide their rows: that one was would tell who is in it, unpaid.

    Raises
    ------
    CohortTooSmall (HR-240)
        Only an empty cohort is answered, by noise; another one below `least` would be refused.
    """
    question, release = proposal.outbox.question, proposal.outbox.release
    sampling, least = question.cohort.sampling, proposal.channel.aggregation.least
    least = max(least, proposal.least) if proposal.channel.aggregation.aggregators else least
    if question.verb != "sum" or sampling.kind != "poisson" or release.mechanism is None or release.before_server:
        return
    others, rate = proposal.parties - 1, sampling.rate
    few = sum(_binomial(others, k, rate) for k in range(min(least, others + 1))) if rate < 1 else 0.0
    if few > RARE:
        raise CohortTooSmall(
            f"a cohort of {question.name}, drawn from {proposal.parties} parties at a rate of {rate:g}, has fewer than {least} "
            f"with a chance of {few:.2g}, and that it was refused would tell of who is in it.",
            remedy="Take a higher rate, or a cohort of a fixed size: sample(size=...).",
        )


def fitting_total(proposal: Proposal) -> None:
    """Refuse what the aggregation cannot hide or hold (HR-211, HR-240, HR-243)."""
    if proposal.outbox.question.verb == "sum" and proposal.outbox.ids:
        proposal.channel.aggregation.fit(proposal.outbox)


def somebody_adds_noise(proposal: Proposal) -> None:
    """Refuse a sum that is charged for noise of aggregators where there are none to add it (HR-211)."""
    if proposal.outbox.question.verb != "each":
        refuse_nobody(proposal.outbox.release.mechanism, proposal.channel.aggregation)


def fitting_release(proposal: Proposal) -> None:
    """Refuse a contribution that clip, bounds or noise do not fit (HR-214, HR-222)."""
    if proposal.outbox.layout is not None and proposal.outbox.question.verb != "each":
        proposal.outbox.release.fit(proposal.outbox.layout)


def known_shape(proposal: Proposal) -> None:
    """Refuse noise on a contribution whose keys and shapes are not known beforehand (HR-211): they would tell of records."""
    outbox = proposal.outbox
    if outbox.question.verb == "each" or outbox.layout is not None:
        return
    if outbox.release.mechanism is not None or outbox.release.plan is not None:
        raise UnlawfulChannel(
            f"the shape of what {outbox.question.name} returns is not known before parties are asked ({proposal.why}), and a "
            "shape that records decide tells of them, whatever the noise.",
            remedy="Give the federation a schema, and return arrays whose shapes follow from it, settings and the broadcast.",
        )


def known_distance(proposal: Proposal) -> None:
    """Refuse a cohort whose sampling does not cover everything that the answer depends on (HR-211).

    No distance between neighbours is known for it.
    """
    question, release = proposal.outbox.question, proposal.outbox.release
    sampling: Sampling = question.cohort.sampling
    kind = sampling.kind
    if kind == "records" and release.unit == "party":
        raise UnlawfulChannel(
            f"{question.name} is bounded per party, but its cohort is a sample of records.",
            remedy="Bound it per record, or sample parties: sample(rate=...).",
        )
    if release.mechanism is None or (release.before_server and kind != "records"):
        return
    if proposal.moves_state and kind in MOVED:
        raise UnlawfulChannel(
            f"{question.name} reads what parties keep, or leaves something there, and its cohort is {sampling}: {MOVED[kind]}.",
            remedy="Sample by a rate, sample(rate=...), or ask everybody.",
        )
    if question.cohort.first is not None and release.unit == "record":
        raise UnlawfulChannel(
            f"{question.name} is bounded per record, and of its cohort the first answers count: how long a party takes may "
            "depend on a record, and a whole party would stand in another's place.",
            remedy="Leave spare out, or clip per party.",
        )


def covered_by_a_charge(proposal: Proposal) -> None:
    """Refuse a question that cites a charge for another unit, bound or cohort (HR-211)."""
    entry = proposal.entry
    if not entry.cites:
        return
    payment = proposal.ledger.payment(entry.key)
    if payment is None or payment.round != entry.cites or _terms(payment) != _terms(entry):
        paid = "nothing" if payment is None else f"bound {payment.bound}, clip {payment.clip}, {payment.sampling}"
        raise UnlawfulChannel(
            f"{entry.query}, bound {entry.bound}, clip {entry.clip}, {entry.sampling}, would be covered by "
            f"{entry.mechanism}, and what was paid for is {paid}.",
            remedy="Keep bound, clip and cohort the same in all questions of one mechanism.",
        )


def few_numbers(proposal: Proposal) -> None:
    """Refuse more exact numbers than the values that a party holds allow (HR-216)."""
    proposal.disclosed()


RULES: tuple[Rule, ...] = (
    spare_answers,
    telling_size,
    somebody_adds_noise,
    fitting_total,
    fitting_release,
    known_shape,
    known_distance,
    covered_by_a_charge,
    few_numbers,
)
"""In the order in which they are looked at; the ledger's budget comes after them."""


def _terms(entry: Entry) -> tuple[Any, ...]:
    drawn = entry.sampling.kind in ("poisson", "records", "fixed")
    cohort = (entry.sampling, entry.drawn, entry.cohort) if drawn else ()
    return entry.unit, entry.bound, entry.clip, entry.sampling.kind, cohort, entry.part


def _binomial(n: int, k: int, rate: float) -> float:
    """Chance of k among n."""
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(rate) + (n - k) * math.log1p(-rate))
