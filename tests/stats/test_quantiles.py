"""Quantiles by bisection equal those of pooled records to the tolerance."""

import numpy as np
import pytest
from clinic import clinic, federation
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import Gaussian
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import SchemaInvalid, SettingsInvalid
from hedgerow.stats import bisection, quantiles

Q = [0.0, 0.1, 0.25, 0.5, 0.9, 1.0]


def test_quantiles_are_those_of_the_pooled_records():
    found = quantiles(federation(), "dose", Q, tol=1e-6)
    np.testing.assert_allclose(found, np.quantile(clinic()["dose"], Q, method="inverted_cdf"), atol=1e-6)
    assert list(found.index) == Q


def test_quantiles_of_integers_are_exact():
    found = quantiles(federation(), "visits", Q, tol=0.5)
    np.testing.assert_array_equal(found, np.quantile(clinic()["visits"], Q, method="inverted_cdf"))


def test_weights_count_as_repeated_records():
    table = clinic().with_roles(weight="copies")
    repeated = np.repeat(table["dose"], table["copies"].astype(int))
    np.testing.assert_allclose(
        quantiles(federation(table), "dose", Q), np.quantile(repeated, Q, method="inverted_cdf"), atol=1e-4
    )


@settings(deadline=None, max_examples=40)
@given(values=st.lists(st.sampled_from([0.0, 0.25, 1.0, 2.0, 3.0]), min_size=1, max_size=12), q=st.floats(0.01, 1))
def test_the_quantile_is_the_least_value_that_enough_records_reach(values, q):
    table = Table({"x": np.array(values)}, Schema((Column("x", "number", low=0, high=3),)))
    found = quantiles(federation(table, n_parties=1), "x", [q])[q]
    least = min(x for x in values if np.mean(np.array(values) <= x) >= q * (1 - 1e-12))
    assert abs(found - least) <= 3 / 2**20


def test_a_round_halves_every_interval():
    states = list(bisection(federation(), "dose", [0.2, 0.8], tol=0.1))
    widths = [state.high - state.low for state in states]
    np.testing.assert_allclose(widths[1], widths[0] / 2)
    assert len(states) == 7
    assert states[-1].n == 300


def test_a_resumed_bisection_ends_at_the_same_interval():
    *_, end = bisection(federation(), "dose", [0.5])
    third = [*bisection(federation(), "dose", [0.5])][2]
    *_, resumed = bisection(federation(), "dose", [0.5], start=third)
    assert (resumed.low, resumed.high, resumed.round) == (end.low, end.high, end.round)


def test_a_column_without_range_takes_a_given_one():
    np.testing.assert_allclose(
        quantiles(federation(), "open", [0.5], low=-10, high=10),
        np.quantile(clinic()["open"], 0.5, method="inverted_cdf"),
        atol=1e-4,
    )


def test_noise_leaves_quantiles_near():
    protected = federation(clinic(3000)).protect(mechanism=Gaussian(1.0))
    found = quantiles(protected, "dose", [0.25, 0.75], tol=0.1)
    np.testing.assert_allclose(found, np.quantile(clinic(3000)["dose"], [0.25, 0.75]), atol=0.3)


@pytest.mark.parametrize(
    ("column", "settings", "error", "match"),
    [
        ("open", {}, SchemaInvalid, r"needs both ends"),
        ("open", {"low": 2, "high": 1}, SettingsInvalid, "not an interval"),
        ("age", {"q": [1.5]}, SettingsInvalid, r"\[1.5\]"),
        ("age", {"tol": 0}, SettingsInvalid, "tol=0"),
    ],
)
def test_what_cannot_be_bisected_is_refused_before_any_party_is_asked(column, settings, error, match):
    fed = federation()
    with pytest.raises(error, match=match):
        quantiles(fed, column, **settings)
    assert len(fed.ledger) == 0
