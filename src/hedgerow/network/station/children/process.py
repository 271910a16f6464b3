"""One child's process, as the gate sees it: told, asked within limits, and ended."""

from __future__ import annotations

import json
import logging
import select
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hedgerow.engines.pipes import Body, Gone, PipeMessage
from hedgerow.engines.starting import started
from hedgerow.errors import ResourcesExceeded

from .facts import OwnError, error_of

log = logging.getLogger("hedgerow")

MODULE = "hedgerow.network.station.children.child"
Off = Callable[[], bool]

SLICE = 0.1
"""Seconds between two looks at a child that is at work."""

LOOKS = 5
"""Looks between two questions to the database whether the child is still wanted."""

BACKSTOP = 4 << 30
"""Bytes beyond its limit at which a child's own system calls fail: between two looks it may allocate quickly."""


class Stopped(Exception):
    """Nobody waits for what a child does any more."""


@dataclass(frozen=True)
class Limits:
    """What one task may take.

    Attributes
    ----------
    what : str
        The task, in words.
    seconds : float
        Of wall time; without end by default.
    megabytes : int
        Of memory that the child has for itself alone; 0 for any.
    """

    what: str = "the child"
    seconds: float = float("inf")
    megabytes: int = 0


class Child:
    """A process.

    Parameters
    ----------
    records : int
        Descriptor of the memory in which the records are.
    threads : int, optional
        Of its numerical libraries.
    """

    def __init__(self, records: int, threads: int | None = None) -> None:
        self._process, self._line = started(MODULE, [str(records)], threads=threads, descriptors=[records])
        self._ready, self._ended, self._settled = False, False, -1
        self._ending, self._asking = threading.Lock(), threading.Lock()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def wait_ready(self, off: Off) -> None:
        """Wait until it has started, which costs nobody's time.

        Raises
        ------
        Stopped
        """
        if not self._ready:
            self._wait(Limits("a child's start"), off)
            self._ready = True

    def tell(self, kind: str, bodies: Sequence[Body]) -> None:
        """Tell it something that it does not reply to."""
        try:
            self._line.send(0, kind, bodies)
        except Gone:
            raise self._died("a message") from None

    def ask(self, kind: str, bodies: Sequence[Body], limits: Limits, off: Off) -> PipeMessage:
        """Ask it, and wait for the reply.

        Raises
        ------
        HedgerowError
            That of the child.
        ResourcesExceeded (HR-616)
            It took too long, or too much memory; it has been ended.
        Stopped
            `off` said so, or it was ended by somebody else; it has been ended.
        """
        with self._asking:
            try:
                self.wait_ready(off)
                self._settle(limits)
                self.tell(kind, bodies)
                told = self._wait(limits, off)
            finally:
                if self._ended:
                    self._line.close()
        if told.kind == "memory":
            self.end()
            raise _too_large(limits)
        if told.kind == "refused":
            raise error_of(json.loads(bytes(told.bodies[0])))
        return told

    def end(self) -> None:
        """End it now, whatever it is doing."""
        with self._ending:
            self._ended = True
            self._process.kill()
            self._process.wait()
            if self._asking.acquire(blocking=False):  # otherwise whoever asks sees it, and closes the line
                self._line.close()
                self._asking.release()

    def _settle(self, limits: Limits) -> None:
        if self._settled != limits.megabytes:
            data = (limits.megabytes << 20) + BACKSTOP if limits.megabytes else 0
            self.tell("settle", [json.dumps({"level": log.getEffectiveLevel(), "data": data}).encode()])
            self._settled = limits.megabytes

    def _wait(self, limits: Limits, off: Off) -> PipeMessage:
        began, looks = time.monotonic(), 0
        ready = select.poll()
        ready.register(self._line.end, select.POLLIN)
        while not ready.poll(1000 * SLICE):
            looks += 1
            if looks % LOOKS == 0 and off():
                self.end()
                raise Stopped
            try:
                refuse_late(limits, time.monotonic() - began)
            except ResourcesExceeded:
                self.end()
                raise
            if limits.megabytes and own_bytes(self.pid) > limits.megabytes << 20:
                self.end()
                raise _too_large(limits)
        try:
            return self._line.receive()
        except Gone:
            raise self._died(limits.what) from None

    def _died(self, what: str) -> Exception:
        status = self._process.wait()
        if self._ended:
            return Stopped()
        if status in (-signal.SIGKILL, -signal.SIGXCPU):
            return ResourcesExceeded(f"{what} was ended by the system, as where memory runs out.", remedy="A smaller study.")
        return OwnError(f"{what} ended with status {status}; the log may say why.")


def refuse_late(limits: Limits, taken: float) -> None:
    """Refuse what has taken more seconds than its limit (HR-616)."""
    if taken > limits.seconds:
        raise ResourcesExceeded(
            f"{limits.what} has taken {limits.seconds:g} seconds and was ended.",
            remedy="A smaller study; or, at the station, more seconds in [guard.limits].",
        )


def own_bytes(pid: int) -> int:
    """Memory that a process has for itself alone, in bytes; 0 where the system does not tell."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    return 0


def _too_large(limits: Limits) -> ResourcesExceeded:
    return ResourcesExceeded(
        f"{limits.what} has taken more than {limits.megabytes:,} megabytes of memory and was ended.",
        remedy="A smaller study; or, at the station, guard.limits.megabytes.",
    )
