"""A station that stops in the middle of a question, and is started again, has forgotten the protocol that was under way.

an epoch of a split network    resumes to the bits of the run in peace
a fit                          begins anew, with the alignment that is kept
an alignment                   is over: a list is aligned once in a study
"""

import json
from collections import Counter
from hashlib import sha256

import pandas as pd
import pytest
from numpy.testing import assert_allclose
from vertical_house import VerticalHouse, study

import hedgerow.crypto.psi.x25519 as x25519
from hedgerow.crypto.peer_protocol import PeerSide
from hedgerow.errors import MessageRefused

FIT = study("fit", {"name": "vertical_logistic_regression", "formula": "moved ~ age + salary"}, "town.moved")
ALIGNS, FITS = "align:people, peers 0", "terms:own_columns, peers 1"
"""Steps after which the protocol of an alignment, and that of a fit, is under way."""

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


def restarted(house, victim, step, most):
    """The house, whose station is started again when it has answered such a step, before it gets the next letter."""
    send, times = house.rail.send, Counter()

    def disturbed(station, body):
        last = house.stations[station].journal.entries(last=1)
        if station == victim and times[victim] < most and last and last[0].function.endswith(step):
            times[victim] += 1
            house.start(victim)
        send(station, body)

    house.rail.send = disturbed
    return house


def reasons(house, id):
    """Why a study waited or ended."""
    return [entry.about["reason"] for entry in house.store.history(id) if entry.event == "state"]


def of_journal(house, name, kind):
    return [entry for entry in house.stations[name].journal.entries() if entry.kind == kind]


@pytest.mark.parametrize("victim", ["tax", "town"])
def test_v19_a_fit_begins_anew_when_a_station_was_started_again_within_a_question(tmp_path, victim):
    kept, folder = VerticalHouse(tmp_path / "peace").run(FIT)
    assert kept.state == "finished", kept.reason
    in_peace = pd.read_csv(folder / "coefficients.csv", index_col=0)
    house = restarted(VerticalHouse(tmp_path / "killed"), victim, FITS, 2)
    kept, folder = house.run(FIT)
    assert kept.state == "finished", kept.reason
    assert_allclose(pd.read_csv(folder / "coefficients.csv", index_col=0)["coef"], in_peace["coef"], atol=1e-6)
    waits = [one for one in reasons(house, kept.id) if one.startswith("HR-241 RoundRefused")]
    assert len(waits) == 2, waits
    for name in house.stations:
        assert len(of_journal(house, name, "align")) == 1
        answers = Counter((entry.letter, entry.code) for entry in of_journal(house, name, "ask"))
        assert set(answers.values()) == {1}  # nothing was charged or answered twice
        assert sum(code == MessageRefused.code for _, code in answers) == 2 * (name == victim)


def test_v19_an_alignment_that_a_station_has_forgotten_is_not_made_again(tmp_path):
    house = restarted(VerticalHouse(tmp_path), "town", ALIGNS, 1)
    kept, _ = house.run(FIT)
    assert (kept.state, kept.round) == ("refused", 0)
    assert "HR-608" in kept.reason
    assert [len(of_journal(house, name, "align")) for name in house.stations] == [1, 1]


def test_v19_a_station_that_refuses_the_first_step_is_not_asked_anew(tmp_path, monkeypatch):
    house, first, asked = VerticalHouse(tmp_path), PeerSide._first, []

    def refusing(side, letter, at):
        if side.id == "town" and not side.protocol.agrees and of_journal(house, "town", "align"):
            asked.append(side.id)
            raise MessageRefused("a protocol that is not spoken here.")
        return first(side, letter, at)

    monkeypatch.setattr(PeerSide, "_first", refusing)
    kept, _ = house.run(FIT)
    assert (kept.state, len(asked)) == ("failed", 1)
    assert "town refused: HR-242" in kept.reason
    assert not any("RoundRefused" in one for one in reasons(house, kept.id))
