"""A coordinator's surroundings in one process: a clock, a rail, and stations with real envelopes over tiny tables."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from hedgerow.core import Parties
from hedgerow.crypto.keys import AgreementKey, Identity
from hedgerow.crypto.messages import digest
from hedgerow.data import Column
from hedgerow.engines import InProcess
from hedgerow.engines.host import Host
from hedgerow.engines.message_queue import MessageQueue
from hedgerow.engines.rails.rail import Arrived, Joined, Left
from hedgerow.errors import HedgerowError
from hedgerow.network.coordinator.config import parse_config
from hedgerow.network.coordinator.coordinator import Coordinator
from hedgerow.network.coordinator.store import Store
from hedgerow.network.coordinator.submission import submit
from hedgerow.study import parse
from hedgerow.wire.boarding import submission_digest
from hedgerow.wire.envelope import KeyMaterial, PublicIdentity, disclose, enclose
from hedgerow.wire.values import pack, unpack

COLUMNS = (
    Column("age", "number", low=20.0, high=90.0),
    Column("dose", "number", low=0.0, high=1.0),
    Column("ill", "binary", role="target"),
)
STUDY = {"name": "ill", "data": {"name": "trial"}, "program": {"name": "logistic_regression", "formula": "ill ~ age + dose"}}


class Killed(BaseException):
    """The coordinator's process ended here."""


@dataclass
class Clock:
    at: float = 1_000_000.0

    def __call__(self) -> float:
        return self.at


def table(seed, n=60):
    rng = np.random.default_rng(seed)
    age, dose = rng.uniform(20, 90, n), rng.random(n)
    ill = (rng.random(n) < 1 / (1 + np.exp(-(age - 55) / 15 + dose))).astype(float)
    return {"age": age, "dose": dose, "ill": ill}


def pooled_fit(tables):
    """Newton's method on all records."""
    age, dose, y = (np.concatenate([one[name] for one in tables]) for name in ("age", "dose", "ill"))
    X, beta = np.column_stack([np.ones(len(y)), age, dose]), np.zeros(3)
    for _ in range(30):
        p = 1 / (1 + np.exp(-X @ beta))
        beta = beta + np.linalg.solve((X * (p * (1 - p))[:, None]).T @ X, X.T @ (y - p))
    return beta


def seat_of(name):
    identity, agreement = Identity.fresh(), AgreementKey.fresh()
    return KeyMaterial(PublicIdentity(name, identity.public, agreement.public), identity, agreement)


@dataclass
class MadeUpStation:
    """Answers letters as `hedgerow.network.station` does: at most once each, the same letter by the same bytes."""

    key_material: KeyMaterial
    hub: PublicIdentity
    table: dict
    columns: tuple = COLUMNS
    data: str = "trial"
    status: str = "approved"
    code: str = ""
    refuses: list = field(default_factory=list)
    last: dict = field(default_factory=dict)
    given: dict = field(default_factory=dict)
    seen: list = field(default_factory=list)

    def __post_init__(self):
        self.signer = self.key_material.identity
        n = len(next(iter(self.table.values())))
        self.host = Host(InProcess(threads=1).hosting(Parties((self.key_material.public_identity.name,), self.table, [n])))

    def receive(self, raw):
        letter = disclose(self.key_material, {self.hub.name: self.hub}, raw)
        if letter.digest in self.given:
            return self.given[letter.digest]
        assert letter.number > self.last.get(letter.study, 0) or letter.kind == "hello", "a number went out twice"
        self.last[letter.study] = letter.number
        self.seen.append(letter.kind)
        try:
            kind, parts = self.answer(letter)
        except HedgerowError as error:
            kind, parts = "refused", [error.code.encode()]
        sealed = enclose(
            self.key_material, self.hub, kind, parts, study=letter.study, number=letter.number, answers=letter.digest
        )
        self.given[letter.digest] = sealed
        return sealed

    def answer(self, letter):
        name = self.key_material.public_identity.name
        if letter.kind == "hello":
            said = {"version": "0", "data": self.data, "schema": self.columns, "parties": (name,), "records": None}
            return "hello", [pack(said)]
        if letter.kind == "board":
            self.told = letter.parts[0].decode(), unpack(letter.parts[1])
            submission = submission_digest(*letter.parts)
            said = {"status": self.status, "code": self.code, "submission": submission, "parties": (name,)}
            said["signature"] = self.signer.sign(digest("submission decision", submission, self.status.encode()))
            return "board", [pack(said)]
        if letter.kind == "end":
            self.end = unpack(letter.parts[0])["status"]
            return "end", []
        if self.refuses and (code := self.refuses.pop(0)):
            return "refused", [code.encode()]
        return "answer", [self.host.answer(*letter.parts)]


@dataclass
class MadeUpRail:
    """Hands bodies over at once; time passes only where somebody waits for nothing."""

    clock: Clock
    stations: dict
    up: set
    events: deque = field(default_factory=deque)
    steps: int = 0
    killed_at: int | None = None
    silent: set = field(default_factory=set)
    sent: list = field(default_factory=list)

    def connected(self):
        return frozenset(self.up)

    def now(self):
        return self.clock.at

    def send(self, station, body):
        self.sent.append((station, body))
        if station in self.up and station not in self.silent:
            answer = self.stations[station].receive(body)
            if answer is not None:
                self.events.append(Arrived(station, answer))

    def receive(self, seconds):
        self.steps += 1
        if self.steps == self.killed_at:
            raise Killed
        if self.events:
            return self.events.popleft()
        self.clock.at += seconds
        return None

    def join(self, station):
        self.up.add(station)
        self.events.append(Joined(station))

    def leave(self, station):
        self.up.discard(station)
        self.events.append(Left(station))

    def close(self):
        pass


class World:
    """A coordinator on a store in `folder`, and stations alpha, beta and gamma."""

    def __init__(self, folder, limits=None, names=("alpha", "beta", "gamma")):
        self.folder, self.clock, self.hub = folder, Clock(), seat_of("hub")
        self.tables = {name: table(seed) for seed, name in enumerate(names)}
        self.stations = {name: MadeUpStation(seat_of(name), self.hub.public_identity, self.tables[name]) for name in names}
        self.rail = MadeUpRail(self.clock, self.stations, set(names))
        self.config = parse_config({"name": "hub", "rail": {"kind": "socket", "path": "rail"}, "limits": limits or {}}, folder)
        self.start()

    def start(self):
        """Start a coordinator anew on the same state folder, as the service does."""
        self.rail.events.clear()
        self.store = Store(self.config.state_folder, self.clock)
        self.store.wake()
        public_identities = {name: station.key_material.public_identity for name, station in self.stations.items()}
        queue = MessageQueue(lambda: self.hub, lambda: public_identities, self.rail)
        self.coordinator = Coordinator(self.store, queue, self.config, lambda: public_identities, jitter=lambda: 1.0)

    def submit(self, stations=(), **changes):
        return submit(self.store, parse(STUDY | changes), stations=stations, roster=tuple(self.stations))

    def go(self, id, seconds=3600.0, until=None):
        """Advance whatever is due until a study has ended, or something holds, or so much time has passed."""
        end = self.clock.at + seconds
        while self.clock.at < end:
            kept = self.store.study(id)
            if until(kept) if until else kept.ended and not kept.untold:
                break
            due = self.coordinator.due()
            for one in due:
                self.coordinator.advance(one)
            if not due:
                self.coordinator.queue.wait(1.0)
        return self.store.study(id)

    def words(self, id):
        return [entry.sentence for entry in self.store.history(id)]
