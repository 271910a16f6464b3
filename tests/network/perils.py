"""When processes die and disks are full: counted in moments, of which every write has several."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field

from hedgerow.network.station.station import Station


class Killed(BaseException):
    """A process ended here."""


@dataclass
class Peril:
    """When one process dies and when its disk is full, in counted moments; nothing more happens once the storm is over."""

    deaths: set = field(default_factory=set)
    full: list = field(default_factory=list)
    moments: int = 0
    writes: int = 0
    over: bool = False

    @classmethod
    def drawn(cls, rng, within):
        """At most three deaths and three short spells of a full disk."""
        deaths = {rng.randrange(1, within) for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))}
        starts = [rng.randrange(1, within // 3) for _ in range(rng.choice([0, 0, 0, 1, 2, 3]))]
        return cls(deaths, [(start, start + rng.choice([1, 1, 2, 6])) for start in starts])

    def moment(self):
        self.moments += 1
        if not self.over and self.moments in self.deaths:
            raise Killed

    def write(self):
        self.moment()
        self.writes += 1
        if not self.over and any(start <= self.writes < end for start, end in self.full):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class PerilousStation(Station):
    """A station whose process may die between the journal and the answer."""

    moment = staticmethod(lambda: None)

    def _computed(self, admitted, question):
        self.moment()
        found = super()._computed(admitted, question)
        self.moment()
        return found


class PerilousRail:
    """The coordinator's end of a rail, of a process that may die whenever it uses it."""

    def __init__(self, rail, peril):
        self.rail, self.peril = rail, peril

    def __getattr__(self, name):
        return getattr(self.rail, name)

    def send(self, station, body):
        self.peril.moment()
        self.rail.send(station, body)
        self.peril.moment()

    def receive(self, seconds):
        self.peril.moment()
        return self.rail.receive(seconds)
