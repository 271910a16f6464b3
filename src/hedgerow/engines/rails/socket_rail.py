"""The socket rail: Unix sockets between processes of one machine.

    SocketRail(path)          coordinator   listens
    SocketLink(path, name)    station       dials a SocketRail
    SocketDoor(path, name)    station       listens; a relay dials it
    dial(path, name)          a relay       to either; then `frames.write(socket, body)` and `frames.read(socket)`

Whoever dials names a station in the first frame; every further frame (see `wire.frames`) is a body. A relay dials the
coordinator's rail once in the name of each station that it carries for, and each station's door in that station's name.
Who may dial is a matter of file permissions: sockets are of mode 0600 in a folder that is its owner's alone.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hedgerow.errors import HedgerowError, RailUnavailable
from hedgerow.store.locks import require_posix
from hedgerow.wire import frames

from .dialling import Dialling
from .rail import Event
from .switchboard import StationConnection, Switchboard

NAME_BYTES = 200
NAMING = 5.0
"""Seconds within which whoever dials names a station."""
UNNAMED = 64
"""Connections that may be about to name a station at once."""


def dial(path: Path, station: str) -> socket.socket:
    """Connect to a rail or a door in the name of a station.

    Raises
    ------
    OSError
        Nobody listens there now.
    """
    require_posix("A rail of sockets")
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(NAMING)
        connection.connect(os.fspath(path))
        frames.write(connection, station.encode())
        connection.settimeout(None)
    except BaseException:
        connection.close()
        raise
    return connection


class SocketRail:
    """A coordinator's end.

    Parameters
    ----------
    path : Path
        Of the socket, at most about 100 characters. Its folder is made where it is missing.
    most : int
        Bytes that a body may have.

    Raises
    ------
    RailUnavailable (HR-612)
        Another process listens there, others may enter the folder, or the path is too long.
    """

    def __init__(self, path: Path, most: int = frames.MOST_BYTES) -> None:
        self.path, self._most = Path(path), most
        self._board = Switchboard(most)
        self._unnamed = threading.BoundedSemaphore(UNNAMED)
        self._listener = _listen(self.path)
        self._door = threading.Thread(target=self._accept, name="hedgerow-sockets", daemon=True)
        self._door.start()

    def connected(self) -> frozenset[str]:
        """The stations that are connected now."""
        return self._board.connected()

    def send(self, station: str, body: bytes) -> None:
        """Hand a body over for a station; lost where it is not connected, or where newer ones fill its line."""
        self._board.send(station, body)

    def receive(self, seconds: float) -> Event | None:
        """Wait for the next event, at most so long."""
        return self._board.receive(seconds)

    def now(self) -> float:
        """Seconds on a clock that never goes back."""
        return time.monotonic()

    def close(self) -> None:
        """Close every connection and remove the socket."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._door.join()
        _remove(self._listener, self.path)
        self._board.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed
                return
            if not self._unnamed.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._read, args=(connection,), name="hedgerow-socket-read", daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        try:
            station = _name(connection)
        finally:
            self._unnamed.release()
        if station is None:
            connection.close()
            return
        line = self._board.join(station, lambda: connection.shutdown(socket.SHUT_RDWR))
        writer = threading.Thread(target=self._write, args=(connection, line), name="hedgerow-socket-write", daemon=True)
        writer.start()
        with suppress(OSError, HedgerowError):
            while (body := frames.read(connection, self._most)) is not None and self._board.arrived(line, body):
                del body
        self._board.leave(line)
        writer.join()
        connection.close()

    def _write(self, connection: socket.socket, line: StationConnection) -> None:
        with suppress(OSError):
            while (body := line.take()) is not None:
                frames.write(connection, body)
                del body
        self._board.leave(line)


class SocketLink:
    """A station's end that dials a `SocketRail`; see `rail.Link`.

    Parameters
    ----------
    path : Path
        Of the coordinator's socket.
    name : str
        The station's.
    """

    def __init__(self, path: Path, name: str, most: int = frames.MOST_BYTES) -> None:
        self.path, self.name, self._most = Path(path), name, most
        self._dialling = Dialling(lambda: _Dialled(dial(self.path, self.name), self._most))

    @property
    def connected(self) -> bool:
        """Whether the coordinator is there now."""
        return self._dialling.connected

    def serve(self, answer: Callable[[bytes], bytes | None], stop: threading.Event, at_once: int = 1) -> None:
        """Answer until `stop` is set; dials again whenever the connection is lost."""
        self._dialling.serve(answer, stop, at_once)


class SocketDoor:
    """A station's end that listens for a relay; see `rail.Link`. A newer relay takes the place of an older one.

    Parameters
    ----------
    path : Path
        Of the station's own socket, as for `SocketRail`.
    name : str
        The station's; a relay that names another is not let in.
    """

    def __init__(self, path: Path, name: str, most: int = frames.MOST_BYTES) -> None:
        self.path, self.name, self._most = Path(path), name, most
        self._dialling: Dialling | None = None

    @property
    def connected(self) -> bool:
        """Whether a relay is there now; whether the coordinator is behind it, nobody knows here."""
        return self._dialling is not None and self._dialling.connected

    def serve(self, answer: Callable[[bytes], bytes | None], stop: threading.Event, at_once: int = 1) -> None:
        """Answer until `stop` is set.

        Raises
        ------
        RailUnavailable (HR-612)
            The socket cannot be made.
        """
        listener = _listen(self.path)
        try:
            self._dialling = Dialling(lambda: _Opened(listener, self.name, self._most))
            self._dialling.serve(answer, stop, at_once)
        finally:
            _remove(listener, self.path)


class _Dialled:
    """A connection that this end made."""

    def __init__(self, connection: socket.socket, most: int) -> None:
        self._socket, self._most = connection, most

    def up(self) -> bool:
        return True  # until it is lost

    def receive(self) -> bytes | None:
        return frames.read(self._socket, self._most)

    def send(self, body: bytes) -> None:
        frames.write(self._socket, body)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class _Opened:
    """A door: one relay after the other, as one connection that ends only with the door."""

    def __init__(self, listener: socket.socket, name: str, most: int) -> None:
        self._listener, self._name, self._most = listener, name, most
        self._relay: socket.socket | None = None
        self._closed = False
        self._reader: int | None = None

    def up(self) -> bool:
        return self._relay is not None

    def receive(self) -> bytes | None:
        self._reader = threading.get_ident()
        while not self._closed:
            watched = [self._listener] + ([self._relay] if self._relay else [])
            poll = select.poll()
            for each in watched:
                poll.register(each, select.POLLIN)
            ready = {number for number, _ in poll.poll(200)}
            if self._listener.fileno() in ready:
                self._let_in()
            elif ready and self._relay is not None:
                with suppress(OSError, HedgerowError):
                    body = frames.read(self._relay, self._most)
                    if body is not None:
                        return body
                self._put_out()
        self._put_out()
        return None

    def send(self, body: bytes) -> None:
        if self._relay is not None:
            try:
                frames.write(self._relay, body)
            except OSError:
                self._hang_up()

    def close(self) -> None:
        self._closed = True
        self._hang_up()

    def _hang_up(self) -> None:
        relay = self._relay
        if relay is not None:
            with suppress(OSError):
                relay.shutdown(socket.SHUT_RDWR)
        if self._reader == threading.get_ident():  # another thread would take the socket from under the reader's poll
            self._put_out()

    def _let_in(self) -> None:
        with suppress(OSError):
            relay, _ = self._listener.accept()
            if _name(relay) == self._name:
                self._put_out()
                self._relay = relay
            else:
                relay.close()

    def _put_out(self) -> None:
        if self._relay is not None:
            self._relay.close()
            self._relay = None


def _name(connection: socket.socket) -> str | None:
    """The station that whoever dialled names, or None."""
    try:
        connection.settimeout(NAMING)
        raw = frames.read(connection, NAME_BYTES)
        connection.settimeout(None)
        name = (raw or b"").decode()
    except (OSError, HedgerowError, UnicodeDecodeError):
        return None
    return name if name and name.isprintable() else None


def _listen(path: Path) -> socket.socket:
    """A listening socket that only its owner can reach."""
    require_posix("A rail of sockets")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = path.parent.stat()
    if about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o077:
        raise RailUnavailable(
            f"the folder {path.parent} is open to others, who could reach the socket in it.",
            remedy=f"chmod 700 {path.parent}",
        )
    listener = socket.socket(socket.AF_UNIX)
    try:
        if path.is_socket() and not _answers(path):
            path.unlink()  # of a process that ended without closing
        listener.bind(os.fspath(path))
        path.chmod(0o600)
        listener.listen(UNNAMED)
    except OSError as problem:
        listener.close()
        raise RailUnavailable(
            f"no socket can be made at {path}: {problem}.",
            remedy="End the process that listens there, or take another path of at most 100 characters.",
        ) from problem
    return listener


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(os.fspath(path))
        except OSError as problem:
            return isinstance(problem, TimeoutError | BlockingIOError)
    return True


def _remove(listener: socket.socket, path: Path) -> None:
    listener.close()
    path.unlink(missing_ok=True)
