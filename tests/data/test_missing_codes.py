"""A code for missing values that nobody declared is said."""

from __future__ import annotations

import warnings

import pytest

from hedgerow.data import read
from hedgerow.data.missing_codes import codes_in
from hedgerow.errors import HedgerowWarning

EJECTION = [14, 20, 25, 30, 35, 38, 40, 45, 60, 80]


def written(folder, *values):
    path = folder / "a.csv"
    path.write_text("ef\n" + "\n".join(map(str, values)) + "\n")
    return path


@pytest.mark.parametrize("code", [999, 9999, 888, -9, -99])
def test_a_code_far_outside_is_said_with_what_to_declare(tmp_path, code):
    path = written(tmp_path, *EJECTION, code, code)
    told = rf"column 'ef' has 2 of 12 values {code}, far outside[\s\S]*na_values = \[{code}\][\s\S]*declare its range"
    with pytest.warns(HedgerowWarning, match=told):
        read(path)
    with pytest.warns(HedgerowWarning, match="far outside"):
        read(path, declared={"ef": {"kind": "integer"}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(path, declared={"ef": {"na_values": [code]}}, missing="drop")
        read(path, declared={"ef": {"range": [-10_000, 10_000]}})
        read(path, declared={"ef": {"role": "ignore"}})


@pytest.mark.parametrize(
    "values",
    [
        [*EJECTION, 99],  # within twice the span of the others
        [*range(900, 1100), 999],
        [-20, -3, 0, 5, 8, 12, -9],
        [*range(12), 9],
        [1, 2, 4, 8],
        [0, 1, 9, 9, 15, 30, 40],
        [*EJECTION, 1234],
        EJECTION,
    ],
)
def test_what_may_be_a_value_is_not_said(tmp_path, values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(written(tmp_path, *values))


def test_missing_values_are_no_codes():
    import numpy as np

    assert codes_in(np.array([*EJECTION, np.nan, np.inf, -np.inf, 999.0])) == [(999.0, 1)]
    assert codes_in(np.array([])) == []


@pytest.mark.parametrize(
    ("values", "code"),
    [([0, 1, 0, 1, 9], 9), ([0, 1, 2, 3, 9], 9), ([0, 1, 2, 999], 999), ([*EJECTION, 998], 998), ([*EJECTION, -7, 97], -7)],
)
def test_a_code_beside_a_scale_or_another_code_is_said(tmp_path, values, code):
    with pytest.warns(HedgerowWarning, match=f"values {code}, far outside"):
        read(written(tmp_path, *values))


def test_a_declared_end_is_that_of_its_side_alone(tmp_path):
    path = written(tmp_path, *EJECTION, 999)
    with pytest.warns(HedgerowWarning, match="values 999"):
        read(path, declared={"ef": {"kind": "number", "low": 0}})


@pytest.mark.parametrize(("values", "code"), [(["a", "b", "-9", "b"], "-9"), ([0, 1, 2, 0, 999], "999")])
def test_a_code_among_levels_is_said(tmp_path, values, code):
    with pytest.warns(HedgerowWarning, match=rf"level '{code}' of column 'ef'[\s\S]*na_values = \[{code}\]"):
        read(written(tmp_path, *values), declared={"ef": {"kind": "category"}})
