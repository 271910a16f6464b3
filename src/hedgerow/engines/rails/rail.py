"""What a rail is: two ends, bodies in between, and news of who is there.

    coordinator   Rail    send to a station, receive what happened next
    station       Link    dial out, answer bodies one after the other or several at once, dial again when the connection is lost

A body is sealed and signed before it comes here. A rail may lose, repeat, delay and reorder bodies; it keeps nothing of a
study. What is sent to a station that is not connected is lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Arrived:
    """A body came from a station."""

    station: str
    body: bytes


@dataclass(frozen=True)
class Joined:
    """A station connected, for the first time or again."""

    station: str


@dataclass(frozen=True)
class Left:
    """A station's connection was lost or closed."""

    station: str


Event = Arrived | Joined | Left


class Rail(Protocol):
    """The coordinator's end. Any thread may send; one at a time receives."""

    def connected(self) -> frozenset[str]:
        """The stations that are connected now."""

    def send(self, station: str, body: bytes) -> None:
        """Hand a body over for a station; returns before it arrives. Bodies for a station that is away are lost."""

    def receive(self, seconds: float) -> Event | None:
        """Wait for the next event, at most so long; None where nothing happened."""

    def now(self) -> float:
        """Seconds on a clock that never goes back."""

    def close(self) -> None:
        """Close every connection."""


class Link(Protocol):
    """A station's end."""

    @property
    def connected(self) -> bool:
        """Whether the other end is there now; for people to see, and for nothing else."""

    def serve(self, answer: Callable[[bytes], bytes | None], stop: threading.Event, at_once: int = 1) -> None:
        """Dial, hand each body to `answer` and send back what it returns, if anything; until `stop` is set.

        With `at_once` above one, so many bodies are answered at the same time, each in a thread, and answers go out as they
        are ready. Dials again, with growing pauses, whenever the connection is lost.

        Raises
        ------
        RailUnavailable (HR-612)
            The other end does not accept this station's certificate, which dialling again does not change.
        """
