"""Boarding: who is asked, what must agree, and what stations say."""

from dataclasses import replace

import numpy as np
import pytest
from made_up_stations import COLUMNS, STUDY, World

from hedgerow.crypto.keys import Identity, verify
from hedgerow.data import Column
from hedgerow.wire.boarding import decision
from hedgerow.wire.values import pack, unpack


def decide(world, **statuses):
    for name, status in statuses.items():
        world.stations[name].status = status
        world.stations[name].code = "HR-608" if status == "refused" else ""


def test_nobody_boards_where_two_stations_declare_a_column_differently(tmp_path):
    world = World(tmp_path)
    age = replace(COLUMNS[0], high=110.0)
    world.stations["beta"].columns = (age, *COLUMNS[1:])
    kept = world.go(world.submit())
    assert kept.state == "failed"
    for words in ("beta", "'age'", "20 to 90", "20 to 110"):
        assert words in kept.reason
    assert all("board" not in station.seen for station in world.stations.values())


def test_a_study_that_declares_what_stations_declare_is_carried_out(tmp_path):
    world = World(tmp_path)
    columns = {"age": {"kind": "number", "range": [20, 90]}, "ill": {"kind": "binary"}, "ward": {"levels": ["a", "b"]}}
    kept = world.go(world.submit(data={"name": "trial", "columns": columns, "na_values": ["?"]}))
    assert kept.state == "finished"
    assert '"?"' not in world.stations["alpha"].told[0]  # how the coordinator's own file is spelt


def test_nobody_boards_where_the_study_declares_a_column_otherwise(tmp_path):
    world = World(tmp_path)
    kept = world.go(world.submit(data={"name": "trial", "columns": {"age": {"kind": "number", "range": [18, 90]}}}))
    assert kept.state == "failed"
    assert "data.columns.age: low is 18.0, and the stations declare 20.0" in kept.reason
    assert all("board" not in station.seen for station in world.stations.values())


def test_a_column_that_a_study_derives_is_derived_at_stations(tmp_path):
    world = World(tmp_path)
    given = {
        "data": {"name": "trial", "derived": {"log_age": {"as": "log(age)"}}},
        "program": {"name": "logistic_regression", "formula": "ill ~ log_age + dose"},
    }
    kept = world.go(world.submit(**given))
    assert kept.state == "failed"
    assert "no column 'log_age'" in kept.reason
    assert "[data.derived.log_age] of station.toml" in kept.reason
    for station in world.stations.values():
        station.columns = (*COLUMNS, Column("log_age", "number", low=2.9, high=4.6, formula="log(age)"))
        station.table["log_age"] = np.log(station.table["age"])
        station.__post_init__()
    assert world.go(world.submit(**given)).state == "finished"


def test_columns_that_the_study_does_not_use_may_differ(tmp_path):
    world = World(tmp_path)
    world.stations["beta"].columns = (*COLUMNS, Column("ward", "number"))
    world.stations["alpha"].columns = (replace(COLUMNS[0], description="at admission"), *COLUMNS[1:])
    assert world.go(world.submit()).state == "finished"
    _, about = world.stations["beta"].told
    assert [column.name for column in about["schema"]] == ["age", "dose", "ill"]


def test_a_study_that_names_no_columns_uses_all_and_all_must_be_there(tmp_path):
    world = World(tmp_path)
    world.stations["beta"].columns = (*COLUMNS, Column("ward", "number"))
    kept = world.go(world.submit(program=STUDY["program"] | {"formula": "ill ~ ."}))
    assert kept.state == "failed"
    assert "alpha has no column 'ward'" in kept.reason


def test_a_column_that_nobody_has_is_named(tmp_path):
    world = World(tmp_path)
    kept = world.go(world.submit(program=STUDY["program"] | {"formula": "ill ~ height"}))
    assert kept.state == "failed"
    assert "height" in kept.reason
    assert all("board" not in station.seen for station in world.stations.values())


def test_a_station_with_other_data_is_not_asked(tmp_path):
    world = World(tmp_path, {"least_stations": 2})
    world.stations["gamma"].data = "births"
    assert world.go(world.submit()).state == "finished"
    assert "board" not in world.stations["gamma"].seen


def test_other_data_at_a_station_that_is_needed_is_said_in_words(tmp_path):
    world = World(tmp_path)
    world.stations["gamma"].data = "births"
    kept = world.go(world.submit())
    assert kept.state == "refused"
    assert "gamma has the data 'births', not 'trial'" in kept.reason


def test_stations_are_told_no_path_of_the_coordinators_machine(tmp_path):
    world = World(tmp_path)
    id = world.submit(data={"path": "/home/somebody/trial.csv"})
    assert world.go(id).state == "finished"
    text, about = world.stations["alpha"].told
    assert "somebody" not in text
    assert 'name = "trial"' in text
    assert about["stations"] == {"alpha": 1, "beta": 1, "gamma": 1}


@pytest.mark.slow
def test_a_person_who_has_to_decide_is_asked_again_with_growing_pauses(tmp_path):
    world = World(tmp_path, {"retry_seconds": 4})
    decide(world, beta="waiting")
    id = world.submit()
    kept = world.go(id, 200)
    assert kept.state == "boarding"
    assert "beta to decide" in kept.reason
    assert 4 <= world.stations["beta"].seen.count("board") <= 8
    assert world.stations["alpha"].seen.count("board") == 1
    decide(world, beta="approved")
    assert world.go(id).state == "finished"


def test_a_person_who_refuses_ends_the_study(tmp_path):
    world = World(tmp_path)
    decide(world, gamma="refused")
    kept = world.go(world.submit())
    assert kept.state == "refused"
    assert kept.reason == "gamma refused: HR-608 SubmissionRefused: its owner refused a study"
    assert "ask" not in world.stations["alpha"].seen
    assert world.stations["alpha"].end == "refused"


def test_enough_others_go_without_who_refuses(tmp_path):
    world = World(tmp_path, {"least_stations": 2})
    decide(world, gamma="refused")
    id = world.submit()
    kept = world.go(id)
    assert kept.state == "finished"
    assert "ask" not in world.stations["gamma"].seen
    assert any("alpha and beta on board; gamma refused: HR-608" in words for words in world.words(id))


@pytest.mark.slow
def test_nobody_waits_for_ever_for_a_decision(tmp_path):
    world = World(tmp_path, {"approval_hours": 1})
    decide(world, beta="waiting")
    kept = world.go(world.submit(), 2 * 3600)
    assert kept.state == "failed"
    assert "no word of beta in 1 hours" in kept.reason


def test_a_station_that_is_away_is_waited_for_and_then_left_out_where_others_are_enough(tmp_path):
    world = World(tmp_path, {"least_stations": 2, "away_minutes": 5})
    world.rail.leave("gamma")
    id = world.submit()
    assert world.go(id, 200).state == "boarding"
    assert world.go(id).state == "finished"
    assert world.stations["gamma"].seen == []


def test_a_station_that_joins_late_boards(tmp_path):
    world = World(tmp_path)
    world.rail.leave("gamma")
    id = world.submit()
    kept = world.go(id, 60)
    assert kept.reason == "waiting for gamma to connect"
    world.rail.join("gamma")
    assert world.go(id).state == "finished"


def test_only_named_stations_are_asked(tmp_path):
    world = World(tmp_path)
    assert world.go(world.submit(stations=("alpha", "gamma"))).state == "finished"
    assert world.stations["beta"].seen == []


def test_one_party_at_two_stations_is_refused(tmp_path):
    world = World(tmp_path)
    answer = world.stations["beta"].answer

    def as_alpha(letter):
        kind, parts = answer(letter)
        return kind, [pack(unpack(parts[0]) | {"parties": ("alpha",)})] if kind == "hello" else parts

    world.stations["beta"].answer = as_alpha
    kept = world.go(world.submit())
    assert kept.state == "refused"
    assert "beta answered what is no hello" in kept.reason


def test_an_approval_that_its_station_did_not_sign_is_none(tmp_path):
    world = World(tmp_path)
    world.stations["beta"].signer = Identity.fresh()
    kept = world.go(world.submit())
    assert kept.state == "refused"
    assert "beta refused: HR-244" in kept.reason


def test_an_approval_of_something_else_is_none(tmp_path):
    world = World(tmp_path)
    answer = world.stations["beta"].answer
    other = {"status": "approved", "code": "", "submission": b"t" * 32, "parties": ("beta",), "signature": b"s" * 64}
    world.stations["beta"].answer = lambda letter: ("board", [pack(other)]) if letter.kind == "board" else answer(letter)
    assert "beta refused: HR-242" in world.go(world.submit()).reason


def test_every_approval_is_signed(tmp_path):
    world = World(tmp_path)
    kept = world.go(world.submit())
    for one in kept.boarded:
        verify(
            world.stations[one.station].key_material.public_identity.identity,
            one.signature,
            decision(one.submission, one.status),
        )


@pytest.mark.parametrize("nonsense", [b"", b"HR-9", b"\x00" * 40])
@pytest.mark.parametrize("kind", ["hello", "board", "refused"])
def test_nonsense_from_a_station_ends_in_a_state_and_not_in_an_exception(tmp_path, kind, nonsense):
    world = World(tmp_path)
    answer = world.stations["beta"].answer

    def garbled(letter):
        if kind in (letter.kind, "refused"):
            return kind, [nonsense]
        return answer(letter)

    world.stations["beta"].answer = garbled
    kept = world.go(world.submit())
    assert kept.state == "refused"
    assert "beta" in kept.reason


@pytest.mark.slow
def test_what_was_agreed_outlives_a_restart(tmp_path):
    world = World(tmp_path)
    decide(world, beta="waiting")
    id = world.submit()
    world.go(id, 30)
    before = world.store.study(id).agreed
    world.store.close()
    world.start()
    world.stations["alpha"].data = "other by now"
    decide(world, beta="approved")
    assert world.go(id).state == "finished"
    assert world.store.study(id).agreed == before
    assert unpack(before)


def test_a_station_that_is_revoked_while_people_decide_is_not_waited_for(tmp_path):
    world = World(tmp_path, {"least_stations": 2})
    world.stations["gamma"].status = "waiting"
    id = world.submit()
    world.go(id, 3)
    public_identities = world.coordinator.queue.public_identities
    world.coordinator.public_identities = world.coordinator.queue.public_identities = lambda: {
        n: public_identity for n, public_identity in public_identities().items() if n != "gamma"
    }
    kept = world.go(id)
    assert kept.state == "finished"
    assert {one.station: (one.status, one.code) for one in kept.boarded}["gamma"] == ("refused", "HR-613")
