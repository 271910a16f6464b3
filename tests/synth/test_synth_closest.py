"""Distances to the closest made-up record: by a naive loop, one record in one interval, and an attack that finds copies."""

from dataclasses import replace

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import Column, Schema
from hedgerow.errors import BudgetInvalid, SchemaInvalid, SettingsInvalid
from hedgerow.synth import Provenance, SyntheticTable, closest, nearer_share
from hedgerow.synth.closest import ENDS, distance_table, distances, grid_of_values, widths_of

SCHEMA = Schema(
    [
        Column("x", "number", low=0, high=10, optional=True),
        Column("k", "integer", low=0, high=20),
        Column("job", "category", levels=("a", "b", "c"), optional=True),
        Column("ill", "binary"),
    ]
)
WIDTHS = widths_of(SCHEMA, SCHEMA)


def people(n, seed):
    rng = np.random.default_rng(seed)
    x, job = rng.uniform(0, 10, n), rng.integers(-1, 3, n).astype(np.int16)
    x[rng.random(n) < 0.1] = np.nan
    return hr.data.Table(SCHEMA.admit({"x": x, "k": rng.integers(0, 21, n), "job": job, "ill": rng.integers(0, 2, n)}), SCHEMA)


TRAINING, HOLDOUT, FRESH = people(300, 0), people(300, 1), people(200, 2)


def parties(table=TRAINING):
    return hr.simulate(table, hr.data.iid(parties=3), seed=0)


def naive(a, b):
    """Distance of two records, by their columns."""
    total = 0.0
    for column in SCHEMA:
        u, v = (table.columns[column.name][0] for table in (a, b))
        lack = [bool(column.lacks(table.columns[column.name])[0]) for table in (a, b)]
        if any(lack):
            total += lack[0] != lack[1]
        elif column.kind in ("number", "integer"):
            total += abs(u - v) / (column.high - column.low)
        else:
            total += u != v
    return total / len(SCHEMA)


def test_distances_are_those_of_a_naive_loop():
    some, made = TRAINING.take(range(25)), FRESH.take(range(30))
    found = distances(grid_of_values(some, WIDTHS), grid_of_values(made, WIDTHS), [w for _, w in WIDTHS])
    wanted = [min(naive(some.take([i]), made.take([j])) for j in range(30)) for i in range(25)]
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_a_distance_follows_from_its_own_record_to_the_last_bit():
    X, Z, widths = grid_of_values(TRAINING, WIDTHS), grid_of_values(FRESH, WIDTHS), [w for _, w in WIDTHS]
    together = distances(X, Z, widths)
    assert all(distances(X[i : i + 1], Z, widths)[0] == together[i] for i in range(0, 300, 7))


def test_sums_of_parties_count_what_is_at_hand():
    found = closest(parties(), FRESH, HOLDOUT)
    assert np.array_equal(found.members, distance_table(TRAINING, FRESH, WIDTHS, ENDS))
    assert found.members.sum() == 300
    assert np.array_equal(closest(parties(), FRESH, parties(HOLDOUT)).others, found.others)
    assert found.to_frame().shape == (len(ENDS), 3)


def test_copies_are_found_and_fresh_records_are_not():
    copied = closest(parties(), TRAINING.take(range(0, 300, 2)), HOLDOUT)
    assert copied.members[0] >= 150  # at distance zero
    assert copied.area > 0.7
    assert copied.advantage > 0.45
    fresh = closest(parties(), FRESH, HOLDOUT)
    assert abs(fresh.area - 0.5) < 0.08  # five standard errors are .12 of 300 and 300
    assert nearer_share(TRAINING.take(range(50)), TRAINING, HOLDOUT) == pytest.approx(1, abs=0.03)
    assert abs(nearer_share(FRESH, TRAINING, HOLDOUT) - 0.5) < 0.15
    assert copied.quantile(0.4)[0] == 0


def moved(count, other):
    """The largest l1 by which leaving one record out moves counts."""
    whole = count(TRAINING.take(range(40)), other)
    return max(np.abs(whole - count(TRAINING.take([i for i in range(40) if i != left]), other)).sum() for left in range(40))


def test_a_record_lies_in_one_interval():
    assert moved(lambda real, made: distance_table(real, made, WIDTHS, ENDS), FRESH.take(range(30))) == 1


def test_counting_made_up_records_by_their_closest_real_one_is_caught():
    """The twin that asks the question the other way round: one real record is the closest of several made-up ones."""

    def converse(real, made):
        return distance_table(made, real, WIDTHS, ENDS)

    assert moved(converse, FRESH) > 1


def test_it_is_charged_and_refused_like_any_release():
    federation, others = parties(), parties(HOLDOUT)
    found = closest(federation, FRESH, others, epsilon=1.0, delta=1e-5)
    for ledger in (federation.ledger, others.ledger):
        assert len(ledger) == 1
        assert ledger.epsilon(delta=1e-5, unit="record") == pytest.approx(1.0, abs=1e-6)
    assert found.sigma_members == found.sigma_others > 0
    pure = parties()
    closest(pure, FRESH, HOLDOUT, epsilon=1.0)
    assert pure.ledger.epsilon(delta=0.0, unit="record") == pytest.approx(1.0, abs=1e-6)
    promised = SyntheticTable(FRESH.columns, SCHEMA, provenance=Provenance("tan", 1.0, 1e-5))
    with pytest.raises(BudgetInvalid):
        closest(parties(), promised, HOLDOUT)


@pytest.mark.parametrize("ends", [(), (0.5,), (0.5, 0.2, 1), (-1, 1), (0.5, 0.5, 1)])
def test_ends_that_are_no_intervals_are_refused(ends):
    with pytest.raises(SettingsInvalid):
        closest(parties(), FRESH, HOLDOUT, ends=ends)


def test_what_has_no_distance_is_refused():
    with pytest.raises(SettingsInvalid):
        closest(parties(), FRESH.take([]), HOLDOUT)
    open_ended = Schema([replace(SCHEMA["k"], high=None)])
    table = hr.data.Table({"k": TRAINING["k"]}, open_ended)
    with pytest.raises(SettingsInvalid, match="range"):
        nearer_share(table, table, table)


def test_a_chart_shows_both_kinds_of_records():
    chart = closest(parties(), TRAINING.take(range(0, 300, 2)), HOLDOUT).chart()
    assert len(chart.ends) == len(chart.bars[0][1]) + 1
    assert all(sum(values) == pytest.approx(1, abs=0.01) for _, values in chart.bars)
    assert "Identical to a made-up record: 50.0 % of training records and 0.0 % of hold-out records" in chart.note


def test_levels_in_another_order_are_refused_not_compared():
    turned = SCHEMA.replace(replace(SCHEMA["job"], levels=("c", "b", "a")))
    codes = np.where(TRAINING["job"] >= 0, 2 - TRAINING["job"], -1).astype(np.int16)
    same = hr.data.Table({**TRAINING.columns, "job": codes}, turned)  # the same records
    for ask in (
        lambda: closest(parties(), same, HOLDOUT),
        lambda: closest(parties(), FRESH, same),
        lambda: nearer_share(same, TRAINING, HOLDOUT),
        lambda: nearer_share(FRESH, TRAINING, same),
    ):
        with pytest.raises(SchemaInvalid, match="'job' of the"):
            ask()
    with pytest.raises(SettingsInvalid, match="no hold-out records"):
        closest(parties(), FRESH, HOLDOUT.take([]))
