"""Programs that divide a budget of their own, at stations: what is rehearsed is charged, and a guard refuses more."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.network.coordinator.config import parse_config
from hedgerow.network.coordinator.coordinator import Coordinator
from hedgerow.network.coordinator.store import Store
from hedgerow.network.coordinator.submission import submit
from station_house import House, parse_text

OWN = """
name = "private risk"
[data]
name = "heart"
target = "sick"
features = ["age", "dose"]
[program]
name = "private_logistic"
formula = "sick ~ age + dose"
rounds = 3
epsilon = 1.0
delta = 1e-5
"""
CHANNEL = (
    OWN.replace("epsilon = 1.0\ndelta = 1e-5\n", "")
    + """
[budget]
epsilon = 1.0
delta = 1e-5
unit = "record"
[protection.mechanism]
law = "gaussian"
"""
)
SHARES = OWN + 'noise_at = "shares"\nleast = 3\n[protection.aggregation]\nby = "secagg"\n'
LOCAL = OWN + 'noise_at = "party"\n'
NAMES = ("alpha", "beta", "gamma")
STATIONS = {name: {} for name in NAMES}


def guard(trust, epsilon=1.0):
    limit = {"epsilon": epsilon, "delta": 1e-5, "trust": trust, "filter": "gdp"}
    return {"approval": "automatic", "programs": [{"name": "private_logistic"}], "budget": limit}


class Service:
    """A coordinator beside three stations with a budget each, on its message queue and clock."""

    def __init__(self, folder, guards=STATIONS, **common):
        self.folder, self.house = folder, House(folder / "stations", guards, **common)
        config = parse_config({"name": "hub", "rail": {"kind": "socket", "path": "rail.sock"}}, folder)
        clock = self.house.rail.now
        self.store = Store(config.state_folder, clock)
        self.store.wake()
        identities = self.house.hub.public_identities
        self.coordinator = Coordinator(self.store, self.house.queue, config, lambda: identities, lambda: 1.0)

    def run(self, text):
        id = submit(self.store, parse_text(text))
        for _ in range(200):
            if self.store.study(id).ended:
                break
            for one in self.coordinator.due():
                self.coordinator.advance(one)
            self.house.queue.wait(1.0)
        return self.store.study(id)

    def spent(self):
        """What each station's budget has lost."""
        return [station.account.spent()[0][1] for station in self.house.stations.values()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "trust"),
    [(OWN, "server"), (SHARES, "parties"), (LOCAL, "nobody"), (CHANNEL, "server"), (CHANNEL + 'at = "party"\n', "nobody")],
    ids=["own", "own in shares", "own at the party", "channel", "channel at the party"],
)
def test_what_is_rehearsed_is_what_each_station_charges(tmp_path, text, trust):
    service = Service(tmp_path, **guard(trust))
    kept = service.run(text)
    assert kept.state == "finished", kept.reason
    for station in service.house.stations.values():
        [submission] = station.submissions.all()
        assert "Epsilon 1 " in submission.summary
        assert "at delta 1e-05 per record" in submission.summary
        assert len(submission.rows) == 2
    assert service.spent() == pytest.approx([1.0] * 3, rel=1e-4)
    assert max(service.spent()) <= 1.0
    refused = service.run(text.replace("private risk", "again"))
    assert refused.state == "refused"
    assert "HR-213" in refused.reason


@pytest.mark.slow
def test_a_station_refuses_more_than_its_budget_before_it_is_asked(tmp_path):
    service = Service(tmp_path, **guard("server"))
    kept = service.run(OWN.replace("epsilon = 1.0", "epsilon = 2.0"))
    assert kept.state == "refused"
    assert "HR-213" in kept.reason
    assert service.spent() == [0.0] * 3
    assert not any(kind == "ask" for name in NAMES for kind, _ in service.house.codes(name))


@pytest.mark.parametrize(("text", "trust"), [(OWN, "parties"), (OWN, "nobody"), (SHARES, "nobody")])
def test_noise_of_those_whom_a_station_does_not_trust_is_not_counted(tmp_path, text, trust):
    house = House(tmp_path, STATIONS, **guard(trust))
    assert {said["code"] for said in house.board(text).values()} == {"HR-606"}


@pytest.mark.slow
def test_a_station_with_noise_of_its_own_answers_the_same_question_with_other_noise(tmp_path):
    coefficients = []
    for k in range(2):
        house = House(tmp_path / str(k), STATIONS, **guard("nobody"))
        house.board(LOCAL)
        built = house.built(LOCAL)
        coefficients.append(hr.last(built.listing.program(built.settings)(built.federation)).coef)
    assert np.isfinite(coefficients).all()
    assert not np.allclose(*coefficients)
