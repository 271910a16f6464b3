"""What runs rehearsals and answers: in one process and in processes of their own the same is approved, answered and refused."""

import json
import os
import signal

import numpy as np
import pytest

from hedgerow.errors import HedgerowError, ResourcesExceeded
from hedgerow.network.station.children.facts import AskedQuestion, error_of, told_of
from hedgerow.network.station.children.process import Child, Limits, Stopped, own_bytes
from hedgerow.network.station.children.runner import Inline
from hedgerow.network.station.children.subprocesses import Records, StudyProcess, Subprocesses
from hedgerow.store import last
from patience import until
from station_house import LOGISTIC, MEANS, PRIVATE, House

GUARD = {"approval": "automatic", "programs": [{"name": "logistic_regression"}, {"name": "moments"}], "randomness": "study"}
SECRET = '[protection.aggregation]\nby = "secagg"\n'
BUDGET = {"epsilon": 2.0, "delta": 1e-6}


def subprocesses(config, held):
    return Subprocesses(Records.of(config, held))


RUNNERS = {"inline": lambda config, held: Inline(held), "processes": subprocesses}


@pytest.fixture(params=RUNNERS)
def houses(request, tmp_path):
    """Makes houses whose stations have one kind of runner, and closes them."""
    made = []

    def make(guards, **common):
        made.append(House(tmp_path, guards, runner=RUNNERS[request.param], **common))
        return made[-1]

    yield make
    for house in made:
        for station in house.stations.values():
            station.close()
            station.base.close()


def boarded(house, text, columns=("age", "dose", "sick")):
    """What each station says once it is decided."""
    found = {}

    def decided():
        found.update(house.board(text, columns))
        return all(one["status"] != "waiting" for one in found.values())

    until(decided, "a decision", moved=lambda: house.number)
    return {name: (one["status"], one["code"]) for name, one in found.items()}


def run(house, text, columns=("age", "dose", "sick"), **how):
    built = house.built(text, columns, **how)
    return last(built.listing.program(built.settings)(built.federation))


@pytest.mark.slow
def test_a_guard_that_allows_any_number_lets_studies_board(houses):
    house = houses({"alpha": {}}, **GUARD | {"disclosure": float("inf"), "disclosure_overall": float("inf")})
    assert boarded(house, LOGISTIC) == {"alpha": ("approved", "")}
    assert np.isfinite(run(house, LOGISTIC).beta).all()


@pytest.mark.slow
def test_a_study_is_approved_and_answered(houses):
    house = houses({"alpha": {}, "beta": {}, "gamma": {}}, **GUARD)
    assert set(boarded(house, LOGISTIC + SECRET).values()) == {("approved", "")}
    submission = house.stations["alpha"].submissions.all()[0]
    assert submission.ready
    assert submission.rows
    assert submission.announced.signatures
    assert np.isfinite(run(house, LOGISTIC + SECRET).beta).all()
    for station in house.stations.values():
        codes = [entry.code for entry in station.journal.entries() if entry.kind == "ask"]
        assert codes == ["asked", "answered"] * (len(codes) // 2) != []


@pytest.mark.slow
def test_a_budget_is_charged_and_ends(houses):
    house = houses({"alpha": {"budget": BUDGET}}, **GUARD)
    assert boarded(house, PRIVATE, ("age", "dose"))["alpha"] == ("approved", "")

    def spend():
        for life in range(1, 60):
            run(house, PRIVATE, ("age", "dose"), life=life)

    with pytest.raises(HedgerowError, match="HR-213"):
        spend()
    station = house.stations["alpha"]
    [(_, spent, n)] = station.account.spent()
    assert 0 < spent <= 2.0
    assert n == 1
    assert len(list(station.journal.charges())) > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "guard"),
    [
        ("HR-606", {"require": {"hidden_rows": True}}),
        ("HR-605", {"least_cohort": 5}),
        ("HR-602", {"programs": [{"name": "moments"}]}),
        ("HR-603", {"columns": ["dose", "sick"]}),
        ("HR-213", {"budget": BUDGET | {"epsilon": 1e-4, "trust": "server"}}),
    ],
)
def test_a_study_is_refused_by_its_code(houses, code, guard):
    house = houses({"alpha": guard}, **GUARD if "programs" not in guard else {**GUARD, "programs": guard["programs"]})
    found = boarded(house, LOGISTIC)["alpha"]
    assert found == ("refused", code if code != "HR-213" else "HR-606")


@pytest.mark.slow
def test_what_was_not_announced_is_not_answered(houses):
    house = houses({"alpha": {}}, **GUARD)
    boarded(house, MEANS, ("age", "dose", "sick"))
    with pytest.raises(HedgerowError, match="HR-609"):
        run(house, LOGISTIC)
    assert [entry.code for entry in house.stations["alpha"].journal.entries()][-1] == "HR-609"


@pytest.mark.slow
def test_both_find_the_same_and_compute_the_same(tmp_path):
    found = {}
    for name, runner in RUNNERS.items():
        house = House(tmp_path / name, {"alpha": {}}, runner=runner, **GUARD)
        boarded(house, MEANS, ("age", "dose"))
        station = house.stations["alpha"]
        with np.printoptions(precision=17):
            found[name] = station.submissions.all()[0].about(), repr(run(house, MEANS, ("age", "dose")))
        station.close()
        station.base.close()
    assert found["inline"] == found["processes"]


# ---- processes alone ------------------------------------------------------------------------------------------------
@pytest.fixture
def house(tmp_path):
    house = House(tmp_path, {"alpha": {}}, runner=subprocesses, **GUARD)
    yield house
    house.stations["alpha"].close()
    house.stations["alpha"].base.close()


def child_of(house):
    [study] = house.stations["alpha"].runner._studies.values()
    return study.child


@pytest.mark.slow
@pytest.mark.parametrize("when", ["read", "computed"])
def test_a_question_that_takes_too_long_is_refused_and_the_next_one_answered(house, monkeypatch, when):
    assert boarded(house, MEANS, ("age", "dose"))["alpha"] == ("approved", "")
    run(house, MEANS, ("age", "dose"))
    station, stuck = house.stations["alpha"], child_of(house)

    def stop():
        os.kill(stuck.pid, signal.SIGSTOP)  # it does not come to an end
        monkeypatch.setattr(StudyProcess, "_limits", lambda self, guard: Limits("the question", 0.5))

    if when == "read":
        stop()
    else:
        compute = station._computed

        def computed(admitted, question):
            stop()
            return compute(admitted, question)

        monkeypatch.setattr(station, "_computed", computed)
    with pytest.raises(HedgerowError, match="HR-616"):
        run(house, MEANS, ("age", "dose"), life=1 << 10)
    monkeypatch.undo()
    codes = [entry.code for entry in station.journal.entries()]
    assert codes[-1] == "HR-616"
    assert (codes[-2] == "asked") == (when == "computed")
    assert not stuck.alive
    assert run(house, MEANS, ("age", "dose"), life=1 << 11).n == 60
    assert child_of(house).pid != stuck.pid


@pytest.mark.slow
def test_another_child_answers_where_one_has_died(house):
    boarded(house, MEANS, ("age", "dose"))
    run(house, MEANS, ("age", "dose"))
    child = child_of(house)
    os.kill(child.pid, signal.SIGKILL)
    until(lambda: not child.alive, "its end")
    assert run(house, MEANS, ("age", "dose"), life=1 << 10).n == 60


@pytest.mark.slow
def test_a_study_makes_room_for_another(tmp_path):
    house = House(tmp_path, {"alpha": {"limits": {"processes": 1}}}, runner=subprocesses, **GUARD)
    try:
        studies = [b"one study.......", b"another study..."]
        for study in studies:
            until(lambda study=study: house.board(MEANS, ("age", "dose"), study=study)["alpha"]["status"] == "approved")
        for life in (1, 2):
            for study in studies:
                assert run(house, MEANS, ("age", "dose"), study=study, life=life << 10).n == 60
                assert sum(one.running for one in house.stations["alpha"].runner._studies.values()) == 1
    finally:
        house.stations["alpha"].close()
        house.stations["alpha"].base.close()


@pytest.mark.slow
def test_a_child_that_takes_too_much_memory_is_ended(house):
    boarded(house, MEANS, ("age", "dose"))
    run(house, MEANS, ("age", "dose"))
    child = child_of(house)
    assert own_bytes(child.pid) > 1 << 20
    os.kill(child.pid, signal.SIGSTOP)
    with pytest.raises(ResourcesExceeded, match="1 megabytes"):
        child.ask("foresee", [b"", b"", b""], Limits("a question", megabytes=1), lambda: False)
    assert not child.alive


@pytest.mark.slow
def test_whoever_waits_for_a_child_that_is_ended_learns_it(house):
    records = house.stations["alpha"].runner.records
    child = Child(records.sheet.descriptor)
    child.wait_ready(lambda: False)
    os.kill(child.pid, signal.SIGSTOP)  # it would refuse the question at once
    with pytest.raises(Stopped):
        child.ask("foresee", [b""] * 3, Limits(), lambda: True)
    assert not child.alive


def test_errors_come_back_as_they_were():
    told = told_of(ResourcesExceeded("too large.", remedy="Less."))
    again = error_of(told)
    assert (type(again), again.reason, again.remedy) == (ResourcesExceeded, "too large.", "Less.")
    assert "division" in str(error_of(told_of(ZeroDivisionError("division"))))


def test_facts_of_a_question_survive_being_written():
    asked = AskedQuestion(("a", "b"), "sum", "m:f", 3, step="contribution", protected=True, asked=4, declined={"b": "HR-213"})
    assert AskedQuestion.from_json(json.loads(json.dumps(asked.to_json()))) == asked
