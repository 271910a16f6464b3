"""A station's end of any rail: connect, answer bodies, connect again.

One thread connects and reads. It answers and sends as well, so that bodies that come meanwhile wait in the connection, whose
own flow control holds the coordinator back; or, where several are to be answered at once, each gets a thread, and reading
waits where there are as many. An answer goes out over the connection that is there when it is ready. The thread that called
`serve` only waits for `stop`.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Protocol

from hedgerow.errors import RailUnavailable

log = logging.getLogger("hedgerow")

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds before dialling again; a pause is up to twice the one before, and random, so that stations do not come at once."""
STEADY = 5.0
"""Seconds after which a connection counts as good, so that pauses begin anew."""
AGAIN = 600.0
"""Seconds after which a station that cannot connect says so again."""


class Connection(Protocol):
    """One connection to a coordinator."""

    def receive(self) -> bytes | None:
        """Wait for the next body; None where the connection ended."""

    def send(self, body: bytes) -> None:
        """Send an answer; OSError where the connection ended."""

    def up(self) -> bool:
        """Whether the other end is there now."""

    def close(self) -> None:
        """End it: whoever waits in `receive` or `send` comes back. From any thread, more than once."""


class Dialling:
    """Serves over connections that `connect` makes; `connect` raises OSError where there is none now."""

    def __init__(self, connect: Callable[[], Connection], longest_pause: float = LONGEST_PAUSE) -> None:
        self._connect, self._longest = connect, longest_pause
        self._quit = threading.Event()
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._now: Connection | None = None
        self._refused: RailUnavailable | None = None
        self._said = -AGAIN

    @property
    def connected(self) -> bool:
        """Whether the coordinator is there now."""
        with self._lock:
            return self._now is not None and self._now.up()

    def serve(self, answer: Callable[[bytes], bytes | None], stop: threading.Event, at_once: int = 1) -> None:
        """Answer until `stop` is set; returns within a second of it. An answer that is being made then is not sent.

        Parameters
        ----------
        at_once : int
            Bodies that are answered at the same time.

        Raises
        ------
        RailUnavailable (HR-612)
            The other end said, over a connection that is known to be its own, that it does not accept this station.
        """
        worker = threading.Thread(target=self._work, args=(answer, at_once), name="hedgerow-link", daemon=True)
        worker.start()
        try:
            while worker.is_alive() and not stop.wait(0.2):
                pass
        finally:
            self._quit.set()
            with self._lock:
                connection = self._now
            if connection is not None:
                connection.close()
            worker.join(0.5)
        if self._refused is not None:
            raise self._refused

    def _work(self, answer: Callable[[bytes], bytes | None], at_once: int) -> None:
        pause, room = FIRST_PAUSE, threading.Semaphore(at_once)
        while not self._quit.is_set():
            begun, heard = time.monotonic(), False
            try:
                connection = self._connect()
                with self._lock:
                    self._now = connection
                try:
                    while not self._quit.is_set() and (body := connection.receive()) is not None:
                        heard = True
                        if at_once > 1:
                            self._apart(answer, body, room)
                        elif (reply := _answer(answer, body)) is not None and not self._quit.is_set():
                            connection.send(reply)
                        del body
                finally:
                    with self._lock:
                        self._now = None
                    connection.close()
            except RailUnavailable as refusal:
                self._refused = refusal
                return
            except OSError as problem:
                self._say(problem)
            except Exception:
                log.exception("the connection to the coordinator failed")
            if heard or time.monotonic() - begun > STEADY:
                pause = FIRST_PAUSE
            self._said = -AGAIN if heard else self._said
            self._quit.wait(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, self._longest)

    def _apart(self, answer: Callable[[bytes], bytes | None], body: bytes, room: threading.Semaphore) -> None:
        """Answer a body in a thread of its own, as soon as there is room for one more."""
        while not room.acquire(timeout=0.2):
            if self._quit.is_set():
                return

        def run() -> None:
            try:
                reply = _answer(answer, body)
                with self._sending:
                    connection = self._now
                    if reply is not None and connection is not None and not self._quit.is_set():
                        connection.send(reply)  # lost with the connection: the same letter comes again
            except OSError:
                log.debug("the connection ended before an answer could be sent")
            finally:
                room.release()

        threading.Thread(target=run, name="hedgerow-answer", daemon=True).start()

    def _say(self, problem: OSError) -> None:
        """Tell the log why there is no connection, once in a while: whoever set a station up has nothing else to go by."""
        now = time.monotonic()
        quiet = now - self._said < AGAIN
        log.log(logging.DEBUG if quiet else logging.WARNING, "no connection to the coordinator, dialling again: %s", problem)
        self._said = self._said if quiet else now


def _answer(answer: Callable[[bytes], bytes | None], body: bytes) -> bytes | None:
    """What the station says; nothing where it fails, and nothing about why."""
    try:
        return answer(body)
    except Exception:
        log.exception("a body was not answered")
        return None
