"""Codes: from declarations alone, and back to values that obey them."""

import json
import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import Column, Schema
from hedgerow.errors import CannotWrite, SchemaInvalid, SettingsInvalid
from hedgerow.synth import Codes, Conditions, Provenance, SyntheticTable, provenance_of

SCHEMA = Schema(
    [
        Column("age", "integer", low=17, high=90),
        Column("gain", "number", low=0, high=1000, optional=True),
        Column("sex", "category", levels=("Female", "Male", "unknown")),
        Column("ill", "binary", role="target"),
        Column("name", "integer", role="id", low=0, high=9),
    ]
)


@pytest.fixture(scope="module")
def codes():
    return Codes.of(SCHEMA, bins=8, log="gain")


@pytest.fixture
def columns():
    rng = np.random.default_rng(0)
    made = SCHEMA.synthetic(2000, rng)
    made["gain"][:200] = np.nan
    return made


def test_codes_follow_from_the_declaration(codes):
    assert codes.names == ("age", "gain", "sex", "ill")
    assert codes.sizes == (8, 9, 3, 2)
    assert codes.target == "ill"
    assert Codes.of(SCHEMA, columns=["ill", "sex"], target="sex").names == ("sex", "ill")


def test_values_of_codes_have_those_codes_and_obey_the_declaration(codes, columns):
    found = codes.number(columns)
    assert (found.min(0) == 0).all()
    assert (found.max(0) == np.array(codes.sizes) - 1).all()
    assert (found[:200, 1] == 8).all()
    values = codes.values(found, np.random.default_rng(1))
    codes.schema.admit(values)
    assert np.array_equal(codes.number(values), found)
    assert len(np.unique(values["age"])) == 74  # each whole number of a bin is drawn


def test_conditions_hold_exactly(codes, columns):
    where = {"age": (40, 41), "gain": (None, 20), "sex": ["Female", "unknown"], "ill": 1}
    conditions = Conditions.of(codes, where)
    assert conditions.weights[2].tolist() == [1, 0, 1]
    assert conditions.weights[1][-1] == 0  # missing is in no range
    rng = np.random.default_rng(2)
    drawn = np.stack(
        [rng.choice(size, 500, p=conditions.weights[j] / conditions.weights[j].sum()) for j, size in enumerate(codes.sizes)], 1
    )
    values = codes.values(drawn, rng, conditions.within)
    assert set(values["age"]) == {40.0, 41.0}
    assert values["gain"].min() >= 0
    assert values["gain"].max() <= 20


def test_weights_of_a_range_are_the_parts_of_the_bins(codes):
    whole = Codes.of(Schema([Column("x", "number", low=0, high=4)]), bins=4)
    assert Conditions.of(whole, {"x": (0.5, 2.25)}).weights[0].tolist() == [0.5, 1, 0.25, 0]
    assert Conditions.of(whole, {"x": 1.5}).weights[0].tolist() == [0, 1, 0, 0]
    assert Conditions.of(codes, {"age": (17, 90)}).weights[0].tolist() == [1] * 8


@pytest.mark.parametrize(
    "where",
    [{"sex": "female"}, {"age": (91, 95)}, {"age": (50, 40)}, {"age": "old"}, {"ill": 2}, {"sex": []}]
    + [{name: wanted} for name in ("sex", "ill", "age") for wanted in (math.nan, math.inf, 10**400, (0, 10**400), 1j)],
)
def test_conditions_that_cannot_hold_are_refused(codes, where):
    with pytest.raises(SettingsInvalid):
        Conditions.of(codes, where)


def test_columns_without_a_range_are_refused():
    with pytest.raises(SchemaInvalid, match="declare no range"):
        Codes.of(Schema([Column("x", "number")]))
    with pytest.raises(SettingsInvalid, match="no numbers"):
        Codes.of(SCHEMA, log=["sex"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_says_what_made_it(codes, columns, tmp_path, kind):
    made = Provenance("a test", 1.0, 1e-5, "record", "Epsilon 1.", "people", "abc", 7, {"ill": 1})
    table = SyntheticTable({name: columns[name] for name in codes.names}, codes.schema, provenance=made)
    path = table.write(tmp_path / f"people.{kind}")
    said = provenance_of(path)
    assert (said["epsilon"], said["seed"], said["study"], said["records"]) == (1.0, 7, "people", 2000)
    again = hr.data.read(path, schema=Schema.from_json(said["schema"]), missing="drop")
    assert np.array_equal(again["age"], table["age"])
    with pytest.raises(CannotWrite):
        table.write(path)
    json.dumps(said)


@pytest.mark.parametrize("log", [(), ("gain",)])
def test_points_have_codes_of_their_own(log):
    points = {"age": [40, 17, 90], "gain": [0, 99.5, 1000]}
    schema = Schema([Column("age", "integer", low=17, high=90), Column("gain", "number", low=0, high=1000)])
    codes = Codes.of(schema, bins=4, log=log, points=points)
    ages = np.arange(17.0, 91)
    gains = np.unique(np.r_[0, 1e-9, 99.4999, 99.5, 99.5001, 999.9, 1000, np.linspace(0, 1000, 67)])
    columns = {"age": np.resize(ages, 500), "gain": np.resize(gains, 500)}
    found = codes.number(columns)
    for j, (name, values) in enumerate(columns.items()):
        assert sorted(np.unique(found[:, j])) == list(range(codes.sizes[j]))  # no empty code
        for point in points[name]:
            assert set(values[found[:, j] == found[values == point, j][0]]) == {point}
    values = codes.values(found, np.random.default_rng(0))
    assert np.array_equal(codes.number(values), found)
    assert (values["gain"][columns["gain"] == 99.5] == 99.5).all()
    assert (values["age"][columns["age"] == 40] == 40).all()
    point = Conditions.of(codes, {"gain": (50, 99.5), "age": 40}).weights
    assert (
        point[0].tolist()
        == (codes.number({"age": np.array([40.0]), "gain": np.array([1.0])})[0, 0] == np.arange(codes.sizes[0])).tolist()
    )
    assert point[1].sum() > 1
    assert Conditions.of(codes, {"gain": 0}).weights[1].tolist() == [1.0] + [0.0] * (codes.sizes[1] - 1)


def test_every_code_of_a_whole_number_is_a_value_of_it():
    schema = Schema([Column("inc", "integer", low=0, high=5000), Column("part", "integer", low=1, high=10)])
    codes = Codes.of(schema, bins=64, log=["inc"], points={"inc": [0, 7, 1000, 5000], "part": [1, 10]})
    for j, size in enumerate(codes.sizes):
        first, last = codes.whole_ends(j)
        assert (first <= last).all()
        assert np.array_equal(first[1:], last[:-1] + 1)
        drawn = np.zeros((2 * size, 2), np.int64)
        drawn[:, j] = np.tile(np.arange(size), 2)
        assert np.array_equal(codes.number(codes.values(drawn, np.random.default_rng(0)))[:, j], drawn[:, j])


def test_a_constant_number_has_one_code_and_is_in_ranges_around_it():
    codes = Codes.of(Schema([Column("k", "number", low=5, high=5), Column("a", "number", low=0, high=1)]), points={"k": 5})
    assert codes.sizes == (1, 16)
    for wanted in (5, (4, 6), (5, None)):
        assert Conditions.of(codes, {"k": wanted}).weights[0].tolist() == [1.0]
    with pytest.raises(SettingsInvalid, match="holds no value"):
        Conditions.of(codes, {"k": (6, 7)})
    assert codes.values(np.zeros((3, 2), np.int64), np.random.default_rng(0))["k"].tolist() == [5.0] * 3


def test_weights_that_may_be_negative_are_refused_before_anybody_is_asked():
    schema = Schema([Column("a", "binary"), Column("w", "number", role="weight", low=-1, high=2)])
    with pytest.raises(SchemaInvalid, match="none below zero"):
        Codes.of(schema)


@pytest.mark.parametrize(
    "points",
    [
        {"age": [40.5]},
        {"gain": [-1]},
        {"sex": [1]},
        {"gain": ["0"]},
        {"gain": "0"},
        {"gain": [math.nan]},
        {"age": [10**400]},
        {"age": [True]},
    ],
)
def test_points_that_are_no_values_are_refused(points):
    with pytest.raises(SettingsInvalid):
        Codes.of(SCHEMA, points=points)
