"""Comparisons and sweeps from the command line."""

import json
import os
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hedgerow.cli.main import app
from hedgerow.cli.show import Bars
from hedgerow.errors import CheckpointMismatch, HedgerowError, MissingData, StudyInvalid
from hedgerow.study.rounds import Progress

PLAIN = """
title = "Two ways to count"
[data]
path = "small.csv"
target = "ill"
[partition]
by = "iid"
parties = 3
[program]
name = "logistic_regression"
formula = "ill ~ age + dose"
[protection]
disclosure = 10  # of a table for tests
"""

TABLE = """
[comparison]
rows = [{ name = "three", set = {} }, { name = "five", set = { "partition.parties" = 5 } }]
columns = [{ name = "both" }, { name = "age", set = { "program.formula" = "ill ~ age" } }]
measure = "log-likelihood"
take = "last"
source = "a book"
quick = { "program.max_rounds" = 20 }
[comparison.published]
three = { both = -20.0 }
"""


@pytest.fixture
def table(tmp_path):
    rows = ["age,dose,ill"] + [f"{20 + i},{(i * 7) % 5},{int((i * 13) % 7 + i / 20 > 4)}" for i in range(60)]
    (tmp_path / "small.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "plain.toml").write_text(PLAIN)
    (tmp_path / "table.toml").write_text(PLAIN + TABLE)
    return tmp_path / "table.toml"


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.slow
def test_a_comparison_leaves_a_table_and_a_folder_for_each_run(table, tmp_path):
    out = tmp_path / "out"
    ended = invoke("run", table, "--out", out, "--jobs", 1)
    assert ended.exit_code == 0, ended.exception
    names = {path.name for path in out.iterdir()}
    files = {"report.html", "result.json", "comparison.csv", "study.toml", "digest"}
    assert names == files | {"three--both", "three--age", "five--both", "five--age"}
    assert "/ −20 (" in ended.output
    values = [line.split(",")[2] for line in (out / "comparison.csv").read_text().splitlines()[1:]]
    assert float(values[0]) == pytest.approx(float(values[2]), rel=1e-8)  # the federated fit is the pooled one
    page = (out / "report.html").read_text()
    assert invoke("report", out).exit_code == 0
    assert (out / "report.html").read_text() == page
    again = invoke("run", table, "--out", out, "--jobs", 1, "--resume")
    assert again.exit_code == 0
    assert invoke("run", out / "study.toml", "--out", tmp_path / "copy", "--jobs", 1).exit_code == 0
    assert [line.split(",")[2] for line in (tmp_path / "copy" / "comparison.csv").read_text().splitlines()[1:]] == values


@pytest.mark.slow
def test_quick_and_set_reach_every_run(table, tmp_path):
    ended = invoke("run", table, "--out", tmp_path / "out", "--jobs", 1, "--quick", "--set", "seed=4")
    assert ended.exit_code == 0, ended.exception
    for folder in ("three--both", "five--age"):
        text = (tmp_path / "out" / folder / "study.toml").read_text()
        assert "max_rounds = 20" in text
        assert "seed = 4" in text
    words = " ".join(ended.output.split())
    assert "A quick run, with program.max_rounds = 20. The published numbers were made without these changes." in words


@pytest.mark.slow
def test_a_sweep_names_its_best_trial(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    formulas = "program.formula='ill ~ age','ill ~ age + dose'"
    ended = invoke("run", "plain.toml", "--sweep", formulas, "--jobs", 1)
    assert ended.exit_code == 0, ended.exception
    assert "formula=ill ~ age + dose was best on log-likelihood" in " ".join(ended.output.split())
    assert os.listdir("runs") == ["plain-sweep-001"]
    report = json.loads((tmp_path / "runs" / "plain-sweep-001" / "result.json").read_text())
    assert report["title"] == "Two ways to count"


def test_a_rehearsal_shows_cells_that_ask_the_same_once(table):
    ended = invoke("rehearse", table)
    assert ended.exit_code == 0, ended.exception
    words = " ".join(ended.output.split())
    assert "4 runs were checked and rehearsed for their first rounds; 4 differ in what they ask" in words
    same = invoke("rehearse", table, "--set", "comparison.columns=[{name='x'},{name='y',set={seed=5}}]", "--set", PUBLISHED)
    assert "2 differ in what they ask" in " ".join(same.output.split())
    assert "three, x and 1 more: three, y" in " ".join(same.output.split())


PUBLISHED = "comparison.published={}"


@pytest.mark.parametrize(
    ("study", "arguments", "kind", "said"),
    [
        ("table", ["--set", "comparison.measure=accuracy"], StudyInvalid, "is none of its metrics"),
        ("table", ["--set", "comparison.rows=[]"], StudyInvalid, "rows"),
        ("table", ["--set", "comparison.rows=[{name='four'}]"], StudyInvalid, "published names row 'three'"),
        ("table", ["--set", "comparison.take=rounds"], StudyInvalid, "counts rounds until a target"),
        ("table", ["--set", "program.formulaa=x"], StudyInvalid, "Did you mean 'formula'"),
        ("table", ["--set", "partition.parties=61"], HedgerowError, "HR-406"),
        ("table", ["--sweep", "seed=1,2"], StudyInvalid, "is a comparison already"),
        ("table", ["--jobs", "0"], StudyInvalid, "--jobs 0 runs nothing"),
        ("table", ["--resume"], CheckpointMismatch, "no comparison to resume"),
        ("plain", ["--quick"], StudyInvalid, "has no [comparison]"),
        ("plain", ["--jobs", "2"], StudyInvalid, "is for comparisons and sweeps"),
        ("plain", ["--sweep", "seed"], StudyInvalid, "key=value,value"),
        ("plain", ["--sweep", "sed=1,2"], StudyInvalid, "Did you mean 'seed'"),
        ("plain", ["--sweep", "seed=1,2", "--quick"], StudyInvalid, "does not say what a quick run changes"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_refused_before_anything_runs(table, tmp_path, study, arguments, kind, said):
    ended = invoke("run", tmp_path / f"{study}.toml", "--out", tmp_path / "out", *arguments)
    assert isinstance(ended.exception, kind), ended.output
    assert said in str(ended.exception)
    assert "No party was asked" in str(ended.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_example_of_the_page_runs(tmp_path):
    example = Path(__file__).parents[2] / "docs" / "examples" / "compared.toml"
    ended = invoke("run", example, "--out", tmp_path / "out", "--quick", "--jobs", 1)
    assert ended.exit_code == 0, ended.exception
    assert len((tmp_path / "out" / "comparison.csv").read_text().splitlines()) == 7


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("composition", "--quick"), "composition: 70 runs of a comparison, 7 by 10, quick with program.rounds = "),
        (("geyer-table-1",), "geyer-table-1: 9 runs of a comparison, 3 by 3. First: reading data, planning noise for"),
        (("pneumonia-silos",), "pneumonia-silos: the program scaffold. First: reading data."),
    ],
)
def test_a_run_says_what_it_is_about_to_do_before_it_reads_data(arguments, said, tmp_path):
    ended = invoke("run", *arguments, "--out", tmp_path / "out", "--data-dir", tmp_path / "nothing here")
    assert isinstance(ended.exception, MissingData)
    assert said in ended.output


def test_bars_have_a_line_for_each_running_cell():
    console = Console(file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    with Bars(console) as bars:
        bars.check("b, [x]", 2, 3)
        assert [(task.completed, task.total, task.fields["said"]) for task in bars.bars.tasks] == [(1, 3, "b, \\[x]")]
        bars.start(["a, x", "b, [x]"], ["kept"])
        bars.show("a, x", Progress(2, 5, {"accuracy": 0.5, "loss": 1.0, "more": 2.0}, None, None))
        bars.show("b, [x]", Progress(1, None, {}, None, None))
        lines = [(task.description, task.completed, task.total, task.fields["said"]) for task in bars.bars.tasks]
        assert lines == [
            ("runs", 1, 3, "1 had ended before"),
            ("a, x", 2, 5, "accuracy 0.5, loss 1"),
            ("b, \\[x]", 1, None, ""),
        ]
        bars.show("a, x", None)
        bars.show("never begun", None)
        assert [(task.description, task.completed) for task in bars.bars.tasks] == [("runs", 3), ("b, \\[x]", 1)]
    console.file.close()
