"""A study weighs records only by a column that a station declares as weights."""

import numpy as np
import pytest

from hedgerow.store import last
from station_house import COLUMNS, LOGISTIC, STUDY, House, records

USED = ("age", "dose", "sick", "rare")
GUARD = {"approval": "automatic", "programs": [{"name": "logistic_regression"}]}
OF_DATA = LOGISTIC.replace('target = "sick"', 'target = "sick"\nweight = "rare"')
OF_PROGRAM = LOGISTIC + 'weights = "rare"\n'


def with_rare(name):
    return records(name, 200) | {"rare": (np.arange(200) % 2).astype(float)}


@pytest.fixture
def house(tmp_path, monkeypatch):
    """Makes two stations that declare `rare` in a role."""

    def make(role):
        rare = {"kind": "integer", "range": [0, 1], "role": role}
        monkeypatch.setattr("station_house.records", with_rare)
        monkeypatch.setattr("station_house.COLUMNS", COLUMNS | {"rare": rare})
        return House(tmp_path, {"alpha": {}, "beta": {}}, **GUARD)

    return make


@pytest.mark.parametrize("text", [OF_DATA, OF_PROGRAM], ids=["data.weight", "a setting"])
def test_a_study_does_not_choose_whose_records_count_by_a_feature(house, text):
    of = house("feature")
    said = of.board(text, USED)
    assert {one["status"] for one in said.values()} == {"refused"}
    submission = of.stations["alpha"].submissions.get(STUDY.hex())
    assert submission.code == "HR-603"
    assert "weighs records by 'rare'" in submission.because


@pytest.mark.parametrize("text", [OF_DATA, OF_PROGRAM], ids=["data.weight", "a setting"])
def test_weights_that_stations_declare_count(house, text):
    of = house("weight")
    assert {one["status"] for one in of.board(text, USED).values()} == {"approved"}
    built = of.built(text, USED)
    fitted = last(built.listing.program(built.settings)(built.federation))
    assert fitted.n == 200  # every second record of two stations
