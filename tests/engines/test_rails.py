"""What every rail does, over real connections on one machine."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
import railing
from railing import HUB, KINDS, Authority, answer_with_name, ask, make_link, make_rail, save, serving, wait_for, where_of

from hedgerow.engines.rails import grpc_rail
from hedgerow.engines.rails.rail import Arrived, Joined, Left
from patience import PATIENCE, until


@pytest.fixture(scope="module")
def folder():
    """Short, because the path of a socket is."""
    with tempfile.TemporaryDirectory() as name:
        authority = Authority()
        save(authority.hub(), Path(name), HUB)
        for station in ("alpha", "beta"):
            save(authority.tls(station), Path(name), station)
        yield Path(name)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def rail(kind, folder, monkeypatch):
    """Without signs of life, so that whatever is noticed is noticed by the end of a connection, and not by its silence."""
    kept = [(name, value) for name, value in grpc_rail.OPTIONS if "keepalive" not in name and "ping" not in name]
    monkeypatch.setattr(grpc_rail, "OPTIONS", kept)
    made = make_rail(kind, start(kind, folder), folder)
    yield made
    made.close()


def start(kind, folder):
    return "127.0.0.1:0" if kind == "grpc" else str(folder / "sockets" / "rail")


def link(kind, rail, name, folder):
    return make_link(kind, where_of(rail), name, folder)


def spawn(kind, rail, name, folder):
    command = [sys.executable, railing.__file__, kind, where_of(rail), name, str(folder)]
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=paths)


def stop(process):
    process.kill()
    process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 1, 1_000, 1 << 20, (1 << 20) + 1, 10_000_000])
def test_bodies_of_any_size_arrive_whole_in_both_directions(kind, rail, folder, size):
    body = os.urandom(size)
    with serving(link(kind, rail, "alpha", folder), lambda body: body[::-1]):
        wait_for(rail, Joined("alpha"))
        assert ask(rail, "alpha", body) == body[::-1]


@pytest.mark.slow
def test_two_stations_answer_two_hundred_rounds_in_order(kind, rail, folder):
    names = ["alpha", "beta"]
    with (
        serving(link(kind, rail, "alpha", folder), answer_with_name("alpha")),
        serving(link(kind, rail, "beta", folder), answer_with_name("beta")),
    ):
        assert {rail.receive(PATIENCE) for _ in names} == {Joined(name) for name in names}
        for k in range(200):
            for name in names:
                rail.send(name, b"%d" % k)
            got = {rail.receive(PATIENCE) for _ in names}
            assert got == {Arrived(name, name.encode() + b"%d" % k) for name in names}


@pytest.mark.slow
def test_what_is_not_answered_or_fails_leaves_the_connection_as_it_is(kind, rail, folder):
    def answer(body):
        if body == b"fail":
            raise ValueError("row 7 of column income")
        return None if body == b"silence" else body

    with serving(link(kind, rail, "alpha", folder), answer):
        wait_for(rail, Joined("alpha"))
        rail.send("alpha", b"fail")
        rail.send("alpha", b"silence")
        rail.send("alpha", b"speak")
        assert rail.receive(PATIENCE) == Arrived("alpha", b"speak")


def test_a_body_for_a_station_that_is_away_is_lost(rail):
    rail.send("alpha", b"x")
    assert rail.receive(0.01) is None
    assert rail.connected() == frozenset()


@pytest.mark.slow
def test_a_station_killed_while_it_answers_has_left_and_comes_back(kind, rail, folder):
    process = spawn(kind, rail, "alpha", folder)
    try:
        wait_for(rail, Joined("alpha"))
        rail.send("alpha", b"never")
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGKILL)
        wait_for(rail, Left("alpha"))
        assert rail.connected() == frozenset()
        process.communicate()
        process = spawn(kind, rail, "alpha", folder)
        wait_for(rail, Joined("alpha"))
        assert ask(rail, "alpha", b"x") == b"alphax"
    finally:
        stop(process)


@pytest.mark.slow
def test_stations_come_back_by_themselves_when_the_coordinator_restarts(kind, rail, folder):
    where = where_of(rail)
    with serving(make_link(kind, where, "alpha", folder), answer_with_name("alpha")):
        wait_for(rail, Joined("alpha"))
        rail.close()
        again = make_rail(kind, where, folder)
        try:
            wait_for(again, Joined("alpha"))
            assert ask(again, "alpha", b"x") == b"alphax"
        finally:
            again.close()


@pytest.mark.slow
def test_a_newer_connection_takes_the_place_of_the_older(kind, rail, folder):
    first = spawn(kind, rail, "alpha", folder)
    try:
        wait_for(rail, Joined("alpha"))
        with serving(link(kind, rail, "alpha", folder), lambda body: b"second"):
            wait_for(rail, Left("alpha"))
            wait_for(rail, Joined("alpha"))
            assert rail.connected() == {"alpha"}
            assert ask(rail, "alpha", b"x") == b"second"
    finally:
        stop(first)


@pytest.mark.slow
def test_serving_stops_while_an_answer_is_made(kind, rail, folder):
    begun, end = threading.Event(), threading.Event()

    def answer(body):
        begun.set()
        end.wait()

    try:
        with serving(link(kind, rail, "alpha", folder), answer):
            wait_for(rail, Joined("alpha"))
            rail.send("alpha", b"x")
            assert begun.wait(PATIENCE)
    finally:
        end.set()


@pytest.mark.slow
def test_a_slow_station_holds_up_neither_memory_nor_others(kind, rail, folder):
    end = threading.Event()
    try:
        with (
            serving(link(kind, rail, "alpha", folder), lambda body: end.wait() and None),
            serving(link(kind, rail, "beta", folder), answer_with_name("beta")),
        ):
            until(lambda: len(rail.connected()) == 2)
            before = resident()
            for _ in range(100):
                rail.send("alpha", os.urandom(4_000_000))
            assert resident() - before < 160 << 20
            assert ask(rail, "beta", b"x") == b"betax"
    finally:
        end.set()


@pytest.mark.slow
def test_a_station_that_floods_waits_until_the_coordinator_reads(kind, rail, folder):
    answered = []
    with serving(link(kind, rail, "alpha", folder), lambda body: answered.append(1) or bytes(2_000_000)):
        wait_for(rail, Joined("alpha"))
        before = resident()
        for _ in range(80):
            rail.send("alpha", b"x")
            time.sleep(0.01)  # it would have answered by now
        assert len(answered) < 60
        assert resident() - before < 120 << 20
        assert isinstance(rail.receive(PATIENCE), Arrived)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.slow
def test_nothing_is_left_when_both_ends_are_closed(kind, folder):
    before = threading.active_count()
    rail = make_rail(kind, start(kind, folder), folder)
    with serving(link(kind, rail, "alpha", folder), answer_with_name("alpha")):
        wait_for(rail, Joined("alpha"))
        ask(rail, "alpha", b"x")
    wait_for(rail, Left("alpha"))
    rail.close()
    until(lambda: threading.active_count() <= before)
