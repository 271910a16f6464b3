"""A rail in one process, with a virtual clock and faults by script: everything that happens follows from one seed."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from hedgerow.engines.rails.rail import Arrived, Event, Joined, Left

Answer = Callable[[bytes], bytes | None]


@dataclass
class Faults:
    """How often a body is lost, repeated, altered, slow, or handed to somebody else; delays are in seconds."""

    lost: float = 0.0
    repeated: float = 0.0
    altered: float = 0.0
    slow: float = 0.0
    crossed: float = 0.0
    delay: tuple[float, float] = (0.001, 0.02)
    long: tuple[float, float] = (1.0, 100.0)


@dataclass
class VirtualRail:
    """Both ends. `machines` makes a station's answering function; it is called again when the station starts again."""

    machines: dict[str, Callable[[], Answer]]
    seed: int = 0
    faults: Faults = field(default_factory=Faults)
    clock: float = 0.0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.up: dict[str, Answer] = {}
        self.away: set[str] = set()
        self.laid = True
        self.tapped: list[tuple[str, str, bytes]] = []
        self.tap: Callable[[str, str, bytes], None] = lambda way, station, body: None
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._events: list[Event] = []
        self._count = 0
        self._life = dict.fromkeys(self.machines, 0)
        for name in self.machines:
            self.start(name)

    # ---- the script ----------------------------------------------------------------------------------------------
    def at(self, seconds: float, action: Callable[[], None]) -> None:
        """Let something happen at a time of the virtual clock."""
        self._count += 1
        heapq.heappush(self._agenda, (seconds, self._count, action))

    def start(self, name: str) -> None:
        """A station's process starts, and dials."""
        if name not in self.up:
            self.up[name] = self.machines[name]()
            self.away.add(name)
            self._join(name)

    def kill(self, name: str) -> None:
        """A station's process dies: what it had in memory is gone, and so is what was on its way."""
        if name in self.up:
            del self.up[name]
            self._leave(name)

    def cut(self, name: str) -> None:
        """A station's connection is lost and laid again; its process goes on."""
        if name in self.up:
            self._leave(name)
            self._join(name)

    def hang_up(self) -> None:
        """The coordinator's process dies: all connections are lost, and so is what was on its way."""
        self.laid = False
        for name in list(self.up):
            self._leave(name)
        self._events.clear()

    def lay(self) -> None:
        """The coordinator's process is back; stations that are up dial again, each in its time."""
        self.laid = True
        for name in self.machines:
            self.at(self.clock + self.random.uniform(0.0, 2.0), lambda name=name: self._join(name))

    def pass_time(self, seconds: float) -> None:
        """Let time pass while no coordinator is there."""
        end = self.clock + seconds
        while self.clock < end:
            self._events.clear()
            self.receive(end - self.clock)

    def _join(self, name: str) -> None:
        if self.laid and name in self.up and name in self.away:
            self.away.discard(name)
            self._events.append(Joined(name))

    def _leave(self, name: str) -> None:
        self._life[name] += 1
        if name not in self.away:
            self.away.add(name)
            self._events.append(Left(name))

    # ---- the coordinator's end -------------------------------------------------------------------------------------
    def connected(self) -> frozenset[str]:
        return frozenset(self.up.keys() - self.away)

    def now(self) -> float:
        return self.clock

    def send(self, station: str, body: bytes) -> None:
        self._tapped("to", station, body)
        if self.faults.crossed and self.random.random() < self.faults.crossed:
            station = self.random.choice(sorted(self.machines))
        life = self._life.get(station)
        for delay in self._passage():
            self.at(self.clock + delay, lambda: self._arrive(station, life, self._damaged(body)))

    def receive(self, seconds: float) -> Event | None:
        end = self.clock + seconds
        while not self._events:
            if not self._agenda or self._agenda[0][0] > end:
                self.clock = max(self.clock, end)
                return None
            moment, _, action = heapq.heappop(self._agenda)
            self.clock = max(self.clock, moment)
            action()
        return self._events.pop(0)

    def close(self) -> None:
        self.up.clear()

    def _tapped(self, way: str, station: str, body: bytes) -> None:
        self.tapped.append((way, station, body))
        self.tap(way, station, body)

    # ---- in between ------------------------------------------------------------------------------------------------
    def _passage(self) -> list[float]:
        """When the copies of a body arrive."""
        faults, times = self.faults, 1 + (self.random.random() < self.faults.repeated)
        delays = [
            self.random.uniform(*(faults.long if self.random.random() < faults.slow else faults.delay)) for _ in range(times)
        ]
        return [delay for delay in delays if self.random.random() >= faults.lost]

    def _damaged(self, body: bytes) -> bytes:
        if not body or self.random.random() >= self.faults.altered:
            return body
        at = self.random.randrange(len(body))
        return self.random.choice([body[:at], body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :], body + b"\0"])

    def _arrive(self, station: str, life: int | None, body: bytes) -> None:
        if station not in self.up or self._life[station] != life:
            return
        reply = self.up[station](body)
        if reply is None or station not in self.up:
            return
        self._tapped("from", station, reply)
        said = station
        if self.faults.crossed and self.random.random() < self.faults.crossed:
            said = self.random.choice(sorted(self.machines))
        life = self._life[said]
        for delay in self._passage():
            damaged = self._damaged(reply)
            self.at(self.clock + delay, lambda damaged=damaged: self._return(said, life, damaged))

    def _return(self, station: str, life: int | None, body: bytes) -> None:
        if self._life[station] == life and station not in self.away:
            self._events.append(Arrived(station, body))
