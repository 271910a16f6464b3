"""The study of local frequencies: a recovered table beside the truth, and errors that follow theory."""

import math
import os
from pathlib import Path

import numpy as np
import pytest

from hedgerow import data
from hedgerow.compare import cells, compare
from hedgerow.core import Parties
from hedgerow.data.icd9 import CODES, GROUPS, group_of
from hedgerow.privacy.local import Reports
from hedgerow.stats import oracle_of
from hedgerow.stats.frequency_results import exact, root_mean_square
from hedgerow.study import load, parse, run_study

DATA = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="set HEDGEROW_DATA to the folder of public data sets")

SMALL = {
    "name": "occupations",
    "data": {"name": "fair"},
    "partition": {"by": "iid", "parties": 1500},
    "program": {"name": "frequencies", "column": "occupation", "epsilon": 2.0, "epsilons": [4.0, 0.5], "numbers": [400, 100]},
    "evaluation": {"on": "none"},
    "protection": {"disclosure": math.inf},
    "baselines": False,
}
"""Occupations of women at 1500 parties of four or five records each."""


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return run_study(parse(SMALL), tmp_path_factory.mktemp("runs") / "small")


@pytest.mark.slow
def test_the_page_shows_the_table_beside_the_truth(result):
    recovered = next(grid for grid in result.report.tables if grid.title == "Recovered frequencies")
    assert recovered.columns == ("level", "true share", "estimated", "standard error", "off by standard errors")
    assert sum(row[1] for row in recovered.rows) == pytest.approx(1.0)
    assert max(abs(row[4]) for row in recovered.rows) < 6
    assert [row[1] for row in recovered.rows] == sorted((row[1] for row in recovered.rows), reverse=True)


@pytest.mark.slow
def test_the_figures_have_the_error_and_theory_of_each_oracle(result):
    figures = {curve.title: curve for curve in result.report.curves}
    against = figures["Error against epsilon"]
    assert against.series[0].x == (0.5, 2.0, 4.0)
    assert figures["Error against the number of parties"].series[0].x == (100.0, 400.0, 1500.0)
    for curve in figures.values():
        styles = [series.style for series in curve.series]
        assert styles == ["main", "reference", *["muted"] * 5]
        assert curve.log == "xy"
    theory = against.series[1].y
    assert theory[0] > theory[1] > theory[2]


@pytest.mark.slow
def test_the_page_says_what_was_spent(result):
    assert "per party" in result.report.privacy
    assert "between any two contributions" in result.report.privacy
    assert result.report.privacy_ok
    assert "Epsilon 10.5 " in result.report.privacy  # 2 + 4 + 0.5 + 2 + 2


@pytest.mark.slow
def test_without_a_seed_nothing_exact_is_shown(tmp_path):
    result = run_study(parse(SMALL | {"seed": "system"}), tmp_path / "run")
    recovered = next(grid for grid in result.report.tables if grid.title == "Recovered frequencies")
    assert recovered.columns == ("level", "estimated", "standard error")
    assert not [curve for curve in result.report.curves if "Error" in curve.title]


@pytest.mark.slow
def test_the_study_runs_as_a_comparison(tmp_path):
    small = load("local-frequencies")
    cut = small.comparison.model_copy(
        update={"rows": small.comparison.rows[:1], "columns": small.comparison.columns[:2], "published": {}}
    )
    changes = [("data.name", "fair"), ("program.column", "occupation"), ("program.parties", 300), ("program.numbers", [50])]
    study = small.model_copy(update={"comparison": cut})
    found = compare(study, tmp_path / "out", jobs=1, changes=[*changes, ("program.epsilons", [4.0])])
    assert not found.problems
    assert found.standings.measure == "error of shares"
    for run in found.standings.runs:
        assert 0.2 < dict(run.report.metrics)["error over theory"] < 3


@needs_data
@pytest.mark.slow
def test_what_stands_beside_our_numbers_is_theory():
    study = load("local-frequencies")
    table = data.load("diagnoses", data_dir=DATA)
    for cell in cells(study):
        keys = dict(cell.study.program.model_extra)
        levels = len(table.schema[keys["column"]].levels)
        counts = np.bincount(table[keys["column"]][: keys["parties"]], minlength=levels)
        made = {key: keys[key] for key in ("hashes", "width", "bits", "cohorts")}
        mechanism = oracle_of(keys["oracle"], keys["epsilon"], **made)
        assert isinstance(mechanism, Reports)
        theory = root_mean_square(mechanism.deviation(counts)) / keys["parties"]
        assert study.comparison.published[cell.row][cell.column] == pytest.approx(theory, abs=6e-6)


def test_exact_counts_give_each_party_one_vote():
    held = Parties(["a", "b", "c"], {"stage": np.array([0, 1, 1, 2, 2, 2])}, [1, 3, 2])
    np.testing.assert_allclose(exact(held, "stage", 3, 3), [1, 2 / 3, 1 / 3 + 1])
    np.testing.assert_allclose(exact(held, "stage", 3, 1), [1, 0, 0])


def test_every_code_has_a_chapter():
    assert {group_of(code) for code in CODES} == set(GROUPS)
    assert [group_of(code) for code in ("008", "250", "251", "428", "V57", "E909", "?", "999")] == [
        "infections",
        "diabetes",
        "endocrine",
        "circulation",
        "supplementary",
        "external causes",
        "unknown",
        "injury and poisoning",
    ]
