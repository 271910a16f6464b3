"""Bins: cut points from declarations, and what cannot be binned."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hedgerow.core import l2
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import MissingColumn, SchemaInvalid, SettingsInvalid
from hedgerow.trees import Bins, binned

TARGET = Column("y", "binary", role="target")


def bins_of(*features: Column, n_bins: int = 4) -> Bins:
    return Bins.of(Schema((*features, TARGET)), n_bins=n_bins)


def test_numbers_get_bins_of_equal_width():
    assert bins_of(Column("x", "number", low=0, high=8)).cuts == ((2.0, 4.0, 6.0),)


def test_integers_of_few_values_get_a_bin_each():
    assert bins_of(Column("x", "integer", low=1, high=4)).cuts == ((1.5, 2.5, 3.5),)
    assert bins_of(Column("x", "integer", low=0, high=8)).cuts == ((2.0, 4.0, 6.0),)


def test_levels_get_a_bin_each():
    assert bins_of(Column("x", "category", levels=("a", "b", "c")), Column("z", "binary")).cuts == ((0.5, 1.5), (0.5,))


def test_a_feature_of_one_value_has_one_bin():
    bins = bins_of(Column("x", "category", levels=("only",)), Column("k", "integer", low=3, high=3))
    assert bins.sizes == (1, 1)


@given(x=st.lists(st.floats(-5, 7), min_size=1, max_size=30), n_bins=st.integers(2, 50))
def test_a_bin_holds_the_values_up_to_its_cut(x, n_bins):
    bins = bins_of(Column("x", "number", low=-5, high=7), n_bins=n_bins)
    number = bins.number({"x": np.array(x)})[:, 0]
    for threshold, cut in enumerate(bins.cuts[0]):
        assert_array_equal(number <= threshold, np.array(x) <= cut)
    assert number.max() < n_bins


def test_bins_are_hashable_and_equal_by_value(table):
    assert hash(Bins.of(table.schema)) == hash(Bins.of(table.schema))


def test_preparation_is_made_record_by_record(table):
    bins = Bins.of(table.schema, target="days")
    whole, part = binned(table.columns, bins=bins), binned(table.take(slice(7, 30)).columns, bins=bins)
    assert whole["bins"].dtype == np.int16
    for name in ("bins", "target"):
        assert_array_equal(whole[name][7:30], part[name])


def test_regression_targets_are_scaled_to_one_and_clipped(table):
    days = np.array([-30.0, 15.0, 60.0, 70.0])
    columns = table.take(slice(4)).columns | {"days": days}
    assert_allclose(binned(columns, bins=Bins.of(table.schema, target="days"))["target"], [-1, 0, 1, 1])


def test_bound_follows_features_target_and_weights(table, weighted_schema):
    assert Bins.of(table.schema).bound == l2(math.sqrt(5), "record")
    assert Bins.of(table.schema, target="days").bound == l2(math.sqrt(10), "record")
    assert Bins.of(weighted_schema).bound == l2(10 * math.sqrt(4), "record")
    assert Bins.of(table.schema.replace(replace(table.schema["days"], low=None)), target="days").bound is None


def test_a_feature_without_a_declared_range_is_refused(table):
    schema = table.schema.replace(replace(table.schema["age"], low=None))
    with pytest.raises(SchemaInvalid, match=r"1 features declare no range.*age") as refusal:
        Bins.of(schema)
    assert "table.declare(age=(low, high))" in str(refusal.value)


def test_an_array_for_each_record_is_refused():
    with pytest.raises(SchemaInvalid, match=r"\['image'\] hold an array"):
        bins_of(Column("image", "number", shape=(8, 8), low=0, high=16))


@pytest.mark.parametrize("n_bins", [1, 2**15 + 1])
def test_too_few_or_too_many_bins_are_refused(table, n_bins):
    with pytest.raises(SettingsInvalid, match=f"n_bins={n_bins}"):
        Bins.of(table.schema, n_bins=n_bins)


def test_target_and_features_are_needed(table):
    with pytest.raises(SchemaInvalid, match="target None"):
        Bins.of(Schema((Column("x", "binary"),)))
    with pytest.raises(SchemaInvalid, match="0 features"):
        Bins.of(table.schema, features=[])
    with pytest.raises(MissingColumn, match="agee"):
        Bins.of(table.schema, features=["agee"])


def test_a_table_declares_what_a_frame_does_not(table):
    undeclared = Table.from_pandas(table.to_pandas(), target="ill").select(["age", "smoker", "ill"])
    assert Bins.of(undeclared.declare(age=(18, 90)).schema).sizes == (32, 2)
