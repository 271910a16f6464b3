"""Points: values that many records have come back as often, by every way of making records up, and single columns too."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.synth import copula, marginals, mst, rap, tan

SCHEMA = Schema(
    (
        Column("gain", "integer", low=0, high=9999),
        Column("dose", "number", low=-1, high=1, optional=True),
        Column("ill", "binary", role="target"),
    )
)
POINTS = {"gain": [0, 9999], "dose": [0.25]}
WAYS = [copula, marginals, mst, rap, tan]


@pytest.fixture(scope="module")
def parties():
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(400) < 0.8, 0.0, np.floor(rng.exponential(2000, 400)).clip(1, 9999))
    dose = np.where(rng.random(400) < 0.5, 0.25, rng.uniform(-1, 1, 400))
    dose[rng.random(400) < 0.1] = np.nan
    table = Table({"gain": gain, "dose": dose, "ill": (gain > 0) * 1.0}, SCHEMA)
    return table, hr.simulate(table, hr.data.iid(parties=2), seed=0)


@pytest.mark.parametrize("make", WAYS)
@pytest.mark.parametrize("log", [(), ("gain",)])
def test_a_point_comes_back_as_often_as_it_was(parties, make, log):
    table, federation = parties
    made = make(federation, bins=4, log=log, points=POINTS)
    drawn = made.sample(400, seed=1)
    SCHEMA.admit(drawn.columns)
    near = 0.05 if make in (rap, tan) else 0.01  # a mixture is fitted, and records by weight are drawn at random
    for name, value in (("gain", 0), ("dose", 0.25)):
        assert np.mean(drawn[name] == value) == pytest.approx(np.mean(table[name] == value), abs=near)
    apart = made.sample(50, where={"gain": (1, None), "dose": (0, 0.25)}, seed=2)
    assert apart["gain"].min() >= 1
    assert (apart["dose"] >= 0).all()
    assert np.mean(apart["dose"] == 0.25) > 0.5
    assert set(made.sample(20, where={"gain": 0, "dose": 0.25}, seed=3)["dose"]) == {0.25}


@pytest.mark.parametrize("make", WAYS)
def test_a_table_of_one_column_has_no_pairs(parties, make):
    table, federation = parties
    drawn = make(federation, columns=["gain"], bins=4, points={"gain": [0]}).sample(400, seed=0)
    assert drawn.schema.names == ("gain",)
    assert np.mean(drawn["gain"] == 0) == pytest.approx(np.mean(table["gain"] == 0), abs=0.05 if make is rap else 0.01)
