"""Faults of the coordinator that schedules have found (`tests/network`), each alone and by its name."""

import pytest
from made_up_stations import World

from hedgerow.errors import CannotWrite


# ---- seeds 10, 13, 33, 37: a study waited for an hour because the coordinator's clock was set back
@pytest.mark.parametrize("state", ["boarding", "waiting"])
def test_a_clock_that_is_set_back_does_not_make_pauses_longer(tmp_path, state):
    world = World(tmp_path)
    world.rail.leave("gamma")
    id = world.submit()
    if state == "waiting":
        world.rail.join("gamma")
        world.go(id, until=lambda kept: kept.state == "running")
        world.rail.silent = {"alpha", "beta"}
    world.go(id, until=lambda kept: kept.state == state and kept.pauses > 0)
    world.rail.silent, world.store.now = set(), lambda: world.clock() - 7200
    world.rail.join("gamma")
    assert world.go(id, seconds=400).state == "finished"


# ---- seeds 0, 12, 17, 46: an approval stayed open at a station whose disk was full when it was told the end
def test_a_station_that_could_not_note_the_end_is_told_again(tmp_path):
    world = World(tmp_path)
    gamma, answer, refused = world.stations["gamma"], world.stations["gamma"].answer, []

    def once_full(letter):
        if letter.kind == "end" and not refused:
            refused.append(letter)
            raise CannotWrite("the disk is full.")
        return answer(letter)

    gamma.answer = once_full
    id = world.submit()
    assert world.go(id).untold == ()
    assert refused
    assert gamma.end == "finished"


# ---- seeds 118, 327, 528: studies used up the questions a minute that stations allow, and no two rounds had the same stations
def test_after_a_refusal_for_haste_a_study_waits_for_a_minute(tmp_path):
    world = World(tmp_path, {"retry_seconds": 1.0, "retry_most_seconds": 5.0})
    for name in ("alpha", "beta"):
        world.stations[name].refuses = ["", "HR-611"]
    id = world.submit()
    kept = world.go(id, until=lambda kept: kept.state == "waiting")
    assert kept.due - world.clock() >= 60
    assert world.go(id).state == "finished"
