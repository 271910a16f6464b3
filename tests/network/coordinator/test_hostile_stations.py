"""A station that answers what it should not: the others' study goes on, and the coordinator says who was left out."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_up_stations import COLUMNS, World, pooled_fit

from hedgerow.core.arrays import Layout
from hedgerow.data import Column
from hedgerow.wire.values import pack, unpack

FIVE = ("alpha", "beta", "gamma", "delta", "epsilon")
COUNTS = {"data": {"name": "trial", "features": ["ill"]}, "program": {"name": "counts", "columns": ["ill"]}}


def lying(world, name, lie, kind="ask"):
    """A station that changes what it says to letters of a kind."""
    station = world.stations[name]
    honest = station.answer
    station.answer = lambda letter: lie(*honest(letter)) if letter.kind == kind else honest(letter)


def told(kind, parts, **changes):
    return kind, [pack(unpack(parts[0]) | changes)]


def no_numbers(kind, parts):
    return told(kind, parts, total=np.full_like(unpack(parts[0])["total"], np.nan))


def infinite(kind, parts):
    return told(kind, parts, total=np.full_like(unpack(parts[0])["total"], np.inf))


def other_keys(kind, parts):
    return told(kind, parts, layout=Layout((("x", (3,)),)), total=np.zeros(3))


def garbage(kind, parts):
    return kind, [b"garbage"]


def another_kind(kind, parts):
    return "hello", []


def nobody_here(kind, parts):
    nothing = {"layout": None, "total": None, "rows": None, "letters": None, "codes": {0: "HR-213"}}
    return told(kind, parts, answered=np.zeros(1, bool), **nothing)


LIES = [no_numbers, infinite, other_keys, garbage, another_kind, nobody_here]


@pytest.mark.parametrize("lie", LIES)
def test_an_answer_that_is_none_leaves_a_fit_of_the_others(tmp_path, lie):
    world = World(tmp_path)
    lying(world, "beta", lie)
    id = world.submit()
    assert world.go(id).reason == "its program ended; at its last question without beta"
    found = pd.read_csv(tmp_path / "runs" / id / "coefficients.csv")["coef"]
    np.testing.assert_allclose(found, pooled_fit([world.tables["alpha"], world.tables["gamma"]]), atol=1e-8)
    assert any("beta refused: HR-" in words for words in world.words(id))


def test_a_count_is_never_what_is_no_number(tmp_path):
    world = World(tmp_path)
    lying(world, "beta", no_numbers)
    id = world.submit(**COUNTS)
    world.go(id)
    assert "NaN" not in json.dumps(json.loads((tmp_path / "runs" / id / "result.json").read_text()))


@pytest.mark.parametrize("lie", LIES)
def test_answers_of_too_few_are_no_answer_whatever_the_others_send(tmp_path, lie):
    world = World(tmp_path, names=FIVE)
    for name in FIVE[:3]:
        lying(world, name, lie)
    kept = world.go(world.submit(), 7200)
    assert kept.state in ("failed", "refused")
    assert all(name in kept.reason for name in FIVE[:3])


def test_of_two_that_contradict_each_other_nobody_is_believed(tmp_path):
    world = World(tmp_path, names=("alpha", "beta"))
    lying(world, "beta", lambda *given: other_keys(*given))
    lying(world, "alpha", lambda kind, parts: told(kind, parts, layout=Layout((("z", (2,)),)), total=np.zeros(2)))
    kept = world.go(world.submit())
    assert (kept.state, "HR-222" in kept.reason) == ("failed", True)


@pytest.mark.parametrize(
    "names", [("hospital-south",), ("alpha",), ("beta", "beta"), ("beta-annex",), ("beta/\x1b[2J",), ("",)]
)
def test_no_station_speaks_in_the_name_of_another(tmp_path, names):
    world = World(tmp_path, {"least_stations": 2})
    for kind in ("hello", "board"):
        lying(world, "beta", lambda *given: told(*given, parties=names), kind)
    id = world.submit()
    assert world.go(id).state == "finished"
    assert [one.parties for one in world.store.study(id).boarded] == [("alpha",), ("gamma",)]


@pytest.mark.slow
def test_one_guard_that_refuses_does_not_end_a_secret_sum_that_lacks_others_too(tmp_path):
    world = World(tmp_path, names=FIVE)
    id = world.submit(protection={"aggregation": {"by": "secagg", "least": 4}})
    world.go(id, until=lambda kept: kept.state == "running")
    world.stations["alpha"].refuses = ["HR-602"] * 100
    world.rail.silent = {"beta"}
    assert world.go(id, 600).state == "waiting"
    world.rail.silent = set()
    assert world.go(id, 7200).state == "finished"


@pytest.mark.slow
def test_a_station_that_takes_no_note_of_the_end_keeps_it_from_nobody(tmp_path):
    world = World(tmp_path, {"retry_most_seconds": 30})
    lying(world, "gamma", lambda kind, parts: ("refused", [b"HR-104"]), "end")
    end = world.coordinator._end

    def without_beta(*given):
        world.rail.leave("beta")
        end(*given)

    world.coordinator._end = without_beta
    id = world.submit()
    world.go(id, 300)
    assert world.store.study(id).untold == ("beta",)
    world.rail.join("beta")
    world.go(id, 3600)
    assert world.stations["beta"].end == "finished"
    assert world.store.study(id).untold == ()


def declaring(world, name, *columns):
    world.stations[name].columns = columns


def test_a_station_whose_columns_are_not_those_of_most_stops_nobody_where_others_are_enough(tmp_path):
    world = World(tmp_path, {"least_stations": 2})
    declaring(world, "alpha", replace(COLUMNS[0], high=110.0), *COLUMNS[1:])
    id = world.submit()
    assert world.go(id).state == "finished"
    assert [one.station for one in world.store.study(id).boarded] == ["beta", "gamma"]


def test_of_columns_that_no_most_declare_nothing_is_agreed(tmp_path):
    world = World(tmp_path, {"least_stations": 1}, names=("alpha", "beta"))
    declaring(world, "alpha", replace(COLUMNS[0], high=110.0), *COLUMNS[1:])
    kept = world.go(world.submit())
    assert (kept.state, "'age' differently" in kept.reason) == ("failed", True)


def test_what_a_station_says_of_itself_fills_no_journal_and_steers_no_terminal(tmp_path):
    world = World(tmp_path)
    declaring(world, "beta", *COLUMNS[:2], *(Column(f"il\x1b[2J{n}", "number") for n in range(5)))
    kept = world.go(world.submit())
    assert (kept.state, "beta has no column 'ill'" in kept.reason) == ("failed", True)
    assert "\x1b" not in kept.reason


def test_a_reason_is_as_long_as_a_person_reads(tmp_path):
    world = World(tmp_path)
    ward = Column("age", "category", levels=tuple(f"ward {n}" for n in range(20_000)))
    declaring(world, "beta", ward, *COLUMNS[1:])
    kept = world.go(world.submit())
    assert kept.state == "failed"
    assert len(kept.reason) < 5000


PRIVATE = {"clip": {"norm": "l2", "radius": 0.5}, "mechanism": {"law": "gaussian", "noise_multiplier": 1e-6}}


def test_more_than_the_bound_counts_as_zero_and_the_journal_says_whose_it_was(tmp_path):
    world = World(tmp_path)
    lying(world, "beta", lambda kind, parts: told(kind, parts, total=unpack(parts[0])["total"] * 2**20))
    id = world.submit(program={"name": "counts", "columns": ["ill"]}, protection=PRIVATE)
    kept = world.go(id)
    assert (kept.state, kept.reason.endswith("; zeros counted for beta: more than the bound")) == ("finished", True)
    assert "zeros counted, for more came than the bound allows: beta" in world.words(id)
