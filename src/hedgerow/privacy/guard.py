"""Guards: a party's own policy, which has the last word.

The server's ledger says what the federation may release. A guard keeps the party's own ledger, under the party's own
budget: before the party answers, its guard debits the question, or declines it. A party whose budget is spent stops by
itself, and the others go on (as in PriMIA, Kaissis et al. 2021).

What a guard charges is what it can know without trusting more than it wants to:

    trust       what counts as noise                                                otherwise
    nobody      noise that the party adds itself, as a mechanism or in training     the answer is not private
    parties     also noise of which every party adds a share                        the same
    aggregators also the noise of each aggregator, one of whom is honest            the same
    server      also noise that the server promises to add                          the same

Each line needs more trust in fewer: in `least` of many parties, in one of a few aggregators, in the server. Noise by
aggregators counts once, with the multiplier of one of them: the others may tell theirs.

Being sampled protects nobody from who sees who answers, so a cohort of parties is charged as if everybody had been asked. A
sample of its own records is the party's secret and does amplify.

Where one payment covers several questions, such as those of a tree, the party pays for all of them with the first that it
answers itself, whatever others were charged before. A payment holds for one life of the federation's secrets, one
mechanism and one bound, and for that span of questions alone.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hedgerow.core.bound import describe
from hedgerow.core.engine import Outbox
from hedgerow.core.events import Event, Sampling
from hedgerow.core.ledger import Entry, Ledger
from hedgerow.core.limits import Record
from hedgerow.core.mechanism import Position
from hedgerow.core.question import MAIN
from hedgerow.core.randomness import Streams
from hedgerow.core.release import Release
from hedgerow.errors import BudgetExhausted, BudgetInvalid, CheckpointMismatch, HedgerowError, PartyDeclined

from .budget import Budget

log = logging.getLogger("hedgerow")

Trust = Literal["nobody", "parties", "aggregators", "server"]

COUNTS: dict[Trust, tuple[Position, ...]] = {
    "nobody": ("party",),
    "parties": ("party", "shares"),
    "aggregators": ("party", "shares", "aggregators"),
    "server": ("party", "shares", "aggregators", "server"),
}
"""Whose noise a party counts, by whom it trusts; each trusts all whom those before it trust."""


@dataclass(frozen=True)
class GuardedQuestion:
    """A question as guards of the same trust see it; many of them can share one.

    Attributes
    ----------
    entry : Entry
        As their ledgers would have it.
    life : str
        Names the secrets of the federation that asks, with which noise that spans several questions dies.
    own : mapping from party to Event
        Costs at parties whose own noise makes it another than the entry's.
    """

    entry: Entry
    life: str
    own: Mapping[str, Event] = field(default_factory=dict)

    @classmethod
    def by(cls, outbox: Outbox, trust: Trust = "nobody", parties: Iterable[str] | None = None) -> GuardedQuestion:
        """Return what a guard has to decide about a question to `parties`, by default those that are asked."""
        entry, release = entry_of(outbox, trust), outbox.release
        own = release.events_of(outbox.ids if parties is None else parties) if entry.event == release.event else {}
        return cls(entry, _digest(outbox.streams.secret), own)

    def at(self, party: str) -> GuardedQuestion:
        """The same at one party: charged by its own noise."""
        event = self.own.get(party)
        return self if event is None else GuardedQuestion(replace(self.entry, event=event), self.life)

    def apart(self, parties: Sequence[str]) -> Iterator[tuple[GuardedQuestion, list[int]]]:
        """Positions among some parties, by what it costs them."""
        alike: dict[Event | None, list[int]] = {}
        for k, party in enumerate(parties):
            alike.setdefault(self.own.get(party), []).append(k)
        for which in alike.values():
            yield self.at(parties[which[0]]), which


class Guard:
    """The guard of one party: a ledger of its answers, and a budget.

    Parameters
    ----------
    budget : Budget
        What the party may lose, over everything that it ever answers and this guard's record knows.
    record : Record, optional
        Keeps the ledger. `hedgerow.store.LedgerBase(path)`, made anew by each process, carries the party's budget from run
        to run, and keeps apart what belongs to different lives of the party's secrets.
    trust : {"nobody", "parties", "aggregators", "server"}
        Whose noise counts.
    rows : bool
        Whether a contribution may have a row for each record, or another shape that follows the records. A shape that is not
        known beforehand, as without a schema, counts as such.
    """

    def __init__(self, budget: Budget, record: Record | None = None, *, trust: Trust = "nobody", rows: bool = False) -> None:
        if trust not in COUNTS:
            raise BudgetInvalid(f"a guard cannot trust {trust!r}.", remedy=f"One of {', '.join(COUNTS)}.")
        self.budget, self.trust, self.rows = budget, trust, rows
        self.ledger = Ledger(budget, record)
        self._paid: set[tuple[Any, ...]] = set()
        self._expected: dict[str, list[Entry]] = {}

    def __repr__(self) -> str:
        return f"Guard({self.budget}; trusts {self.trust}; {self.spent:.4g} spent)"

    @property
    def spent(self) -> float:
        """The epsilon of everything that the party has answered."""
        return self.budget.spent(self.ledger.charges(self.budget.unit))

    def debit(self, outbox: Outbox) -> None:
        """Write a question to the party's ledger, or decline it while nothing has left.

        Raises
        ------
        BudgetExhausted (HR-213)
            The answer would exceed the party's budget.
        MixedUnits (HR-215)
            The question is bounded for another unit than the party's budget.
        PartyDeclined (HR-221)
            The answer would leave without noise that counts, or with a row for each record; or it is said to be paid for,
            this party has not paid, and the mechanism does not say what the whole costs.
        """
        self.take(GuardedQuestion.by(outbox, self.trust))

    def take(self, asked: GuardedQuestion) -> None:
        """Debit a question, as `debit` does."""
        entry = asked.entry
        if entry.event.kind == "rows" and not self.rows:
            raise PartyDeclined(f"{entry.query} would leave with a shape that follows the records, as a row for each of them.")
        if entry.event.open and math.isfinite(self.budget.epsilon):
            raise PartyDeclined(f"{entry.query} would leave without noise that counts for a party that trusts {self.trust}.")
        if entry.cites and not self._covers(asked):
            entry = replace(entry, cites=0)
        if not self._repeats(entry):
            self.ledger.debit(entry)
        if entry.key and not entry.free:
            self._paid.add(payment(asked.life, entry))

    def rewind(self, queries: int, *, replay: bool) -> None:
        """Return to where the federation had asked so many questions, for a resumed run; what was charged stays charged.

        Parameters
        ----------
        replay : bool
            The same questions will be asked again, and answered with the same noise, as in a simulation with a seed: they
            are not charged twice, and what was declined is declined again. A deployed party never does this: it cannot
            know that a question is the same. Without it, what spans several questions is paid for anew.
        """
        self._expected = {}
        self._paid.clear()
        if not replay:
            return
        runs: dict[str, list[Entry]] = {}
        for entry in self.ledger.entries:
            runs.setdefault(entry.run, []).append(entry)
        for run, entries in runs.items():
            ahead = _ahead(entries, queries) if entries[-1].randomness == "seeded" else []
            self._expected[run] = ahead
            known = entries[: len(entries) - len(ahead)]
            self._paid |= {payment(run, entry) for entry in known if entry.key and not entry.free}

    def _covers(self, asked: GuardedQuestion) -> bool:
        """Whether this party has paid for the span that a question is part of."""
        return any(payment(life, asked.entry) in self._paid for life in (asked.life, asked.entry.run))

    def _repeats(self, entry: Entry) -> bool:
        """Whether an entry was charged before its run was resumed; refuse what was declined then, or is not the same.

        Questions that were asked aside may stay away.
        """
        expected = self._expected.get(entry.run, [])
        if entry.branch != MAIN:
            if entry in expected:
                expected.remove(entry)
                return True
            return False
        place = next((i for i, other in enumerate(expected) if other.branch == MAIN), None)
        if place is None:
            return False
        upcoming = expected[place]
        if entry == upcoming:
            del expected[: place + 1]
            return True
        if entry.round < upcoming.round:
            self.ledger.charges(self.budget.unit, also=entry)  # another unit is declined for that
            raise BudgetExhausted(f"{entry.query} in round {entry.round} was declined before the run was resumed.")
        raise CheckpointMismatch(
            f"the resumed run asks {entry.query} in round {entry.round}, not what the party's ledger has next: "
            f"{upcoming.query} in round {upcoming.round}.",
            remedy="Resume with the same study, data and version.",
        )


def entry_of(outbox: Outbox, trust: Trust = "nobody") -> Entry:
    """Return a question as a party's ledger has it.

    Its `run` names the federation, so that cohorts of two federations are not taken for one: by their secrets, or where
    these come from a seed, by the seed, since two federations with one seed draw the same samples.
    """
    question, release, streams = outbox.question, outbox.release, outbox.streams
    private = _counts(release, trust)
    event = release.event if private else Event("nonprivate")
    if question.verb == "each" or outbox.rows or outbox.unforeseen:
        event = Event("none" if question.verb == "each" else "rows")
    sampling = _sampling(outbox)
    return Entry(
        round=question.number,
        cohort=question.cohort.number if sampling.kind == "records" else 0,
        verb=question.verb,
        query=question.name,
        parties=1.0,
        numbers=0 if question.verb == "each" else None,
        contribution="",
        bytes_up=None,
        bytes_down=0.0,
        bound=describe(release.bounds),
        clip=describe(release.clip),
        compression=str(release.compression or "none"),
        mechanism=release.noise if private else "none",
        aggregation="",
        unit=release.unit,
        event=event,
        sampling=sampling,
        randomness=streams.source,
        run=_run(streams),
        branch=question.branch,
        drawn=question.cohort.branch if sampling.kind == "records" else MAIN,
        key=_shared(outbox) if private else "",
        cites=max(release.cites, 1) if private and release.covered else 0,
    )


def willing(guards: Mapping[str, Guard], ids: Sequence[str], outbox: Outbox) -> tuple[Sequence[str], dict[str, str]]:
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
    asked: dict[Trust, GuardedQuestion] = {}
    for name in ids if guards else ():
        guard = guards.get(name)
        if guard is None:
            continue
        if guard.trust not in asked:
            asked[guard.trust] = GuardedQuestion.by(outbox, guard.trust)
        try:
            guard.take(asked[guard.trust].at(name))
        except CheckpointMismatch:  # the simulation was resumed with something else
            raise
        except HedgerowError as error:  # the sentence stays here, the code travels
            log.info("%s: its guard declined %s: %s", name, outbox.question.name, error)
            codes[name] = error.code
    if not codes:
        return ids, codes
    left = tuple(name for name in ids if name not in codes)
    if not left:
        raise nobody(outbox, codes)
    return left, codes


def nobody(outbox: Outbox, codes: Mapping[str, str]) -> HedgerowError:
    """What to raise where every party that was asked declined."""
    name = outbox.question.name
    if set(codes.values()) == {BudgetExhausted.code}:
        return BudgetExhausted(
            f"all {len(codes)} parties that were asked for {name} declined: their own budgets are spent.",
            remedy="What was released stands. Only the parties can allow more.",
            asked=True,
        )
    said = ", ".join(sorted(set(codes.values())))
    remedy = "The reasons are in the parties' logs: what they ask for is noise that they can count, and their own unit."
    return PartyDeclined(
        f"all {len(codes)} parties that were asked for {name} declined: {said}.", codes=dict(codes), remedy=remedy
    )


def rewind_all(guards: Iterable[Guard], queries: int, *, replay: bool) -> None:
    """`Guard.rewind` for each, where a run is resumed."""
    for guard in guards:
        guard.rewind(queries, replay=replay)


def _counts(release: Release, trust: Trust) -> bool:
    """Whether the party counts the noise of a release."""
    if release.plan is not None:
        return True
    return release.mechanism is not None and release.mechanism.at in COUNTS[trust]


def _shared(outbox: Outbox) -> str:
    """Names the questions that one charge covers; "" where a question stands alone.

    It is made of what the party was sent, not of the number that the server says is cited.
    """
    release, question = outbox.release, outbox.question
    if release.source is None or release.key is None:
        return ""
    private = getattr(question.function, "private", None)
    settings = sorted(question.settings.items()) if release.plan is not None else []
    named = [f"{name}={value!r}" for name, value in settings if name != private]
    return ", ".join(filter(None, (release.key, release.source.span, *named)))


def payment(life: str, entry: Entry) -> tuple[Any, ...]:
    """What a payment holds for: the same in all questions that it covers."""
    drawn = (entry.sampling, entry.drawn, entry.cohort) if entry.sampling.kind == "records" else entry.sampling.kind
    return life, entry.key, entry.unit, entry.bound, entry.clip, drawn


def _ahead(entries: Sequence[Entry], queries: int) -> list[Entry]:
    """The last entries of a run, which its federation wrote after so many questions."""
    ahead: list[Entry] = []
    number = math.inf
    for entry in reversed(entries):
        if entry.branch == MAIN:
            if not queries < entry.round < number:
                break
            number = entry.round
        ahead.append(entry)
    return ahead[::-1]


def _run(streams: Streams) -> str:
    """A name for what the federation's samples are drawn from."""
    return _digest(streams.secret if streams.seed is None else f"seed {streams.seed}".encode())


def _digest(secret: bytes) -> str:
    return hashlib.blake2b(secret, digest_size=8, person=b"hedgerow guard").hexdigest()


def _sampling(outbox: Outbox) -> Sampling:
    """The sampling that this party may count on, or has to pay for."""
    sampling = outbox.question.cohort.sampling
    if sampling.kind == "records":
        return sampling
    if outbox.release.unit == "party" and not outbox.release.before_server and sampling.kind != "poisson":
        return sampling  # the party's presence may push another out: twice the distance
    return Sampling()
