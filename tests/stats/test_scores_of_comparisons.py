"""Comparisons are the numbers 0 and 1: sums of them count, differences are differences, and bounds hold."""

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.stats import expressions

SCHEMA = Schema(
    (Column("age", "integer", low=18, high=110), Column("bmi", "number", low=10, high=60), Column("smoker", "binary"))
)
AGE, BMI, SMOKER = np.array([80.0, 80, 30, 40]), np.array([35.0, 20, 35, 20]), np.array([1.0, 0, 1, 0])
COLUMNS = {"age": AGE, "bmi": BMI, "smoker": SMOKER}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("(age >= 75) + (bmi > 30) + (smoker == 1)", [3, 1, 2, 0]),
        ("(age >= 75) - (bmi > 30)", [0, 1, -1, 0]),
        ("-(age >= 75)", [-1, -1, 0, 0]),
        ("(1 < 2) + (2 < 3)", 2),
        ("exp(age >= 75)", np.exp([1.0, 1, 0, 0])),
        ("expm1(age >= 75)", np.expm1([1.0, 1, 0, 0])),
        ("log1p(smoker == 1)", np.log1p([1.0, 0, 1, 0])),
    ],
)
def test_a_comparison_is_a_number(text, wanted):
    found = expressions.evaluate(text, COLUMNS)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, wanted)
    low, high = expressions.interval(text, SCHEMA)
    assert low <= found.min()
    assert found.max() <= high


def test_a_score_counts_in_derived_columns_and_in_formulas():
    frame = pd.DataFrame({name: np.tile(values, 20) for name, values in COLUMNS.items()})
    score = np.tile([3.0, 1, 2, 0], 20)
    frame["y"] = 2 * score + 1
    table = Table.from_pandas(frame, declared={column.name: column for column in SCHEMA})
    text = "(age >= 75) + (bmi > 30) + (smoker == 1)"
    derived = hr.stats.derive(table, score=text)
    np.testing.assert_array_equal(derived["score"], score)
    federation = hr.simulate(derived, hr.data.iid(parties=2), seed=1)
    for formula in ("y ~ score", f"y ~ I({text})"):
        np.testing.assert_allclose(hr.stats.linear_regression(federation, formula).coef_, [1, 2], atol=1e-9)
