"""The study of composition: how much noise each accountant asks for, figures against epsilon, and noise that budgets decide."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from hedgerow.compare import cells, compare
from hedgerow.compare.axis import noise_of
from hedgerow.data.catalogue import CATALOGUE
from hedgerow.errors import ModelInvalid, StudyInvalid
from hedgerow.learn.tensors import blank
from hedgerow.privacy.accounting import calibrate
from hedgerow.report import render
from hedgerow.study import load, parse
from hedgerow.study.bundled import adult
from hedgerow.study.planned import with_noise
from hedgerow.study.runner import write_study

HERE = [
    ("data", {"name": "digits"}),
    ("program", {"name": "dpsgd", "model": "linear", "rounds": 6, "sampling_rate": 1.0, "batch_size": 1258, "solver": "adam"}),
    ("evaluation", {"holdout": 0.3}),
]
"""The study on records that come with a package."""

ACCOUNTANTS = ["basic", "advanced", "zcdp", "rdp", "pld"]


def noises(rounds=50):
    """Noise by epsilon and accountant, as the study's cells are to have."""
    found = {}
    for cell in cells(load("composition")):
        budget = cell.study.budget
        if cell.study.protection.mechanism is not None:
            z = calibrate(budget.epsilon, budget.delta, rounds=rounds, accountant=budget.accountant)
            found.setdefault(budget.epsilon, {})[budget.accountant] = z
    return found


@pytest.mark.slow
def test_every_accountant_needs_less_noise_than_the_one_before():
    found = noises()
    assert load("composition").program.model_extra["rounds"] == 50
    assert list(found) == [0.1, 0.5, 1.0, 2.0, 10.0, 100.0]
    for epsilon, by in found.items():
        needed = [by[name] for name in ACCOUNTANTS]
        assert needed == sorted(needed, reverse=True)
        assert len(set(needed)) == len(needed) - (epsilon > 50)
    assert found[1.0]["basic"] > 6 * found[1.0]["pld"]
    assert found[100.0]["advanced"] == found[100.0]["basic"]  # its theorem asks for more, as its mean is exponential in epsilon


def few(rows=("1", "no noise"), columns=("logistic, naive", "logistic, PLD")):
    study = load("composition")
    section = study.comparison
    kept = {
        "rows": [row for row in section.rows if row.name in rows],
        "columns": [column for column in section.columns if column.name in columns],
    }
    return study.model_copy(update={"comparison": section.model_copy(update=kept)})


@pytest.mark.slow
def test_a_budget_decides_the_noise_of_its_cell():
    for cell in cells(few(), changes=HERE)[:2]:
        budget = cell.study.budget
        expected = calibrate(1.0, 1e-5, rounds=6, accountant=budget.accountant)
        assert noise_of(with_noise(cell.study)) == pytest.approx(expected, rel=1e-3)


def test_a_cell_without_noise_is_written_and_read_again(tmp_path):
    cell = cells(few(), changes=HERE)[-1]
    assert cell.study.budget.epsilon == np.inf
    write_study(cell.study, tmp_path / "study.toml")
    assert load(tmp_path / "study.toml").digest == cell.study.digest


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return compare(few(("0.1", "1", "10", "no noise")), tmp_path_factory.mktemp("composition") / "out", changes=HERE, jobs=1)


@pytest.mark.slow
def test_every_run_keeps_its_budget_and_uses_it(table):
    assert table.problems == {}
    for run in table.standings.runs:
        limit = run.cell.study.budget.epsilon
        if limit < np.inf:
            assert 0.99 * limit < run.said.epsilon <= limit
        else:
            assert not run.said.private


@pytest.mark.slow
def test_the_page_has_losses_and_noise_and_a_figure_against_epsilon(table):
    grids = {grid.title: grid for grid in table.report.tables}
    measured, lost, noise = grids["Test accuracy, in the last round"], grids["Accuracy loss"], grids["Noise multiplier"]
    assert measured.columns[0] == "epsilon"
    full = measured.rows[-1][1]
    assert [row[0] for row in lost.rows] == ["0.1", "1", "10"]
    assert [row[1] for row in lost.rows] == pytest.approx([1 - row[1] / full for row in measured.rows[:-1]], abs=1e-4)
    assert all(naive > pld for _, naive, pld in noise.rows[:-1])
    assert noise.rows[-1][1:] == (None, None)
    (figure,) = table.report.curves
    assert (figure.title, figure.x_label, figure.log) == ("Logistic", "epsilon", "x")
    assert [series.name for series in figure.series] == ["naive", "PLD"]
    assert figure.series[0].x == (0.1, 1.0, 10.0)
    assert "Accuracy loss" in render(table.report)


@pytest.mark.slow
def test_a_larger_epsilon_and_a_tighter_accountant_do_no_harm(table):
    """With one seed; 0.05 is three standard errors of an accuracy of 0.85 on 539 test records."""
    value = {(run.cell.row, run.cell.column): run.value for run in table.standings.runs}
    assert value["10", "logistic, PLD"] > value["0.1", "logistic, naive"] + 0.3
    assert value["1", "logistic, PLD"] > value["1", "logistic, naive"] - 0.05
    assert value["no noise", "logistic, PLD"] == value["no noise", "logistic, naive"]
    assert value["10", "logistic, PLD"] > value["no noise", "logistic, PLD"] - 0.05


@pytest.mark.slow
def test_a_finished_comparison_with_planned_noise_is_kept(table):
    told = []
    changes = {"resume": True, "jobs": 1, "on_start": lambda todo, kept: told.append((len(todo), len(kept)))}
    again = compare(few(("0.1", "1", "10", "no noise")), table.folder, changes=HERE, **changes)
    assert told == [(0, 8)]
    assert json.loads((table.folder / "result.json").read_text())["metrics"] == again.report.to_json()["metrics"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"reference": "nobody"}, "nobody"), ({"axis": "epsilon", "rows": [{"name": "few"}, {"name": "many"}]}, "no axis")],
)
def test_an_axis_needs_numbers_and_a_reference_is_a_row(wrong, said):
    section = {"rows": [{"name": "1"}, {"name": "2"}], "columns": [{"name": "c"}]} | wrong
    with pytest.raises(StudyInvalid, match=said):
        parse({"data": {"name": "digits"}, "program": {"name": "fedavg"}, "comparison": section})


# ---- its models -----------------------------------------------------------------------------------------------------
def test_the_models_read_every_column_in_its_declared_range():
    schema = CATALOGUE["adult"].schema
    x = torch.from_numpy(blank(schema)["model_input"])
    model = adult.logistic(x.shape[1], 1)
    seen = model.ranged(x)
    assert seen.min() >= 0
    assert seen.max() <= 1
    at = [i for i, column in enumerate(model.ranged.width) if column == 99_999]
    assert float(model.ranged(torch.full_like(x, 999.0))[0, at[0]]) == pytest.approx(np.log(1000) / np.log(100_000))


def test_the_models_have_the_parameters_that_their_page_says():
    sizes = [sum(value.numel() for value in make(107, 1).parameters()) for make in (adult.logistic, adult.two_layers)]
    assert sizes == [108, 4545]


def test_another_number_of_inputs_is_refused():
    with pytest.raises(ModelInvalid, match="107 inputs"):
        adult.logistic(12, 1)


def test_runs_without_a_reference_value_have_no_loss():
    from hedgerow.compare.axis import against_axis, short_table
    from hedgerow.compare.standings import Standing, Standings

    study = few(("1", "no noise"))
    found = Standings(study.comparison, "test accuracy", tuple(Standing(cell, value=0.8) for cell in cells(study)))
    half = replace(found, runs=tuple(replace(run, value=None) if run.cell.row == "no noise" else run for run in found.runs))
    assert short_table(half)[0].rows == (("1", None, None),)
    assert against_axis(half) == ()
