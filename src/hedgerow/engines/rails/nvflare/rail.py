"""`NvflareRail`: the coordinator's end of the relay."""

from __future__ import annotations

import threading
from collections.abc import Collection
from pathlib import Path

from hedgerow.engines.rails.nvflare import need_nvflare
from hedgerow.engines.rails.rail import Event
from hedgerow.engines.rails.socket_rail import SocketRail
from hedgerow.errors import ConfigInvalid

from .supervisor import FlareSession, Supervisor


class NvflareRail:
    """A rail over an institution's NVIDIA FLARE: a socket that the relay speaks to, and the supervisor of its jobs.

    Parameters
    ----------
    path : Path
        The Unix socket to listen on; the server's kit names the same (`local/hedgerow.json`).
    kit : Path
        The submitter's kit, with `startup` in it.
    sites : collection of str, optional
        Whom to relay for; every site that FLARE knows when it is left out.

    Raises
    ------
    ConfigInvalid (HR-601)
        The folder is not a submitter's kit.
    MissingExtra (HR-105)
        NVIDIA FLARE is not installed.
    """

    def __init__(self, path: Path, kit: Path, sites: Collection[str] | None = None) -> None:
        need_nvflare()
        kit = Path(kit)
        if not (kit / "startup" / "fed_admin.json").is_file():
            raise ConfigInvalid(
                f"{kit} is not a submitter's kit.", remedy="python -m hedgerow.engines.rails.nvflare provision --help"
            )
        self._socket = SocketRail(path)
        self._stop = threading.Event()
        keeper = Supervisor(lambda: FlareSession(kit), self._socket.connected, None if sites is None else frozenset(sites))
        self._thread = threading.Thread(target=keeper.run, args=(self._stop,), name="relay supervisor", daemon=True)
        self._thread.start()

    def connected(self) -> frozenset[str]:
        """The stations whose relay is there and that answer it."""
        return self._socket.connected()

    def send(self, station: str, body: bytes) -> None:
        """Hand a body over for a station; lost where the station is away."""
        self._socket.send(station, body)

    def receive(self, seconds: float) -> Event | None:
        """Wait for the next event, at most so long."""
        return self._socket.receive(seconds)

    def now(self) -> float:
        """Seconds on a clock that never goes back."""
        return self._socket.now()

    def close(self) -> None:
        """Leave FLARE's server and close the socket. Relay jobs run on for ten minutes."""
        self._stop.set()
        self._thread.join(timeout=10.0)
        self._socket.close()
