"""What tests of rails share: rails and links of each kind, stations as processes, and certificates.

Run as a program it is a station: railing.py KIND WHERE NAME FOLDER.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hedgerow.crypto import certificates
from hedgerow.engines.rails.grpc_rail import GrpcLink, GrpcRail
from hedgerow.engines.rails.rail import Arrived, Event
from hedgerow.engines.rails.socket_rail import SocketLink, SocketRail
from hedgerow.wire.tls import Tls
from patience import PATIENCE

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
    """Serve in a thread; at the end it stops by itself. Yields what it raised."""
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
        thread.join(PATIENCE)
        assert not thread.is_alive()


def wait_for(rail: GrpcRail | SocketRail, event: Event) -> list[Event]:
    """Read events up to this one; returns those before it."""
    before = []
    while (found := rail.receive(PATIENCE)) != event:
        assert found is not None, f"{event!r:.80} did not come; {before!r:.300} did"
        before.append(found)
    return before


def ask(rail: GrpcRail | SocketRail, station: str, body: bytes) -> bytes:
    """Send a body and wait for the next that comes from that station."""
    rail.send(station, body)
    while True:
        found = rail.receive(PATIENCE)
        assert found is not None, f"{station} did not answer"
        if isinstance(found, Arrived) and found.station == station:
            return found.body


def answer_with_name(name: str) -> Callable[[bytes], bytes | None]:
    def answer(body: bytes) -> bytes | None:
        if body == b"never":
            print("asked", flush=True)
            threading.Event().wait()
        return None if body == b"silence" else name.encode() + body

    return answer


if __name__ == "__main__":
    kind, where, name, folder = sys.argv[1:]
    make_link(kind, where, name, Path(folder)).serve(answer_with_name(name), threading.Event())
