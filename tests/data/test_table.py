"""Tables: selection, ranges, data frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from hedgerow.data import Column, Schema, Table
from hedgerow.errors import MissingColumn, NotFinite, OutOfRange, PartitionInvalid, SchemaInvalid

FRAME = pd.DataFrame({"age": [20.0, 50.0, 80.0, 35.0], "sex": ["f", "m", "m", "f"], "died": [0, 1, 0, 1]})


def table(**settings):
    return Table.from_pandas(FRAME, target="died", **settings)


def with_test():
    whole = table()
    return Table(whole.columns, whole.schema, test=whole.take([0, 1]))


def test_take_keeps_the_order_asked_for():
    assert_array_equal(table().take([2, 0])["age"], [80, 20])
    assert len(table().take(slice(1, None))) == 3


def test_select_applies_to_the_test_part():
    selected = with_test().select(["died", "age"])
    assert selected.schema.names == selected.test.schema.names == ("died", "age")
    with pytest.raises(MissingColumn, match="Did you mean 'age'"):
        table().select(["agee"])


def test_split_is_disjoint_complete_and_deterministic():
    first, second = table().split(0.5, seed=3)
    assert len(first) == len(second) == 2
    assert sorted([*first["age"], *second["age"]]) == sorted(FRAME["age"])
    assert_array_equal(first["age"], table().split(0.5, seed=3)[0]["age"])


def test_split_refuses_a_fraction_above_one():
    with pytest.raises(PartitionInvalid, match=r"fraction=1\.5"):
        table().split(1.5, seed=0)


def test_declare_refuses_or_clips_what_lies_outside():
    assert table().declare(age=(18, 90)).schema.absolute("age") == 90
    with pytest.raises(OutOfRange, match=r"1 of 4 values outside its declared range \[18, 70\]"):
        table().declare(age=(18, 70))
    clipped = with_test().declare(clip=True, age=(30, 70))
    assert_array_equal(clipped["age"], [30, 50, 70, 35])
    assert_array_equal(clipped.test["age"], [30, 50])
    with pytest.raises(MissingColumn):
        table().declare(agee=(0, 1))


def test_roles_apply_to_the_test_part():
    assert with_test().with_roles(target="age").test.schema.target == "age"


def test_data_frame_round_trip():
    frame = table().to_pandas()
    assert list(frame["sex"].astype(str)) == list(FRAME["sex"])
    again = Table.from_pandas(frame, schema=table().schema)
    for name in again.columns:
        assert_array_equal(again[name], table()[name])


def test_arrays_are_left_out_of_data_frames():
    schema = Schema((Column("image", "integer", shape=(2, 2)), Column("y", "binary")))
    images = Table(schema.admit({"image": np.ones((3, 2, 2), np.uint8), "y": [0, 1, 1]}), schema)
    assert list(images.to_pandas()) == ["y"]


def test_missing_values_of_a_data_frame_are_refused():
    with pytest.raises(NotFinite, match="1 of 2 values missing"):
        Table.from_pandas(pd.DataFrame({"x": pd.array([1, None], dtype="Int64")}))
    with pytest.raises(NotFinite, match=r"Table\.from_frame\(frame, missing=\"drop\"\)"):
        Table.from_pandas(pd.DataFrame({"x": ["a", None]}))


def test_columns_and_schema_must_agree():
    with pytest.raises(SchemaInvalid, match=r"schema\.admit"):
        Table({"age": np.zeros(2)}, table().schema)


def test_representation_says_what_it_is():
    assert repr(with_test()) == "Table('table', 4 records, 3 columns, test=2 records)"


def test_at_most_so_many_records_are_drawn_in_their_order_and_of_the_test_table_too():
    whole = Table({"x": np.arange(50.0)}, Schema((Column("x", "number"),)))
    table = replace(whole, test=whole)
    drawn = table.drawn(20, seed=3)
    assert (len(drawn), len(drawn.test)) == (20, 20)
    assert (np.diff(drawn["x"]) > 0).all()
    assert not np.array_equal(drawn["x"], drawn.test["x"])
    assert np.array_equal(drawn["x"], table.drawn(20, seed=3)["x"])
    assert not np.array_equal(drawn["x"], table.drawn(20, seed=4)["x"])
    assert len(table.drawn(80, seed=3)) == 50
