"""Two stations that know different things about the same people: they align, answer, refuse, and the hub sees no column."""

import re

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from vertical_house import COLUMNS, COMMON, ISLAND, NUMBERS, VerticalHouse, people, pooled, study

from hedgerow.core.randomness import Streams
from hedgerow.errors import RoundRefused
from hedgerow.network.coordinator.states import Boarded
from hedgerow.study.apart.at_stations import built_at_stations, federation_at
from hedgerow.study.apart.protocols import protocol_of
from hedgerow.wire.envelope import disclose
from station_house import parse_text

MEANS = study("means", {"name": "vertical_means", "of": ["salary", "age"], "by": "district"})
TOL = 1e-5
"""The program's `tol`: the information behind standard errors is that of a point so many standard errors from the end."""

TERMS = [*NUMBERS["town"], *NUMBERS["tax"]]
RISK = study("risk", {"name": "vertical_logistic_regression", "formula": f"moved ~ {' + '.join(TERMS)}"}, "town.moved")
READABLE = re.compile(rb"HR-\d{3}|hedgerow|vertical|salary|savings|district|island|nin\b|moved|means|people")


def rows_of(kept, folder):
    assert kept.state == "finished", kept.reason
    return pd.read_csv(folder / "coefficients.csv", index_col=0)


def checked_means(found):
    table, known = found, pooled()
    for code, level in enumerate(("north", "south")):
        here = known["district"] == code
        assert table.loc[level, "count"] == here.sum()
        for column in ("salary", "age"):
            assert_allclose(table.loc[level, column], known[column][here].mean(), rtol=1e-7)
    assert (known["district"] == 2).sum() == ISLAND
    assert table.loc[["island", "harbour"]].isna().all(axis=None)


@pytest.mark.slow
def test_means_by_a_group_elsewhere_are_the_pooled_ones_and_a_small_group_is_not_told(tmp_path):
    house = VerticalHouse(tmp_path)
    checked_means(rows_of(*house.run(MEANS)))
    for name, station in house.stations.items():
        [aligned] = [entry for entry in station.journal.entries() if entry.kind == "align"]
        assert aligned.partners == ({"tax", "town"} - {name}).pop()
        assert station.submissions.all()[0].status == "ended"
        assert not list((tmp_path / name / "states").glob("*"))  # what came of the alignment ended with the study


@pytest.mark.slow
def test_a_logistic_regression_is_the_pooled_one(tmp_path):
    found, known = rows_of(*VerticalHouse(tmp_path).run(RISK)), pooled()
    X = sm.add_constant(np.stack([known[name] for name in TERMS], 1))
    fit = sm.Logit(known["moved"], X).fit(disp=0, tol=1e-10)
    assert_allclose(found["coef"], fit.params, atol=1e-7)
    assert_allclose(found["se"], fit.bse, rtol=TOL)


# ---- what is refused --------------------------------------------------------------------------------------------------
GUARDS = {
    "no alignment": ({"vertical": {"alignment": False}}, MEANS, "HR-606"),
    "no seats": ({"vertical": {"alignment": True}}, RISK, "HR-606"),
    "another partner": ({"vertical": {"alignment": True, "partners": ["bank"]}}, MEANS, "HR-606"),
    "more common people": ({"vertical": {"alignment": True, "least_common": 11}}, MEANS, "HR-604"),
    "shorter lists": ({"vertical": {"alignment": True, "ratio": 2.0}}, MEANS, "HR-606"),
    "a column kept back": ({"columns": ["salary"]}, MEANS, "HR-603"),
    "noise": ({"require": {"noise": "party"}}, MEANS, "HR-606"),
}


@pytest.mark.parametrize("case", [pytest.param(one, marks=pytest.mark.slow) if one == "no seats" else one for one in GUARDS])
def test_a_guard_refuses_before_anybody_is_asked(tmp_path, case):
    guard, text, code = GUARDS[case]
    house = VerticalHouse(tmp_path, tax=guard)
    kept, _ = house.run(text)
    assert kept.state == "refused"
    assert f"tax refused: {code}" in kept.reason
    assert not any(kind in ("ask", "align") for name in COLUMNS for kind, _ in house.codes(name))


@pytest.mark.slow
def test_v11_a_guard_that_wants_larger_groups_refuses_the_product_at_home(tmp_path):
    """The rows themselves are looked at, whatever the study says: the guard became stricter after the study was approved."""
    house = VerticalHouse(tmp_path)
    id = house.submit(MEANS)
    while house.store.study(id).state != "running":
        house.coordinator.advance(id)
    guard = house.stations["town"].config.guard
    rules = guard.vertical.model_copy(update={"least_common": COMMON // 2 + 20})
    stricter = {"guard": guard.model_copy(update={"vertical": rules})}
    let_align(house, id)
    house.stations["town"].config = house.stations["town"].config.model_copy(update=stricter)
    kept = house.go(id)
    assert kept.state in ("refused", "failed"), kept.reason
    refusal = house.stations["town"].journal.entries()[-2]
    assert (refusal.kind, refusal.code) == ("ask", "HR-604")
    assert "singles out" in refusal.reason


def let_align(house, id):
    """Let the study go as far as its alignment, and stop the coordinator there."""
    send, stopped = house.rail.send, []

    def until_aligned(station, body):
        send(station, body)
        if not stopped and list((house.path / "hub" / "runs" / id).glob("alignment.json")):
            stopped.append(True)
            house.coordinator.stopping.set()

    house.rail.send = until_aligned
    house.coordinator.advance(id)
    house.coordinator.stopping.clear()
    house.rail.send = send
    assert stopped or (house.path / "hub" / "runs" / id / "alignment.json").exists()


def boarded_federation(house, text=MEANS):
    """The stations as a hub reaches them that has forgotten what it asked before."""
    id = house.submit(text)
    while house.store.study(id).state != "running":
        house.coordinator.advance(id)
    kept = house.store.study(id)
    assert all(isinstance(one, Boarded) and one.status == "approved" for one in kept.boarded)
    schemas = {name: config.declared for name, config in house.configs.items()}
    network = house.network(study=kept.key, life=2)
    return federation_at(built_at_stations(parse_text(text), schemas), network, Streams(None))


@pytest.mark.slow
def test_v12_a_second_alignment_of_a_study_is_refused_also_after_a_restart(tmp_path):
    house = VerticalHouse(tmp_path)
    federation = boarded_federation(house)
    by = protocol_of(parse_text(MEANS).alignment)
    assert federation.align(on="nin", by=by).n == COMMON
    for name in COLUMNS:
        house.start(name)
    with pytest.raises(RoundRefused, match=r"HR-60[89]"):
        federation.align(on="nin", by=by)
    reasons = [entry.reason for station in house.stations.values() for entry in station.journal.entries()]
    assert any("a study aligns once" in reason for reason in reasons)


@pytest.mark.slow
def test_v12_studies_of_one_month_share_a_budget_of_alignments(tmp_path):
    few = {"vertical": {"alignment": True, "alignments_per_month": 1}}
    house = VerticalHouse(tmp_path, town=few)
    rows_of(*house.run(MEANS))
    id = house.submit(MEANS)
    assert house.go(id, 60).state == "waiting"
    assert ("ask", "HR-611") in house.codes("town")
    house.later(days=32)
    checked_means(rows_of(house.go(id, 3000), tmp_path / "hub" / "runs" / id))


# ---- what is seen -----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def after(tmp_path_factory):
    house = VerticalHouse(tmp_path_factory.mktemp("seen"))
    checked_means(rows_of(*house.run(MEANS)))
    return house


def test_a_wire_tap_sees_nothing_readable(after):
    bodies = [body for _, body in (*after.rail.sent, *after.rail.came)]
    ids = [one.encode() for name in COLUMNS for one in people(name)[0].tolist()]
    assert len(bodies) > 40
    assert not any(READABLE.search(body) for body in bodies)
    assert not any(one in body for body in bodies for one in ids[:20])


def test_v3_what_the_hub_can_open_holds_no_id_and_no_column(after):
    """Letters between stations are boxes to it: neither ids nor values, as numbers or in fixed point, are in any letter."""
    seen = b"".join(
        b"".join(disclose(after.hub.key_material, after.hub.public_identities, body).parts) for _, body in after.rail.came
    )
    assert b"level_rows" not in seen
    assert len(seen) > 20_000
    for name in COLUMNS:
        ids, columns = people(name)
        assert not any(one.encode() in seen for one in ids.tolist())
        for column in NUMBERS[name]:
            for value in columns[column][:20]:
                fixed = [np.rint(np.ldexp(value, bits)).astype("<i8").tobytes() for bits in (16, 20, 22, 24, 32)]
                assert not any(form in seen for form in (np.float64(value).tobytes(), *fixed))


def test_boarding_says_who_will_learn_what(after):
    [submission] = after.stations["tax"].submissions.all()
    first, *rest = submission.rows
    assert "those of town by 'nin'" in submission.summary
    assert "at least 10 in common" in submission.summary
    assert "which of its own people are in all lists" in first["tax, which is here, will learn"].lower()
    assert "sizes of sealed letters" in first["hub will learn"].lower()
    assert "counts and means" in first["world will learn"].lower()
    assert all(row["between"] == "tax, town" for row in (first, *rest))
    assert submission.columns == tuple(COLUMNS["tax"])
