"""A switchboard: which stations are connected to a rail, what waits for each, and what came from them.

The part of a coordinator's end that is the same for every rail. Memory is bounded: of what waits for a slow station the
oldest is dropped, and a station that sends faster than the coordinator reads is not read from until there is room.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from .rail import Arrived, Event, Joined, Left

log = logging.getLogger("hedgerow")

WAITING = 16
"""Bodies that may wait at once for a station, and as many from it. Their bytes may not be more than `most`, or one body."""
NEWS = 100_000
"""Events that wait for a coordinator that does not read. Who joined and left beyond them is told by `connected` alone."""


@dataclass
class Unread:
    """What came from a station and was not taken yet, over all of its connections."""

    bodies: int = 0
    bytes: int = 0


class StationConnection:
    """One connection of one station.

    Parameters
    ----------
    station : str
        Its name.
    hang_up : callable
        Ends the connection from this side; may be called more than once, from any thread.
    certificate : bytes
        SHA-256 of the certificate that it showed, where the rail has certificates.
    """

    def __init__(self, station: str, hang_up: Callable[[], object], most: int, certificate: bytes = b"") -> None:
        self.station, self.hang_up, self.certificate, self.most = station, hang_up, certificate, most
        self.unread, self.lost = Unread(), 0
        self.closed = False
        self._bodies: deque[bytes] = deque()
        self._bytes = 0
        self._changed = threading.Condition(threading.Lock())

    def put(self, body: bytes) -> None:
        """Let a body wait for this station; drops the oldest where too much waits."""
        with self._changed:
            while self._bodies and (len(self._bodies) >= WAITING or self._bytes + len(body) > self.most):
                self._bytes -= len(self._bodies.popleft())
                self.lost += 1
            self._bodies.append(body)
            self._bytes += len(body)
            self._changed.notify()

    def take(self) -> bytes | None:
        """Wait for the next body for this station; None once the line is closed."""
        with self._changed:
            while not self._bodies and not self.closed:
                self._changed.wait()
            if self.closed:
                return None
            body = self._bodies.popleft()
            self._bytes -= len(body)
            return body

    def close(self) -> None:
        """Wake whoever waits in `take`; what waited is lost."""
        with self._changed:
            self.closed = True
            self._bodies.clear()
            self._changed.notify_all()


class Switchboard:
    """Lines and events of a rail. Any thread may call any method."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._lines: dict[str, StationConnection] = {}
        self._unread: dict[str, Unread] = {}
        self._events: deque[tuple[Event, StationConnection]] = deque()
        self._lock = threading.Lock()
        self._news, self._room = threading.Condition(self._lock), threading.Condition(self._lock)
        self._closed = False

    # ---- the rail's side ---------------------------------------------------------------------------------------------
    def join(self, station: str, hang_up: Callable[[], object], certificate: bytes = b"") -> StationConnection:
        """Take in a new connection; an older one of the same station is put out."""
        line = StationConnection(station, hang_up, self.most, certificate)
        with self._lock:
            line.unread = self._unread.setdefault(station, line.unread)
            older = self._lines.pop(station, None)
            if older is not None:
                self._tell(Left(station), older)
            closed = self._closed
            if not closed:
                self._lines[station] = line
                self._tell(Joined(station), line)
        for gone in ([older] if older else []) + ([line] if closed else []):
            self._end(gone)
        return line

    def arrived(self, line: StationConnection, body: bytes) -> bool:
        """Hand in a body of a station; waits while too much of it is unread. False where the line was closed meanwhile."""
        with self._lock:
            unread = line.unread
            while not line.closed and unread.bodies and (unread.bodies >= WAITING or unread.bytes + len(body) > self.most):
                self._room.wait()
            if line.closed:
                return False
            unread.bodies += 1
            unread.bytes += len(body)
            self._events.append((Arrived(line.station, body), line))
            self._news.notify()
            return True

    def leave(self, line: StationConnection) -> None:
        """The connection is lost, closed, or to be ended."""
        with self._lock:
            if self._lines.get(line.station) is line:
                del self._lines[line.station]
                self._tell(Left(line.station), line)
        self._end(line)

    def lines(self) -> list[StationConnection]:
        """The connections there are."""
        with self._lock:
            return list(self._lines.values())

    def close(self) -> None:
        """End every connection and take no new one."""
        with self._lock:
            self._closed = True
        for line in self.lines():
            self.leave(line)

    # ---- the coordinator's side --------------------------------------------------------------------------------------
    def connected(self) -> frozenset[str]:
        """The stations that are connected now."""
        with self._lock:
            return frozenset(self._lines)

    def send(self, station: str, body: bytes) -> None:
        """Let a body wait for a station; lost where it is not connected."""
        line = self._lines.get(station)
        if line is not None:
            line.put(body)

    def receive(self, seconds: float) -> Event | None:
        """Wait for the next event, at most so long."""
        until = time.monotonic() + seconds
        with self._lock:
            while not self._events:
                left = until - time.monotonic()
                if left <= 0 or not self._news.wait(left):
                    if self._events:
                        break
                    return None
            event, line = self._events.popleft()
            if isinstance(event, Arrived):
                line.unread.bodies -= 1
                line.unread.bytes -= len(event.body)
                self._room.notify_all()
            return event

    def _tell(self, event: Event, line: StationConnection) -> None:
        if len(self._events) < NEWS:
            self._events.append((event, line))
            self._news.notify()

    def _end(self, line: StationConnection) -> None:
        line.close()
        with self._lock:
            self._room.notify_all()
        with suppress(Exception):  # a rail's library may complain that the connection is gone already
            line.hang_up()
        if line.lost:
            log.warning("%d bodies for %s were dropped: it read too slowly", line.lost, line.station)
            line.lost = 0
