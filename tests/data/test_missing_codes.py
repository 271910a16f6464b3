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
        [0, 1, 2, 999],  # too few to tell
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
