"""Schemas: admission of several columns, roles, inference."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from hedgerow.data import Column, Schema, infer
from hedgerow.errors import MissingColumn, NotFinite, SchemaInvalid

SCHEMA = Schema(
    (
        Column("age", "number", low=18, high=90),
        Column("smoker", "binary"),
        Column("region", "category", levels=("north", "south")),
        Column("charges", "number", role="target"),
        Column("w", "number", role="weight"),
    )
)
RECORDS = {
    "age": [20, 30],
    "smoker": [True, False],
    "region": ["south", "north"],
    "charges": [1.5, 2.5],
    "w": [1, 2],
    "unused": [0, 0],
}


def test_roles_are_read_off():
    assert SCHEMA.features == ("age", "smoker", "region")
    assert (SCHEMA.target, SCHEMA.weight, SCHEMA.offset) == ("charges", "w", None)
    assert "age" in SCHEMA
    assert "unused" not in SCHEMA
    assert SCHEMA.absolute("age") == 90


def test_admit_returns_the_declared_columns_in_order():
    admitted = SCHEMA.admit(RECORDS)
    assert tuple(admitted) == SCHEMA.names
    assert_array_equal(admitted["smoker"], [1.0, 0.0])


def test_unknown_column_gets_a_suggestion():
    with pytest.raises(MissingColumn, match="Did you mean 'smoker'"):
        SCHEMA["smokr"]


def test_one_error_names_every_wrong_column():
    wrong = RECORDS | {"age": [20, 200], "smoker": [0, 2], "region": ["east", "north"]}
    del wrong["charges"]
    with pytest.raises(Exception) as refusal:
        SCHEMA.admit(wrong)
    for name in ("age", "smoker", "region", "charges"):
        assert repr(name) in refusal.value.reason


def test_one_error_names_at_most_five_columns():
    schema = Schema(tuple(Column(f"x{i}", "number") for i in range(8)))
    with pytest.raises(NotFinite, match="and 3 more columns are wrong"):
        schema.admit({name: [np.nan] for name in schema.names})


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(SchemaInvalid, match="differ in length"):
        SCHEMA.admit(RECORDS | {"age": [20]})


def test_repeated_names_and_targets_are_refused():
    with pytest.raises(SchemaInvalid, match="declared twice"):
        Schema((Column("x", "number"), Column("x", "binary")))
    with pytest.raises(SchemaInvalid, match="Choose one target"):
        Schema((Column("x", "number", role="target"), Column("y", "number", role="target")))


def test_a_former_target_is_ignored_not_made_a_feature():
    schema = SCHEMA.with_roles(target="smoker", features=["age"])
    assert (schema.target, schema.features, schema["charges"].role) == ("smoker", ("age",), "ignore")
    assert SCHEMA.with_roles(target="age", features=["age", "charges"]).features == ("charges",)
    assert SCHEMA.with_roles() == SCHEMA
    with pytest.raises(MissingColumn):
        SCHEMA.with_roles(features=["ages"])


def test_replace_changes_one_declaration():
    schema = SCHEMA.replace(Column("age", "integer"))
    assert schema["age"].kind == "integer"
    assert schema.names == SCHEMA.names
    with pytest.raises(MissingColumn):
        SCHEMA.replace(Column("ages", "integer"))


def test_json_round_trip_through_text():
    assert Schema.from_json(json.loads(json.dumps(SCHEMA.to_json()))) == SCHEMA
    with pytest.raises(SchemaInvalid, match="columns"):
        Schema.from_json({"colums": []})


def test_synthetic_records_are_admitted():
    records = SCHEMA.synthetic(20, np.random.default_rng(0))
    assert {len(values) for values in SCHEMA.admit(records).values()} == {20}


FRAME = pd.DataFrame(
    {
        "flag": [True, False, True],
        "zero_one": [0.0, 1.0, np.nan],
        "count": [1, 2, 3],
        "level": [0.5, 1.5, 2.5],
        "word": ["b", "a", None],
        "grade": pd.Categorical(["y", "x", "y"], categories=["y", "x", "never"]),
        "maybe": pd.array([1, None, 7], dtype="Int64"),
    }
)


def test_kinds_are_inferred_and_ranges_are_not():
    schema = infer(FRAME, target="level", ranges={"count": (0, 10)})
    kinds = {column.name: column.kind for column in schema}
    assert kinds == {
        "flag": "binary",
        "zero_one": "binary",
        "count": "integer",
        "level": "number",
        "word": "category",
        "grade": "category",
        "maybe": "integer",
    }
    assert schema["word"].levels == ("a", "b")
    assert schema["grade"].levels == ("never", "x", "y")
    assert (schema["count"].low, schema["count"].high) == (0, 10)
    assert (schema["level"].low, schema["level"].high) == (None, None)
    assert schema.target == "level"


def test_a_two_level_string_column_stays_a_category():
    assert infer(pd.DataFrame({"sex": ["f", "m"]}))["sex"].kind == "category"


def test_dates_are_refused():
    with pytest.raises(SchemaInvalid, match="days since"):
        infer(pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])}))


def test_inference_refuses_an_absent_target():
    with pytest.raises(MissingColumn, match="Did you mean 'level'"):
        infer(FRAME, target="levle")
