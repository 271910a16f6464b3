"""Protocols between parties on the rails: an aggregation whose steps carry peers' letters through any engine.

    server                                        party
    step "keys"     session, names            ->  a fresh key                       (where secrets are agreed on)
    step "peers 0"  session, names, keys      ->  the boxes that its peer writes    (here local functions run)
    step "peers r"  the boxes that came       ->  further boxes, until all are done

The server takes part as the peer HUB where a protocol has one, and carries boxes otherwise. Every party has to answer every
step: of a protocol between parties nobody can be left out.
"""

from __future__ import annotations

import logging
import secrets
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgpack  # type: ignore[import-untyped]

from hedgerow.core.aggregation import Aggregation
from hedgerow.core.conversation import AtParty, Sessions, Step
from hedgerow.core.engine import Engine, Inbox, Outbox
from hedgerow.core.release import Release
from hedgerow.errors import MessageRefused, NobodyAnswered, NotAligned, PartyDeclined, RoundRefused

from .forgotten import may_begin_anew, unfinished, was_under_way
from .keys import Identity, Roster
from .messages import digest
from .peers import HUB, Letters, Peer
from .schemes import Credentials
from .sealing import Introduction, PairSecrets

log = logging.getLogger("hedgerow")

SECRETS = "pair secrets"
"""The entry of a desk that has them."""

ATTEMPTS = 3
"""How often a protocol that may begin anew begins."""

LAST = 1 << 20
"""Rounds that a protocol may have."""


@dataclass(frozen=True)
class Traffic:
    """What one question between parties sent.

    Attributes
    ----------
    question : int
    purpose : str
    rounds : int
    bytes : mapping from (sender, recipient) to int
        Of letters, boxes' seals not counted; the server is "hub".
    seconds : mapping from role to float
        Processor time of "hub" and, where they are in this process, of "parties".
    """

    question: int
    purpose: str
    rounds: int
    bytes: Mapping[tuple[str, str], int]
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class PeerProtocol(Aggregation):
    """A protocol between parties; its fields are settings that travel."""

    @property
    def of_peers(self) -> bool:
        return True

    @property
    def hides_rows(self) -> bool:
        return True

    @property
    def largest(self) -> float | None:
        """Of no use to protocols that encode by bounds of their own."""
        return 1.0

    @property
    def agrees(self) -> bool:
        """Whether parties agree on secrets first, and keep them; otherwise they have them from an alignment."""
        return False

    # ---- what a protocol says ---------------------------------------------------------------------------------------
    @abstractmethod
    def peer(self, at: AtParty, shared: PairSecrets) -> Peer[None]:
        """A party's side; what it learns it keeps on its desk, or in its state."""

    def hub(self, outbox: Outbox, names: tuple[str, ...]) -> Peer[Any]:
        """The server's side; what it returns goes to `inbox`."""
        return _carries(names)

    def inbox(self, outbox: Outbox, answered: tuple[str, ...], result: Any) -> Inbox:
        """What the server has learned."""
        return Inbox(answered, result=result)

    # ---- what the waist asks of an aggregation ----------------------------------------------------------------------
    def fit(self, outbox: Outbox) -> None:
        """Nothing is to be refused."""

    def bytes(self, numbers: float, parties: int) -> float:
        """Not known beforehand; see `Traffic`."""
        return 0.0

    def bytes_down(self, numbers: float) -> float:
        """The broadcast as it is."""
        return 4.0 * numbers

    def ask(self, engine: Engine, outbox: Outbox, sessions: Sessions) -> Inbox:
        """Carry the protocol out.

        Raises
        ------
        RoundRefused (HR-241)
            A party did not answer a step, or refused it.
        PartyDeclined (HR-221)
            Too few would answer, for parties refused for good.
        """
        carried, result = self._carried(engine, outbox)
        sessions.open.setdefault(Traffic, []).append(carried.traffic())
        return replace(self.inbox(outbox, tuple(outbox.ids), result), sent=tuple(carried.sent))

    @property
    def repeatable(self) -> bool:
        """Whether it may begin anew in the same question, where a party has forgotten it halfway, as one that was killed has.

        Only where the hub learns nothing of what it carries, and nothing is drawn that must not be drawn twice.
        """
        return False

    def _carried(self, engine: Engine, outbox: Outbox) -> tuple[_Carried, Any]:
        for attempt in range(ATTEMPTS if self.repeatable else 1, 0, -1):
            carried = _Carried(self, engine, outbox)
            try:
                return carried, carried.out()
            except (PartyDeclined, NobodyAnswered, RoundRefused) as error:
                codes = carried.codes or getattr(error, "codes", {})
                if attempt == 1 or not may_begin_anew(engine, outbox, codes):
                    if isinstance(error, PartyDeclined) and was_under_way(engine, carried.rounds, codes):
                        raise unfinished(outbox, codes) from error
                    raise
                log.info("%s begins anew: %s", self.name, error.reason)
        raise AssertionError

    # ---- as engines see it ------------------------------------------------------------------------------------------
    def correspondents(self, ids: tuple[str, ...]) -> Mapping[str, PeerSide]:
        """Every party's side, in one process."""
        return self.sides(ids, Credentials())

    def sides(self, ids: tuple[str, ...], own: Credentials) -> dict[str, PeerSide]:
        """Make the sides of parties."""
        found = {}
        for id in ids:
            identity = None if own.identity is None or own.roster is None else own.identity(id)
            found[id] = PeerSide(self, id, own.roster, identity)
        return found

    @property
    def aggregation(self) -> PeerProtocol:
        """What questions name on the wire."""
        return self


def _carries(names: tuple[str, ...]) -> Peer[None]:
    """The server's side of a protocol in which it has no part."""
    while True:
        if (yield {}):
            raise MessageRefused("a party wrote to the server, which only carries.")


@dataclass
class PeerSide:
    """A party's side: it opens what came, lets its peer go on, and seals what that writes."""

    protocol: PeerProtocol
    id: str
    roster: Roster | None = None
    identity: Identity | None = None
    done: bool = field(default=False, init=False)
    at: AtParty | None = field(default=None, init=False)
    _introduction: Introduction | None = field(default=None, init=False)
    _session: bytes = field(default=b"", init=False)
    _used: set[bytes] = field(default_factory=set, init=False)
    _round: int = field(default=0, init=False)
    _peer: Peer[None] | None = field(default=None, init=False)
    _shared: PairSecrets = field(default_factory=lambda: PairSecrets("", {}), init=False)

    def answer(self, step: str, letter: bytes, at: AtParty | None = None) -> bytes:
        """Answer one step.

        Raises
        ------
        MessageRefused (HR-242), NotAligned (HR-248)
        """
        if step == "keys":
            session, names = _read(letter, 2)
            self._begin(session)
            self._introduction = Introduction(self.id, session, tuple(names), self.roster, self.identity)
            return self._introduction.letter
        if step == "peers 0":
            return self._first(letter, at)
        session, round, came = _read(letter, 3)
        if self._peer is None or session != self._session or round != self._round + 1 or self.done:
            raise MessageRefused(f"round {round!r} of a protocol is not the next one here.", remedy="Start anew.")
        self._round = round
        opened = {sender: self._opened(sender, box) for sender, box in came.items()}
        return self._wrote(opened)

    def _begin(self, session: bytes) -> None:
        if session in self._used or len(session) != 32:
            raise MessageRefused("a session comes twice.", remedy="Every protocol has a session of its own.")
        self._used.add(session)
        self._session, self._introduction, self._peer, self.done = session, None, None, False

    def _first(self, letter: bytes, at: AtParty | None) -> bytes:
        session, names, keys = _read(letter, 3)
        if at is None or self.id not in names or HUB in names or len(set(names)) != len(names):
            raise MessageRefused("a protocol begins with other parties than its question.", remedy="Start anew.")
        if self.protocol.agrees:
            if self._introduction is None or session != self._session:
                raise MessageRefused("a protocol begins without keys.", remedy="Start anew.")
            self._shared = self._introduction.secrets(keys)
            at.desk.put(SECRETS, dict(self._shared.shared))
        else:
            self._begin(session)
            entry = at.desk.get(SECRETS)
            if entry is None and len(names) > 1:
                raise NotAligned(f"{self.id} shares no secrets with others.", remedy="Align the parties first: align(on=...).")
            self._shared = PairSecrets(self.id, entry or {})
        received = at.received  # a question that is asked again has a session of its own, and so other masks
        self.at = replace(at, names=tuple(names), received=lambda: digest("peers", received(), session))
        self._round = 0
        self._peer = self.protocol.peer(self.at, self._shared)
        return self._wrote(None)

    def _wrote(self, came: Letters | None) -> bytes:
        assert self._peer is not None
        try:
            letters = next(self._peer) if came is None else self._peer.send(came)
        except StopIteration:
            self.done, self._peer = True, None
            return _packed(True, {})
        return _packed(False, {to: self._sealed(to, letter) for to, letter in letters.items()})

    def _sealed(self, to: str, letter: bytes) -> bytes:
        return letter if to == HUB else self._shared.sealed(letter, to, self._session, self._round)

    def _opened(self, sender: str, box: bytes) -> bytes:
        return box if sender == HUB else self._shared.opened(box, sender, self._session, self._round - 1)


@dataclass
class _Carried:
    """One protocol on its way, at the server."""

    protocol: PeerProtocol
    engine: Engine
    outbox: Outbox
    sent: list[tuple[str, str, bytes]] = field(default_factory=list)
    codes: dict[str, str] = field(default_factory=dict)
    rounds: int = 0
    counted: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: {HUB: 0.0, "parties": 0.0})

    def out(self) -> Any:
        """Carry it out, and return what the hub has learned."""
        names, session = tuple(self.outbox.ids), secrets.token_bytes(32)
        keys: dict[str, bytes] = {}
        if self.protocol.agrees:
            keys = self._step("keys", dict.fromkeys(names, _packed(session, list(names))))
        others = {name: {other: key for other, key in keys.items() if other != name} for name in names}
        hub = _Hub(self.protocol.hub(self.outbox, names), self.seconds)
        from_hub = hub.begun()
        answers = self._step("peers 0", {name: _packed(session, list(names), others[name]) for name in names}, first=True)
        for round in range(1, LAST):
            came: dict[str, Letters] = {name: {} for name in (*names, HUB)}
            waiting = set()
            for name, raw in answers.items():
                done, letters = _read(raw, 2)
                waiting |= set() if done else {name}
                self._deliver(name, letters, came)
            self._deliver(HUB, from_hub, came)
            if not waiting:
                return hub.ended(came[HUB])
            idle = {name for name in names if name not in waiting and came[name]}
            if idle:
                raise MessageRefused(f"a letter came for {sorted(idle)[0]}, whose part is over.")
            from_hub = hub.sent(came[HUB])
            letters_of = {name: _packed(session, round, came[name]) for name in names if name in waiting}
            answers = self._step(f"peers {round}", letters_of)
        raise MessageRefused("a protocol does not come to an end.")

    def _deliver(self, sender: str, letters: Mapping[str, bytes], came: dict[str, Letters]) -> None:
        for to, letter in letters.items():
            if to not in came or to == sender or type(letter) is not bytes:
                raise MessageRefused(f"{sender} wrote to {to!r}, who takes no part.")
            came[to][sender] = letter
            self.counted[sender, to] += len(letter)

    def _step(self, name: str, letters: Mapping[str, bytes], first: bool = False) -> dict[str, bytes]:
        self.rounds += 1
        question = self.outbox.question
        about = self.outbox
        if not first:
            question = replace(question, local=question.function, broadcast=None, bound=None, view=(), init=None)
            about = replace(about, question=question, release=Release(), layout=None)
        if self.outbox.keep_rows:
            self.sent += [(party, name, letter) for party, letter in letters.items()]
        step = Step(name, letters, contributes=first)
        protocol: Any = self.protocol
        began = time.process_time()
        inbox = self.engine.exchange(replace(about, ids=tuple(letters), step=step, protocol=protocol, layout=None))
        self.seconds["parties"] += time.process_time() - began
        if set(inbox.letters) != set(letters):
            away = sorted(set(letters) - set(inbox.letters))
            self.codes = dict(inbox.codes)
            codes = ", ".join(f"{id}: {inbox.codes.get(id, 'no answer')}" for id in away)
            raise RoundRefused(
                f"{question.name} between {', '.join(self.outbox.ids)} ended in {name!r}: {codes}.",
                remedy="All parties have to be there. The reason is in the log of the party that refused.",
            )
        return dict(inbox.letters)

    def traffic(self) -> Traffic:
        """What it cost."""
        return Traffic(self.outbox.question.number, self.protocol.name, self.rounds, dict(self.counted), dict(self.seconds))


class _Hub:
    """The server's peer; it may come to its end before the parties do."""

    def __init__(self, peer: Peer[Any], seconds: dict[str, float]) -> None:
        self.peer, self.seconds = peer, seconds
        self.result: Any = None
        self.over = False

    def begun(self) -> Letters:
        return self._on(None)

    def sent(self, came: Letters) -> Letters:
        return self._on(came)

    def ended(self, came: Letters) -> Any:
        """The last letters, and what was learned."""
        if not self.over and came:
            self._on(came)
        return self.result

    def _on(self, came: Letters | None) -> Letters:
        if self.over:
            if came:
                raise MessageRefused("a letter came for the server, whose part is over.")
            return {}
        began = time.process_time()
        try:
            return next(self.peer) if came is None else self.peer.send(came)
        except StopIteration as end:
            self.over, self.result = True, end.value
            return {}
        finally:
            self.seconds[HUB] += time.process_time() - began


def _packed(*parts: Any) -> bytes:
    return bytes(msgpack.packb(parts, use_bin_type=True))


def _read(raw: bytes, n: int) -> list[Any]:
    """The parts of a message, whose types those who use them rely on."""
    try:
        parts = msgpack.unpackb(raw, raw=False, use_list=True, strict_map_key=True, max_ext_len=0)
    except Exception:  # whatever a parser makes of hostile bytes
        parts = None
    if type(parts) is not list or len(parts) != n or (n == 3 and not _letters(parts[2])) or (n == 2 and not _second(parts[1])):
        raise MessageRefused("a message between peers cannot be read.", remedy="Both sides run the same version.")
    return parts


def _letters(value: Any) -> bool:
    return type(value) is dict and all(type(k) is str and type(v) is bytes for k, v in value.items())


def _second(value: Any) -> bool:
    return _letters(value) or (type(value) is list and all(type(one) is str for one in value))
