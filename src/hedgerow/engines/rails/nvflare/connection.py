"""One Unix socket of the relay: frames in, frames out, on two threads, and the news that it broke.

Neither end of the relay may wait for a peer that does not read: what is put is sent by a thread of its own.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from pathlib import Path

from hedgerow.engines.rails.socket_rail import dial
from hedgerow.errors import MessageRefused
from hedgerow.wire import frames

MOST_WAITING = 8  # bodies that wait to be sent or taken; the coordinator asks one question of a station at a time


class FlareConnection:
    """A connection to a coordinator's or a station's socket.

    Parameters
    ----------
    path : Path
        The Unix socket that the other end listens on.
    name : str
        The station in whose name this end speaks: its first frame.
    most : int
        Bytes of the largest body that is taken in.

    Raises
    ------
    OSError
        Nobody listens there.
    """

    def __init__(self, path: Path, name: str, most: int = frames.MOST_BYTES) -> None:
        self._most = most
        self._socket = dial(path, name)
        self._out: queue.Queue[bytes | None] = queue.Queue()
        self._in: queue.Queue[bytes | None] = queue.Queue(MOST_WAITING)
        self._broken = threading.Event()
        self._threads = [threading.Thread(target=turn, daemon=True) for turn in (self._write, self._read)]
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether both ends are still connected."""
        return not self._broken.is_set()

    def put(self, body: bytes) -> bool:
        """Hand a body over to be sent; False where it is lost, because the other end is gone or does not read."""
        if self._broken.is_set() or self._out.qsize() >= MOST_WAITING:
            return False
        self._out.put(body)
        return True

    def get(self, seconds: float = 0.0) -> bytes | None:
        """Take the next body that came; None where none came in time or the connection broke."""
        try:
            return self._in.get(timeout=seconds) if seconds > 0 else self._in.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        """Break the connection and end both threads."""
        self._break()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(timeout=2.0)
        self._socket.close()

    def _write(self) -> None:
        try:
            while (body := self._out.get()) is not None:
                frames.write(self._socket, body)
        except OSError:
            pass
        self._break()

    def _read(self) -> None:
        try:
            while (body := frames.read(self._socket, self._most)) is not None:
                while not self._broken.is_set():
                    with contextlib.suppress(queue.Full):
                        self._in.put(body, timeout=0.5)
                        break
        except (OSError, MessageRefused):  # a reset, a frame above the cap
            pass
        self._break()

    def _break(self) -> None:
        if not self._broken.is_set():
            self._broken.set()
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._out.put(None)
            with contextlib.suppress(queue.Full):
                self._in.put_nowait(None)  # wakes whoever waits for a body
