"""Columns that nobody declared: no question that promises protection reads what was read off the records."""

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import ColumnUndeclared

FRAME = pd.DataFrame(
    {
        "age": np.arange(20.0, 60.0),
        "sex": ["f", "m"] * 20,
        "ill": [0, 1, 1, 0] * 10,
        "seen": [True, False] * 20,
        "site": ["a", "b", "c", "d"] * 10,
    }
)
DECLARED = {"sex": {"levels": ["f", "m"]}, "ill": {"kind": "binary"}}


def parties(**declared):
    table = Table.from_frame(FRAME, declared={"age": {"range": [18, 90]}, **declared})
    return hr.simulate(table, hr.data.by_column("site"), seed=0)


def noisy(federation):
    return federation.protect(mechanism=hr.Gaussian(2.0)).within(hr.Budget(epsilon=50.0, delta=1e-5, unit="record"))


def test_columns_know_that_their_values_were_read_off_the_records():
    schema = Table.from_frame(FRAME, declared={"sex": {"levels": ["f", "m"]}}).schema
    assert [column.name for column in schema if column.inferred] == ["ill", "site"]  # numbers and booleans are of a type
    again = Schema.from_json(schema.to_json())
    assert again["site"].inferred
    assert again["site"] == Column("site", "category", levels=("a", "b", "c", "d"))  # which stations compare


def test_noise_refuses_what_records_declared_before_any_party_is_asked():
    with pytest.raises(ColumnUndeclared, match=r"(?s)sex \(2 levels\), ill \(binary\).*dictionary draft") as refused:
        hr.stats.logistic_regression(noisy(parties()), "ill ~ age + sex", rounds=2)
    assert not refused.value.asked


def test_the_weight_of_records_is_looked_at_too():
    table = Table.from_frame(FRAME, declared={"age": {"range": [18, 90]}}).with_roles(weight="ill")
    with pytest.raises(ColumnUndeclared, match="ill"):
        hr.last(hr.stats.moments(noisy(hr.simulate(table, hr.data.iid(parties=4))), columns=["age"]))


def test_what_is_declared_or_not_read_passes_and_so_does_what_promises_nothing():
    fit = hr.stats.logistic_regression(noisy(parties(**DECLARED)), "ill ~ age + sex", rounds=2)
    assert np.isfinite(fit.coef_).all()
    assert len(hr.stats.logistic_regression(parties(), "ill ~ age + sex").coef_) == 3
    hidden = parties().protect(aggregation=hr.SecAgg())
    assert len(hr.stats.logistic_regression(hidden, "ill ~ age + sex").coef_) == 3
