"""Raking: tables of all pairs, conditions in law, selections that are fair, and what Adult's made-up records are good for."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.synth import Conditions, TreeSynthesizer, class_trees, spanning_tree, tan
from hedgerow.synth.descent import drawn, passed
from hedgerow.synth.fitting import fitted, to_arrays
from hedgerow.synth.raking import CAP, Potentials, selected
from hedgerow.synth.tables import pairs, singles
from hedgerow.synth.tan import drawn_from, shown
from hedgerow.synth.tree import ColumnTree

DATA = Path(os.environ.get("HEDGEROW_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
SCHEMA = Schema(tuple(Column(name, "category", levels=("x", "y", "z")) for name in "abcd"))


def looped(n: int) -> Table:
    """Four columns in a ring: no tree has all of its four edges."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, n)
    b, d = (np.where(rng.random(n) < 0.6, a, rng.integers(0, 3, n)) for _ in range(2))
    c = np.where(rng.random(n) < 0.5, b, np.where(rng.random(n) < 0.8, d, rng.integers(0, 3, n)))
    return Table({name: column.astype(np.int16) for name, column in zip("abcd", (a, b, c, d), strict=True)}, SCHEMA)


def table_of(codes: np.ndarray, i: int, j: int) -> np.ndarray:
    return np.bincount(3 * codes[:, i] + codes[:, j], minlength=9) / len(codes)


@pytest.fixture(scope="module")
def ring() -> tuple[np.ndarray, TreeSynthesizer, TreeSynthesizer]:
    table = looped(5000)
    federation = hr.simulate({"one": table})
    made = [tan(federation, rounds=rounds) for rounds in (0, 100)]
    return made[0].codes.number(table.columns).astype(int), *made


def test_raked_records_have_the_tables_of_all_pairs(ring):
    """Of six pairs a tree has three. Raked, all six are nearer than those of 5000 fresh records are on average (0.016)."""
    real, plain, weighed = ring
    first, second = (one.draw(5000, Conditions(), np.random.default_rng(0)) for one in (plain, weighed))
    off = {
        pair: [np.abs(table_of(real, *pair) - table_of(one, *pair)).sum() / 2 for one in (first, second)]
        for pair in combinations(range(4), 2)
    }
    assert max(tree for tree, _ in off.values()) > 0.05
    assert max(both for _, both in off.values()) < 0.015
    for j in range(4):
        assert_allclose(np.bincount(second[:, j]), np.bincount(real[:, j]), atol=12)  # fresh records: a deviation of 33


@pytest.mark.slow
def test_raked_records_under_conditions_are_those_that_a_filter_leaves(ring):
    _, _, weighed = ring
    conditions = Conditions.of(weighed.codes, {"a": "x", "c": ["y", "z"]})
    rng = np.random.default_rng(1)
    conditional, free = weighed.draw(8000, conditions, rng), weighed.draw(40_000, Conditions(), rng)
    filtered = free[(free[:, 0] == 0) & (free[:, 2] > 0)]
    assert (conditional[:, 0] == 0).all()
    assert (conditional[:, 2] > 0).all()
    for i, j in combinations(range(4), 2):
        p, q = table_of(conditional, i, j), table_of(filtered, i, j)
        assert (np.abs(p - q) < 5 * np.sqrt(np.maximum(q, 1e-4) * (1 / len(filtered) + 1 / 8000))).all()


@pytest.mark.slow
def test_weights_have_a_mean_of_one_in_classes_of_any_size():
    """Over fresh records of each class's tree, so that classes keep their shares under conditions."""
    rng = np.random.default_rng(0)
    y = (rng.random(3000) < 0.1).astype(float)
    a, b = (np.where(rng.random(3000) < 0.4 + 0.2 * y, rng.integers(0, 3, 3000), y).astype(np.int16) for _ in range(2))
    c = np.where(rng.random(3000) < 0.4, a, np.where(rng.random(3000) < 0.6, b, 2)).astype(np.int16)
    schema = Schema((*SCHEMA.columns[:3], Column("y", "binary", role="target")))
    found = tan(hr.simulate({"one": Table({"a": a, "b": b, "c": c, "y": y}, schema)}), rounds=30)
    for tree, potentials in zip(found.trees, found.potentials, strict=True):
        fresh = drawn(passed(tree, {})[1], 20_000, 4, np.random.default_rng(1))
        assert np.exp(potentials.log_weights(fresh)).mean() == pytest.approx(1, abs=0.02)
    for level in range(3):
        made = found.sample(4000, where={"a": "xyz"[level]}, seed=level)
        assert made["y"].mean() == pytest.approx(y[a == level].mean(), abs=0.02)


@pytest.mark.slow
def test_records_of_rare_codes_are_as_frequent_in_few_rows():
    """A hundred records at a time, three columns with a code of 4 to 6 in a thousand that mostly goes together."""
    rng = np.random.default_rng(0)
    a = rng.random(5000) < 0.003
    b = np.where(rng.random(5000) < 0.8, a, rng.random(5000) < 0.01)
    c = np.where(rng.random(5000) < 0.5, b, rng.random(5000) < 0.004)
    columns = {name: column.astype(float) for name, column in zip("abc", (a, b, c), strict=True)}
    found = tan(hr.simulate({"one": Table(columns, Schema(tuple(Column(name, "binary") for name in "abc")))}))
    made = np.mean([found.draw(100, Conditions(), np.random.default_rng(seed)).mean(0) for seed in range(400)], axis=0)
    for share, column in zip(made, columns.values(), strict=True):
        assert share == pytest.approx(column.mean(), abs=3.5 * np.sqrt(column.mean() / 40_000))


def test_no_record_weighs_more_than_the_cap():
    """One code is to be nearly all of a column: without a cap one candidate of a thousand would be taken by itself."""
    steep = Potentials((np.array([0.0, 9.0]), np.zeros(2)), {}, 0.0)
    assert_array_equal(steep.log_weights(np.array([[0, 0], [1, 0]])), [0.0, CAP])
    codes = hr.synth.Codes.of(Schema((Column("a", "binary"), Column("b", "binary"))))
    tree = ColumnTree((np.array([999.0, 1.0]), np.array([500.0, 500.0])), {})
    found = TreeSynthesizer(codes, hr.synth.Provenance(), (tree,), (steep,))
    assert found.sample(500, where={"b": 1}, seed=0)["a"].mean() < 0.05


def test_weights_are_potentials_of_cells():
    """By hand, of two columns: log-weights add up those of the codes and of the pair, less the level."""
    one = Potentials((np.array([0.0, 1.0]), np.array([2.0, 0.0])), {(0, 1): np.array([[0.0, 3.0], [0.0, 0.5]])}, 0.25)
    assert_array_equal(one.log_weights(np.array([[0, 0], [0, 1], [1, 1]])), [1.75, 2.75, 1.25])


def test_classes_share_rows_by_their_weights_under_conditions():
    """By hand: class 0 has a = 0 in 50 of 100, weighed by 3 / 2, and class 1 in 50 of 100 as it is: 75 and 50 records."""
    schema = Schema((Column("a", "binary"), Column("y", "binary", role="target")))
    codes, half = hr.synth.Codes.of(schema), np.array([50.0, 50.0])
    trees = tuple(ColumnTree((half, np.array(own)), {}) for own in ([100.0, 0.0], [0.0, 100.0]))
    flat = np.zeros(2)
    weights = (Potentials((np.log([3.0, 1.0]), flat), {}, float(np.log(2.0))), Potentials((flat, flat), {}))
    found = TreeSynthesizer(codes, hr.synth.Provenance(), trees, weights)
    made = found.sample(1000, where={"a": 0}, seed=0)
    assert not made["a"].any()
    assert made["y"].sum() == pytest.approx(400, abs=1)


def test_a_selection_is_as_large_as_wanted_and_has_the_tables_of_the_weights():
    rng = np.random.default_rng(0)
    columns, logs = rng.integers(0, 4, (3, 8000)), rng.normal(0, 0.5, 8000)
    w = np.exp(logs) / np.exp(logs).sum()
    for rows in (1, 7, 1000):
        assert len(selected(columns, logs, rows, rng)) == rows
    chosen = columns[:, selected(columns, logs, 1000, rng)]
    for j in range(3):
        assert_allclose(np.bincount(chosen[j], minlength=4), 1000 * np.bincount(columns[j], w), atol=1.5)


@pytest.mark.slow
def test_selections_are_fair_to_rare_codes():
    """A code of one in a hundred, 200 records at a time, with swaps: its mean share is its weight, within five deviations."""
    rng = np.random.default_rng(0)
    columns = np.stack([(rng.random(4000) < 0.01).astype(int), rng.integers(0, 2, 4000), rng.integers(0, 5, 4000)])
    share = columns[0].mean()
    found = np.mean([columns[0, selected(columns, np.zeros(4000), 200, rng)].mean() for _ in range(40)])
    assert found == pytest.approx(share, abs=5 * np.sqrt(share / 8000))


def test_what_a_run_keeps_draws_the_same_records(ring):
    _, _, weighed = ring
    arrays = to_arrays(weighed.trees, weighed.potentials)
    again = drawn_from({}, arrays, SCHEMA, weighed.provenance)
    where = {"a": "x"}
    for name, column in weighed.sample(40, where=where, seed=3).columns.items():
        assert_array_equal(again.sample(40, where=where, seed=3)[name], column)


# ---- budgets that end early, and tables of which some are exact ------------------------------------------------------
@pytest.mark.parametrize("program", [class_trees, spanning_tree])
def test_without_tables_of_pairs_there_are_trees_without_edges_and_a_note(program):
    table = looped(300)
    codes = hr.synth.Codes.of(SCHEMA)
    first, second = program(hr.simulate({"one": table}))
    early, late = (shown(codes, state, singles(codes), pairs(codes), rounds=2) for state in (first, second))
    assert sum("never asked" in note for note in early.notes) == 1
    assert not any("never asked" in note for note in late.notes)
    assert "noise per cell of two columns" not in early.metrics
    made = drawn_from({}, early.arrays, SCHEMA, hr.synth.Provenance())
    assert made.edges == []
    drawn = made.sample(300, seed=0)
    for name, column in table.columns.items():
        assert_allclose(np.bincount(drawn[name], minlength=3), np.bincount(column, minlength=3), atol=1)


@pytest.mark.parametrize("exact", ["singles", "pairs"])
def test_exact_tables_beside_noisy_ones_are_taken_at_their_word(exact):
    """A run that goes on under another budget: sizes and nodes are those of the exact tables."""
    codes = hr.synth.Codes.of(SCHEMA)
    ones, twos = singles(codes), pairs(codes)
    *_, state = class_trees(hr.simulate({"one": looped(300)}))
    noisy = "pairs" if exact == "singles" else "singles"
    noise = np.random.default_rng(0).normal(0, 3, getattr(state, noisy).shape)
    mixed = replace(state, **{noisy: getattr(state, noisy) + noise, f"sigma_{noisy}": 3.0})
    (wanted,), _ = fitted(state, ones, twos)
    (found,), _ = fitted(mixed, ones, twos)
    for node, other in zip(found.nodes, wanted.nodes, strict=True):
        assert_allclose(node, other, atol=1e-6)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_class_that_never_occurs_has_no_weights_that_are_not_numbers():
    schema = Schema((*SCHEMA.columns[:3], Column("y", "category", levels=("n", "y", "never"), role="target")))
    columns = looped(300).columns
    columns = {**{name: columns[name] for name in "abc"}, "y": np.minimum(columns["d"], 1)}
    found = tan(hr.simulate({"one": Table(columns, schema)}), rounds=2)
    assert all(np.isfinite(array).all() for array in to_arrays(found.trees, found.potentials).values())
    made = found.sample(300, seed=0)
    assert_array_equal(np.bincount(made["y"], minlength=3), np.bincount(columns["y"], minlength=3))


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "tabular" / "adult.data.gz").exists(), reason="Adult is not there")
def test_of_adult_made_up_records_teach_what_real_ones_do(monkeypatch):
    """Epsilon 1 behind hidden rows, noise in shares of five parties: at least 84.8 % of real test records, 99.5 % alike."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    monkeypatch.setenv("HEDGEROW_DATA", str(DATA))
    adult = hr.data.load("adult")
    federation = hr.simulate(adult, hr.data.iid(parties=5), seed=0).protect(aggregation=hr.SecAgg())
    more = {"noise_at": "shares", "least": 5, "log": ["capital_gain", "capital_loss"]}
    found = tan(federation, epsilon=1.0, delta=1e-5, **more)
    assert federation.ledger.epsilon(delta=1e-5, unit="record") <= 1
    made = found.draw(len(adult), Conditions(), np.random.default_rng(0))
    real, test = (found.codes.number(one.columns).astype(int) for one in (adult, adult.test))

    learner = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(solver="liblinear"))
    assert learner.fit(made[:, :-1], made[:, -1]).score(test[:, :-1], test[:, -1]) >= 0.848
    shares = [
        [np.bincount(one[:, j], minlength=size) / len(one) for j, size in enumerate(found.codes.sizes)] for one in (real, made)
    ]
    assert np.mean([1 - np.abs(p - q).sum() / 2 for p, q in zip(*shares, strict=True)]) >= 0.995
