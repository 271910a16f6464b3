"""The federation: the handle that a program holds.

    verb                          leaves each party                        use
    each(local, broadcast)        nothing; party state may change          train now, ask twice later
    sum(local, broadcast, bound)  only the total leaves the cohort         everything that can be a sum
    gather(local, broadcast)      every party's contribution               medians, debugging; costs "nonprivate"

A program never knows how its sums are protected or where they run: `protect`, `within` and `on` are its caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from hedgerow.errors import BudgetInvalid, ContributionInvalid, NobodyAnswered, SlotFilled, UnlawfulChannel

from .arrays import Array, Arrays, Layout
from .bound import Bounds, describe
from .channel import Channel, Plain, Shield
from .conversation import Sessions
from .engine import Engine, Inbox, Outbox
from .events import Event, Sampling
from .ledger import Clock, Entry, Ledger, Limit
from .party import Local, Parties
from .query import Preparation, Query, Verb, answer, function_of, name_of, plan_of
from .randomness import Streams, uniforms
from .refusals import refuse_telling_size, refuse_unknown_distance, refuse_unpaid
from .view import Observation, Views


@dataclass(frozen=True, repr=False)
class Federation:
    """The parties as one handle.

    `engine` carries questions and answers; `schema` (`hedgerow.data.Schema`) declares every party's columns, and bounds are
    computed from it, never from data; `streams` is all randomness; `members` are the parties asked, all or a cohort.
    """

    engine: Engine
    schema: Any = None
    streams: Streams = field(default_factory=Streams)
    channel: Channel = field(default_factory=Channel)
    ledger: Ledger = field(default_factory=Ledger, compare=False)
    members: Sequence[str] = ()
    sampling: Sampling = field(default_factory=Sampling)
    cohort: int = 0
    first: int | None = None
    turn: tuple[int, int] | None = None
    apart: bool = False
    preparations: tuple[Preparation, ...] = ()
    clock: Clock = field(default_factory=Clock, compare=False)
    views: Views = field(default_factory=Views, compare=False)
    sessions: Sessions = field(default_factory=Sessions, compare=False, repr=False)
    layouts: dict[Any, Layout | None] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.members and not self.cohort:
            object.__setattr__(self, "members", self.engine.parties)

    def __repr__(self) -> str:
        noise, asked = self.channel.mechanism or "no noise", len(self.ledger)
        return (
            f"Federation({len(self.members)} of {self.size} parties, {type(self.engine).__name__}, {noise}, {asked} questions)"
        )

    # ---- who --------------------------------------------------------------------------------------------------------
    @property
    def size(self) -> int:
        """Parties in the whole federation, which is public."""
        return len(self.engine.parties)

    @property
    def expected_size(self) -> float:
        """Expected number of parties in this cohort: public, unlike the number that came."""
        return self.size * (1.0 if self.sampling.kind == "records" else self.sampling.rate)

    def sample(
        self,
        *,
        rate: float | None = None,
        size: int | None = None,
        spare: int = 0,
        records: float | None = None,
        every: int | None = None,
    ) -> Federation:
        """Draw a cohort; all questions to it compose inside one sampling event.

        Parameters
        ----------
        rate : float
            Each party joins by itself with this probability (Poisson sampling). The cohort may be empty.
        size : int
            Exactly this many parties, without replacement.
        spare : int
            With `size`: so many more are asked, and the first `size` answers count.
        records : float
            Everybody is asked, about records of which each joins by itself with this probability; a party may have none.
        every : int
            Parties take turns: the cohort is the next of so many groups, to which each party belongs once and for all.
        """
        asked = {"rate": rate, "size": size, "records": records, "every": every}
        given = {name: value for name, value in asked.items() if value is not None}
        n, fraction = self.size, rate or records or 0
        lawful = {"rate": 0 < fraction <= 1, "records": 0 < fraction <= 1, "every": 0 < (every or 0) <= n}
        lawful["size"] = 0 < (size or 0) <= (size or 0) + spare <= n
        if self.cohort or len(given) != 1 or not lawful[next(iter(given))] or (spare and size is None):
            words = ", ".join(
                f"{name}={value!r}" for name, value in {**given, "spare": spare}.items() if value or name in given
            )
            raise BudgetInvalid(
                f"sample({words}) of {'a cohort' if self.cohort else f'{n} parties'} has no known cost.",
                remedy="Sample from the federation, by sample(rate=0.1), a rate in (0, 1], by sample(size=50) or "
                "sample(every=5), at most all, or by sample(records=0.01).",
            )
        if records is not None:
            return self._cohort(Sampling("records", records))
        if every is not None:
            return self._in_turn(every)
        draws = self.streams.uniform(n, self._next_cohort(), "server", "cohort")
        if size is None:
            return self._cohort(Sampling("poisson", fraction), draws < fraction)
        first = draws.argsort(kind="stable").argsort() < size + spare
        return replace(self._cohort(Sampling("fixed", size / n, size), first), first=size if spare else None)

    def pick(self, names: Collection[str]) -> Federation:
        """Return the cohort of these parties, whose choice is public and depends on nobody's data."""
        wanted = set(names)
        if self.cohort or not wanted or (unknown := wanted - set(self.engine.parties)):
            found = "a cohort of a cohort" if self.cohort else f"a cohort of {sorted(unknown)[:3] if wanted else 'nobody'}"
            raise BudgetInvalid(f"{found} cannot be picked.", remedy="Pick parties of the federation, by their names.")
        chosen = np.array([name in wanted for name in self.engine.parties])
        return self._cohort(Sampling("given", len(wanted) / self.size, len(wanted)), chosen)

    def _in_turn(self, every: int) -> Federation:
        """The group whose turn it is: by the uses of a mechanism that spans questions, else by cohorts."""
        now = (self._uses() if hasattr(self.channel.mechanism, "turn") else self.clock.cohorts) % every
        order = np.argsort(uniforms(self.streams.recalled(0, "server", "turns"), self.size), kind="stable")
        group = np.arange(self.size) % every == now
        return replace(self.pick([self.engine.parties[i] for i in order[group]]), turn=(now, every))

    def _cohort(self, sampling: Sampling, chosen: Array | None = None) -> Federation:
        number = self._next_cohort()
        if self.apart:
            self.clock.aside = (len(self.ledger), self._drawn_aside + 1)
        else:
            self.clock.cohorts = number
        names = self.engine.parties
        members = names if chosen is None else tuple(name for name, taken in zip(names, chosen, strict=True) if taken)
        return replace(self, members=members, sampling=sampling, cohort=number)

    # ---- how --------------------------------------------------------------------------------------------------------
    def protect(
        self, *, clip: Bounds | None = None, compression: Any = None, mechanism: Any = None, aggregation: Any = None
    ) -> Federation:
        """Return this federation with slots of its channel filled; a slot that is filled cannot be replaced."""
        slots = {"clip": clip, "compression": compression, "mechanism": mechanism, "aggregation": aggregation}
        return replace(self, channel=self.channel.fill(**slots))

    def within(self, budget: Limit) -> Federation:
        """Limit what is released of these parties, through this handle or any other: a question beyond it is refused."""
        if self.clock.queries:
            raise BudgetInvalid("a budget comes too late after the first question.", remedy="Call within(budget) before it.")
        if self.ledger.limit not in (None, budget):
            raise SlotFilled(f"the budget is already {self.ledger.limit}; {budget} would replace it.", remedy="Set it once.")
        self.ledger.limit = budget
        return self

    def on(self, engine: Any) -> Federation:
        """Return this federation, unasked, with its parties hosted by another in-process engine; its seed starts again."""
        if self.ledger.limit is not None and len(self.ledger):
            raise BudgetInvalid("questions were charged to this budget.", remedy="Choose the engine before the first one.")
        fresh = self.engine.held.fresh()  # type: ignore[attr-defined]
        ledger, views = Ledger(self.ledger.limit), Views(self.views.recording)
        streams = replace(self.streams)  # without a seed, other secrets
        begun = replace(self, engine=engine.hosting(fresh), streams=streams, clock=Clock(), sessions=Sessions())
        return replace(begun, ledger=ledger, views=views)

    def prepare(self, function: Callable[..., Mapping[str, Array]], **settings: Any) -> Federation:
        """Return this federation with columns prepared at each party, record by record; nothing leaves."""
        name_of(function)
        return replace(self, preparations=(*self.preparations, Preparation(function, tuple(sorted(settings.items())))))

    def aside(self) -> Federation:
        """Return this federation for a measurement that leaves a program as it is: same parties, channel and ledger.

        A question's number names its random streams, so one asked in between would shift those of the program; numbers
        below zero do not. Nor is it counted: what parties keep stays as the program left it.
        """
        return replace(self, apart=True)

    def watch(self) -> Federation:
        """Return this federation with the views of all observers recorded from now on."""
        return replace(self, views=Views(recording=True))

    def view(self, observer: str) -> list[Observation]:
        """Return what `server`, `world` or a party saw so far (needs `watch`)."""
        return self.views.of(observer)

    # ---- the three verbs --------------------------------------------------------------------------------------------
    def each(self, local: Local, broadcast: Arrays = None, *, init: Local | None = None) -> None:
        """Let each party compute and keep; nothing leaves."""
        name_of(function_of(local))
        query = self._query("each", local, broadcast, Shield(), init)
        self._debit(query, Event("none"), None)
        self._exchange(query)

    def sum(self, local: Local, broadcast: Arrays = None, *, bound: Bounds | None = None, init: Local | None = None) -> Any:
        """Ask for the total of the parties' contributions.

        Parameters
        ----------
        local : callable
            Top-level function `(broadcast, party, rng, **settings) -> array or dict of arrays`.
        broadcast : array or dict of arrays
            Sent to every party.
        bound : Bound or dict of Bound, optional
            By how much one unit can move the total; needed where the channel adds noise and does not clip.
        init : callable, optional
            `(broadcast, party) -> state` of a party that keeps none yet.

        Returns
        -------
        array or dict of arrays, as `local` returns
            The released total: exact through an open channel, clipped and noisy through a private one.

        Raises
        ------
        UnboundedSum (HR-210), BudgetExhausted (HR-213)
            Before any party is asked.
        NobodyAnswered (HR-220), PartyDeclined (HR-221), ContributionInvalid (HR-222)
        """
        if self.first is not None and self.channel.aggregation.hides_rows:
            raise UnlawfulChannel(
                f"sample(size=..., spare=...) counts who answers first, but {self.channel.aggregation.name} aggregation adds "
                "up whoever answers.",
                remedy="Leave spare out: parties may drop out without it.",
            )
        shield = self._shield(local, bound)
        query = self._query("sum", local, broadcast, shield, init)
        announced = self._layout(query)
        refuse_telling_size(query, self.sampling, self.size, getattr(self.channel.aggregation, "least", 0))
        if self.members:
            self.channel.aggregation.fit(len(self.members), query, announced)
        self._debit(query, shield.event, bound)
        inbox = self._exchange(query, announced)
        shield.enough(len(inbox.answered))
        layout = inbox.layout or announced
        if shield.mechanism is not None and announced is not None and layout != announced:
            raise ContributionInvalid(
                f"{query.name} returned {layout} instead of {announced}: a shape that records decide would tell of them.",
                remedy="Return arrays whose shapes follow from the schema and the broadcast.",
            )
        if layout is None:
            raise NobodyAnswered(f"the cohort of {query.name} is empty, and without a schema its total has no known shape.")
        total = np.zeros(shield.code(layout).size) if inbox.total is None else inbox.total
        released = shield.at_server(total, layout, self.streams.entropy(query.number, "server", "noise"), query.public)
        self.views.note(query, self.members, inbox, released)
        return layout.unflatten(released)

    def gather(
        self, local: Local, broadcast: Arrays = None, *, bound: Bounds | None = None, init: Local | None = None
    ) -> dict[str, Any]:
        """Ask for every party's contribution; refused where rows are hidden, costs `nonprivate` unless parties add noise."""
        mechanism = self.channel.mechanism
        if self.channel.aggregation.hides_rows or (mechanism is not None and mechanism.at != "party"):
            raise UnlawfulChannel(
                "gather asks for every row, but this channel protects only their total.",
                remedy="Ask for a sum, or add noise at the party.",
            )
        shield = self._shield(local, bound)
        query = self._query("gather", local, broadcast, shield, init)
        self._debit(query, shield.event, bound)
        inbox = self._exchange(query)
        self.views.note(query, self.members, inbox, None)
        if inbox.rows is None or inbox.layout is None:
            return {}
        entropy = self.streams.entropy(query.number, "server", "noise")  # unused: noise was added at the party
        rows = [shield.at_server(row, inbox.layout, entropy, query.public) for row in inbox.rows]
        return {name: inbox.layout.unflatten(row) for name, row in zip(inbox.answered, rows, strict=True)}

    # ---- inside -----------------------------------------------------------------------------------------------------
    def _next_query(self) -> int:
        """The next question's number; apart, one below zero that the ledger's length makes its own."""
        return -len(self.ledger) - 2 if self.apart else max(self.clock.queries, self.ledger.numbers[0]) + 1

    def _next_cohort(self) -> int:
        """The next cohort's number; apart, one below zero that the ledger's length and the cohorts since make its own."""
        if self.apart:
            return -1000 * (len(self.ledger) + 2) - self._drawn_aside
        return max(self.clock.cohorts, self.ledger.numbers[1]) + 1

    @property
    def _drawn_aside(self) -> int:
        length, drawn = self.clock.aside
        return drawn if length == len(self.ledger) else 0

    def _shield(self, local: Local, bound: Bounds | None) -> Shield:
        """The protection of the next question; a mechanism that spans several questions takes its turn."""
        channel, mechanism = self.channel, self.channel.mechanism
        if mechanism is not None and hasattr(mechanism, "turn"):
            group = (0, 1) if self.sampling.kind == "all" else self.turn
            channel = replace(channel, mechanism=mechanism.turn(self._uses(), self.streams, group))
        return channel.shield(name_of(function_of(local)), bound, plan_of(local))

    def _uses(self) -> int:
        """Questions that the channel's mechanism has answered; its noise dies with the process where it has no seed."""
        return self.ledger.uses(str(self.channel.mechanism), since_start=self.streams.seed is None)

    def _moves_state(self, query: Query) -> bool:
        """Whether an answer may depend on what a party keeps, or change it."""
        return query.keeps_state or (bool(self.clock.counted) and not query.additive)

    def _query(self, verb: Verb, local: Local, broadcast: Arrays, shield: Shield, init: Local | None) -> Query:
        number, counted = self._next_query(), self.clock.counted
        keep_rows = verb == "gather" or (verb == "sum" and self.views.recording)
        public = int(self.streams.stream(number, "server", "public seed").integers(2**62)) if shield.compression else 0
        what = (number, verb, local, broadcast, shield, self.preparations, init)
        return Query(*what, counted, self.streams, keep_rows, public, self.first, self.sampling, self.cohort)

    def _debit(self, query: Query, event: Event, bound: Bounds | None) -> None:
        shield, channel = query.shield, self.channel
        layout = None if query.verb == "each" else self._layout(query)
        if layout is not None:
            shield.fit(layout)
        apart = shield.at_parties and self.sampling.kind != "records"  # a party's records are its own secret
        refuse_unknown_distance(query, self.sampling, layout, moves_state=self._moves_state(query))
        entry = Entry(
            round=query.number,
            cohort=0 if apart else self.cohort,
            verb=query.verb,
            query=query.name,
            parties=self.expected_size,
            numbers=0 if query.verb == "each" else (layout.size if layout else None),
            contribution=str(layout or ""),
            bytes_up=0.0 if query.verb == "each" else (self._bytes_up(shield, layout) if layout else None),
            bytes_down=channel.aggregation.bytes_down(0 if query.broadcast is None else Layout.of(query.broadcast).size),
            compression=str(shield.compression or "none"),
            bound=describe(bound),
            clip=describe(shield.clip),
            mechanism=shield.noise,
            aggregation=channel.aggregation.name,
            unit=shield.unit,
            event=event,
            sampling=Sampling() if apart else self.sampling,
            randomness=self.streams.source,
        )
        if event.kind == "prepaid":
            refuse_unpaid(self.ledger, entry)
        self.ledger.debit(entry)
        self.clock.queries = self.clock.queries if self.apart else query.number

    def _bytes_up(self, shield: Shield, layout: Layout) -> float:
        size = shield.bytes(layout)
        return size + self.channel.aggregation.bytes(size / 4, len(self.members))

    def _exchange(self, query: Query, layout: Layout | None = None) -> Inbox:
        if not self.members:
            return Inbox(())
        aggregation = self.channel.aggregation if query.verb == "sum" else Plain()
        inbox: Inbox = aggregation.ask(self.engine, Outbox(self.members, query, layout=layout), self.sessions)
        self.clock.missing += 0 if self.apart else min(len(self.members), self.first or self.size) - len(inbox.answered)
        if not inbox.answered:
            raise NobodyAnswered(f"none of {len(self.members)} parties answered {query.name}; resume when parties are back.")
        if self._moves_state(query) and not self.apart:
            self.clock.counted.update(dict.fromkeys(inbox.answered, query.number))
        return inbox

    def _layout(self, query: Query) -> Layout | None:
        """Keys and shapes of an answer, before anybody is asked: that of one made-up record of weight zero.

        None where it cannot be known, because there is no schema or the local function needs a party's state.
        """
        if self.schema is None:
            return None
        settings = query.local.keywords if isinstance(query.local, partial) else {}
        decisive = {name: value for name, value in settings.items() if not isinstance(value, float)}  # sizes shape no answer
        key = (query.name, str(decisive), Layout.of(query.broadcast), self.preparations)
        if key not in self.layouts:
            made_up = self.schema.synthetic(1, np.random.default_rng(0))
            try:
                nobody = Parties(("nobody",), made_up, [1], np.zeros(1)).prepared(self.preparations, together=False)
                made = answer(replace(query, shield=Shield(), counted={}, sampling=Sampling()), nobody, np.array([0]))
                self.layouts[key] = made[0] if made else None
            except Exception:  # it will fail at the parties too, and say why
                self.layouts[key] = None
        return self.layouts[key]
