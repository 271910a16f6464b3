"""An exact study behind hidden rows waits for a station that is missing, and its result is that of all of them."""

import pandas as pd
import pytest
from numpy.testing import assert_allclose
from test_real_stations import ACTIVE, SECRET, Hub, Killed, pooled_fit

from hedgerow.engines.rails.rail import Joined, Left
from hedgerow.network.station.review import Review
from station_house import LOGISTIC

MASKS = '[protection.aggregation]\nby = "pairwise"\n'
ON_PARTIES = '[evaluation]\non = "parties"\n'


def dies_after(house, name, letters):
    """Let a station die when so many letters have come to it; returns what starts it again on its disk."""
    came = [0]

    def receive(body):
        came[0] += 1
        if came[0] <= letters:
            return house.stations[name].receive(body)
        house.rail.stations.pop(name, None)
        house.rail.events.append(Left(name))
        return None

    def comes_back():
        house.start(name)
        house.rail.events.append(Joined(name))

    house.rail.stations[name] = receive
    return comes_back


@pytest.mark.slow
@pytest.mark.parametrize("after", [7, 8, 9, 12])
@pytest.mark.parametrize("protection", [SECRET, ACTIVE, MASKS], ids=["secagg", "active", "pairwise"])
def test_a_station_that_died_in_the_middle_is_waited_for(tmp_path, protection, after):
    hub = Hub(tmp_path)
    id = hub.submit(LOGISTIC + protection)
    comes_back = dies_after(hub.house, "beta", after)
    away = hub.go(id, 60.0)
    assert away.state == "waiting", away.reason
    assert away.reason.startswith("beta "), away.reason  # who is missing, before what follows for masks
    comes_back()
    kept = hub.go(id)
    assert kept.state == "finished", kept.reason
    found = pd.read_csv(tmp_path / "runs" / id / "coefficients.csv")["coef"]
    assert_allclose(found, pooled_fit(), rtol=1e-6)
    totals = {entry.cohort for entry in hub.house.stations["alpha"].journal.entries() if entry.cohort}
    assert {total.split(" ")[0] for total in totals} == {"3"}


@pytest.mark.slow
def test_a_coordinator_that_dies_again_and_again_asks_no_old_number_anew(tmp_path):
    hub = Hub(tmp_path)
    id = hub.submit(LOGISTIC + ACTIVE + ON_PARTIES)
    take, steps, deaths = hub.house.rail.receive, [0], 0

    def receive(seconds):
        steps[0] += 1
        if steps[0] % 47 == 0:
            raise Killed
        return take(seconds)

    hub.house.rail.receive = receive
    while not hub.store.study(id).ended:
        try:
            hub.go(id)
        except Killed:
            deaths += 1
            hub.store.close()
            hub.house.rail.events.clear()
            hub.start()
    assert hub.store.study(id).state == "finished", hub.store.study(id).reason
    assert deaths >= 3
    found = pd.read_csv(tmp_path / "runs" / id / "coefficients.csv")["coef"]
    assert_allclose(found, pooled_fit(), rtol=1e-6)
    refused = {code for name in ("alpha", "beta") for kind, code in hub.house.codes(name) if kind == "ask"}
    assert "HR-609" not in refused


@pytest.mark.slow
def test_a_station_that_takes_its_approval_back_ends_the_study(tmp_path):
    hub = Hub(tmp_path)
    id = hub.submit(LOGISTIC + ACTIVE)
    while hub.store.study(id).state != "running":
        hub.coordinator.advance(id)
    station = hub.house.stations["beta"]
    Review(station.config, station.keys, station.base).refuse("risk", "Ada", "enough")
    assert hub.go(id).state == "refused"
