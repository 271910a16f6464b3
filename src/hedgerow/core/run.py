"""The run: the one mutable thing behind all handles of a federation. A question flows through `ask`, from top to bottom.

Question --channel--> Release --rules--> ledger --> engine.exchange --> release.open --> value
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from threading import Lock
from typing import Any

import numpy as np

from hedgerow.errors import BudgetInvalid, ContributionInvalid, NobodyAnswered, UnlawfulChannel

from .aggregation import Plain
from .arrays import Array, Layout
from .bound import describe
from .channel import Channel
from .cohort import Cohort
from .conversation import Sessions
from .disclosure import NOTHING, ExactNumbers, Holdings, Told, width, worn_out
from .engine import Engine, Inbox, Outbox
from .events import Event, Sampling
from .judged_rows import JudgedRows, judged_rows
from .layouts import Foreseen, Layouts
from .ledger import Entry, Ledger
from .limits import Limit
from .question import MAIN, Question, plan_of
from .randomness import Streams
from .reading import columns_read, refuse_inferred, refuse_missing
from .records import in_whole_steps
from .release import Release
from .rules import RULES, Proposal, Rule
from .view import Views

PROMISES_NOTHING = ("none", "nonprivate", "rows")
"""Kinds of events without an epsilon."""

UNPAID = -1
"""Cited where no question was charged; refused."""


@dataclass
class Counts:
    """Questions and cohorts of one branch so far, which give the next ones their numbers."""

    questions: int = 0
    cohorts: int = 0


@dataclass(eq=False)
class Run:
    """Everything that changes while programs ask.

    Attributes
    ----------
    engine : Engine
        Carries questions and answers.
    schema : Schema, optional
        Declares every party's columns; bounds are computed from it, never from data.
    streams : Streams
        All randomness.
    ledger : Ledger
    views : Views
        What observers saw, where that is recorded.
    rules : tuple of Rule
        Refusals, in order.
    counts : dict from branch to Counts
    counted : dict from party to int
        Number of the last question whose answer was counted, of parties that may keep something.
    missing : int
        Answers that never came; rows that came and were refused are in `judged`.
    overlong : dict from party to int
        How many of a party's rows were longer than their bound, and counted as zeros.
    judged : list of JudgedRows
        Of questions whose rows were proved: how many came, and how many were refused.
    findings : dict
        What programs found out once and for all, as plain values; checkpoints hold it.
    sessions : Sessions
        The server's side of conversations.
    holdings : Holdings, optional
        What parties hold, where that is known here, and how many exact numbers may be asked of them.
    read : frozenset of str
        Columns that questions have read.
    came : ExactNumbers
        Exact numbers that nobody knew of before they came.
    split_by : str, optional
        The column by whose values a simulation split a table into parties.
    schemas : mapping from party to Schema
        Where parties hold columns of their own, what each declares; there is no common schema then.
    """

    engine: Engine
    schema: Any = None
    streams: Streams = field(default_factory=Streams)
    ledger: Ledger = field(default_factory=Ledger)
    views: Views = field(default_factory=Views)
    rules: tuple[Rule, ...] = RULES
    counts: dict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))
    counted: dict[str, int] = field(default_factory=dict)
    missing: int = 0
    overlong: Counter[str] = field(default_factory=Counter)
    judged: list[JudgedRows] = field(default_factory=list)
    findings: dict[str, Any] = field(default_factory=dict)
    sessions: Sessions = field(default_factory=Sessions, repr=False)
    holdings: Holdings | None = None
    read: frozenset[str] = frozenset()
    came: ExactNumbers = NOTHING
    split_by: str | None = None
    schemas: Mapping[str, Any] = field(default_factory=dict)
    _asking: Lock = field(default_factory=Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        self.ledger.claim(self.counts)

    def afresh(self, engine: Engine | None = None, **changed: Any) -> Run:
        """The same parties before they were asked anything, by default under an empty ledger with the same budget."""
        begun = {"engine": engine or self.engine, "schema": self.schema, "streams": replace(self.streams)}
        begun |= {"ledger": self.ledger.afresh(), "views": Views(self.views.recording), "holdings": self.holdings}
        begun |= {"schemas": self.schemas}
        return Run(**{**begun, **changed})

    @cached_property
    def layouts(self) -> Layouts:
        """What is foreseen of answers."""
        return Layouts(self.schema)

    @cached_property
    def size(self) -> int:
        """Parties in the whole federation, which is public."""
        return len(self.engine.parties)

    def limit_to(self, limit: Limit) -> None:
        """Set the limit of the ledger; it warns where it protects nobody among the parties, or records where they are held."""
        if self.schemas and limit.unit == "party":
            raise BudgetInvalid(
                "a budget per party limits what is told of a whole party, and over columns that lie apart all sums are bounded "
                "per record.",
                remedy='Give it per record: Budget(..., unit="record").',
            )
        parties, self.ledger.limit = getattr(self.engine, "held", None), limit
        limit.warn_of(self.size if limit.unit == "party" else 0 if parties is None else int(parties.sizes.sum()))

    # ---- numbers ----------------------------------------------------------------------------------------------------
    def next_question(self, branch: str) -> int:
        """The number of the branch's next question."""
        return max(self.counts[branch].questions, self.ledger.numbers(branch)[0]) + 1

    def next_cohort(self, branch: str) -> int:
        """The number of the branch's next cohort."""
        return max(self.counts[branch].cohorts, self.ledger.numbers(branch)[1]) + 1

    def uses(self, key: str | None) -> int:
        """Questions with a key so far; their common noise dies with the process where it has no seed."""
        return 0 if key is None else self.ledger.uses(key, since_start=self.streams.seed is None)

    # ---- what was told ----------------------------------------------------------------------------------------------
    def told(self) -> Told | None:
        """What the smallest party has told so far; None where nobody knows here what parties hold."""
        exact = self.ledger.exact.plus(self.came)
        if self.holdings is None or self.schema is None:
            return None
        names = self._columns(self.read)
        return self.holdings.reading(names).told(exact, width(self.schema, names))

    def _columns(self, names: frozenset[str]) -> frozenset[str]:
        """The columns of a study, or those that were read."""
        known = frozenset(self.schema.names)
        fixed = None if self.holdings is None else self.holdings.columns
        return fixed or (known if self.ledger.continued or not names else names)

    def _disclosed(self, foreseen: Foreseen, entry: Entry) -> None:
        """Refuse a question that asks too many exact numbers."""
        read, holdings = foreseen.breadth, self.holdings
        if holdings is None or self.schema is None or (holdings.disclosure is None and not read.size):
            return
        before, single = self.ledger.exact.plus(self.came), width(self.schema, read.names)
        names = self._columns(self.read | read.names)
        held = holdings.reading(read.names if holdings.disclosure is None else names)
        which = f"question {entry.round}, {entry.query}"
        held.refuse(which, before, ExactNumbers.of(entry), read, single, width(self.schema, names))

    # ---- one question -----------------------------------------------------------------------------------------------
    def ask(self, question: Question, channel: Channel) -> Any:
        """Put a question through a channel, and return what is released; every refusal comes before any party is asked.

        Returns
        -------
        None of `each`; the total of `sum`; a dict from party to contribution of `gather`.

        Raises
        ------
        UnboundedSum (HR-210), UnlawfulChannel (HR-211), BudgetExhausted (HR-213), BudgetInvalid (HR-214),
        CohortTooSmall (HR-240)
            Before any party is asked.
        NobodyAnswered (HR-220), PartyDeclined (HR-221), ContributionInvalid (HR-222)
        """
        if not self._asking.acquire(blocking=False):
            raise UnlawfulChannel(
                f"{question.name} was asked while another question is under way, and both would have one number.",
                remedy="Ask one question after the other; a local function asks none.",
            )
        try:
            return self._asked(question, channel)
        finally:
            self._asking.release()

    def _asked(self, question: Question, channel: Channel) -> Any:
        release = self.release(question, channel)
        outbox = channel.aggregation.foreseen(self._outbox(question, release))
        channel = replace(channel, aggregation=channel.aggregation.carrying(outbox))
        entry = self._entry(outbox, channel)
        foreseen = self.layouts.of(question, self.streams)
        refuse_missing(question, foreseen.bare, self.schema)
        if release.mechanism is not None or release.plan is not None or entry.event.kind not in PROMISES_NOTHING:
            refuse_inferred(question, columns_read(question, self.layouts, self.streams), self.schema)
        if self.holdings is not None:
            self.holdings = replace(self.holdings, together=channel.aggregation.together)
        disclosed = partial(self._disclosed, foreseen, entry)
        moves, least = self._moves_state(outbox), int(getattr(self.engine, "least_total", 0))
        proposal = Proposal(outbox, channel, self.size, moves, entry, self.ledger, foreseen.why, disclosed, least)
        for rule in self.rules:
            rule(proposal)
        self.ledger.debit(entry)
        outbox = replace(outbox, worn=release.hides_parties and worn_out(self.ledger.exact.noise))
        self.counts[question.branch].questions = question.number
        read = foreseen.breadth.names
        self.read = self.read if read <= self.read else self.read | read
        inbox = self._exchange(outbox, channel)
        if question.verb == "each":
            return inbox.result
        if entry.numbers is None and inbox.layout is not None:
            self.came = self.came.plus(ExactNumbers.of(entry, inbox.layout.size)).plus(
                ExactNumbers(unknown=-ExactNumbers.of(entry).unknown)
            )
        return self._total(outbox, inbox) if question.verb == "sum" else self._rows(outbox, inbox)

    def release(self, question: Question, channel: Channel) -> Release:
        """The protection of a question; a mechanism that several questions share is taken for this one."""
        if question.verb == "each":
            return Release()
        if channel.mechanism is not None:
            use = self.uses(channel.mechanism.key)
            channel = replace(channel, mechanism=channel.mechanism.taken(use, self.streams, question.cohort))
        release = channel.release(question.name, question.bound, plan_of(question.local))
        if not channel.aggregation.of_peers:  # which sees to what a record adds by itself
            release = in_whole_steps(release, question)
        if release.compression is None:
            return release
        seed = self.streams.stream(question.place, "server", "public seed").integers(2**62)
        return replace(release, public_seed=int(seed))

    def _outbox(self, question: Question, release: Release) -> Outbox:
        keep_rows = question.verb == "gather" or (question.verb == "sum" and self.views.recording)
        seen = self.layouts.of(question, self.streams)
        outbox = Outbox(question.cohort.members, question, release, self.streams, self.counted, keep_rows)
        outbox = replace(outbox, layout=seen.layout, rows=seen.rows, unforeseen=seen.unknown, distinct=seen.distinct)
        if not release.covered:
            return outbox
        payment = self.ledger.payment(release.key or "")
        return replace(outbox, release=replace(release, cites=UNPAID if payment is None else payment.round))

    def _moves_state(self, outbox: Outbox) -> bool:
        """Whether an answer may depend on what a party keeps, or change it."""
        return outbox.keeps_state or (bool(self.counted) and not outbox.question.additive)

    def _entry(self, outbox: Outbox, channel: Channel) -> Entry:
        """The question as the ledger has it."""
        question, release, layout = outbox.question, outbox.release, outbox.layout
        cohort, aggregation = question.cohort, channel.aggregation
        each = question.verb == "each"
        own = release.shows_cohort(cohort.sampling)
        charged = aggregation.charge or (Event("rows") if outbox.rows else Event("none") if each else release.event)
        up = None if layout is None else release.bytes(layout)
        expected = self.expected_size(cohort.sampling)  # how many came to a Poisson cohort is a secret, also in sizes
        return Entry(
            round=question.number,
            cohort=0 if own else cohort.number,
            verb=question.verb,
            query=question.name,
            parties=expected,
            numbers=0 if each else (layout.size if layout else None),
            contribution="a row for each record" if outbox.rows else str(layout or ""),
            bytes_up=0.0 if each else (None if up is None else up + aggregation.bytes(up / 4, max(1, round(expected)))),
            bytes_down=aggregation.bytes_down(0 if question.broadcast is None else Layout.of(question.broadcast).size),
            compression=str(release.compression or "none"),
            bound=describe(question.bound),
            clip=describe(release.clip),
            mechanism=release.noise,
            aggregation=aggregation.name,
            unit=release.unit if aggregation.charge is None else "record",
            event=charged,
            sampling=Sampling() if own else cohort.sampling,
            randomness=self.streams.source,
            branch=question.branch,
            key=release.key or "",
            cites=release.cites,
            part=None if release.key or self._turns_moved(cohort) else cohort.part,  # a key is charged with another part
            drawn=cohort.branch,
            distinct=outbox.distinct,
            by_party=self._by_party(release, cohort) if charged == release.event else (),
        )

    def _by_party(self, release: Release, cohort: Cohort) -> tuple[tuple[str, Event], ...]:
        """What a question costs parties of whom its plan tells it; nothing those who are left out by name, which is public.

        Where a plan tells nothing of parties, those are named that have a budget of their own.
        """
        found = release.events_of(self.engine.parties)
        if cohort.sampling.kind == "given" and cohort.part is None:
            counted = self.engine.parties if release.tells_parties_apart else self.ledger.party_limits
            asked = set(cohort.members)
            found |= {name: Event("none") for name in counted if name not in asked}
        return tuple(found.items())

    def _turns_moved(self, cohort: Cohort) -> bool:
        """Whether parties take turns in another order than entries of the ledger do, as after a resumption without a seed."""
        taking_turns = cohort.part is not None and cohort.part.partition == 0
        return taking_turns and self.streams.seed is None and self.ledger.continued

    def expected_size(self, sampling: Sampling) -> float:
        """Expected number of parties in a cohort: public, unlike the number that came."""
        return self.size * (1.0 if sampling.kind == "records" else sampling.rate)

    def _exchange(self, outbox: Outbox, channel: Channel) -> Inbox:
        question, ids = outbox.question, outbox.ids
        if not ids:
            return Inbox(())
        aggregation = channel.aggregation if question.verb == "sum" or channel.aggregation.of_peers else Plain()
        inbox: Inbox = aggregation.ask(self.engine, outbox, self.sessions)
        self.overlong.update(inbox.overlong)
        if inbox.proved or inbox.refused:
            self._judged(outbox, inbox)
        if question.counts:
            self.missing += min(len(ids), question.cohort.first or self.size) - len(inbox.answered) - inbox.refused
        if not inbox.answered:
            raise NobodyAnswered(f"nobody who was asked answered {question.name}; resume when parties are back.")
        if question.counts and self._moves_state(outbox):
            self.counted.update(dict.fromkeys(inbox.answered, question.number))
        return inbox

    def _judged(self, outbox: Outbox, inbox: Inbox) -> None:
        """Note how many rows were refused, also where a coordinator keeps a journal."""
        found = judged_rows(outbox, inbox, self.expected_size(outbox.question.cohort.sampling))
        self.note_judged(found)
        if found.refused and (tell := getattr(self.engine, "refused", None)) is not None:
            tell(found)

    def note_judged(self, *found: JudgedRows) -> None:
        """Note of questions how many rows were refused, here and beside their entries in the ledger."""
        for one in found:
            self.judged.append(one)
            self.ledger.judged[one.branch, one.question] = str(one)

    def _total(self, outbox: Outbox, inbox: Inbox) -> Any:
        """What is released of a sum."""
        release, announced = outbox.release, outbox.layout
        release.enough(len(inbox.answered))
        layout = inbox.layout or announced
        if release.mechanism is not None and layout != announced:
            raise ContributionInvalid(
                f"{outbox.question.name} was answered with other keys or shapes than were announced.",
                remedy="Parties that count on the noise answer as announced: ask for the same version at all of them.",
            )
        if layout is None:
            raise NobodyAnswered(
                f"the cohort of {outbox.question.name} is empty, and without a schema its total has no known shape."
            )
        total = np.zeros(release.code(layout).size) if inbox.total is None else inbox.total
        released = self._opened(outbox, total, layout)
        self.views.note(outbox, inbox, released)
        return layout.unflatten(released)

    def _rows(self, outbox: Outbox, inbox: Inbox) -> dict[str, Any]:
        """What is released of a gathering: every party's contribution, with the noise that it added."""
        self.views.note(outbox, inbox, None)
        layout = inbox.layout
        if inbox.rows is None or layout is None:
            return {}
        rows = [self._opened(outbox, row, layout) for row in inbox.rows]
        return {name: layout.unflatten(row) for name, row in zip(inbox.answered, rows, strict=True)}

    def _opened(self, outbox: Outbox, total: Array, layout: Layout) -> Array:
        return outbox.release.open(total, layout, outbox.stream("server", "noise").entropy, outbox.public)

    def parties_named(self, chosen: Array | None = None) -> Sequence[str]:
        """Names of the parties, or of those chosen."""
        names = self.engine.parties
        return names if chosen is None else tuple(name for name, taken in zip(names, chosen, strict=True) if taken)


def begun_at(run: Run, number: int) -> None:
    """Let the questions of the main branch be numbered from the next one on."""
    run.counts[MAIN] = Counts(number, 0)
