"""Missing values at one station of three: it leaves out records for each model, and others learn rounded counts."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from test_real_stations import NAMES, SECRET, Hub

import station_house
from station_house import LOGISTIC

GAPS = 7


def gappy(name, n=60, *, whole=station_house.records):
    """The records of `records`; beta's first seven lack the age, and its next ones an income that no model reads."""
    found = whole(name, n)
    if name == "beta":
        found["age"] = np.where(np.arange(n) < GAPS, np.nan, found["age"])
        found["income"] = np.where(np.arange(n) < 40, np.nan, found["income"])
    return found


@pytest.fixture
def gaps(monkeypatch):
    config = station_house.config_of

    def config_of(name, **guard):
        found = config(name, **guard)
        drops = found.data.model_copy(update={"missing": "drop"}) if name == "beta" else found.data
        return found.model_copy(update={"data": drops})

    monkeypatch.setattr(station_house, "records", gappy)
    monkeypatch.setattr(station_house, "config_of", config_of)


def pooled():
    """Newton's method on the complete records of all stations."""
    frames = [pd.DataFrame(gappy(name))[["age", "dose", "sick"]] for name in NAMES]
    known = pd.concat(frames).dropna()
    X, y, beta = np.column_stack([np.ones(len(known)), known.age, known.dose]), known.sick.to_numpy(), np.zeros(3)
    for _ in range(20):
        p = 1 / (1 + np.exp(-X @ beta))
        beta += np.linalg.solve((X * (p * (1 - p))[:, None]).T @ X, X.T @ (y - p))
    return beta


@pytest.mark.slow
@pytest.mark.usefixtures("gaps")
@pytest.mark.parametrize("protection", ["", SECRET], ids=["plain", "secagg"])
def test_a_submitted_regression_is_the_fit_of_all_complete_records(tmp_path, protection):
    hub = Hub(tmp_path)
    id = hub.submit(LOGISTIC + protection)
    kept = hub.go(id)
    assert kept.state == "finished", kept.reason
    found = pd.read_csv(tmp_path / "runs" / id / "coefficients.csv")["coef"]
    assert_allclose(found, pooled(), rtol=1e-8 if not protection else 1e-6)
    tables = json.loads((tmp_path / "runs" / id / "result.json").read_text())["tables"]
    [flow] = [one for one in tables if one["title"] == "Records left out"]
    counts = {row[1]: row[2] for row in flow["rows"]}
    assert counts == {"at the parties": 180, "complete": 175, "left out": 5, "lack age": 5, "lack dose": 0, "lack sick": 0}
    assert "multiples of 5" in flow["note"]
