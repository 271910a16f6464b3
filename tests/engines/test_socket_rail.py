"""The socket rail: doors, permissions, and what a hostile process of the same owner achieves."""

import socket
import stat
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from railing import ask, serving, wait_for

from hedgerow.engines.rails.rail import Joined, Left
from hedgerow.engines.rails.socket_rail import SocketDoor, SocketLink, SocketRail, dial
from hedgerow.errors import RailUnavailable
from hedgerow.wire import frames
from patience import PATIENCE, until


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture
def rail(folder):
    made = SocketRail(folder / "rail")
    yield made
    made.close()


def named(body):
    return b"alpha:" + body


def knock(path, name):
    """Dial a door that is about to be opened."""
    found = []

    def opened():
        with suppress(OSError):
            found.append(dial(path, name))
        return found

    until(opened, path)
    return found[0]


@pytest.mark.slow
def test_a_relay_carries_between_a_rail_and_a_door(rail, folder):
    with serving(SocketDoor(folder / "door", "alpha"), named):
        with dial(folder / "rail", "alpha") as hub, knock(folder / "door", "alpha") as station:
            wait_for(rail, Joined("alpha"))
            for body in (b"", b"x", bytes(3_000_000)):
                rail.send("alpha", body)
                carried = threading.Thread(target=frames.write, args=(station, frames.read(hub)))
                carried.start()
                frames.write(hub, frames.read(station))
                carried.join()
                assert rail.receive(PATIENCE).body == b"alpha:" + body
        wait_for(rail, Left("alpha"))


@pytest.mark.slow
def test_a_newer_relay_takes_the_place_of_one_that_hangs_and_a_wrong_name_of_none(folder):
    with (
        serving(SocketDoor(folder / "door", "alpha"), named),
        knock(folder / "door", "alpha") as older,
        dial(folder / "door", "beta") as wrong,
    ):
        assert frames.read(wrong) is None
        frames.write(older, b"1")
        assert frames.read(older) == b"alpha:1"
        with dial(folder / "door", "alpha") as newer:
            assert frames.read(older) is None
            frames.write(newer, b"2")
            assert frames.read(newer) == b"alpha:2"


def test_only_its_owner_reaches_a_socket(rail, folder):
    assert stat.S_IMODE(rail.path.stat().st_mode) == 0o600
    (folder / "open").mkdir(mode=0o755)
    with pytest.raises(RailUnavailable, match="chmod 700"):
        SocketRail(folder / "open" / "rail")


def test_a_socket_that_is_used_or_too_long_is_refused_and_a_stale_one_is_replaced(rail, folder):
    with pytest.raises(RailUnavailable, match="HR-612"):
        SocketRail(rail.path)
    with pytest.raises(RailUnavailable, match="100 characters"):
        SocketRail(folder / ("x" * 120))
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(folder / "stale"))
    SocketRail(folder / "stale").close()
    assert not (folder / "stale").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent", [b"\xff" * 500, bytes(8), (4).to_bytes(8, "big") + b"\n\n\n\n", b"GET / HTTP/1.1\r\n\r\n", b"\0"]
)
def test_whoever_names_no_station_is_not_let_in_and_holds_up_nobody(rail, sent):
    with serving(SocketLink(rail.path, "beta"), lambda body: body), socket.socket(socket.AF_UNIX) as hostile:
        wait_for(rail, Joined("beta"))
        hostile.connect(str(rail.path))
        hostile.sendall(sent)
        assert ask(rail, "beta", b"x") == b"x"
        assert rail.connected() == {"beta"}


@pytest.mark.slow
def test_a_frame_that_claims_too_much_ends_its_connection_alone(rail):
    with serving(SocketLink(rail.path, "beta"), lambda body: body):
        wait_for(rail, Joined("beta"))
        with dial(rail.path, "alpha") as hostile:
            wait_for(rail, Joined("alpha"))
            hostile.sendall(b"\xff" * 8)
            wait_for(rail, Left("alpha"))
            assert frames.read(hostile) is None
        assert ask(rail, "beta", b"x") == b"x"
