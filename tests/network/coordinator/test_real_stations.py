"""A coordinator and real stations: what one side refuses, the other says in words, and both have it in their journals."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from hedgerow.network.coordinator.config import parse_config
from hedgerow.network.coordinator.coordinator import Coordinator
from hedgerow.network.coordinator.store import Store
from hedgerow.network.coordinator.submission import submit
from hedgerow.network.station.review import Review
from station_house import LOGISTIC, MEANS, PRIVATE, House, parse_text, records

ALLOWED = {"approval": "automatic", "programs": [{"name": "logistic_regression"}, {"name": "moments"}]}
SECRET = '[protection.aggregation]\nby = "secagg"\n'
ACTIVE = SECRET + 'adversary = "active"\n'
NAMES = ("alpha", "beta", "gamma")


class Hub:
    """A coordinator beside a house of stations, on its message queue and clock."""

    def __init__(self, folder, **guards):
        self.house = House(folder / "stations", {name: guards.get(name, {}) for name in NAMES}, **ALLOWED)
        self.folder, self.clock = folder, self.house.rail.now
        found = {"name": "hub", "rail": {"kind": "socket", "path": "rail.sock"}, "limits": {"waiting_hours": 2}}
        self.config = parse_config(found, folder)
        self.start()

    def start(self):
        self.store = Store(self.config.state_folder, self.clock)
        self.store.wake()
        public_identities = self.house.hub.public_identities
        self.coordinator = Coordinator(self.store, self.house.queue, self.config, lambda: public_identities, lambda: 1.0)

    def submit(self, text):
        return submit(self.store, parse_text(text))

    def go(self, id, seconds=600.0):
        end = self.clock() + seconds
        while not self.store.study(id).ended and self.clock() < end:
            due = self.coordinator.due()
            for one in due:
                self.coordinator.advance(one)
            if not due:
                self.house.queue.wait(1.0)
        return self.store.study(id)


def pooled_fit():
    age, dose, sick = (np.concatenate([records(name)[column] for name in NAMES]) for column in ("age", "dose", "sick"))
    X, beta = np.stack([np.ones_like(age), age, dose], 1), np.zeros(3)
    for _ in range(20):
        p = 1 / (1 + np.exp(-X @ beta))
        beta += np.linalg.solve((X * (p * (1 - p))[:, None]).T @ X, X.T @ (sick - p))
    return beta


@pytest.mark.slow
@pytest.mark.parametrize("protection", ["", SECRET, ACTIVE], ids=["plain", "secagg", "active"])
def test_a_submitted_regression_is_the_pooled_fit(tmp_path, protection):
    hub = Hub(tmp_path)
    id = hub.submit(LOGISTIC + protection)
    kept = hub.go(id)
    assert kept.state == "finished", kept.reason
    found = pd.read_csv(tmp_path / "runs" / id / "coefficients.csv")["coef"]
    assert_allclose(found, pooled_fit(), rtol=1e-8 if not protection else 1e-6)
    for station in hub.house.stations.values():
        assert station.submissions.all()[0].status == "ended"


class Killed(BaseException):
    """The coordinator's process ended here."""


@pytest.mark.slow
def test_a_hidden_sum_survives_a_coordinator_that_dies_again_and_again(tmp_path):
    hub = Hub(tmp_path)
    id = hub.submit(LOGISTIC + SECRET)
    take, steps, deaths = hub.house.rail.receive, [0], 0

    def receive(seconds):
        steps[0] += 1
        if steps[0] % 23 == 0:
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
    assert hub.store.study(id).state == "finished"
    assert deaths >= 3
    found = pd.read_csv(tmp_path / "runs" / id / "coefficients.csv")["coef"]
    assert_allclose(found, pooled_fit(), rtol=1e-6)


REFUSED = {
    "a column": ({"columns": ["age"]}, MEANS, "HR-603 ColumnForbidden"),
    "a cohort": ({"least_cohort": 4}, MEANS, "HR-605 CohortForbidden"),
    "an unprotected sum": ({"require": {"hidden_rows": True}}, MEANS, "HR-606 ProtectionRequired"),
    "a budget": ({"budget": {"epsilon": 0.01, "delta": 1e-6}}, PRIVATE, "HR-213 BudgetExhausted"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_guard_refuses_is_in_words_here_and_in_both_journals(tmp_path, case):
    guard, text, words = REFUSED[case]
    hub = Hub(tmp_path, beta=guard)
    kept = hub.go(hub.submit(text))
    assert kept.state == "refused"
    assert f"beta refused: {words}: " in kept.reason
    assert any(words in entry.sentence for entry in hub.store.history(kept.id))
    [submission] = hub.house.stations["beta"].submissions.all()
    assert (submission.status, submission.code) == ("refused", words[:6])
    assert not any(kind == "ask" for name in NAMES for kind, _ in hub.house.codes(name))


def test_a_train_that_nobody_approved_is_never_asked(tmp_path):
    hub = Hub(tmp_path, gamma={"approval": "ask"})
    id = hub.submit(MEANS)
    assert hub.go(id, 60).state == "boarding"
    assert not any(kind == "ask" for name in NAMES for kind, _ in hub.house.codes(name))
    station = hub.house.stations["gamma"]
    Review(station.config, station.keys, station.base).approve(hub.store.study(id).key.hex()[:6], "Ada")
    assert hub.go(id).state == "finished"


def test_an_approval_that_is_taken_back_is_a_refusal_of_one_station(tmp_path):
    hub = Hub(tmp_path)
    id = hub.submit(MEANS)
    while hub.store.study(id).state != "running":
        hub.coordinator.advance(id)
    for name in NAMES:
        station = hub.house.stations[name]
        Review(station.config, station.keys, station.base).refuse("means", "Ada", "enough")
    kept = hub.go(id)
    assert kept.state == "refused"
    assert "beta refused: HR-608 SubmissionRefused" in kept.reason


def test_opening_hours_are_waited_for(tmp_path):
    hub = Hub(tmp_path)
    id = hub.submit(MEANS)
    while hub.store.study(id).state != "running":
        hub.coordinator.advance(id)
    hub.house.configs = {name: type(one).model_validate(one) for name, one in hub.house.configs.items()}
    for name in NAMES:
        station = hub.house.stations[name]
        station.config = station.config.model_copy(
            update={"guard": station.config.guard.model_copy(update={"limits": limits(station, questions_per_minute=1)})}
        )
    kept = hub.go(id, 30)
    assert (kept.state, "HR-611" in kept.reason) == ("waiting", True)
    hub.house.later(minutes=5)
    for name in NAMES:
        station = hub.house.stations[name]
        station.config = station.config.model_copy(
            update={"guard": station.config.guard.model_copy(update={"limits": limits(station, questions_per_minute=None)})}
        )
    assert hub.go(id).state == "finished"


def limits(station, **changes):
    return station.config.guard.limits.model_copy(update=changes)
