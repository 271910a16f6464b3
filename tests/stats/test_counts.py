"""Counts equal those of pooled records."""

import numpy as np
import pandas as pd
import pytest
from clinic import ENGINE_NAMES, ENGINES, clinic, federation

from hedgerow.errors import SchemaInvalid, SettingsInvalid
from hedgerow.stats import contingency, counts, histogram
from hedgerow.stats.counts import tally


def test_tally_adds_weights_by_code_and_party():
    codes, w = np.array([[0, 2, 2], [1, 1, 0]]), np.array([[1.0, 2, 3], [4, 0, 5]])
    np.testing.assert_array_equal(tally(codes, w, 3), [[1, 0, 5], [5, 4, 0]])


@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
def test_levels_are_counted(engine):
    found = counts(federation(engine=engine), ["stage", "smoker"])
    stage = clinic().to_pandas()["stage"].value_counts()
    assert found.loc[("stage", "II"), "count"] == stage["II"]
    assert found.loc[("smoker", "1"), "count"] == clinic()["smoker"].sum()
    np.testing.assert_allclose(found["share"].groupby(level="column").sum(), 1)


def test_one_name_is_a_list_of_one():
    assert counts(federation(), "stage").equals(counts(federation(), ["stage"]))


def test_levels_that_do_not_occur_count_zero():
    table = clinic().take(clinic()["stage"] < 2)
    assert counts(federation(table), ["stage"]).loc[("stage", "III"), "count"] == 0


def test_contingency_is_a_cross_table():
    frame = clinic().to_pandas()
    found = contingency(federation(), "stage", "arm")
    np.testing.assert_array_equal(found, pd.crosstab(frame["stage"], frame["arm"]))
    assert (list(found.index), list(found.columns)) == (["I", "II", "III"], ["placebo", "drug"])


@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
def test_histogram_is_that_of_numpy(engine):
    edges = [1, 3, 3.5, 7, 12]
    found = histogram(federation(engine=engine), "visits", edges)
    np.testing.assert_array_equal(found["count"], np.histogram(clinic()["visits"], edges)[0])


def test_numbers_have_no_levels():
    with pytest.raises(SchemaInvalid, match="'age' is of kind 'number'"):
        counts(federation(), ["age"])


@pytest.mark.parametrize("edges", [[1], [2, 1], [[1, 2]]])
def test_edges_must_rise(edges):
    with pytest.raises(SettingsInvalid, match="do not enclose"):
        histogram(federation(), "age", edges)
