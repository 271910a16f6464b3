"""What a coordinator that lies may try with aggregators: other names of a study, and small totals."""

import secrets
from dataclasses import replace

import pytest

from aggregator_house import ADDING, SHARES, Federation
from hedgerow.crypto.shares import AdditiveServer
from hedgerow.network.coordinator.coordinator import Coordinator
from station_house import LOGISTIC

NAMES = ("alpha", "beta", "gamma", "delta", "eta")
ALLOWED = {"approval": "automatic", "programs": [{"name": "logistic_regression"}]}


def federation(tmp_path):
    return Federation(tmp_path, {name: {"require": {"hidden_rows": True}} for name in NAMES}, **ALLOWED)


@pytest.mark.slow
def test_a_study_that_aggregators_know_by_another_name_than_stations_has_no_total(tmp_path, monkeypatch):
    """Under each name it would have a chain of exact totals, and two of these differ by a row."""
    fed = federation(tmp_path)
    other = secrets.token_bytes(16)
    real, boarded = Coordinator._aggregators, []

    def under_another_name(coordinator, kept, agreed, line):
        reached = real(coordinator, kept, agreed, line)
        letters = line.queue.ask(
            "board", dict.fromkeys(agreed.aggregators, agreed.parts()), study=other, number=1, seconds=60.0
        )
        boarded.extend(letter.kind for letter in letters.values())
        return replace(reached, queue=Renamed(line.queue))

    class Renamed:
        def __init__(self, queue):
            self.alive, self.queue = queue.alive, queue

        def ask(self, kind, parts, *, study, number, seconds):
            return self.queue.ask(kind, parts, study=other, number=number, seconds=seconds)

    monkeypatch.setattr(Coordinator, "_aggregators", under_another_name)
    kept = fed.go(fed.submit(LOGISTIC + SHARES), 60.0)
    assert set(boarded) == {"board"}
    assert kept.state != "finished"
    assert not any(fed.totals(name) for name in ADDING)


@pytest.mark.slow
@pytest.mark.parametrize("least", [3, 5])
def test_aggregators_hold_a_server_to_the_least_parties_of_its_study(tmp_path, monkeypatch, least):
    """The server, which counts three of five, gets a total of them where the study says so."""
    fed = federation(tmp_path)
    came = AdditiveServer._boxes

    def some(server, *given):
        boxes, steady = came(server, *given)
        return dict(list(boxes.items())[:3]), steady

    monkeypatch.setattr(AdditiveServer, "_boxes", some)
    monkeypatch.setattr(AdditiveServer, "_enough", lambda server, *given: None)
    fed.go(fed.submit(LOGISTIC + SHARES + f"least = {least}\n"), 60.0)
    for name in ADDING:
        assert bool(fed.totals(name)) == (least == 3)
