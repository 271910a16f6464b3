"""Faults that schedules have found, each alone and by its name."""

import errno
import os
from dataclasses import replace
from datetime import timedelta
from unittest import mock

import pytest
from numpy.testing import assert_allclose

import hedgerow as hr
from hedgerow.errors import CannotWrite, MessageRefused
from hedgerow.store import Answered
from hedgerow.wire.envelope import enclose
from helpers import altered, run_of
from station_house import MEANS, House

AUTOMATIC = {"approval": "automatic", "programs": [{"name": "moments"}]}


def full(descriptor):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# ---- seeds 15, 18, 51: a station whose protocol journal met a full disk refused until it was started again
def test_a_journal_of_answers_that_met_a_full_disk_is_used_again_when_there_is_room(tmp_path):
    answered = Answered(tmp_path / "answers" / "one.journal", gather=True)
    answered.of("alpha").write("round 1", b"a")
    with mock.patch("os.fsync", full), pytest.raises(CannotWrite):
        answered.flush()
    answered.flush()
    with pytest.raises(MessageRefused):
        answered.of("alpha").write("round 1", b"b")
    answered.close()
    again = Answered(tmp_path / "answers" / "one.journal")
    assert again.of("alpha").seen("round 1") == b"a"
    again.close()


# ---- seed 869: a full disk when that journal is made was said to be an error of the station's own, which ended the study
def test_a_full_disk_when_a_journal_of_answers_is_made_is_a_full_disk(tmp_path):
    with mock.patch("os.fsync", full), pytest.raises(CannotWrite):
        Answered(tmp_path / "answers" / "one.journal")


# ---- a limit by the minute at a station whose clock is set back
def test_a_limit_by_the_minute_outlasts_no_clock_that_is_set_back(tmp_path):
    house = House(tmp_path, {"alpha": {"limits": {"questions_per_minute": 2}}}, **AUTOMATIC)
    house.board(MEANS, ("age", "dose"))

    def run(life):
        built = house.built(MEANS, ("age", "dose"), life=life)
        return hr.last(built.listing.program(built.settings)(built.federation))

    run(1)
    house.time -= timedelta(hours=1)
    assert run(2).n == 60


# ---- seeds 70, 475: as many records, but of other stations: Newton's steps were halved for ever
class Changing:
    """An engine of which one party is away at first, and then another for good."""

    def __init__(self, engine, first, then, rounds):
        self.engine, self.away = engine, [first] * rounds
        self.then = then

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def exchange(self, outbox):
        away = self.away.pop() if self.away else self.then
        return self.engine.exchange(replace(outbox, ids=tuple(id for id in outbox.ids if id != away)))


@pytest.mark.parametrize("rounds", [2, 7])
@pytest.mark.parametrize("aggregation", [None, hr.SecAgg(mode="simulated")], ids=["open", "hidden"])
def test_a_fit_goes_on_when_another_party_of_equal_size_takes_the_place_of_one(rounds, aggregation):
    table = hr.data.load("breast_cancer").select(["mean_radius", "mean_texture", "malignant"]).take(range(400))
    design = hr.stats.design_of(table.schema, "malignant ~ mean_radius + mean_texture", "binomial")

    def fitted(first, then, rounds):
        federation = hr.simulate(table, hr.data.iid(parties=4), seed=1).protect(aggregation=aggregation)
        assert len(set(hr.engines.records(federation).sizes)) == 1
        federation = altered(federation, engine=Changing(run_of(federation).engine, first, then, rounds))
        return hr.last(hr.stats.newton(federation, spec=design))

    for first, then in [("party 1", "party 4"), ("party 4", "party 1"), ("party 2", "party 3"), ("party 3", "party 2")]:
        found = fitted(first, then, rounds)
        assert_allclose(found.beta, fitted(then, then, 0).beta, rtol=1e-4 if aggregation else 1e-8)
        assert found.round < rounds + 10


def test_a_letter_that_was_refused_for_a_full_disk_gets_the_same_refusal_again(tmp_path):
    house = House(tmp_path, {"alpha": {}}, **AUTOMATIC)
    house.board(MEANS, ("age", "dose"))
    station = house.stations["alpha"]
    raw = enclose(
        house.hub.key_material,
        house.key_materials["alpha"].public_identity,
        "end",
        [b""],
        study=b"a study's name..",
        number=1 << 40,
    )
    with mock.patch.object(station.journal, "write", side_effect=CannotWrite("the disk is full.")):
        first = station.receive(raw)
    assert station.receive(raw) == first
