"""Columns that lie apart: who holds what, whom, in which order; associations against SciPy."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.crypto.psi import KKRT
from hedgerow.data import Table, columns_by_correlation, columns_by_importance, columns_by_name, load
from hedgerow.data.association import associations
from hedgerow.data.columns_apart import between, people_apart
from hedgerow.data.entry import category, declare, integer, number
from hedgerow.errors import MissingColumn, PartitionInvalid

DATA = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[2].parent / "shared" / "data")

HEART = load("heart_failure")
FEATURES = set(HEART.schema.features)


def table_of(n=60, **columns):
    rng = np.random.default_rng(5)
    z = rng.standard_normal(n)
    found = {
        "number": np.arange(n) + 1000,
        "a": z,
        "twin_of_a": z + 0.1 * rng.standard_normal(n),
        "b": (w := rng.standard_normal(n)),
        "twin_of_b": w + 0.1 * rng.standard_normal(n),
        "y": 2 * z + rng.standard_normal(n),
        "picture": rng.integers(0, 9, (n, 4, 6)),
    }
    schema = declare(
        integer("number", 0, 10_000, role="id"),
        *(number(name, -20, 20) for name in ("a", "twin_of_a", "b", "twin_of_b")),
        number("y", -20, 20, role="target"),
        integer("picture", 0, 9, shape=(4, 6), role="ignore"),
    )
    return Table(schema.admit(found), schema)


# ---- who holds whom -------------------------------------------------------------------------------------------------
@given(st.integers(1, 200), st.integers(2, 5), st.floats(0.01, 1), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_a_share_of_the_people_is_at_all_parties_and_each_other_one_at_one(n, k, overlap, seed):
    held = people_apart(np.arange(n), [f"p{i}" for i in range(k)], overlap, np.random.default_rng(seed))
    times = np.bincount(np.concatenate(list(held.values())), minlength=n)
    assert set(times) <= {1, k}
    assert (times == k).sum() == round(overlap * n)
    assert all(len(set(people)) == len(people) for people in held.values())


def test_records_keep_together_and_stand_in_other_orders():
    table = table_of()
    held = columns_by_name({"tax": ["a", "y"], "town": ["b"]}, on="number", overlap=0.8)(table, seed=1)
    assert {name: one.schema.names for name, one in held.items()} == {"tax": ("number", "a", "y"), "town": ("number", "b")}
    for one in held.values():
        at = one["number"].astype(int) - 1000
        assert len(at) == 48 + 6
        assert (np.diff(at) < 0).any()
        assert all((one[name] == table[name][at]).all() for name in one.schema.names)
    assert held["tax"].name == "tax"
    assert held["tax"].schema["number"].role == "id"
    assert held["tax"].schema.target == "y"
    common = np.intersect1d(held["tax"]["number"], held["town"]["number"])
    assert len(common) == 48
    assert list(held["tax"]["number"]) != list(held["town"]["number"])


def test_a_seed_gives_the_same_tables_and_another_others():
    scheme = columns_by_name({"clinic": ["age"], "laboratory": ["platelets"]}, overlap=0.5)
    first, same, other = (scheme(HEART, seed)["clinic"] for seed in (3, 3, 4))
    assert (first["id"] == same["id"]).all()
    assert (first["age"] == same["age"]).all()
    assert not (first["id"] == other["id"]).all()


def test_ids_are_made_up_where_there_are_none():
    held = columns_by_name({"clinic": ["age", "sex"], "laboratory": ["platelets"]}, on="nin", overlap=0.9)(HEART, seed=0)
    ids = {name: one["nin"] for name, one in held.items()}
    assert all(len(set(one)) == len(one) == 284 for one in ids.values())
    assert len(set(ids["clinic"]) & set(ids["laboratory"])) == 269
    assert all((one == np.rint(one)).all() and one.max() < 2**52 for one in ids.values())
    joined = dict(zip(ids["clinic"], held["clinic"]["age"], strict=True))
    pooled = {(a, p) for a, p in zip(HEART["age"], HEART["platelets"], strict=True)}
    pairs = [(joined[i], p) for i, p in zip(ids["laboratory"], held["laboratory"]["platelets"], strict=True) if i in joined]
    assert len(pairs) == 269
    assert set(pairs) <= pooled


def test_parts_of_a_column_of_arrays_lie_apart():
    table = table_of()
    held = columns_by_name({"left": ["picture[:, 0:3]"], "right": ["picture[:,3:]", "y"]}, on="number")(table, seed=0)
    left, right = held["left"], held["right"]
    assert left.schema["picture[:, 0:3]"].shape == (4, 3)
    order = np.argsort(left["number"]), np.argsort(right["number"])
    whole = np.concatenate([left["picture[:, 0:3]"][order[0]], right["picture[:,3:]"][order[1]]], axis=2)
    assert (whole == table["picture"]).all()


@pytest.mark.parametrize(
    ("columns", "error", "said"),
    [
        ({"a": ["a"], "b": ["wages"]}, MissingColumn, "wages"),
        ({"a": ["a"], "b": ["picture[9:9]"]}, PartitionInvalid, "nothing is in it"),
        ({"a": ["a"], "b": ["picture[:, :, 0]"]}, PartitionInvalid, "2 axes, and 3"),
        ({"a": ["a"], "b": ["number"]}, PartitionInvalid, "gives 'b' no column"),
        ({"a": ["a"]}, PartitionInvalid, "makes 1 party"),
    ],
)
def test_columns_that_cannot_lie_so_are_refused(columns, error, said):
    with pytest.raises(error, match=said):
        columns_by_name(columns, on="number")(table_of(), seed=0)


@pytest.mark.parametrize("overlap", [0, -0.1, 1.01, float("nan")])
def test_an_overlap_is_a_share(overlap):
    with pytest.raises(PartitionInvalid, match="overlap"):
        columns_by_name({"a": ["a"], "b": ["b"]}, overlap=overlap)(table_of(), seed=0)


# ---- by importance --------------------------------------------------------------------------------------------------
def shares(held, table=HEART):
    """Each party's share of the association with the target."""
    features, target = table.schema.features, table.schema.target
    found = dict(zip(features, associations(table.select([*features, target]))[:-1, -1], strict=True))
    sums = np.array([sum(found[name] for name in one.schema.names if name in found) for one in held.values()])
    return sums / sums.sum()


def test_every_feature_is_at_one_party_and_the_target_at_the_one_named():
    for scheme in (columns_by_importance(3, alpha=0.3, label="party 2"), columns_by_correlation(3, 0.5, label="party 2")):
        held = scheme(HEART, seed=1)
        names = [name for one in held.values() for name in one.schema.names if name != "id"]
        assert sorted(names) == sorted([*FEATURES, "death_event"])
        assert [one.schema.target for one in held.values()] == [None, "death_event", None]


def test_importance_is_even_for_a_large_alpha_and_uneven_for_a_small_one():
    even = np.mean([shares(columns_by_importance(("a", "b"), alpha=1000)(HEART, seed)).max() for seed in range(10)])
    uneven = np.mean([shares(columns_by_importance(("a", "b"), alpha=0.1)(HEART, seed)).max() for seed in range(10)])
    assert even < 0.55
    assert uneven > 0.8


# ---- by correlation -------------------------------------------------------------------------------------------------
def test_twins_lie_together_or_apart():
    table = table_of()

    def together(correlated):
        held = columns_by_correlation(("one", "two"), correlated, on="number")(table, seed=2)
        features = [set(one.schema.names) - {"number", "y"} for one in held.values()]
        return sorted(map(sorted, features)) == [["a", "twin_of_a"], ["b", "twin_of_b"]]

    assert together(0.0)
    assert not together(1.0)


def test_correlation_between_parties_rises_with_the_setting():
    features = list(HEART.schema.features)
    related = associations(HEART.select(features))

    def reached(correlated):
        held = columns_by_correlation(2, correlated)(HEART, seed=0)
        first = set(next(iter(held.values())).schema.names)
        return between(np.array([name in first for name in features]), related)

    low, middle, high = map(reached, (0.0, 0.5, 1.0))
    assert low < middle < high
    assert abs(middle - (low + high) / 2) < 0.1 * (high - low)


@pytest.mark.parametrize(
    ("scheme", "said"),
    [
        (columns_by_importance(2, alpha=0), "alpha"),
        (columns_by_correlation(2, correlated=1.5), "correlated"),
        (columns_by_importance(1, alpha=1), "two parties"),
        (columns_by_importance(5, alpha=1), "4 features"),
        (columns_by_importance(("a", "a"), alpha=1), "two parties"),
        (columns_by_correlation(("a", "b"), 0.5, label="c"), "none of the parties"),
    ],
)
def test_settings_that_make_no_sense_are_refused(scheme, said):
    with pytest.raises(PartitionInvalid, match=said):
        scheme(table_of(), seed=0)


# ---- associations ---------------------------------------------------------------------------------------------------
def test_associations_are_those_of_scipy():
    rng = np.random.default_rng(1)
    x = rng.standard_normal(300)
    group = np.array(["a", "b", "c"])[(x + rng.standard_normal(300) > 0).astype(int) + (x > 1)]
    kind = np.array(["u", "v"])[(rng.random(300) < 0.3 + 0.4 * (group == "a")).astype(int)]
    schema = declare(
        number("x", -9, 9), number("z", -99, 99), category("group", "a b c"), category("kind", "u v"), number("flat", 0, 9)
    )
    table = Table(
        schema.admit({"x": x, "z": 3 - 2 * x + rng.standard_normal(300), "group": group, "kind": kind, "flat": np.ones(300)}),
        schema,
    )
    found = associations(table)
    assert found[0, 1] == pytest.approx(abs(scipy.stats.pearsonr(table["x"], table["z"])[0]), rel=1e-12)
    between_groups = sum((group == g).sum() * (x[group == g].mean() - x.mean()) ** 2 for g in "abc")
    assert found[0, 2] == pytest.approx((between_groups / (x - x.mean()).__pow__(2).sum()) ** 0.5, rel=1e-12)
    counts = scipy.stats.contingency.crosstab(group, kind).count
    assert found[2, 3] == pytest.approx(scipy.stats.contingency.association(counts, method="cramer"), rel=1e-12)
    assert np.diag(found)[:4] == pytest.approx(np.ones(4), rel=1e-9)
    assert not found[4].any()


@pytest.mark.slow
def test_a_simulation_takes_a_partition_of_columns():
    scheme = columns_by_name({"clinic": ["age"], "laboratory": ["platelets"]}, on="nin", overlap=0.5)
    federation = hr.simulate(HEART, scheme, seed=3)
    assert federation.names == ("clinic", "laboratory")
    assert federation.align(on="nin", by=KKRT()).n == round(0.5 * 299)


# ---- real data ------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="set HEDGEROW_DATA to the folder of public data sets")
def test_cardio_without_impossible_pressures_has_the_records_of_the_note():
    table = load("cardio_plausible", data_dir=DATA)
    assert len(table) == 68_754
    assert (table["ap_hi"].min(), table["ap_hi"].max()) == (70, 240)
    held = columns_by_name({"clinic": ["age", "gender"], "laboratory": ["ap_hi", "cardio"]}, overlap=0.9)(table, seed=0)
    assert len(np.intersect1d(held["clinic"]["id"], held["laboratory"]["id"])) == round(0.9 * 68_754)
