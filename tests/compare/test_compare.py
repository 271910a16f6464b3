"""A comparison: its cells are ordinary runs, its table is theirs, and what was finished is kept."""

import csv
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from comparing import compared, study

from hedgerow.compare import cells, compare, sweep
from hedgerow.compare.processes import _none_left
from hedgerow.compare.report import beside, curves, exposed_of, privacy_of, tuned_on
from hedgerow.compare.standings import Standing, Standings, chosen_on, finished_report
from hedgerow.errors import CannotWrite, CheckpointMismatch, HedgerowError, StudyInvalid
from hedgerow.report import Report, render
from hedgerow.store.drive import interruptible
from hedgerow.study import load, parse, read_report, run_study
from hedgerow.study.rounds import best, reached, read_rounds
from hedgerow.study.runner import write_study
from patience import until


def test_many_quick_runs_are_made_in_this_process(tmp_path, monkeypatch):
    monkeypatch.setattr("hedgerow.compare.run.MANY", 1)
    checked = []
    result = compare(compared(), tmp_path / "out", quick=True, on_check=lambda *what: checked.append(what))
    n = len(cells(compared()))
    assert dict(result.report.facts)["runs side by side"] == 1
    assert [(number, of) for _, number, of in checked] == [(i, n) for i in range(1, n + 1)]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """One comparison, run here."""
    folder = tmp_path_factory.mktemp("compared") / "out"
    told = []
    result = compare(compared(), folder, jobs=1, command="hedgerow run x", on_progress=lambda *what: told.append(what))
    return SimpleNamespace(**vars(result), told=told)


@pytest.mark.slow
def test_every_cell_is_an_ordinary_run(table, tmp_path):
    for cell in cells(compared()):
        folder = table.folder / cell.folder
        assert {"report.html", "result.json", "ledger.jsonl", "model.safetensors", "rounds.jsonl"} <= set(os.listdir(folder))
        assert load(folder / "study.toml").digest == cell.study.digest
    alone = run_study(cells(compared())[0].study, tmp_path / "alone")
    assert (alone.folder / "model.safetensors").read_bytes() == (
        table.folder / "IID--FedAvg" / "model.safetensors"
    ).read_bytes()


@pytest.mark.slow
def test_the_table_is_that_of_the_runs(table):
    history = read_rounds(table.folder / "IID--FedAvg" / "rounds.jsonl")
    top = best(history, "test accuracy")[1]
    first = table.standings.at("IID", "FedAvg")
    assert (first.value, first.published, first.difference) == (top, 0.9, top - 0.9)
    grid = table.report.tables[0]
    assert grid.columns == ("", "FedAvg", "FedProx mu=1")
    assert grid.rows[0][1] == beside(first)
    assert " / 0.9 (" in grid.rows[0][1]
    assert "/" not in grid.rows[1][2]
    with (table.folder / "comparison.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [(line["row"], line["column"]) for line in lines] == [(c.row, c.column) for c in cells(compared())]
    assert float(lines[0]["value"]) == top
    at = reached(history, "test accuracy", 0.8) or {}
    assert lines[0]["rounds_to_target"] == str(at.get("round", ""))
    assert table.report.tables[1].rows[0][1:] == tuple(at.get(k) for k in ("round", "bytes_up", "bytes_down", "seconds"))


@pytest.mark.slow
def test_the_page_says_what_differs_and_reads_back(table):
    report = table.report
    assert "What differs from the publication: The records." in report.warnings
    held = "a test table that was held out of the records"
    chosen = f"The round of each value was chosen by test accuracy on {held}, where it is shown: it is a little too good."
    silent = "On which records its settings were chosen, the comparison does not say."
    assert report.tables[0].note == f"Ours / published (difference). Published: Table 1 of nowhere. {chosen} {silent}"
    assert report.exposed.startswith("20 % of the records (359) were used as a test table without protection.")
    assert report.exposed.endswith(f"{chosen} {silent}")
    exposed = {row[0]: row[2:] for row in report.published.rows}
    assert exposed["how records are spread over parties and labels"][::3] == ("exposed", 4)
    assert report.published.rows[-1][1:3] == (held, "exposed")
    with (table.folder / "comparison.csv").open() as file:
        assert {line["chosen_on"] for line in csv.DictReader(file)} == {held}
    assert "in 4 of 4 runs releases went out without noise" in report.privacy
    assert [curve.title for curve in report.curves] == ["IID", "few labels"]
    assert [series.name for series in report.curves[0].series] == ["FedAvg", "FedProx mu=1"]
    values = [run.value for run in table.standings.runs]
    shades = [shade for line in report.heat.shades for shade in line]
    assert shades[values.index(max(values))] == pytest.approx(1.0)
    assert shades[values.index(min(values))] == pytest.approx(0.08)
    again = read_report(table.folder).report
    assert again == report == Report.from_json(report.to_json())
    assert (table.folder / "report.html").read_text() == render(report)


@pytest.mark.slow
def test_progress_is_told_of_every_round_and_of_the_end(table):
    mine = [progress and progress.round for name, progress in table.told if name == "IID, FedAvg"]
    assert mine == [1, 2, 3, None]


@pytest.mark.slow
def test_finished_cells_are_kept_and_the_others_run(table, tmp_path):
    folder = tmp_path / "out"
    shutil.copytree(table.folder, folder)
    (folder / "few-labels--FedAvg" / "result.json").unlink()
    shutil.rmtree(folder / "IID--FedAvg")
    names = {}
    written = (folder / "IID--FedProx-mu=1" / "result.json").stat().st_mtime_ns
    result = compare(compared(), folder, jobs=1, resume=True, on_start=lambda todo, kept: names.update(todo=todo, kept=kept))
    assert names == {"todo": ["IID, FedAvg", "few labels, FedAvg"], "kept": ["IID, FedProx mu=1", "few labels, FedProx mu=1"]}
    assert (folder / "IID--FedProx-mu=1" / "result.json").stat().st_mtime_ns == written
    assert [run.value for run in result.standings.runs] == [run.value for run in table.standings.runs]


@pytest.mark.slow
def test_a_folder_that_is_taken_or_holds_something_else_is_refused(table, tmp_path):
    with pytest.raises(CannotWrite, match="already holds a run"):
        compare(compared(), table.folder)
    with pytest.raises(CannotWrite, match="already holds a run"):
        run_study(study(), table.folder)
    with pytest.raises(CheckpointMismatch, match="no comparison to resume"):
        compare(compared(), tmp_path / "nothing", resume=True)
    with pytest.raises(CheckpointMismatch, match="another study or of other records"):
        compare(compared(), table.folder, resume=True, changes=[("seed", 5)])
    with pytest.raises(StudyInvalid, match="--jobs 0"):
        compare(compared(), tmp_path / "out", jobs=0)


def test_what_is_refused_leaves_no_folder(tmp_path):
    columns = [{"name": "good"}, {"name": "bad", "set": {"program.epochs": 0}}]
    with pytest.raises(HedgerowError, match="in the run 'IID, bad'"):
        compare(compared(columns=columns, published={}), tmp_path / "out", jobs=1)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_rounds_to_a_target_are_better_when_fewer(tmp_path):
    made = compared(take="rounds", target=0.3, published={"IID": {"FedAvg": 2}})
    result = compare(made, tmp_path / "out", jobs=1)
    history = read_rounds(tmp_path / "out" / "IID--FedAvg" / "rounds.jsonl")
    first = result.standings.at("IID", "FedAvg")
    assert first.value == reached(history, "test accuracy", 0.3)["round"]
    assert not result.standings.more_is_better
    assert result.report.tables[0].title == "Test accuracy, rounds to the target 0.3"


@pytest.mark.slow
def test_a_sweep_names_the_best_and_says_what_choosing_costs(tmp_path):
    private = {
        "protection": {"clip": {"radius": 1.0}, "mechanism": {"noise_multiplier": 1.0}},
        "budget": {"epsilon": 50.0, "delta": 0.01},
    }
    made = sweep(study(**private), ["program.learning_rate=0.1,0.5"])
    result = compare(made, tmp_path / "out", jobs=1)
    said = [run.said.epsilon for run in result.standings.runs]
    together = f"together epsilon {sum(said):.4g}"
    assert any(together in warning and "Choosing among them is not free" in warning for warning in result.report.warnings)
    assert any("looks better than it is" in warning for warning in result.report.warnings)
    tuned = "Tuned on a test table that was held out of the records: the best of 2 runs is the one with the best test accuracy"
    assert tuned in result.report.tables[0].note
    assert tuned in result.report.exposed
    assert f"Epsilon {sum(said):.4g} at delta 0.02 per party for all 2 runs together" in result.report.privacy
    assert result.report.privacy_ok
    winner = max(result.standings.runs, key=lambda run: run.value)
    assert result.report.description.startswith(f"{winner.cell.row} was best on test accuracy, in the last round")
    assert [series.name for series in result.report.curves[0].series] == ["learning_rate=0.1", "learning_rate=0.5"]


@pytest.mark.slow
def test_runs_side_by_side_equal_those_one_after_the_other(table, tmp_path):
    two = compared(rows=compared().model_dump()["comparison"]["rows"][:1])  # of the four: each process loads torch
    result = compare(two, tmp_path / "out", jobs=2)
    assert result.problems == {}
    assert [run.value for run in result.standings.runs] == [run.value for run in table.standings.runs[:2]]
    for cell in cells(two):
        ours, theirs = ((folder / cell.folder / "model.safetensors") for folder in (tmp_path / "out", table.folder))
        assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.slow
def test_a_run_that_fails_does_not_stop_the_others_and_is_tried_again(tmp_path):
    (tmp_path / "out" / "IID--FedAvg").mkdir(parents=True)
    (tmp_path / "out" / "IID--FedAvg" / "ledger.jsonl").write_text("no ledger\n")
    made = compared(columns=[{"name": "FedAvg"}])
    with pytest.raises(CannotWrite):
        compare(made, tmp_path / "out" / "IID--FedAvg")
    for jobs in (1, 2):
        result = compare(made, tmp_path / "out", jobs=jobs, resume=jobs == 2)
        assert list(result.problems) == ["IID, FedAvg"]
        assert result.standings.at("few labels", "FedAvg").value > 0.1
        assert any("'IID, FedAvg' failed" in warning for warning in result.report.warnings)
    shutil.rmtree(tmp_path / "out" / "IID--FedAvg")
    result = compare(made, tmp_path / "out", jobs=1, resume=True)
    assert result.problems == {}
    assert len(result.standings.finished) == 2


@pytest.mark.slow
def test_an_interrupted_comparison_ends_as_if_it_had_never_stopped(table, tmp_path):
    def interrupt(name, progress):
        if name == "IID, FedProx mu=1" and progress and progress.round == 2:
            os.kill(os.getpid(), signal.SIGINT)

    cut = compare(compared(), tmp_path / "out", jobs=1, on_progress=interrupt)
    assert cut.interrupted
    assert [run.value is not None for run in cut.standings.runs] == [True, False, False, False]
    assert cut.report.tables[0].rows[0][2] == "–"
    again = compare(compared(), tmp_path / "out", jobs=1, resume=True)
    assert [run.value for run in again.standings.runs] == [run.value for run in table.standings.runs]
    for cell in cells(compared()):
        ours, whole = ((folder / cell.folder / "ledger.jsonl") for folder in (tmp_path / "out", table.folder))
        assert ours.read_text() == whole.read_text()
    assert not again.interrupted
    assert not any("nterrupted" in warning for warning in again.report.warnings)


def told(folder):
    """What runs have told so far, by its size."""
    return {path: path.stat().st_size for path in folder.glob("*/*.jsonl")}


def begun(folder):
    return [path for path in folder.glob("*/rounds.jsonl") if path.read_text().count("\n") > 2]


ENDLESS = {
    "data": {"name": "breast_cancer"},
    "partition": {"by": "iid", "parties": 3},
    "program": {"name": "gradient_descent", "formula": "malignant ~ mean_radius", "family": "binomial", "rounds": 10**7},
    "protection": {"disclosure": math.inf},
    "baselines": False,
    "comparison": {
        "rows": [{"name": "descent"}],
        "columns": [{"name": name, "set": {"program.learning_rate": rate}} for name, rate in (("slow", 1e-3), ("fast", 2e-3))],
        "measure": "largest gradient",
    },
}
"""Two runs that nobody waits for; their processes need no torch."""


def start_endless(tmp_path, out, **streams):
    """Run both side by side, each in a process, until both have begun."""
    write_study(parse(ENDLESS), tmp_path / "endless.toml")
    command = [sys.executable, "-m", "hedgerow", "run", str(tmp_path / "endless.toml"), "--out", str(out), "--jobs", "2"]
    process = subprocess.Popen(command, text=True, **streams)
    until(lambda: len(begun(out)) == 2, moved=lambda: told(out), ended=lambda: process.poll() is not None)
    return process


@pytest.mark.slow
def test_ctrl_c_stops_all_runs_after_their_round(tmp_path):
    """Those of other processes; one after the other in this process they are stopped above."""
    out = tmp_path / "out"
    process = start_endless(tmp_path, out, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate()
    assert process.returncode == 130, said
    assert "--resume" in said
    cut = {folder.parent.name: len(read_rounds(folder)) for folder in out.glob("*/rounds.jsonl")}
    assert all(0 < n < 10**7 for n in cut.values())
    assert len(cut) == 2
    for name in cut:
        assert (out / name / "checkpoint.safetensors").exists()
        digest = (out / name / "digest").read_text()
        assert finished_report(out / name, digest) is None
    report = Report.from_json(json.loads((out / "result.json").read_text()))
    assert any(warning.startswith("The comparison was interrupted") for warning in report.warnings)


@pytest.mark.slow
def test_a_run_whose_parent_is_gone_stops_after_its_round(tmp_path):
    out = tmp_path / "out"
    process = start_endless(tmp_path, out, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    process.kill()
    process.wait()
    folders = [folder.parent for folder in out.glob("*/rounds.jsonl")]
    until(lambda: all((folder / "result.json").exists() for folder in folders), moved=lambda: told(out))
    assert all("interrupted after" in (folder / "result.json").read_text() for folder in folders)


def test_a_second_ctrl_c_leaves_no_process():
    class Process:
        ended = False

        def end(self):
            self.ended = True

    def wait_with(running):
        with interruptible(), _none_left(running):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)

    running = {i: Process() for i in range(2)}
    with pytest.raises(KeyboardInterrupt):
        wait_with(running)
    assert all(process.ended for process in running.values())


def standing(value, epsilon=1.0, unit="party"):
    from hedgerow.privacy.statement import Statement

    return Standing(cells(compared())[0], value, said=Statement(epsilon, 1e-5, unit, ""))


def test_what_runs_spend_adds_up_where_they_protect_the_same_unit():
    assert privacy_of([standing(1.0), standing(1.0, 2.0)])[0].startswith("Epsilon 3 at delta 2e-05 per party for all 2 runs")
    assert "no sum is claimed" in privacy_of([standing(1.0), standing(1.0, unit="record")])[0]
    assert privacy_of([standing(1.0), standing(1.0, float("inf"))]) == (
        "No epsilon is claimed: in 1 of 2 runs releases went out without noise.",
        False,
    )
    assert privacy_of([])[1] is False


@pytest.mark.parametrize(
    ("value", "published", "said"),
    [
        (0.97123, 0.97, "0.9712 / 0.97 (+0.0012)"),
        (0.9, 0.95, "0.9 / 0.95 (−0.05)"),
        (12.0, 12.0, "12 / 12 (±0)"),
        (None, 0.5, "– / 0.5"),
        (0.5, None, "0.5"),
    ],
)
def test_ours_beside_the_published(value, published, said):
    assert beside(replace(standing(value), published=published)) == said


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({}, "a test table that was held out of the records"),
        ({"evaluation": {"holdout": 0.0}, "data": {"name": "mnist"}}, "the server's test table"),
        ({"evaluation": {"holdout": 0.0, "on": "parties"}}, "the parties' records"),
    ],
)
def test_a_table_that_was_tuned_on_its_test_records_says_so(changes, where):
    made = sweep(study(**changes), ["program.learning_rate=0.1,0.2"])
    found = Standings(made.comparison, "m", tuple(Standing(cell, value=1.0) for cell in cells(made)))
    assert tuned_on(found) == (
        f"Tuned on {where}: the best of 2 runs is the one with the best m there, so that its value is too good.",
    )
    assert {chosen_on(found, run) for run in found.runs} == {where}


def test_a_table_of_last_values_was_tuned_on_nothing_that_it_knows():
    silent = compared(take="last", published={}, source="")
    found = Standings(silent.comparison, "m", tuple(Standing(cell, value=1.0) for cell in cells(silent)))
    assert tuned_on(found) == ()
    said = compared(take="last", tuned="on other records.")
    found = Standings(said.comparison, "m", tuple(Standing(cell, value=1.0) for cell in cells(said)))
    assert tuned_on(found) == ("How settings were chosen: on other records.",)


def test_what_runs_expose_is_said_once_or_of_how_many():
    one = SimpleNamespace(exposed="A.", published=None)
    other = SimpleNamespace(exposed="", published=None)
    runs = [replace(standing(1.0), report=report) for report in (one, one)]
    assert exposed_of(runs) == ("A.",)
    assert exposed_of([*runs, replace(standing(1.0), report=other)]) == ("In 2 of 3 runs: A.",)


def test_only_the_best_of_many_lines_have_colours():
    made = sweep(study(), ["program.learning_rate=0.1,0.2,0.3,0.4,0.5,0.6,0.7"])
    runs = [
        Standing(cell, value=i / 10, history=[{"round": 1, "m": 0.0}, {"round": 2, "m": i / 10}])
        for i, cell in enumerate(cells(made))
    ]
    [curve] = curves(Standings(made.comparison, "m", tuple(runs)))
    assert [series.style for series in curve.series] == ["muted"] * 2 + ["main"] * 5
