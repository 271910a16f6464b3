"""One column: declarations, admission, synthetic values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from hedgerow.data import Column
from hedgerow.errors import NotFinite, OutOfRange, SchemaInvalid

AGE = Column("age", "number", low=18, high=90, unit="years")
REGION = Column("region", "category", levels=("north", "south"))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"kind": "nummer"}, "Did you mean 'number'"),
        ({"kind": "number", "role": "targett"}, "Did you mean 'target'"),
        ({"kind": "number", "low": 2, "high": 1}, r"\[2, 1\]"),
        ({"kind": "number", "low": float("nan")}, "finite ends"),
        ({"kind": "number", "low": "two"}, "finite ends"),
        ({"kind": "integer", "low": 0.5}, "Give whole ends"),
        ({"kind": "number", "levels": ("a",)}, "declares levels"),
        ({"kind": "binary", "low": 0}, "declares a range"),
        ({"kind": "category"}, "declares no levels"),
        ({"kind": "category", "levels": ("a", "a")}, "different strings"),
        ({"kind": "category", "levels": "ab"}, "tuple"),
        ({"kind": "number", "shape": (0,)}, "at least 1"),
    ],
)
def test_contradictory_declarations_are_refused(settings, says):
    with pytest.raises(SchemaInvalid, match=says):
        Column("x", **settings)


def test_scalars_become_float64_and_words_become_codes():
    assert AGE.admit([20, 30]).dtype == np.float64
    codes = REGION.admit(["south", "north", "south"])
    assert codes.dtype == np.int16
    assert_array_equal(codes, [1, 0, 1])


def test_codes_are_taken_as_they_are():
    assert_array_equal(REGION.admit(REGION.admit(["south", "north"])), [1, 0])


@pytest.mark.parametrize("values", [[1, 2], [1.0, 2.0], ["1", "2"], np.array([1, 2], np.uint8)])
def test_a_level_may_be_spelt_as_a_number(values):
    assert_array_equal(Column("sex", "category", levels=("1", "2")).admit(values), [0, 1])


@pytest.mark.parametrize(
    ("kind", "dtype", "kept"),
    [("number", "f4", "f4"), ("number", "u1", "u1"), ("number", "f8", "f8"), ("number", "i4", "f8"), ("integer", "u1", "u1")],
)
def test_arrays_keep_compact_types(kind, dtype, kept):
    assert Column("image", kind, shape=(2, 2)).admit(np.ones((3, 2, 2), dtype)).dtype == np.dtype(kept)


@pytest.mark.parametrize(
    ("column", "values", "error", "says"),
    [
        (AGE, [20, np.nan, np.inf], NotFinite, "2 of 3 values missing or infinite"),
        (AGE, [20, 17, 91], OutOfRange, r"2 of 3 values outside its declared range \[18, 90\] years.*17 to 91"),
        (AGE, ["twenty"], SchemaInvalid, "'age' is declared number and holds"),
        (AGE, np.array(["2020-01-01"], "M8[D]"), SchemaInvalid, "datetime64"),
        (AGE, [[20.0, 30.0]], SchemaInvalid, r"shape \(2,\), declared is \(\)"),
        (AGE, 20.0, SchemaInvalid, "shape"),
        (Column("k", "integer"), [1, 1.5], OutOfRange, "1 of 2 values not whole"),
        (Column("b", "binary"), [0, 1, 2], OutOfRange, "1 of 3 values neither 0 nor 1"),
        (REGION, ["north", "sout"], OutOfRange, "'sout'"),
        (REGION, ["north", None, np.nan], NotFinite, "2 of 3 values missing"),
        (REGION, np.array([0, 2], np.int16), OutOfRange, "not among its levels"),
    ],
)
def test_wrong_values_are_refused_with_count_and_remedy(column, values, error, says):
    with pytest.raises(error, match=says) as refusal:
        column.admit(values)
    assert refusal.value.remedy
    assert column.name in refusal.value.reason


def test_a_misspelt_level_gets_a_suggestion():
    with pytest.raises(OutOfRange, match="Did you mean 'south'"):
        REGION.admit(["sout"])


def test_clip_moves_values_to_the_range_and_keeps_the_type():
    column = Column("image", "integer", low=0, high=16, shape=(2,), clip=True)
    values = column.admit(np.array([[3, 200]], np.uint8))
    assert values.dtype == np.uint8
    assert_array_equal(values, [[3, 16]])


def test_clip_does_not_hide_missing_values():
    with pytest.raises(NotFinite):
        Column("x", "number", low=0, high=1, clip=True).admit([np.nan])


@pytest.mark.parametrize(
    ("column", "absolute"),
    [
        (AGE, 90),
        (Column("x", "number", low=-5, high=3), 5),
        (Column("x", "number", low=-5), None),
        (Column("b", "binary"), 1),
        (REGION, None),
    ],
)
def test_absolute_is_known_only_for_closed_ranges(column, absolute):
    assert column.absolute == absolute


ends = st.one_of(st.none(), st.integers(-50, 50))


@st.composite
def columns(draw):
    kind = draw(st.sampled_from(["number", "integer", "binary", "category"]))
    shape = draw(st.sampled_from([(), (2,), (2, 3)]))
    if kind == "category":
        return Column(
            "c", kind, levels=tuple(draw(st.lists(st.text("abé ?1", max_size=3), min_size=1, max_size=4, unique=True)))
        )
    if kind == "binary":
        return Column("b", kind, shape=shape, role=draw(st.sampled_from(["feature", "target"])))
    low, high = draw(ends), draw(ends)
    if low is not None and high is not None:
        low, high = sorted((low, high))
    return Column("x", kind, low=low, high=high, shape=shape, clip=draw(st.booleans()), unit=draw(st.sampled_from(["", "m"])))


@given(columns(), st.integers(0, 2**32))
def test_synthetic_values_are_admitted_unchanged(column, seed):
    values = column.synthetic(7, np.random.default_rng(seed))
    admitted = column.admit(values)
    assert admitted.dtype == values.dtype
    assert_array_equal(admitted, values)


@given(columns())
def test_json_round_trip(column):
    assert Column.from_json(column.to_json()) == column


@pytest.mark.parametrize(
    ("values", "says"), [({"name": "x"}, "at least"), ({"name": "x", "kind": "number", "lo": 1}, "Did you mean 'low'")]
)
def test_json_with_wrong_keys_is_refused(values, says):
    with pytest.raises(SchemaInvalid, match=says):
        Column.from_json(values)
