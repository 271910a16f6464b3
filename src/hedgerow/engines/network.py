"""`Network`: parties at stations, each in a process of its own organisation.

    Federation -> Outbox -> one sealed letter to each station -> Inbox

A station that is away, or does not answer before the deadline, is a dropout; what it refuses comes back as a code. An answer
that is none, that holds what is no number, or whose keys and shapes are not those of the others counts as a refusal: one
station does not spoil the total of the others. A row that is longer than its bound counts as zero (`overlong`). The engine
keeps nothing that a restart could not do without: states are in the program's checkpoint, and letters have numbers that grow
from one life of the coordinator to the next.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.judged_rows import JudgedRows
from hedgerow.crypto.keys import Roster
from hedgerow.errors import ContributionInvalid, HedgerowError, MessageRefused, NobodyAnswered, UnlawfulChannel
from hedgerow.privacy.guard import nobody
from hedgerow.wire.envelope import Letter
from hedgerow.wire.question import common, inbox, own
from hedgerow.wire.refusal import code_in

from .aggregators import LIFE, AggregatorsAway
from .merging import grouped, merged
from .overlong import without_overlong

log = logging.getLogger("hedgerow")

RETURN_SECONDS = 30.0
"""So long it is waited for stations that are away in the middle of a protocol between parties; then the study waits."""


class Asks(Protocol):
    """What carries letters to stations, and their answers; see `MessageQueue`."""

    def alive(self) -> frozenset[str]: ...

    def wait(self, seconds: float, until: Callable[[], bool] = ...) -> bool: ...

    def ask(
        self, kind: str, parts: Mapping[str, Sequence[bytes]], *, study: bytes = ..., number: int = ..., seconds: float = ...
    ) -> dict[str, Letter]: ...


@dataclass
class Network:
    """The parties of one study, at stations.

    Parameters
    ----------
    queue : Asks
        Carries letters, as a `MessageQueue` does.
    study : bytes
        16 bytes that name the study.
    stations : mapping from station to tuple of str
        The parties at each of them, as they were when it approved the study.
    seconds : float
        Deadline of one question, or of one step of a conversation.
    least : int
        Stations that must be there before a question is put.
    patience : float
        Seconds to wait for them.
    life : int
        How often the study was started; each start has a larger one.
    roster : Roster, optional
        Identities of the parties, where a secure aggregation pins them.
    told : callable, optional
        Learns which parties declined a question, and by which codes.
    weigh : callable, optional
        Learns what each station answered; raises where too few answers are of use.
    overlong : callable, optional
        Learns which parties sent more than their bound allows; it counts as zero.
    refused : callable, optional
        Learns how many rows were refused, since they were not proved to be within their bound.
    aggregators : AggregatorsAway, optional
        Who adds up additive shares, which no question goes without.
    """

    queue: Asks
    study: bytes
    stations: Mapping[str, tuple[str, ...]]
    seconds: float = 60.0
    least: int = 1
    patience: float = 0.0
    life: int = 1
    roster: Roster | None = None
    told: Callable[[Mapping[str, str]], None] | None = None
    weigh: Callable[[Mapping[str, Inbox]], None] | None = None
    overlong: Callable[[Sequence[str]], None] | None = None
    refused: Callable[[JudgedRows], None] | None = None
    aggregators: AggregatorsAway | None = None
    elsewhere: bool = field(default=True, init=False)
    has_owners: bool = field(default=True, init=False)
    """Parties have owners, who hold exact totals to one set of parties (`hedgerow.crypto.standing`); made-up ones have none."""
    _number: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._home = {id: station for station, ids in self.stations.items() for id in ids}
        self._parties = tuple(self._home)
        if len(self._home) != sum(map(len, self.stations.values())):
            raise MessageRefused(
                "two stations have a party of one name.", remedy="Names of parties are unique in a federation.", asked=False
            )

    @property
    def parties(self) -> Sequence[str]:
        return self._parties

    @property
    def least_total(self) -> int:
        """Of fewer parties some aggregator gives no total; 0 without aggregators."""
        return max((one.least for one in self.aggregators.links), default=0) if self.aggregators is not None else 0

    def exchange(self, outbox: Outbox) -> Inbox:
        """Put a question, or a step of a conversation, to the stations of these parties.

        Raises
        ------
        NobodyAnswered (HR-220)
            Fewer stations than `least` are there, and no more came in time. Nobody was asked.
        PartyDeclined (HR-221), BudgetExhausted (HR-213)
            All that were asked declined.
        """
        question = outbox.question
        by_station = grouped(outbox.ids, self._home)
        if question.cohort.first is not None and any(len(ids) > 1 for ids in by_station.values()):
            raise UnlawfulChannel(
                "sample(size=..., spare=...) counts who answers first, and a station answers for several parties at once.",
                remedy="Leave spare out: parties may drop out without it.",
            )
        self._gather(by_station)
        same = common(outbox)
        letters = self._ask({station: [same, own(outbox, ids)] for station, ids in by_station.items()})
        read = {station: self._read(outbox, letter, by_station[station]) for station, letter in letters.items()}
        read = alike(question.name, read, outbox.layout)
        if self.weigh is not None:
            self.weigh(read)
        read = self._held(outbox, read)
        first = [station for station, inbox in read.items() if inbox.answered][: question.cohort.first]
        found = [read[name] for name in by_station if name in read and (name in first or not read[name].answered)]
        together = merged(question.name, outbox.ids, found)
        if together.codes and self.told is not None:
            self.told(together.codes)
        if together.codes and not together.answered and outbox.step is None:
            raise nobody(outbox, together.codes)
        return together

    def again(self, ids: Sequence[str]) -> bool:
        """Wait for the stations of these parties, where a protocol is to begin once more; returns whether they are there."""
        stations = {self._home[id] for id in ids}
        return self.queue.wait(min(self.seconds, RETURN_SECONDS), lambda: stations <= self.queue.alive())

    def _ask(self, parts: Mapping[str, Sequence[bytes]]) -> dict[str, Letter]:
        self._number += 1
        number = self.life * LIFE + self._number
        return self.queue.ask("ask", parts, study=self.study, number=number, seconds=self.seconds)

    def _gather(self, by_station: Mapping[str, tuple[str, ...]]) -> None:
        """Wait until enough of these stations are there."""
        needed, adding = min(self.least, len(by_station)), self.aggregators

        def there() -> bool:
            return len(self.queue.alive() & by_station.keys()) >= needed and not (adding is not None and adding.away())

        if not there() and not self.queue.wait(self.patience, there):
            if adding is not None and (missing := adding.away()):
                raise NobodyAnswered(
                    f"without {', '.join(missing)} nobody adds up.",
                    remedy="Nobody was asked. The study goes on when all its aggregators are there.",
                )
            away = sorted(by_station.keys() - self.queue.alive())
            raise NobodyAnswered(
                f"{len(by_station) - len(away)} of {len(by_station)} stations are there, and {needed} are needed: "
                f"{', '.join(away[:5])}{' and others' if len(away) > 5 else ''} are away.",
                remedy="Nobody was asked. The study goes on when they are back.",
            )

    def _read(self, outbox: Outbox, letter: Letter, ids: tuple[str, ...]) -> Inbox:
        """A station's answer; one that cannot be read is a refusal."""
        try:
            if letter.kind == "refused":
                return Inbox((), codes=dict.fromkeys(ids, code_in(letter)))
            if letter.kind == "answer" and len(letter.parts) == 1:
                found = inbox(letter.parts[0], ids, outbox)
                if all(numbers is None or lawful(outbox, numbers) for numbers in (found.total, found.rows)):
                    return found
                raise ContributionInvalid(f"{letter.sender} answered {outbox.question.name} with what is no number.")
            raise MessageRefused(f"an answer of kind {letter.kind!r}.", remedy="Both sides run the same version.")
        except HedgerowError as error:
            return Inbox((), codes=dict.fromkeys(ids, error.code))

    def _held(self, outbox: Outbox, read: Mapping[str, Inbox]) -> dict[str, Inbox]:
        """What stations answered, where rows that are longer than their bound count as zero."""
        held, named = dict[str, Inbox](), list[str]()
        for station, found in read.items():
            held[station], long = without_overlong(outbox, found)
            held[station] = replace(held[station], overlong=long)
            named += long
        if named:
            log.warning("more than its bound allows came for %s from %s; it counts as zero", outbox.question.name, named[:5])
            if self.overlong is not None:
                self.overlong(named)
        return held


def lawful(outbox: Outbox, numbers: Array) -> bool:
    """Whether an answer holds numbers; through a mechanism whole ones, since a fraction would round those of the others."""
    whole = numbers.dtype.kind == "i"
    return whole or (outbox.release.mechanism is None and bool(np.isfinite(numbers).all()))


def alike(question: str, read: Mapping[str, Inbox], announced: Layout | None) -> dict[str, Inbox]:
    """What stations answered, where those with other keys and shapes than the others count as refusals.

    Right is what was announced, if anybody answered that, or else what most stations answered.

    Raises
    ------
    ContributionInvalid (HR-222)
        No more stations answered one way than another.
    """
    ways = Counter(inbox.layout for inbox in read.values() if inbox.layout is not None)
    if len(ways) < 2:
        return dict(read)
    (right, most), (_, others) = ways.most_common(2)
    if announced in ways:
        right = announced
    elif most == others:
        remedy = "Declare levels and shapes in the schema, so that every party returns the same keys and shapes."
        raise ContributionInvalid(f"{question}: stations contributed different keys or shapes.", remedy=remedy)
    wrong = {name: inbox for name, inbox in read.items() if inbox.layout not in (None, right)}
    refused = {name: Inbox((), codes=dict.fromkeys(inbox.answered, ContributionInvalid.code)) for name, inbox in wrong.items()}
    return {**read, **refused}
