"""A station's process while a study is rehearsed that takes hours: it answers, and ends when it is told.

What is asserted is the order of events: what was answered while the rehearsal had not ended. Seconds are measured by
`benchmarks/station.py`.
"""

import signal

import pytest
from gate_house import ENDLESS, LARGE, Gate, Hub, made, runs

from hedgerow.network.station.review import Review
from patience import PATIENCE, until
from station_house import MEANS, STUDY

COLUMNS = ("age", "dose", "sick")


@pytest.fixture
def folder(tmp_path):
    return made(tmp_path)


@pytest.fixture
def hub(folder):
    hub = Hub(folder)
    yield hub
    hub.rail.close()


@pytest.fixture
def gate(folder, hub):
    gate = Gate(folder)
    yield gate
    gate.end()


def rehearsing(hub, gate):
    """Let the endless study come, until a child rehearses it."""
    assert hub.board(ENDLESS, LARGE, COLUMNS) == "waiting"
    until(gate.children, "a child", ended=gate.process.poll)


def still_rehearsed(hub):
    submission = hub.submission(LARGE)
    return submission.status == "waiting" and not submission.ready


@pytest.mark.slow
def test_a_station_answers_while_a_study_is_rehearsed(hub, gate):
    assert hub.boarded(MEANS, STUDY) == "approved"
    rehearsing(hub, gate)
    assert hub.ask("hello").kind == "hello"
    assert hub.run(MEANS, STUDY).n == 60
    assert hub.boarded(MEANS, b"a third study...") == "approved"
    assert hub.board(ENDLESS, LARGE, COLUMNS) == "waiting"
    assert still_rehearsed(hub)


@pytest.mark.slow
def test_a_station_ends_when_it_is_told_and_begins_the_rehearsal_again(hub, gate, folder):
    rehearsing(hub, gate)
    children = gate.children()
    gate.process.send_signal(signal.SIGTERM)
    assert gate.process.wait(PATIENCE) == 0
    until(lambda: not any(map(runs, children)), "the end of the children")
    assert still_rehearsed(hub)
    again = Gate(folder)
    try:
        assert hub.ask("hello").kind == "hello"
        rehearsing(hub, again)
        assert hub.boarded(MEANS, STUDY) == "approved"
        assert still_rehearsed(hub)
        inbox = Review.at(folder)
        try:
            assert inbox.journal.verify()[0] > 0
            inbox.refuse("endless", "Ada", "it takes too long")
        finally:
            inbox.close()
        until(lambda: not again.children(), "the end of the rehearsal", ended=again.process.poll)
        assert hub.board(ENDLESS, LARGE, COLUMNS) == "refused"
    finally:
        again.end()


@pytest.mark.slow
def test_a_study_that_ends_is_rehearsed_no_further(hub, gate):
    rehearsing(hub, gate)
    assert hub.ask("end", [b""], LARGE).kind == "end"
    until(lambda: not gate.children(), "the end of the rehearsal", ended=gate.process.poll)
    assert hub.submission(LARGE).status == "ended"


@pytest.mark.slow
def test_a_rehearsal_that_takes_too_long_is_refused_with_a_code(hub, folder):
    text = (folder / "station.toml").read_text()
    (folder / "station.toml").write_text(text + "[guard.limits]\nrehearsal_seconds = 0.5\n")
    gate = Gate(folder)
    try:
        assert hub.boarded(ENDLESS, LARGE, COLUMNS) == "refused"
        assert hub.submission(LARGE).code == "HR-616"
        assert not gate.children()
    finally:
        gate.end()
