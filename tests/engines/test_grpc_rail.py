"""The gRPC rail: who gets in, who is put out, and what hostile ends achieve."""

import contextlib
import os
import socket
import ssl
import sys
import threading

import pytest
from railing import HUB, Authority, ask, everyone, load, save, serving, wait_for

from hedgerow.crypto import certificates
from hedgerow.engines.rails import grpc_rail
from hedgerow.engines.rails.grpc_rail import CHUNK, METHOD, SERVICE, GrpcLink, GrpcRail, bodies, chunks
from hedgerow.engines.rails.rail import Joined, Left
from hedgerow.errors import MessageRefused, MissingExtra, RailUnavailable
from hedgerow.wire.tls import Tls
from patience import PATIENCE, until

grpc = pytest.importorskip("grpc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, authority = tmp_path_factory.mktemp("tls"), Authority()
    save(authority.hub(), folder, HUB)
    for name in ("alpha", "beta"):
        save(authority.tls(name), folder, name)
    save(Authority().tls("alpha"), folder, "foreign")
    save(Authority().hub(), folder, "foreign-hub")
    return folder


@pytest.fixture
def revoked():
    return set()


@pytest.fixture
def rail(folder, revoked):
    pins = {name: certificates.fingerprint(load(folder, name).certificate) for name in ("alpha", "beta")}
    made = GrpcRail("127.0.0.1:0", load(folder, HUB), lambda name, seen: name not in revoked and pins.get(name) == seen)
    yield made
    made.close()


def address(rail):
    return f"127.0.0.1:{rail.port}"


def echo(body):
    return body


def never(body):
    raise AssertionError("a body came through")


# ---- certificates ---------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("shows", [False, True])
def test_whoever_shows_no_certificate_gets_nothing(rail, folder, shows):
    context, got = ssl.create_default_context(cadata=load(folder, HUB).authority.decode()), b""
    context.set_alpn_protocols(["h2"])
    if shows:
        context.load_cert_chain(folder / "alpha.certificate", folder / "alpha.key")
    with (
        socket.create_connection(("127.0.0.1", rail.port), 5.0) as plain,
        contextlib.suppress(OSError),
        context.wrap_socket(plain, server_hostname="127.0.0.1") as tls,
    ):
        tls.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        got = tls.recv(100)
    assert bool(got) == shows
    assert rail.receive(0.1) is None


@pytest.mark.slow
@pytest.mark.parametrize("held", ["mixed", "foreign"])
def test_a_certificate_of_another_authority_gets_nothing(rail, folder, held):
    foreign, ours = load(folder, "foreign"), load(folder, "alpha")
    tls = Tls(ours.authority, foreign.certificate, foreign.key) if held == "mixed" else foreign
    with serving(GrpcLink(address(rail), tls), never) as raised:
        assert rail.receive(1.5) is None
        assert raised == []  # it may be anyone who ended the handshake: the link dials again


@pytest.mark.slow
@pytest.mark.parametrize("poses", ["foreign-hub", "beta"])
def test_a_station_says_nothing_to_a_coordinator_of_another_authority_or_to_another_station(folder, poses):
    tls, ours = load(folder, poses), load(folder, HUB)
    false = GrpcRail("127.0.0.1:0", Tls(ours.authority, tls.certificate, tls.key), everyone)
    try:
        with serving(GrpcLink(address(false), load(folder, "alpha"), name=poses if poses == "beta" else ""), never):
            assert false.receive(1.0) is None
    finally:
        false.close()


@pytest.mark.slow
def test_a_station_may_name_the_coordinator_whose_certificate_it_expects(rail, folder):
    with serving(GrpcLink(address(rail), load(folder, "alpha"), name=HUB), echo):
        wait_for(rail, Joined("alpha"))
    with serving(GrpcLink(address(rail), load(folder, "beta"), name="elsewhere"), never):
        wait_for(rail, Left("alpha"))
        assert rail.receive(1.0) is None


@pytest.mark.slow
def test_a_station_that_is_not_admitted_is_told_so_and_gives_up(rail, folder, revoked):
    revoked.add("alpha")
    with serving(GrpcLink(address(rail), load(folder, "alpha")), never) as raised:
        until(lambda: raised)
        assert isinstance(raised[0], RailUnavailable)
        assert "HR-612" in str(raised[0])
        assert rail.receive(0.1) is None


@pytest.mark.slow
def test_a_station_that_is_revoked_while_connected_is_put_out(rail, folder, revoked):
    with serving(GrpcLink(address(rail), load(folder, "alpha")), echo) as raised:
        wait_for(rail, Joined("alpha"))
        assert ask(rail, "alpha", b"x") == b"x"
        revoked.add("alpha")
        wait_for(rail, Left("alpha"))
        until(lambda: raised)
        assert isinstance(raised[0], RailUnavailable)
        assert rail.receive(0.1) is None


@pytest.mark.slow
def test_a_roster_that_cannot_be_read_lets_nobody_in_and_turns_nobody_away_for_good(folder):
    readable = []

    def admits(name, certificate):
        if not readable:
            raise OSError("/srv/roster is damaged")
        return True

    rail = GrpcRail("127.0.0.1:0", load(folder, HUB), admits)
    try:
        with serving(GrpcLink(address(rail), load(folder, "alpha")), echo):
            assert rail.receive(0.7) is None
            readable.append(1)
            wait_for(rail, Joined("alpha"))
    finally:
        rail.close()


# ---- hostile ends ---------------------------------------------------------------------------------------------------
def streaming(rail, folder, name, messages):
    """A stream of a station that does as it likes."""
    tls = load(folder, name)
    identity = grpc.ssl_channel_credentials(tls.authority, tls.key, tls.certificate)
    channel = grpc.secure_channel(address(rail), identity, options=[("grpc.max_send_message_length", -1)])
    return channel, channel.stream_stream(f"/{SERVICE}/{METHOD}")(messages, timeout=PATIENCE)


def ended(call):
    """How the coordinator ended a stream: code and text."""
    try:
        for _ in call:
            pass
    except grpc.RpcError:
        pass
    return call.code(), call.details()


@pytest.mark.slow
@pytest.mark.parametrize(
    "messages",
    [
        [(1 << 60).to_bytes(8, "big") + b"x"],
        [b""],
        [b"short"],
        [(3 << 20).to_bytes(8, "big") + b"a little", *[b"a little"] * 1000],
        [(2 << 20).to_bytes(8, "big") + bytes(CHUNK), b""],
        [bytes(2 * CHUNK)],
    ],
    ids=["claims too much", "empty", "no length", "little pieces", "empty pieces", "too large a message"],
)
def test_a_station_that_does_not_keep_to_the_form_is_put_out_without_a_word(rail, folder, messages):
    over = threading.Event()

    def without_end():
        yield from messages
        over.wait()

    with serving(GrpcLink(address(rail), load(folder, "beta")), echo):
        wait_for(rail, Joined("beta"))
        channel, call = streaming(rail, folder, "alpha", without_end())
        code, text = ended(call)  # though the station goes on
        over.set()
        assert code not in (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.DEADLINE_EXCEEDED)
        assert not any(word in text for word in ("claims", "HR-", "MessageRefused", "bytes were due", "Traceback"))
        assert ask(rail, "beta", b"x") == b"x"
        channel.close()


@pytest.mark.slow
def test_what_fails_at_the_coordinator_is_not_told_to_a_station(folder):
    def admits(name, certificate):
        raise OSError("/srv/roster is damaged")

    rail = GrpcRail("127.0.0.1:0", load(folder, HUB), admits)
    try:
        channel, call = streaming(rail, folder, "alpha", iter(()))
        assert ended(call) == (grpc.StatusCode.UNAVAILABLE, "")
        channel.close()
    finally:
        rail.close()


@pytest.mark.slow
def test_garbage_and_half_handshakes_leave_others_and_memory_as_they_are(rail, folder):
    hello = bytes.fromhex("16030100c8010000c40303")
    with serving(GrpcLink(address(rail), load(folder, "beta")), echo):
        wait_for(rail, Joined("beta"))
        open_ones = [socket.create_connection(("127.0.0.1", rail.port)) for _ in range(60)]
        for k, each in enumerate(open_ones):
            each.sendall(os.urandom(20_000) if k % 2 else hello)
        for _ in range(20):
            assert ask(rail, "beta", b"x") == b"x"
        assert rail.connected() == {"beta"}
        for each in open_ones:
            each.close()


@pytest.mark.slow
def test_a_station_that_never_reads_is_put_out_when_revoked(rail, folder, revoked):
    channel, _call = streaming(rail, folder, "alpha", iter([b"\0" * 8] * 3))
    wait_for(rail, Joined("alpha"))
    for _ in range(3):
        rail.send("alpha", bytes(20_000_000))
    revoked.add("alpha")
    wait_for(rail, Left("alpha"))
    channel.close()


@pytest.mark.slow
def test_a_connection_that_is_cut_silently_is_given_up_and_dialled_again(folder, monkeypatch):
    sooner = {"grpc.keepalive_time_ms": 1000, "grpc.keepalive_timeout_ms": 2000, "grpc.http2.ping_timeout_ms": 2000}
    monkeypatch.setattr(grpc_rail, "OPTIONS", [(name, sooner.get(name, value)) for name, value in grpc_rail.OPTIONS])
    rail = GrpcRail("127.0.0.1:0", load(folder, HUB), everyone)
    try:
        with (
            wire_that_can_be_cut(rail.port) as (port, cut),
            serving(GrpcLink(f"127.0.0.1:{port}", load(folder, "alpha")), echo),
        ):
            wait_for(rail, Joined("alpha"))
            assert ask(rail, "alpha", b"x") == b"x"
            cut.set()
            wait_for(rail, Left("alpha"))
            cut.clear()
            wait_for(rail, Joined("alpha"))
            assert ask(rail, "alpha", b"x") == b"x"
    finally:
        rail.close()


@contextlib.contextmanager
def wire_that_can_be_cut(to):
    """A port that passes everything on, and an event: connections that carry something while it is set carry nothing more."""
    cut, opened, threads = threading.Event(), [socket.create_server(("127.0.0.1", 0))], []

    def begin(work, *args):
        threads.append(threading.Thread(target=work, args=args))
        threads[-1].start()

    def carry(source, sink, dead):
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                if cut.is_set():
                    dead.set()
                if not dead.is_set():
                    sink.sendall(piece)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                near, far, dead = opened[0].accept()[0], socket.create_connection(("127.0.0.1", to)), threading.Event()
                opened.extend([near, far])
                begin(carry, near, far, dead)
                begin(carry, far, near, dead)

    begin(accept)
    try:
        yield opened[0].getsockname()[1], cut
    finally:
        for end in opened:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(5.0)
        for end in opened:
            end.close()


# ---- form and setting up --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_bodies_are_what_was_cut_into_chunks(size):
    first, second = os.urandom(size), b"next"
    assert list(bodies([*chunks(first), *chunks(second)], size + 4)) == [first, second]


def test_a_body_at_the_cap_is_read_and_one_above_it_is_not():
    assert list(bodies(chunks(b"four"), 4)) == [b"four"]
    with pytest.raises(MessageRefused, match="HR-242"):
        list(bodies(chunks(b"fives"), 4))


def test_a_body_that_is_cut_at_the_end_is_lost():
    assert list(bodies(list(chunks(bytes(2 * CHUNK)))[:1], 4 * CHUNK)) == []


def test_a_port_that_is_taken_is_refused_with_a_remedy(rail, folder):
    with pytest.raises(RailUnavailable, match="free port"):
        GrpcRail(address(rail), load(folder, HUB), everyone)


def test_a_key_that_is_no_key_is_refused(folder):
    tls = load(folder, HUB)
    with pytest.raises(RailUnavailable, match="HR-612"):
        GrpcRail("127.0.0.1:0", Tls(tls.authority, tls.certificate, b"no key"), everyone)


def test_a_missing_grpc_is_named(monkeypatch, folder):
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(MissingExtra, match=r"hedgerow\[network\]"):
        grpc_rail.GrpcLink("127.0.0.1:1", load(folder, "alpha"))
