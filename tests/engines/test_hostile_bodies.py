"""The message queue, the switchboard and the network under stations that send without end, come and go, or refuse at once."""

from functools import partial

import pytest
from ministation import at_stations, federation, remote
from test_message_queue import asked, laid

import hedgerow as hr
from hedgerow.engines.rails.rail import Arrived
from hedgerow.engines.rails.switchboard import WAITING, Switchboard
from hedgerow.stats.counts import level_counts
from hedgerow.wire.envelope import disclose, enclose

HOMES = {name: (f"party {k}",) for k, name in enumerate(("alpha", "beta", "gamma", "delta", "epsilon"), 1)}


def test_whoever_sends_without_end_keeps_no_letter_from_leaving():
    queue, rail, _ = laid()
    genuine, turn = rail.receive, [0]

    def flooded(seconds):
        turn[0] += 1
        assert turn[0] < 100_000
        return Arrived("gamma", b"x") if turn[0] % 2 or seconds == 0.0 else genuine(seconds)

    rail.receive = flooded
    assert asked(queue).keys() == {"alpha", "beta", "gamma"}


def test_a_letter_that_cannot_leave_is_not_kept():
    queue, rail, _ = laid()
    send = rail.send

    def broken(station, body):
        if station == "gamma":
            raise OSError("the rail is gone")
        send(station, body)

    rail.send = broken
    with pytest.raises(OSError, match="gone"):
        asked(queue)
    assert not queue._sent


def test_a_station_that_comes_and_goes_may_leave_no_more_unread_than_one_that_stays():
    board = Switchboard(1000)
    for _ in range(10):
        line = board.join("gamma", lambda: None)
        for _ in range(WAITING - line.unread.bodies):
            assert board.arrived(line, b"x")
        board.leave(line)
    unread = [event for event, _ in board._events if isinstance(event, Arrived)]
    assert len(unread) == WAITING
    while board.receive(0.0) is not None:
        pass
    assert board.join("gamma", lambda: None).unread.bodies == 0


def refusing(station):
    """A station that refuses whatever it is asked."""

    def answer(raw):
        letter = disclose(station.mine, {station.hub.name: station.hub}, raw)
        about = {"study": letter.study, "number": letter.number, "answers": letter.digest}
        return enclose(station.mine, station.hub, "refused", [b"HR-602"], **about)

    return answer


def test_who_refuses_at_once_takes_no_place_among_the_first():
    engine, rail = at_stations(federation(), HOMES)
    for name in ("alpha", "beta"):
        rail.up[name] = refusing(rail.up[name])
    cohort = remote(federation(), engine).sample(size=3, spare=2)
    found = cohort.sum(partial(level_counts, sizes=(("malignant", 2),)))
    held = hr.engines.records(federation())
    assert found["malignant"].sum() == sum(held.sizes[held.position[HOMES[name][0]]] for name in ("gamma", "delta", "epsilon"))
    assert cohort.missing == 0
