"""The coordinator's message queue: letters to stations and their answers, over a rail that loses, repeats and reorders bodies.

    ask      one sealed letter to each of several stations; returns what came back in time
    alive    whom it is worth asking now

A letter is sealed once. Where its answer does not come the same bytes go out again, after growing pauses and whenever the
station connects anew; a station answers the same letter by the same bytes. What comes back is taken once, and only if it is
signed by the station that was asked, over the digest of the letter that it answers: whatever else arrives is dropped.

A station that lets a deadline pass is not asked again until something authentic comes from it; meanwhile it is greeted, after
growing pauses, for it may be the rail that was silent.

The queue is sans-I/O but for its rail, and has no thread of its own: whoever waits takes the next event, also for others. With
a simulated rail and clock it is deterministic.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from hedgerow.errors import HedgerowError
from hedgerow.wire.envelope import KeyMaterial, Letter, PublicIdentity, digest_of, disclose, enclose
from hedgerow.wire.heads import attached, detached

from .rails.rail import Arrived, Joined, Left, Rail

log = logging.getLogger("hedgerow")

SLICE = 0.2
"""Longest wait for one event, in seconds, so that several threads that wait take turns."""

CATCH_UP = 1000
"""Events that are taken before letters go out: whoever sends without end holds nobody up."""

HELLO = "hello"
NOBODY = bytes(16)


class Watch(Protocol):
    """Learns what happens to letters, for a journal: `asked`, `again`, `answered`, `late`, `lost` or `forged`."""

    def __call__(self, happened: str, station: str, kind: str, study: bytes, number: int, size: int) -> None: ...


class Heads(Protocol):
    """Gives stations the heads of their journals back; see `hedgerow.wire.heads`."""

    def knows(self, station: PublicIdentity) -> bool:
        """Whether a head of this station has come."""

    def given(self, station: PublicIdentity) -> bytes:
        """What goes with a letter to a station."""

    def came(self, station: PublicIdentity, raw: bytes) -> None:
        """Take note of what came with a letter of a station, which is authentic."""


def unwatched(happened: str, station: str, kind: str, study: bytes, number: int, size: int) -> None:
    """Watch nothing."""


@dataclass
class _Sent:
    """A letter on its way."""

    station: str
    kind: str
    study: bytes
    number: int
    raw: bytes
    again_at: float
    pause: float
    gone_at: float | None = None
    answer: Letter | None = None


@dataclass
class _Silence:
    """A station that let a deadline pass: when to greet it next, and how long to wait after that."""

    greet_at: float
    pause: float


@dataclass
class MessageQueue:
    """Letters of one coordinator.

    Parameters
    ----------
    key_material : callable
        Returns the coordinator's own keys, as they are now.
    public_identities : callable
        Returns whom the coordinator trusts now, by name: who was revoked is gone.
    rail : Rail
    pause : float
        Seconds until a letter without an answer goes out again; doubled every time.
    grace : float
        Seconds in which a station that was cut off may come back before its answer is given up.
    watch : Watch
        For a journal.
    heads : Heads, optional
        Of the journals of stations, which travel with letters.
    """

    key_material: Callable[[], KeyMaterial]
    public_identities: Callable[[], Mapping[str, PublicIdentity]]
    rail: Rail
    pause: float = 15.0
    grace: float = 1.0
    watch: Watch = unwatched
    heads: Heads | None = None
    _sent: dict[bytes, _Sent] = field(default_factory=dict, repr=False)
    _silent: dict[str, _Silence] = field(default_factory=dict, repr=False)
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _news: threading.Condition = field(default_factory=threading.Condition, repr=False)

    # ---- what others call --------------------------------------------------------------------------------------------
    def alive(self) -> frozenset[str]:
        """The stations that are connected, trusted, and not silent."""
        return frozenset(self.rail.connected() & self.public_identities().keys() - self._silent.keys())

    def ask(
        self,
        kind: str,
        parts: Mapping[str, Sequence[bytes]],
        *,
        study: bytes = NOBODY,
        number: int = 0,
        seconds: float,
    ) -> dict[str, Letter]:
        """Send a letter to each station that is alive, and wait for the answers.

        Parameters
        ----------
        kind : str
        parts : mapping from station to sequence of bytes
        study, number : bytes, int
            Which letter this is. Numbers of one study grow.
        seconds : float
            Deadline for the answers.

        Returns
        -------
        dict from station to Letter
            The answers, refusals among them, in the order in which they came. Who is missing was not there, was cut off for
            longer than the grace, or did not answer in time.
        """
        self.greet()
        self._catch_up()
        public_identities, alive = self.public_identities(), self.alive()
        mine: dict[bytes, _Sent] = {}
        try:
            for station in parts:
                if station in alive and station in public_identities:
                    self._send(mine, kind, public_identities[station], parts[station], study, number)
            found = {sent.station: answer for sent, answer in self._collect(mine, self.rail.now() + seconds)}
        finally:
            for digest in mine:
                self._sent.pop(digest, None)
        for sent in mine.values():
            if sent.answer is None:
                self._give_up(sent)
        return found

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Let events happen for so long, or until something holds; returns whether it does."""
        end = self.rail.now() + seconds
        while not until():
            left = end - self.rail.now()
            if left <= 0:
                return False
            self.greet()
            self._step(left)
        return True

    def greet(self) -> None:
        """Say hello to silent stations whose time has come; an answer makes them alive."""
        now, public_identities = self.rail.now(), self.public_identities()
        for station, silence in list(self._silent.items()):
            if now >= silence.greet_at and station in public_identities and station in self.rail.connected():
                silence.greet_at, silence.pause = now + silence.pause, min(2 * silence.pause, 600.0)
                self.rail.send(station, self._enclosed(HELLO, public_identities[station], []))

    # ---- inside ------------------------------------------------------------------------------------------------------
    def _send(
        self, mine: dict[bytes, _Sent], kind: str, to: PublicIdentity, parts: Sequence[bytes], study: bytes, number: int
    ) -> None:
        raw = self._enclosed(kind, to, parts, study=study, number=number)
        sent = _Sent(to.name, kind, study, number, raw, self.rail.now() + self.pause, 2 * self.pause)
        mine[digest_of(raw)] = self._sent[digest_of(raw)] = sent
        self.watch("asked", to.name, kind, study, number, len(raw))
        self.rail.send(to.name, raw)
        if to.name not in self.rail.connected():  # it left meanwhile: whoever took the news of that knew of no letter
            sent.gone_at = self.rail.now()

    def _enclosed(self, kind: str, to: PublicIdentity, parts: Sequence[bytes], **about: Any) -> bytes:
        """A sealed letter, with the head of the station's journal; one of an earlier version gets it in hellos alone."""
        if self.heads is not None and (kind == HELLO or self.heads.knows(to)):
            parts = attached(parts, self.heads.given(to))
        return enclose(self.key_material(), to, kind, parts, **about)

    def _collect(self, mine: Mapping[bytes, _Sent], end: float) -> Iterator[tuple[_Sent, Letter]]:
        waiting = dict(mine)
        while waiting:
            now = self.rail.now()
            for digest, sent in list(waiting.items()):
                if sent.answer is not None:
                    yield waiting.pop(digest), sent.answer
                elif sent.gone_at is not None and now >= sent.gone_at + self.grace:
                    del waiting[digest]
                elif now >= sent.again_at and sent.gone_at is None:
                    self._repeat(sent, now)
            if not waiting or now >= end:
                return
            due = [sent.again_at if sent.gone_at is None else sent.gone_at + self.grace for sent in waiting.values()]
            self._step(max(0.0, min(end, *due) - now))

    def _repeat(self, sent: _Sent, now: float) -> None:
        sent.again_at, sent.pause = now + sent.pause, 2 * sent.pause
        self.watch("again", sent.station, sent.kind, sent.study, sent.number, len(sent.raw))
        self.rail.send(sent.station, sent.raw)

    def _step(self, seconds: float) -> None:
        """Take the next event, or wait until somebody else has."""
        if self._turn.acquire(blocking=False):
            try:
                event = self.rail.receive(min(seconds, SLICE))
                if event is not None:
                    self._take(event)
            finally:
                self._turn.release()
            with self._news:
                self._news.notify_all()
        else:
            with self._news:
                self._news.wait(min(seconds, SLICE))

    def _catch_up(self) -> None:
        """Take what has happened while nobody waited, as far as that has an end."""
        if self._turn.acquire(blocking=False):
            try:
                for _ in range(CATCH_UP):
                    event = self.rail.receive(0.0)
                    if event is None:
                        break
                    self._take(event)
            finally:
                self._turn.release()

    def _take(self, event: Arrived | Joined | Left) -> None:
        if isinstance(event, Joined):
            self._silent.pop(event.station, None)
            if self.heads is not None and (station := self.public_identities().get(event.station)) is not None:
                self.rail.send(event.station, self._enclosed(HELLO, station, []))  # it learns how far its journal went
            for sent in list(self._sent.values()):
                if sent.station == event.station and sent.answer is None:
                    sent.gone_at = None
                    self._repeat(sent, self.rail.now())
        elif isinstance(event, Left):
            for sent in list(self._sent.values()):
                if sent.station == event.station and sent.answer is None:
                    sent.gone_at = self.rail.now()
        else:
            self._read(event)

    def _read(self, event: Arrived) -> None:
        try:
            letter = disclose(self.key_material(), self.public_identities(), event.body)
        except HedgerowError as error:
            log.warning("a body that came as %s's is refused: %s", event.station, error.code)
            self.watch("forged", event.station, "", NOBODY, 0, len(event.body))
            return
        if letter.sender != event.station:
            log.warning("a letter of %s came as %s's: refused", letter.sender, event.station)
            self.watch("forged", event.station, "", NOBODY, 0, len(event.body))
            return
        letter = self._noted(letter)
        self._silent.pop(letter.sender, None)
        sent = self._sent.get(letter.answers)
        if sent is None or sent.station != letter.sender or (sent.study, sent.number) != (letter.study, letter.number):
            self.watch("late", letter.sender, letter.kind, letter.study, letter.number, len(event.body))
            return
        if sent.answer is None:
            sent.answer = letter
            self.watch("answered", letter.sender, letter.kind, letter.study, letter.number, len(event.body))

    def _noted(self, letter: Letter) -> Letter:
        """A letter without the head that came with it, which is noted."""
        parts, raw = detached(letter.parts)
        station = self.public_identities().get(letter.sender)
        if raw is not None and self.heads is not None and station is not None:
            self.heads.came(station, raw)
        return replace(letter, parts=parts)

    def _give_up(self, sent: _Sent) -> None:
        self.watch("lost", sent.station, sent.kind, sent.study, sent.number, 0)
        if sent.gone_at is None:
            self._silent[sent.station] = _Silence(self.rail.now() + self.pause, 2 * self.pause)
