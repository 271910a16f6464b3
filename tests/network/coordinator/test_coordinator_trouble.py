"""What goes wrong by itself: key folders, clocks, disks, lost states. A study waits, and takes nothing for what it is not."""

import shutil

import pytest
from made_up_stations import World

from hedgerow.errors import KeyInvalid, RailUnavailable
from hedgerow.network.coordinator.service import readable

MONTH = 30 * 86_400.0


def looked(world, change):
    """Let what the coordinator sees of its public identities change with every look."""
    public_identities, looks = world.coordinator.public_identities, [0]

    def look():
        looks[0] += 1
        return change(dict(public_identities()), looks[0])

    world.coordinator.public_identities = world.coordinator.queue.public_identities = readable(look)


@pytest.mark.slow
@pytest.mark.parametrize("state", ["submitted", "running"])
def test_a_roster_that_cannot_be_read_for_a_while_ends_no_study(tmp_path, state):
    def damaged(public_identities, n):
        if 3 < n < 60:
            raise KeyInvalid("roster.json is damaged.")
        return public_identities

    world = World(tmp_path)
    id = world.submit()
    world.go(id, until=lambda kept: kept.state == state)
    looked(world, damaged)
    failures = 0
    while not world.store.study(id).ended:
        try:
            world.go(id, 60)
        except RailUnavailable:
            failures += 1
            world.clock.at += 5.0
    assert failures > 3
    assert world.store.study(id).state == "finished"


@pytest.mark.parametrize("after", range(8, 20, 2))
def test_a_station_that_is_revoked_at_any_moment_is_left_out(tmp_path, after):
    def revoked(public_identities, n):
        return {name: public_identity for name, public_identity in public_identities.items() if n <= after or name != "gamma"}

    world = World(tmp_path)
    id = world.submit()
    world.go(id, until=lambda kept: kept.state == "running")
    looked(world, revoked)
    assert world.go(id).state == "finished"
    assert not world.coordinator.queue._sent


@pytest.mark.slow
@pytest.mark.parametrize("state", ["boarding", "running"])
def test_a_clock_that_is_set_back_by_a_month_keeps_nobody_waiting(tmp_path, state):
    world = World(tmp_path, {"least_stations": 2})
    id = world.submit()
    if state == "boarding":
        world.rail.leave("gamma")
        world.go(id, 30)
    else:
        world.go(id, until=lambda kept: kept.state == "running")
        world.rail.leave("gamma")
    assert world.store.study(id).state == state
    world.clock.at -= MONTH
    assert world.go(id, 7200).state == "finished"


@pytest.mark.slow
def test_a_restart_with_a_clock_that_was_set_back_keeps_nobody_waiting(tmp_path):
    world = World(tmp_path, {"least_stations": 2, "approval_hours": 0.2})
    for station in world.stations.values():
        station.status = "waiting"
    id = world.submit()
    world.go(id, 30)
    world.store.close()
    world.clock.at -= MONTH
    for name, station in world.stations.items():
        station.status = "waiting" if name == "gamma" else "approved"
    world.start()
    assert world.go(id, 3600).state == "finished"


def test_a_new_study_never_goes_on_from_the_run_of_an_old_one(tmp_path):
    world = World(tmp_path)
    first = world.submit()
    world.go(first)
    world.store.close()
    shutil.rmtree(world.config.state_folder)
    world.start()
    second = world.submit()
    asked = [station.seen.count("ask") for station in world.stations.values()]
    kept = world.go(second)
    assert second == first
    assert (kept.state, "HR-103" in kept.reason) == ("failed", True)
    assert [station.seen.count("ask") for station in world.stations.values()] == asked


def test_an_error_of_the_disk_is_waited_for(tmp_path, monkeypatch):
    world = World(tmp_path)
    id = world.submit()
    world.go(id, until=lambda kept: kept.state == "running")
    progress, fails = world.coordinator._progress, [2]

    def failing(*given):
        fails[0] -= 1
        if fails[0] >= 0:
            raise OSError(24, "Too many open files")
        progress(*given)

    world.coordinator._progress = failing
    assert "Too many open files" in world.go(id, until=lambda kept: kept.state == "waiting").reason
    assert world.go(id).state == "finished"
