"""The gRPC rail: stations dial out, one bidirectional stream each, over mutual TLS.

    GrpcRail   coordinator   listens at one port
    GrpcLink   station       dials it

A station's name is the CN of its certificate; `admits` is asked about name and fingerprint when a station connects, and
again every second while it is connected. A body crosses in messages of a megabyte, each sent when the one before has left,
so that HTTP/2's flow control holds back whoever is faster than the other end reads:

    first message of a body    length, 8 bytes, big-endian | the first CHUNK bytes, or the body
    further ones               CHUNK bytes each, the last one what is left

Status texts of gRPC carry nothing of ours: each end closes the stream, refuses it, or is not there.

A body is sealed before it comes here, so that TLS protects connections, not contents. An end whose certificate has another
authority, or none, does not get past the handshake.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any

from hedgerow.errors import HedgerowError, MessageRefused, MissingExtra, RailUnavailable
from hedgerow.wire.frames import HEAD_BYTES, MOST_BYTES
from hedgerow.wire.tls import Tls

from .dialling import Dialling
from .rail import Event
from .switchboard import StationConnection, Switchboard

log = logging.getLogger("hedgerow")

SERVICE, METHOD = "hedgerow.Rail", "Dial"
CHUNK = 1 << 20
"""Bytes of a body in one message."""
STREAMS = 2000
"""Streams that a coordinator holds at once; each takes two threads."""
ALIVE, SILENT = 10_000, 5_000
"""Milliseconds without traffic after which an end is asked whether it is there, and that it has to say so."""
WATCH = 1.0
"""Seconds between two looks at whether the connected stations are still admitted."""
HANDSHAKE = 10_000
"""Milliseconds that a TLS handshake may take."""

OPTIONS = [
    ("grpc.max_send_message_length", CHUNK + HEAD_BYTES),
    ("grpc.max_receive_message_length", CHUNK + HEAD_BYTES),
    ("grpc.keepalive_time_ms", ALIVE),
    ("grpc.keepalive_timeout_ms", SILENT),
    ("grpc.http2.ping_timeout_ms", SILENT),  # of the pings that measure bandwidth, and put off the ones above for a minute
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", SILENT),
]
OF_RAIL = [
    ("grpc.so_reuseport", 0),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE),
    ("grpc.max_concurrent_streams", 4),
]
OF_LINK = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]


class GrpcRail:
    """A coordinator's end.

    Parameters
    ----------
    address : str
        Host and port to listen at; port 0 takes a free one, see `port`.
    tls : Tls
        The authority of the stations' certificates, and the coordinator's own certificate and key.
    admits : callable
        Of a name and the SHA-256 of a certificate (DER, 32 bytes): whether that station may be connected now.
    most : int
        Bytes that a body may have.

    Raises
    ------
    RailUnavailable (HR-612)
        The address is taken or is none of this machine, or certificate and key are not PEM or do not fit.
    MissingExtra (HR-105)
        gRPC is not installed.
    """

    def __init__(self, address: str, tls: Tls, admits: Callable[[str, bytes], bool], most: int = MOST_BYTES) -> None:
        grpc = _grpc()
        self.address, self._admits, self._most, self._grpc = address, admits, most, grpc
        self._board, self._closing = Switchboard(most), threading.Event()
        self._server = grpc.server(_Threads(), options=OPTIONS + OF_RAIL, maximum_concurrent_rpcs=STREAMS)
        handler = grpc.stream_stream_rpc_method_handler(self._dial)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
        try:
            identity = grpc.ssl_server_credentials([(tls.key, tls.certificate)], tls.authority, require_client_auth=True)
            self.port = self._server.add_secure_port(address, identity)
        except (RuntimeError, ValueError) as problem:
            raise _cannot_listen(address) from problem
        if not self.port:
            raise _cannot_listen(address)
        self._server.start()
        self._watcher = threading.Thread(target=self._watch, name="hedgerow-grpc-watch", daemon=True)
        self._watcher.start()

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
        """Close every connection and the port."""
        self._closing.set()
        self._watcher.join()
        self._board.close()
        self._server.stop(None).wait()

    def _dial(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """One stream of a station, from its connection to its end; yields what the station is sent."""
        name, certificate = _who(context)
        admitted = self._asks(name, certificate)
        if not admitted:
            status = self._grpc.StatusCode
            context.abort(status.UNAVAILABLE if admitted is None else status.PERMISSION_DENIED, "")
        line = self._board.join(name, context.cancel, certificate)
        if not context.add_callback(lambda: self._board.leave(line)):
            self._board.leave(line)
        threading.Thread(target=self._read, args=(requests, line), name="hedgerow-grpc-read", daemon=True).start()
        try:
            context.send_initial_metadata(ADMITTED)
            while (body := line.take()) is not None:
                yield from chunks(body)
                del body
        finally:
            self._board.leave(line)

    def _read(self, requests: Iterator[bytes], line: StationConnection) -> None:
        try:
            for body in bodies(requests, self._most):
                if not self._board.arrived(line, body):
                    break
        except HedgerowError as problem:
            log.warning("%s was put out: %s", line.station, problem.reason)
        except Exception:  # gRPC says with a bare Exception that a stream ended
            log.debug("the connection of %s ended", line.station)
        self._board.leave(line)

    def _watch(self) -> None:
        while not self._closing.wait(WATCH):
            for line in self._board.lines():
                if not self._asks(line.station, line.certificate):
                    log.warning("%s is no longer admitted and was put out", line.station)
                    self._board.leave(line)

    def _asks(self, name: str, certificate: bytes) -> bool | None:
        """Whether a station is admitted; None where that cannot be said now, which lets nobody in."""
        try:
            return bool(name) and self._admits(name, certificate)
        except Exception:
            log.exception("whether %r is admitted could not be decided", name)
            return None


class GrpcLink:
    """A station's end; see `rail.Link`.

    Parameters
    ----------
    address : str
        Host and port of the coordinator.
    tls : Tls
        The authority of the coordinator's certificate, and the station's own certificate and key.
    name : str, optional
        What the coordinator's certificate must be of. As a rule the host in `address`.
    most : int
        Bytes that a body may have.

    Raises
    ------
    MissingExtra (HR-105)
        gRPC is not installed.
    """

    def __init__(self, address: str, tls: Tls, name: str = "", most: int = MOST_BYTES) -> None:
        self.address, self._tls, self._most, self._grpc = address, tls, most, _grpc()
        self._options = OPTIONS + OF_LINK + ([("grpc.ssl_target_name_override", name)] if name else [])
        self._dialling = Dialling(lambda: _Stream(self._grpc, self.address, self._tls, self._options, self._most))

    @property
    def connected(self) -> bool:
        """Whether the coordinator is there now: it has proved who it is."""
        return self._dialling.connected

    def serve(self, answer: Callable[[bytes], bytes | None], stop: threading.Event, at_once: int = 1) -> None:
        """Answer until `stop` is set; dials again whenever the connection is lost.

        What is wrong before the coordinator has proved who it is (nobody there, another authority, a handshake that it
        ends) may be anyone's doing on the way: the link dials again.

        Raises
        ------
        RailUnavailable (HR-612)
            The coordinator does not admit this station's certificate.
        """
        self._dialling.serve(answer, stop, at_once)


class _Stream:
    """One stream to the coordinator."""

    def __init__(self, grpc: Any, address: str, tls: Tls, options: list[tuple[str, object]], most: int) -> None:
        self._grpc, self._address = grpc, address
        self._out: SimpleQueue[bytes | None] = SimpleQueue()
        self._room = threading.Semaphore(2)
        identity = grpc.ssl_channel_credentials(tls.authority, tls.key, tls.certificate)
        self._channel = grpc.secure_channel(address, identity, options=options)
        self._admitted = self._over = False
        self._call = self._channel.stream_stream(f"/{SERVICE}/{METHOD}")(self._sent())
        threading.Thread(target=self._hear, name="hedgerow-grpc-hear", daemon=True).start()
        self._bodies = bodies(self._call, most)
        if not self._call.add_callback(self._ended):
            self._ended()

    def receive(self) -> bytes | None:
        try:
            return next(self._bodies, None)
        except MessageRefused as problem:
            raise ConnectionError(problem.reason) from problem
        except self._grpc.RpcError as problem:
            if problem.code() is self._grpc.StatusCode.PERMISSION_DENIED:
                raise RailUnavailable(
                    f"the coordinator at {self._address} does not admit this station's certificate.",
                    remedy="Ask the coordinator whether this station is enrolled, or its keys revoked or rotated.",
                ) from None
            raise ConnectionError(problem.details()) from None

    def up(self) -> bool:
        return self._admitted and not self._over

    def send(self, body: bytes) -> None:
        self._room.acquire()  # at most two answers wait
        self._out.put(body)

    def close(self) -> None:
        self._ended()
        self._call.cancel()
        self._channel.close()

    def _sent(self) -> Iterator[bytes]:
        while (body := self._out.get()) is not None:
            yield from chunks(body)
            del body
            self._room.release()

    def _hear(self) -> None:
        """Wait until the coordinator has let this station in, or the stream ends."""
        try:
            self._admitted = any(tuple(found) == ADMITTED[0] for found in self._call.initial_metadata() or ())
        except Exception:  # gRPC says with various exceptions that a stream ended
            log.debug("the connection ended before the coordinator answered")

    def _ended(self) -> None:
        self._over = True
        self._out.put(None)
        self._room.release()


def chunks(body: bytes) -> Iterator[bytes]:
    """The messages of a body."""
    yield len(body).to_bytes(HEAD_BYTES, "big") + body[:CHUNK]
    for start in range(CHUNK, len(body), CHUNK):
        yield body[start : start + CHUNK]


def bodies(messages: Iterable[bytes], most: int) -> Iterator[bytes]:
    """The bodies in a stream of messages; what is cut at its end is lost.

    Raises
    ------
    MessageRefused (HR-242)
        A body claims more than `most` bytes, or does not come in messages of the agreed size.
    """
    pieces: list[bytes] = []
    left = -1
    for message in messages:
        if left < 0:
            left = int.from_bytes(message[:HEAD_BYTES], "big")
            if len(message) < HEAD_BYTES or left > most:
                raise MessageRefused(f"a body claims {left} bytes; at most {most} are read.")
            message = message[HEAD_BYTES:]
        if len(message) != min(left, CHUNK):
            raise MessageRefused(f"a message holds {len(message)} bytes of a body; {min(left, CHUNK)} were due.")
        left -= len(message)
        pieces.append(message)
        if not left:
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            pieces.clear()
            del message
            left = -1
            yield body
            del body


class _Threads(Executor):
    """A daemon thread for each stream: a rail that nobody closed does not keep its process from ending."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()

        def work() -> None:
            try:
                done.set_result(fn(*args, **kwargs))
            except BaseException as problem:
                done.set_exception(problem)

        threading.Thread(target=work, name="hedgerow-grpc-stream", daemon=True).start()
        return done


def _who(context: Any) -> tuple[str, bytes]:
    """The CN of the certificate at the other end, "" where it is not one name, and the certificate's fingerprint."""
    about = context.auth_context()
    names, pem = about.get("x509_common_name", ()), about.get("x509_pem_cert", ())
    with contextlib.suppress(ValueError, IndexError):
        name = names[0].decode() if len(names) == 1 else ""
        return name, hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem[0].decode())).digest()
    return "", b""


def _cannot_listen(address: str) -> RailUnavailable:
    return RailUnavailable(
        f"gRPC cannot listen at {address!r}.",
        remedy="Take a free port and an address of this machine, and look whether certificate and key are PEM and fit.",
    )


ADMITTED = (("hedgerow-admitted", "1"),)
"""What the coordinator says first, once it has let a station in."""


def _grpc() -> Any:
    """The package, quiet about processes that fork beside it: rails do not outlive a fork."""
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        import grpc
    except ImportError as problem:
        raise MissingExtra(
            "the gRPC rail needs grpcio, which is not installed.", remedy="pip install 'hedgerow[network]'"
        ) from problem
    return grpc
