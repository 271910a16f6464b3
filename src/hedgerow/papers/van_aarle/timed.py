"""An aggregation by the clock: what one question costs each party, step by step, and what it costs the server.

The protocol runs as it is, through the same channel, engine and ledger as any other question; this stands around it and looks
at the clock: at a party's side before and after each answer, at the server's side between two exchanges. Seconds are processor
time of the thread, so that what else the machine does is not in them.

Every party is a device by itself: those of one process share no key agreement, as a gateway's would.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hedgerow.core.aggregation import Aggregation, Plain
from hedgerow.core.arrays import Layout
from hedgerow.core.conversation import Contribution, Correspondent, Sessions
from hedgerow.core.engine import Engine, Inbox, Outbox
from hedgerow.crypto import Hidden, HiddenModel, secagg
from hedgerow.crypto.aggregation import AggregationSession
from hedgerow.crypto.hidden_model import ModelSession
from hedgerow.crypto.privfl import PrivFLParty, PrivFLServer
from hedgerow.crypto.schemes import DoubleMasks, Enrolment

ALONE = "contribution in the open"
"""The step of a question without a protocol."""

now = time.thread_time


@dataclass
class Seconds:
    """Of one question.

    Attributes
    ----------
    parties : mapping from step to mapping from party to seconds
    server : mapping from step to seconds
        What the server did before the step; what it did after the last one counts to that.
    counted : tuple of str
        The parties that are in the total; none where it was refused.
    """

    parties: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    server: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    counted: tuple[str, ...] = ()

    def party(self, among: Collection[str], steps: Callable[[str], bool] = lambda step: True) -> float:
        """The median over some parties of their seconds in some steps."""
        kept = [of for step, of in self.parties.items() if steps(step)]
        return statistics.median(sum(of.get(id, 0.0) for of in kept) for id in among)

    def serving(self, steps: Callable[[str], bool] = lambda step: True) -> float:
        """The server's seconds in some steps."""
        return sum(seconds for step, seconds in self.server.items() if steps(step))


@dataclass(eq=False)
class Timed(Aggregation):
    """An aggregation whose questions are timed.

    Parameters
    ----------
    held : Plain, Hidden or HiddenModel
    lost : callable
        `(question, ids) -> parties` that are lost before they contribute to the question of that number, from 0.
    few : sequence of str, optional
        Only these make their contribution, where all would take too long. Their letters stand in for those of the others, so
        that the server does all its work before it finds that masks do not cancel, and refuses the round.
    """

    held: Plain | Hidden | HiddenModel
    lost: Callable[[int, tuple[str, ...]], Collection[str]] = lambda question, ids: ()
    few: Sequence[str] = ()
    questions: list[Seconds] = field(default_factory=list)
    _timed: dict[Any, _Timed] = field(default_factory=dict, init=False)
    name: str = field(default="", init=False)
    shows: str = field(default="", init=False)
    hides_rows: bool = field(default=False, init=False)
    hides_model: bool = field(default=False, init=False)
    least: int = field(default=0, init=False)
    largest: float | None = field(default=None, init=False)
    records: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._sessions = Sessions()
        self.name, self.shows = self.held.name, self.held.shows
        self.hides_rows, self.hides_model = self.held.hides_rows, self.held.hides_model
        self.least, self.largest, self.records = self.held.least, self.held.largest, self.held.records

    def fit(self, outbox: Outbox) -> None:
        self.held.fit(outbox)

    def bytes(self, numbers: float, parties: int) -> float:
        return self.held.bytes(numbers, parties)

    def bytes_down(self, numbers: float) -> float:
        return self.held.bytes_down(numbers)

    def ask(self, engine: Engine, outbox: Outbox, sessions: Sessions) -> Inbox:
        """Put a sum to parties, by the clock. Both sides are made before it starts, and kept here.

        Raises
        ------
        RoundRefused (HR-241)
            As the aggregation; certainly where only a few contribute.
        """
        if not isinstance(self.held, Plain) and self.held not in self._sessions.open:
            self._sessions.open[self.held] = sides_of(self.held, tuple(outbox.ids))
        lost = frozenset(self.lost(len(self.questions), tuple(outbox.ids)))
        self.questions.append(Seconds())
        watched = _Watched(engine, self, lost)
        try:
            inbox: Inbox = self.held.ask(watched, outbox, self._sessions)
        finally:
            watched.stop()
        self.questions[-1].counted = inbox.answered
        return inbox

    def forget(self) -> None:
        """Let go of the parties' secrets, which an engine keeps for the next question."""
        for timed in self._timed.values():
            timed.made.clear()
            timed.protocol = None
        self._timed.clear()

    def timed(self, protocol: Any) -> _Timed:
        """A protocol whose parties look at the clock; always the same of the same."""
        return self._timed.setdefault(protocol, _Timed(self, protocol))


def sides_of(aggregation: Hidden | HiddenModel, ids: tuple[str, ...]) -> AggregationSession | ModelSession:
    """Both sides of a protocol in one process."""
    if isinstance(aggregation, Hidden):
        return AggregationSession(aggregation, _apart(aggregation, ids))
    settings, masks = aggregation.settings, _apart(aggregation.masks, ids)
    parties = {id: PrivFLParty(id, settings, masks.parties[id]) for id in ids}
    return ModelSession(aggregation, parties, PrivFLServer(settings, ids, masks.server(ids).held))


def _apart(hidden: Hidden, ids: tuple[str, ...]) -> Enrolment:
    enrolled = hidden.scheme.enrol(ids)
    if not isinstance(hidden.scheme, DoubleMasks):
        return enrolled
    settings = hidden.scheme.settings
    return replace(enrolled, parties={id: secagg.SecAggParty(id, settings) for id in ids})  # without the gateway they share


@dataclass(eq=False)
class _Timed:
    """A protocol as an engine sees it, whose parties look at the clock."""

    timed: Timed
    protocol: Any
    made: dict[str, Correspondent] = field(default_factory=dict)

    def correspondents(self, ids: tuple[str, ...]) -> Mapping[str, Correspondent]:
        self.made |= {id: _Party(self.timed, id, one) for id, one in self.protocol.correspondents(ids).items()}
        return self.made

    def contribution(self, outbox: Outbox, layout: Layout) -> Any:
        return self.protocol.contribution(outbox, layout)


@dataclass
class _Party:
    """A party's side that looks at the clock."""

    timed: Timed
    id: str
    held: Correspondent

    def answer(self, step: str, letter: bytes, contribution: Contribution | None = None) -> bytes:
        began = now()
        answer = self.held.answer(step, letter, contribution)
        self.timed.questions[-1].parties[step][self.id] += now() - began
        return answer


@dataclass
class _Watched:
    """An engine that stops the server's clock while parties work, and loses whom it is told to lose."""

    engine: Engine
    timed: Timed
    lost: frozenset[str]

    def __post_init__(self) -> None:
        self._since, self._step, self._gone = now(), ALONE, False

    @property
    def parties(self) -> Sequence[str]:
        return self.engine.parties

    def stop(self) -> None:
        """Count what the server did since the last exchange to the last step."""
        self.timed.questions[-1].server[self._step] += now() - self._since

    def exchange(self, outbox: Outbox) -> Inbox:
        self._step = ALONE if outbox.step is None else outbox.step.name
        self.stop()
        if outbox.step is None:
            came = self._one_by_one(outbox)
            self._since = now()
            return _added(came)
        inbox = self._letters(outbox)
        self._since = now()
        return inbox

    def _letters(self, outbox: Outbox) -> Inbox:
        """One step of a conversation."""
        step, few = outbox.step, self.timed.few
        assert step is not None
        self._gone |= step.contributes
        asked = [id for id in outbox.ids if not (self._gone and id in self.lost)]
        making = list(few) if few and step.contributes else asked
        timed = self.timed.timed(outbox.protocol)
        found = self.engine.exchange(replace(outbox, ids=making, protocol=timed))
        made = list(found.letters.values())
        if making is asked or not made:
            return found
        return replace(found, answered=tuple(asked), letters={id: made[i % len(made)] for i, id in enumerate(asked)})

    def _one_by_one(self, outbox: Outbox) -> list[Inbox]:
        """A question in the open, put to each party by itself."""
        found, times = [], self.timed.questions[-1].parties[ALONE]
        for id in outbox.ids:
            if id not in self.lost:
                began = now()
                found.append(self.engine.exchange(replace(outbox, ids=(id,))))
                times[id] += now() - began
        return found


def _added(found: Sequence[Inbox]) -> Inbox:
    """What the server does with contributions that it sees."""
    came = [inbox for inbox in found if inbox.total is not None]
    total = np.zeros_like(came[0].total) if came else None
    for inbox in came:
        total += inbox.total
    return Inbox(tuple(id for inbox in came for id in inbox.answered), came[0].layout if came else None, total)
