"""Guards: a party's own policy, which has the last word.

The server's ledger says what the federation may release. A guard keeps the party's own ledger, under the party's own
budget: before the party answers, its guard debits the question, or declines it. A party whose budget is spent stops by
itself, and the others go on (as in PriMIA, Kaissis et al. 2021).

What a guard charges is what it can know without trusting more than it wants to:

    trust       what counts as noise                                                otherwise
    nobody      noise that the party adds itself, as a mechanism or in training     the answer is not private
    parties     also noise of which every party adds a share                        the same
    server      also noise that the server promises to add                          the same

Being sampled protects nobody from who sees who answers, so a cohort of parties is charged as if everybody had been asked. A
sample of its own records is the party's secret and does amplify.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from hedgerow.core.bound import describe
from hedgerow.core.channel import Position, Shield
from hedgerow.core.events import FREE, Event, Sampling
from hedgerow.core.ledger import Entry, Ledger, Record
from hedgerow.core.query import Query
from hedgerow.errors import BudgetExhausted, BudgetInvalid, CheckpointMismatch, HedgerowError, PartyDeclined

from .budget import Budget

log = logging.getLogger("hedgerow")

Trust = Literal["nobody", "parties", "server"]

COUNTS: dict[Trust, tuple[Position, ...]] = {
    "nobody": ("party",),
    "parties": ("party", "shares"),
    "server": ("party", "shares", "server"),
}
"""Whose noise a party counts, by whom it trusts."""


class Guard:
    """The guard of one party: a ledger of its answers, and a budget.

    Parameters
    ----------
    budget : Budget
        What the party may lose, over everything that it ever answers and this guard's record knows.
    record : Record, optional
        Keeps the ledger. `hedgerow.runs.LedgerBase(path)`, made anew by each process, carries the party's budget from run
        to run, and keeps apart what belongs to different lives of the party's secrets.
    trust : {"nobody", "parties", "server"}
        Whose noise counts.
    """

    def __init__(self, budget: Budget, record: Record | None = None, *, trust: Trust = "nobody") -> None:
        if trust not in COUNTS:
            raise BudgetInvalid(f"a guard cannot trust {trust!r}.", remedy=f"One of {', '.join(COUNTS)}.")
        self.budget, self.trust = budget, trust
        self.ledger = Ledger(budget, record)

    def __repr__(self) -> str:
        return f"Guard({self.budget}; trusts {self.trust}; {self.spent:.4g} spent)"

    @property
    def spent(self) -> float:
        """The epsilon of everything that the party has answered."""
        return self.budget.spent(self.ledger.charges(self.budget.unit))

    def debit(self, query: Query) -> None:
        """Write a question to the party's ledger, or decline it while nothing has left.

        Raises
        ------
        BudgetExhausted (HR-213)
            The answer would exceed the party's budget.
        MixedUnits (HR-215)
            The question is bounded for another unit than the party's budget.
        PartyDeclined (HR-221)
            The answer would leave without noise that counts; or it is said to be paid for, and this ledger has no payment.
        """
        self.take(entry_of(query, self.trust))

    def take(self, entry: Entry) -> None:
        """Debit an entry that `entry_of` made; many guards can share one. Raises as `debit`."""
        if entry.event.kind == "nonprivate" and math.isfinite(self.budget.epsilon):
            raise PartyDeclined(f"{entry.query} would leave without noise that counts for a party that trusts {self.trust}.")
        if entry.event.kind == "prepaid" and not self._paid(entry.mechanism):
            raise PartyDeclined(f"{entry.query} is said to be paid for, but no question to {entry.mechanism} was charged here.")
        self.ledger.debit(entry)

    def rewind(self, queries: int, *, replay: bool) -> None:
        """Return to where the federation had asked so many questions, for a resumed run.

        Parameters
        ----------
        replay : bool
            The same questions will be asked again, and answered with the same noise, as in a simulation with a seed: they
            are not charged twice. A deployed party never does this: it cannot know that a question is the same.
        """
        entries = self.ledger.entries
        length = next((i for i, entry in enumerate(entries) if entry.round > queries), len(entries))
        self.ledger.rewind(length, replay=replay)

    def _paid(self, mechanism: str) -> bool:
        return any(entry.mechanism == mechanism and entry.event.kind not in FREE for entry in self.ledger.entries)


def entry_of(query: Query, trust: Trust = "nobody") -> Entry:
    """Return a question as a party's ledger has it."""
    shield = query.shield
    private = _counts(shield, trust)
    event = Event("none") if query.verb == "each" else shield.event if private else Event("nonprivate")
    sampling = _sampling(query)
    return Entry(
        round=query.number,
        cohort=query.cohort if sampling.kind == "records" else 0,
        verb=query.verb,
        query=query.name,
        parties=1.0,
        numbers=0 if query.verb == "each" else None,
        contribution="",
        bytes_up=None,
        bytes_down=0.0,
        bound=describe(shield.bounds),
        clip=describe(shield.clip),
        compression=str(shield.compression or "none"),
        mechanism=shield.noise if private else "none",
        aggregation="",
        unit=shield.unit,
        event=event,
        sampling=sampling,
        randomness=query.streams.source,
    )


def willing(guards: Mapping[str, Guard], ids: Sequence[str], query: Query) -> tuple[Sequence[str], dict[str, str]]:
    """Let the guards of the parties that were asked debit a question; call it before any of them computes.

    Parameters
    ----------
    guards : mapping from party to Guard
        A party without one answers everything.
    ids : sequence of str
        The parties that the question reaches: also those whose answers come too late to count.

    Returns
    -------
    (sequence of str, dict of str)
        The parties that answer, which is `ids` itself where all do; and for each of the others the code of its reason.

    Raises
    ------
    BudgetExhausted (HR-213)
        Nobody is left: all budgets are spent. `drive` then ends with the last state.
    PartyDeclined (HR-221)
        Nobody is left, for other reasons.
    """
    codes: dict[str, str] = {}
    entries: dict[Trust, Entry] = {}
    for name in ids if guards else ():
        guard = guards.get(name)
        if guard is None:
            continue
        if guard.trust not in entries:
            entries[guard.trust] = entry_of(query, guard.trust)
        try:
            guard.take(entries[guard.trust])
        except CheckpointMismatch:  # the simulation was resumed with something else
            raise
        except HedgerowError as error:  # the sentence stays here, the code travels
            log.info("%s: its guard declined %s: %s", name, query.name, error)
            codes[name] = error.code
    if not codes:
        return ids, codes
    left = tuple(name for name in ids if name not in codes)
    if not left:
        raise _nobody(query, codes)
    return left, codes


def _nobody(query: Query, codes: Mapping[str, str]) -> HedgerowError:
    if set(codes.values()) == {BudgetExhausted.code}:
        return BudgetExhausted(
            f"all {len(codes)} parties that were asked for {query.name} declined: their own budgets are spent.",
            remedy="What was released stands. Only the parties can allow more.",
            asked=True,
        )
    said = ", ".join(sorted(set(codes.values())))
    remedy = "The reasons are in the parties' logs: what they ask for is noise that they can count, and their own unit."
    return PartyDeclined(
        f"all {len(codes)} parties that were asked for {query.name} declined: {said}.", codes=dict(codes), remedy=remedy
    )


def rewind_all(guards: Iterable[Guard], queries: int, *, replay: bool) -> None:
    """`Guard.rewind` for each, where a run is resumed."""
    for guard in guards:
        guard.rewind(queries, replay=replay)


def _counts(shield: Shield, trust: Trust) -> bool:
    """Whether the party counts the noise of a shield."""
    if shield.plan is not None:
        return True
    return shield.mechanism is not None and shield.mechanism.at in COUNTS[trust]


def _sampling(query: Query) -> Sampling:
    """The sampling that this party may count on, or has to pay for."""
    sampling = query.sampling
    if sampling.kind == "records":
        return sampling
    if query.shield.unit == "party" and not query.shield.at_parties and sampling.kind != "poisson":
        return sampling  # the party's presence may push another out: twice the distance
    return Sampling()
