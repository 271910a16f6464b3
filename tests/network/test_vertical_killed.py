"""A station that stops within an epoch of a split network, and is started again, goes on to the bits of the run in peace."""

import json
from hashlib import sha256

import pytest
from vertical_house import VerticalHouse, study

import hedgerow.crypto.psi.x25519 as x25519

SPLIT = study("split", {"name": "splitnn", "epochs": 2, "bottom_hidden": [4], "width": 2, "labels": "shared"}, "town.moved")


def same_order(monkeypatch):
    """Alignments of two runs agree on one order of rows, so that batches are the same."""
    drawn = []

    def bytes_(n):
        drawn.append(n)
        seed = len(drawn).to_bytes(4, "big")
        return b"".join(sha256(seed + k.to_bytes(4, "big")).digest() for k in range(-(-n // 32)))[:n]

    monkeypatch.setattr(x25519, "fresh", bytes_)
    return drawn


def metrics(house, disturb=lambda station: None):
    send = house.rail.send

    def disturbed(station, body):
        disturb(station)
        send(station, body)

    house.rail.send = disturbed
    kept, folder = house.run(SPLIT)
    assert kept.state == "finished", kept.reason
    return dict(json.loads((folder / "result.json").read_text())["metrics"])


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["tax", "town"])
def test_v19_a_station_that_was_stopped_within_an_epoch_resumes_to_the_same_bits(tmp_path, monkeypatch, victim):
    drawn, counts = same_order(monkeypatch), []
    in_peace = metrics(VerticalHouse(tmp_path / "peace"), counts.append)
    drawn.clear()
    house, seen, stopped = VerticalHouse(tmp_path / "killed"), [], []

    def disturb(station):
        seen.append(station)
        last = house.stations[victim].journal.entries(last=1)[-1:]
        within = last and last[0].function.endswith("split.steps:forward, peers 0")
        if within and station == victim and len(seen) > len(counts) // 2 and len(stopped) < 2:
            stopped.append(len(seen))
            house.start(victim)

    assert metrics(house, disturb) == in_peace
    assert len(stopped) == 2
    assert len(seen) > len(counts)  # what was under way was asked anew
    assert ("ask", "HR-242") in house.codes(victim)
