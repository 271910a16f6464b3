"""Studies of made-up records: what is measured, what each trial costs, and what stands beside the published numbers."""

import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.compare import cells
from hedgerow.papers.sempere.budget_pages import outcome as budget_outcome
from hedgerow.papers.sempere.budgets import (
    BOOSTED,
    COLUMNS,
    LINEAR,
    PAIRS,
    SPENT,
    RecordTrialState,
    alike,
    counted,
    synthesizer_trials,
    trials_of,
)
from hedgerow.papers.sempere.synthesizer_pages import ANOTHER, THEMSELVES, RealRecords
from hedgerow.papers.sempere.synthesizer_pages import outcome as beside_outcome
from hedgerow.papers.sempere.synthesizers import MadeBesideState, flat, synthesizers_beside
from hedgerow.papers.sempere.ways import TARGET, WAYS, ways_named
from hedgerow.study import PROGRAMS, bundled, load, run_study
from hedgerow.study.keys import keys_of
from hedgerow.synth import Codes
from hedgerow.synth.tables import pairs

TREE = "tree inside each class"
SETTINGS = {"called": "", "target": None, "delta": 1e-5, "exact": False}


def cancer():
    table = hr.data.load("breast_cancer").select(["malignant", "mean_radius", "mean_texture"])
    test, rest = table.split(0.3, 0)
    return hr.simulate(rest, hr.data.iid(parties=3), seed=0), rest, test


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_every_way_draws_records_and_takes_its_settings(way):
    one = PROGRAMS[way.program]
    assert one.synthesizer is not None
    assert set(way.settings) | ({way.epochs} if way.epochs else set()) <= set(keys_of(one).model_fields)
    assert way.why.endswith(".")


def test_a_share_of_the_epochs_is_one_at_least():
    way = next(way for way in WAYS if way.epochs)
    usual = keys_of(PROGRAMS[way.program]).model_fields[way.epochs].default
    assert way.at(0.5).settings[way.epochs] == round(usual / 2)
    assert way.at(1e-9).settings[way.epochs] == 1
    assert next(way for way in WAYS if TARGET in way.settings.values()).at(0.1).settings == {"by": TARGET}


def test_complements_of_columns_and_pairs_are_those_of_a_loop():
    _, rest, test = cancer()
    codes = Codes.of(rest.schema, bins=4)
    tables = pairs(codes)
    found = alike(counted(rest, codes, tables), counted(test, codes, tables), tables)
    real, made = (codes.number(table.columns).astype(int) for table in (rest, test))
    columns, both = [], []
    for i in range(3):
        p, q = (np.bincount(part[:, i], minlength=codes.sizes[i]) / len(part) for part in (real, made))
        columns.append(1 - np.abs(p - q).sum() / 2)
        for j in range(i + 1, 3):
            cells = {(a, b) for a in range(codes.sizes[i]) for b in range(codes.sizes[j])}
            shares = [
                (np.mean((real[:, i] == a) & (real[:, j] == b)), np.mean((made[:, i] == a) & (made[:, j] == b)))
                for a, b in cells
            ]
            both.append(1 - sum(abs(p - q) for p, q in shares) / 2)
    assert found == pytest.approx((np.mean(columns), np.mean(both)))


@pytest.mark.slow
def test_a_trial_costs_what_was_asked_and_a_resumed_run_ends_alike():
    settings = {"epsilons": [0.5, 4.0], "repeats": 1, "ways": [TREE], "rows": 200, "bins": 8, "exact": True}
    federation, _, _ = cancer()
    *_, state = synthesizer_trials(federation, **settings)
    results = state.results
    assert results[:, SPENT] == pytest.approx([0.5, 4.0, math.inf], rel=1e-6)
    assert (results[:, SPENT][:2] <= [0.5, 4.0]).all()
    assert np.isnan(results[:, LINEAR]).all()  # the server has no table
    assert results[2, COLUMNS] > 0.95 > results[0, COLUMNS]
    assert results[2, PAIRS] > results[0, PAIRS]
    again, _, _ = cancer()
    first = next(iter(synthesizer_trials(again, **settings)))
    *_, ended = synthesizer_trials(again, start=first, **settings)
    np.testing.assert_array_equal(ended.results, results)


@pytest.mark.slow
def test_models_learn_from_made_up_records_what_they_learn_from_real_ones():
    federation, _, test = cancer()
    settings = {"epsilons": [8.0], "repeats": 1, "ways": [TREE], "rows": 400, "bins": 12}
    *_, state = synthesizer_trials(federation, test=test, **settings)
    assert state.results[0, LINEAR] > 0.8 > np.mean(test["malignant"] == 0) + 0.1
    assert state.results[0, BOOSTED] > 0.8


def test_ways_without_an_epsilon_are_tried_once():
    found = trials_of({"ways": [TREE, "CTGAN"], "epsilons": [1.0, 2.0], "repeats": 2, "exact": False})
    assert [(trial.way.name, trial.epsilon) for trial in found] == [
        *[(TREE, 1.0)] * 2,
        *[(TREE, 2.0)] * 2,
        ("CTGAN", math.inf),
    ]


@pytest.mark.parametrize(
    "wrong", [{"epsilons": [0.0]}, {"epsilons": []}, {"repeats": 0}, {"rows": 0}, {"ways": ["no such way"]}]
)
def test_refused_before_anybody_is_asked(wrong):
    federation, _, _ = cancer()
    with pytest.raises(hr.errors.SettingsInvalid):
        list(synthesizer_trials(federation, **({"epsilons": [1.0], "ways": [TREE]} | wrong)))
    with pytest.raises(hr.errors.SettingsInvalid):
        list(synthesizers_beside(federation, draws=0))
    assert len(federation.ledger) == 0


def test_the_page_over_epsilon_has_a_table_and_a_figure_for_each_measure():
    settings = SETTINGS | {"epsilons": [0.1, 1.0], "repeats": 2, "ways": [TREE, "CTGAN"]}
    results = np.array([[0.8, 0.81, 0.9, 0.85, trial.epsilon] for trial in trials_of(settings)])
    results[:2, 0] = 0.7, 0.72
    shown = budget_outcome(cancer()[1].schema, settings, RecordTrialState(len(results), results, np.zeros(0)))
    first = shown.grids[0]
    assert first.columns == ("way", "0.1", "1", "no noise")
    assert first.rows == ((TREE, 0.71, 0.8, None), ("CTGAN", None, None, 0.8))
    assert [curve.log for curve in shown.curves] == ["x"] * 4
    assert shown.metrics["best TV complement of columns"] == 0.9
    costs = next(grid for grid in shown.grids if grid.title == "What each trial cost")
    assert costs.rows == ((TREE, 0.1, 0.1), (TREE, 1.0, 1.0))


def test_records_that_are_copied_are_told_from_those_that_are_not():
    table = hr.data.load("two_normals")
    real = RealRecords(table.schema, flat(table.columns, table.schema), flat(table.test.columns, table.schema))
    third = np.random.default_rng(0).permutation(np.concatenate([real.real, real.held_out]))[:1000]
    assert real.nearer(real.real) == 1
    assert real.nearer(real.held_out) == 0
    assert real.nearer(third) == pytest.approx(0.5, abs=0.06)
    assert set(real.alike(real.real).values()) == {1.0}
    assert min(real.alike(real.held_out).values()) > 0.95
    assert real.correlation(real.real) == pytest.approx(0.5, abs=0.06)


@pytest.mark.slow
def test_the_copula_is_nearer_by_column_than_what_was_printed(tmp_path):
    changes = {"program.ways": ["Gaussian copula"], "program.draws": 2, "program.rows": 1000}
    two, iris, held = cells(load("sempere-synthetic", changes))
    rows = {}
    for cell in (two, iris, held):
        grid = run_study(cell.study, tmp_path / cell.name.replace(" ", "-")).outcome.grids[0]
        rows[cell.name] = {row[0]: dict(zip(grid.columns, row, strict=True)) for row in grid.rows}
    least = "least"
    first, second, third = rows.values()
    assert first["Gaussian copula"][least] >= 0.97 > first["CTGAN, as printed"][least] == 0.773
    assert second["Gaussian copula"][least] >= 0.93 > second["CTGAN, as printed"][least] == 0.8
    assert first["Gaussian copula"]["nearer to real"] == pytest.approx(0.5, abs=0.06)
    assert first["Gaussian copula"]["correlation"] == pytest.approx(0.489, abs=0.06)
    assert "CTGAN, as printed" not in third
    assert third["Gaussian copula"]["accuracy of species"] > 0.9
    assert third[THEMSELVES]["nearer to real"] > 0.5
    assert third[ANOTHER]["nearer to real"] is None


def test_without_records_nothing_is_compared():
    schema = hr.data.load("iris").schema
    state = MadeBesideState(1, np.zeros((1, 1, 2, 5)), np.zeros((0, 5)))
    settings = {"ways": [TREE], "called": "", "predict": "", "printed": {}, "printed_by": "", "draws": 1, "rows": 2}
    assert beside_outcome(schema, settings, state, None).grids == ()


def test_both_studies_are_bundled():
    assert {"sempere-synthetic", "synth-adult"} <= set(bundled())
    assert len(cells(load("sempere-synthetic"), quick=True)) == 3
    quick = load("synth-adult").quick["program.ways"]
    assert [way.name for way in ways_named(quick)] == [way.name for way in WAYS if way.private]
