"""Knots and indicators choose records, which a station counts."""

import numpy as np
import pytest

from hedgerow.data import Column, Schema
from hedgerow.stats.design import Design
from hedgerow.stats.selecting import few_chosen

SCHEMA = Schema(
    (
        Column("age", "number", low=18, high=110),
        Column("ill", "binary", role="target"),
        Column("dose", "number", low=0, high=10, optional=True),
    )
)


@pytest.mark.parametrize("term", ["bs(age, knots=[30, 90])", "bs(age, knots=[90], degree=1)"])
def test_a_knot_with_few_records_beyond_it_is_seen(term):
    """Two of fifty-two records lie above 90: a spline that bends there would be about them."""
    terms = Design.of(f"ill ~ {term}", SCHEMA).terms
    crowded = {"age": np.append(np.linspace(20, 80, 50), [100.0, 101.0])}
    assert few_chosen(terms, crowded, np.ones(52), 5)
    assert not few_chosen(terms, {"age": np.linspace(18, 110, 200)}, np.ones(200), 5)


def test_an_indicator_of_few_records_is_seen():
    terms = Design.of("ill ~ missing(dose)", SCHEMA).terms
    dose = np.linspace(0, 10, 60)
    few, many = ({"dose": np.where(np.arange(60) < n, np.nan, dose)} for n in (2, 20))
    assert few_chosen(terms, few, np.ones(60), 5)
    assert not few_chosen(terms, many, np.ones(60), 5)
