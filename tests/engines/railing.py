"""What tests of rails share: rails and links of each kind, stations as processes, and certificates.

Run as a program it is a station: railing.py KIND WHERE NAME FOLDER.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hedgerow.crypto import certificates
from hedgerow.engines.rails.grpc_rail import GrpcLink, GrpcRail
from hedgerow.engines.rails.rail import Arrived, Event
from hedgerow.engines.rails.socket_rail import SocketLink, SocketRail
from hedgerow.wire.tls import Tls

KINDS = ["grpc", "socket"]
HUB = "hub"


class Authority:
    """A certificate authority that issues whatever it is asked."""

    def __init__(self) -> None:
        self.certificate, self._key = certificates.authority("federation")

    def tls(self, name: str, hosts: tuple[str, ...] = ()) -> Tls:
        key = certificates.tls_key()
        issued = certificates.issue(self.certificate, self._key, certificates.request(name, key), name, hosts=hosts)
        return Tls(self.certificate, issued, key)

    def hub(self) -> Tls:
        return self.tls(HUB, ("127.0.0.1",))


def save(tls: Tls, folder: Path, name: str) -> None:
    for part in ("authority", "certificate", "key"):
        (folder / f"{name}.{part}").write_bytes(getattr(tls, part))


def load(folder: Path, name: str) -> Tls:
    return Tls(*((folder / f"{name}.{part}").read_bytes() for part in ("authority", "certificate", "key")))


def everyone(name: str, certificate: bytes) -> bool:
    return len(certificate) == 32


def make_rail(kind: str, where: str, folder: Path) -> GrpcRail | SocketRail:
    return GrpcRail(where, load(folder, HUB), everyone) if kind == "grpc" else SocketRail(Path(where))


def make_link(kind: str, where: str, name: str, folder: Path) -> GrpcLink | SocketLink:
    return GrpcLink(where, load(folder, name)) if kind == "grpc" else SocketLink(Path(where), name)


def where_of(rail: GrpcRail | SocketRail) -> str:
    return f"127.0.0.1:{rail.port}" if isinstance(rail, GrpcRail) else str(rail.path)


@contextmanager
def serving(link, answer: Callable[[bytes], bytes | None]) -> Iterator[list[BaseException]]:
    """Serve in a thread; at the end it has stopped within a second. Yields what it raised."""
    stop, raised = threading.Event(), []

    def work() -> None:
        try:
            link.serve(answer, stop)
        except Exception as problem:
            raised.append(problem)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield raised
    finally:
        stop.set()
        thread.join(1.0)
        assert not thread.is_alive()


def wait_for(rail: GrpcRail | SocketRail, event: Event, seconds: float = 10.0) -> list[Event]:
    """Read events up to this one; returns those before it."""
    until, before = time.monotonic() + seconds, []
    while time.monotonic() < until:
        found = rail.receive(until - time.monotonic())
        if found == event:
            return before
        if found is not None:
            before.append(found)
    raise AssertionError(f"{event!r:.80} did not come; {before!r:.300} did")


def ask(rail: GrpcRail | SocketRail, station: str, body: bytes, seconds: float = 10.0) -> bytes:
    """Send a body and wait for the next that comes from that station."""
    rail.send(station, body)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = rail.receive(until - time.monotonic())
        if isinstance(found, Arrived) and found.station == station:
            return found.body
    raise AssertionError(f"{station} did not answer")


def answer_with_name(name: str) -> Callable[[bytes], bytes | None]:
    def answer(body: bytes) -> bytes | None:
        if body == b"slow":
            time.sleep(5.0)
        return None if body == b"silence" else name.encode() + body

    return answer


if __name__ == "__main__":
    kind, where, name, folder = sys.argv[1:]
    make_link(kind, where, name, Path(folder)).serve(answer_with_name(name), threading.Event())
