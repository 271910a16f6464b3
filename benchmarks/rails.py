"""Rails beside their bare echoes: a round of three parties, each a process, in which every body comes back.

python benchmarks/rails.py [--rails grpc socket] [--repetitions 3]

A bare echo is what the transport costs alone: no roster, no bounds, no reconnecting, one event loop or plain blocking calls.
Rail and echo run at the same time and take turns, round by round; every answer is compared with what was sent. Printed are
medians, their ratio (the goal is 1.3), and resident memory of a station process after bodies of each size.
An echo's process imports its transport alone, a station's imports Hedgerow, which is most of its memory.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

NAMES = ["alpha", "beta", "gamma"]
SIZES = [(1_000, 30, 300), (10_000_000, 2, 15)]
"""Bytes of a body, rounds to warm up, rounds to time."""
GOAL = 1.3
BIG = [("grpc.max_send_message_length", 1 << 30), ("grpc.max_receive_message_length", 1 << 30)]


def main() -> None:
    """Measure the rails that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rails", nargs="+", choices=RAILS, default=list(RAILS), metavar="NAME", help=", ".join(RAILS))
    parser.add_argument("--repetitions", type=int, default=1)
    options = parser.parse_args()
    for name in options.rails * options.repetitions:
        measure(name)


def measure(name: str) -> None:
    """One rail and its echo, side by side."""
    with tempfile.TemporaryDirectory() as folder:
        certify(Path(folder))
        ours, bare = RAILS[name]
        with ours(Path(folder)) as rail, bare(Path(folder)) as echo:
            for size, warm, rounds in SIZES:
                times: dict[Any, list[float]] = {rail: [], echo: []}
                for k in range(warm + rounds):
                    for end in (rail, echo) if k % 2 else (echo, rail):
                        sent = {party: os.urandom(8) + bytes(size - 8) for party in NAMES}
                        begun = time.perf_counter()
                        got = end.exchange(sent)
                        took = time.perf_counter() - begun
                        if got != sent:
                            raise SystemExit(f"{name}: an answer is not what was sent")
                        if k >= warm:
                            times[end].append(took)
                mine, its = (1000 * statistics.median(times[end]) for end in (rail, echo))
                print(
                    f"{name:8}{size:>12,} bytes   rail {mine:9.3f} ms   echo {its:9.3f} ms   ratio {mine / its:5.2f}"
                    f" (goal {GOAL})   a station {rail.resident():4.0f} MB, its echo {echo.resident():4.0f} MB",
                    flush=True,
                )


class End:
    """A coordinator's end and its station processes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.processes = folder, list[subprocess.Popen[bytes]]()

    def __enter__(self) -> End:
        where = self.open()
        kind = type(self).__name__
        command = [sys.executable, __file__, "--station", kind, where]
        self.processes = [subprocess.Popen([*command, name, str(self.folder)]) for name in NAMES]
        self.wait()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.close()

    def open(self) -> str:
        """Listen; return where."""
        raise NotImplementedError

    def wait(self) -> None:
        """Until every station is connected."""

    def exchange(self, sent: dict[str, bytes]) -> dict[str, bytes]:
        """One round."""
        raise NotImplementedError

    def close(self) -> None:
        """Close what `open` opened."""

    def resident(self) -> float:
        """Megabytes of a station process, the median."""
        pages = [int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) for process in self.processes]
        return statistics.median(pages) * os.sysconf("SC_PAGESIZE") / 1e6


# ---- our rails ------------------------------------------------------------------------------------------------------
class OnRail(End):
    """Any rail of ours."""

    rail: Any

    def wait(self) -> None:
        while len(self.rail.connected()) < len(NAMES):
            self.rail.receive(0.1)

    def exchange(self, sent: dict[str, bytes]) -> dict[str, bytes]:
        for name, body in sent.items():
            self.rail.send(name, body)
        got: dict[str, bytes] = {}
        while len(got) < len(sent):
            event = self.rail.receive(60.0)
            if hasattr(event, "body"):
                got[event.station] = event.body
        return got

    def close(self) -> None:
        self.rail.close()


class Grpc(OnRail):
    """The gRPC rail."""

    def open(self) -> str:
        from hedgerow.engines.rails.grpc_rail import GrpcRail

        rail = GrpcRail("127.0.0.1:0", tls(self.folder, "hub"), lambda name, certificate: name in NAMES)
        self.rail = rail
        return f"127.0.0.1:{rail.port}"

    @staticmethod
    def station(where: str, name: str, folder: Path) -> None:
        from hedgerow.engines.rails.grpc_rail import GrpcLink

        GrpcLink(where, tls(folder, name)).serve(lambda body: body, threading.Event())


class Sockets(OnRail):
    """The socket rail."""

    def open(self) -> str:
        from hedgerow.engines.rails.socket_rail import SocketRail

        self.rail = SocketRail(self.folder / "rail")
        return str(self.folder / "rail")

    @staticmethod
    def station(where: str, name: str, folder: Path) -> None:
        from hedgerow.engines.rails.socket_rail import SocketLink

        SocketLink(Path(where), name).serve(lambda body: body, threading.Event())


# ---- bare echoes ----------------------------------------------------------------------------------------------------
class BareGrpc(End):
    """grpc.aio with mutual TLS: one loop at each end, one message for a body, nothing else."""

    def open(self) -> str:
        self.loop = asyncio.new_event_loop()
        self.out: dict[str, asyncio.Queue[bytes]] = {}
        self.into: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        return f"127.0.0.1:{self.loop.run_until_complete(self._open())}"

    async def _open(self) -> int:
        import grpc

        async def dial(requests: Any, context: Any) -> Any:
            name = context.auth_context()["x509_common_name"][0].decode()
            out = self.out[name] = asyncio.Queue()

            async def read() -> None:
                async for body in requests:
                    self.into.put_nowait((name, body))

            self.reading = {*getattr(self, "reading", ()), asyncio.ensure_future(read())}
            while True:
                yield await out.get()

        self.server = grpc.aio.server(options=BIG)
        handler = grpc.stream_stream_rpc_method_handler(dial)
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bare.Echo", {"Dial": handler}),))
        mine = tls(self.folder, "hub")
        shown = grpc.ssl_server_credentials([(mine.key, mine.certificate)], mine.authority, require_client_auth=True)
        port: int = self.server.add_secure_port("127.0.0.1:0", shown)
        await self.server.start()
        return port

    def wait(self) -> None:
        async def all_there() -> None:
            while len(self.out) < len(NAMES):
                await asyncio.sleep(0.01)

        self.loop.run_until_complete(all_there())

    def exchange(self, sent: dict[str, bytes]) -> dict[str, bytes]:
        return self.loop.run_until_complete(self._exchange(sent))

    async def _exchange(self, sent: dict[str, bytes]) -> dict[str, bytes]:
        for name, body in sent.items():
            self.out[name].put_nowait(body)
        return dict([await self.into.get() for _ in sent])

    def close(self) -> None:
        async def end() -> None:
            for task in self.reading:
                task.cancel()
            await asyncio.gather(*self.reading, return_exceptions=True)
            await self.server.stop(0)

        self.loop.run_until_complete(end())
        self.loop.close()

    @staticmethod
    def station(where: str, name: str, folder: Path) -> None:
        import grpc

        async def serve() -> None:
            mine = tls(folder, name)
            shown = grpc.ssl_channel_credentials(mine.authority, mine.key, mine.certificate)
            async with grpc.aio.secure_channel(where, shown, options=BIG) as channel:
                call = channel.stream_stream("/bare.Echo/Dial")(wait_for_ready=True)
                async for body in call:
                    await call.write(body)

        asyncio.run(serve())


class BareSockets(End):
    """Unix sockets with blocking calls: small bodies one after the other, large ones in a thread for each station."""

    def open(self) -> str:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.folder / "bare"))
        self.listener.listen()
        self.threads = ThreadPoolExecutor(len(NAMES))
        return str(self.folder / "bare")

    def wait(self) -> None:
        self.ends = [self.listener.accept()[0] for _ in NAMES]

    def exchange(self, sent: dict[str, bytes]) -> dict[str, bytes]:
        if len(sent[NAMES[0]]) < 10_000:
            for end, body in zip(self.ends, sent.values(), strict=True):
                put(end, body)
            return {name: get(end) for name, end in zip(sent, self.ends, strict=True)}

        def both(end: socket.socket, body: bytes) -> bytes:
            put(end, body)
            return get(end)

        return dict(zip(sent, self.threads.map(both, self.ends, sent.values()), strict=True))

    def close(self) -> None:
        self.threads.shutdown()
        for end in (*self.ends, self.listener):
            end.close()

    @staticmethod
    def station(where: str, name: str, folder: Path) -> None:
        with socket.socket(socket.AF_UNIX) as end:
            end.connect(where)
            while True:
                put(end, get(end))


def put(end: socket.socket, body: bytes) -> None:
    """A body with its length before it."""
    end.sendall(len(body).to_bytes(8, "big"))
    end.sendall(body)


def get(end: socket.socket) -> bytes:
    """The next body."""
    return end.recv(int.from_bytes(end.recv(8, socket.MSG_WAITALL), "big"), socket.MSG_WAITALL)


# ---- certificates ---------------------------------------------------------------------------------------------------
def certify(folder: Path) -> None:
    """An authority and what it issues for everyone."""
    from hedgerow.crypto import certificates

    authority, signing = certificates.authority("benchmark")
    (folder / "authority").write_bytes(authority)
    for name in (*NAMES, "hub"):
        key = certificates.tls_key()
        hosts = ["127.0.0.1"] if name == "hub" else []
        issued = certificates.issue(authority, signing, certificates.request(name, key), name, hosts=hosts)
        (folder / f"{name}.certificate").write_bytes(issued)
        (folder / f"{name}.key").write_bytes(key)


class Pem(NamedTuple):
    """What an end needs, as in `hedgerow.wire.tls`, which a bare echo does not import."""

    authority: bytes
    certificate: bytes
    key: bytes


def tls(folder: Path, name: str) -> Any:
    """The certificates of one end."""
    return Pem(*((folder / part).read_bytes() for part in ("authority", f"{name}.certificate", f"{name}.key")))


RAILS: dict[str, tuple[Any, Any]] = {"grpc": (Grpc, BareGrpc), "socket": (Sockets, BareSockets)}
"""Each rail and its bare echo; another rail is measured by adding its pair here."""


if __name__ == "__main__":
    if sys.argv[1:2] == ["--station"]:
        kind, where, name, folder = sys.argv[2:]
        next(end for pair in RAILS.values() for end in pair if end.__name__ == kind).station(where, name, Path(folder))
    else:
        main()
