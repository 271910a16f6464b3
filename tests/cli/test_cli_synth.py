"""`hedgerow synth`: conditions are read before anything else, runs are found, and files say what made them."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow.cli import runs
from hedgerow.cli.main import app
from hedgerow.cli.synth import read_conditions
from hedgerow.data import Column, Schema
from hedgerow.errors import (
    CannotWrite,
    CheckpointMismatch,
    MissingColumn,
    MissingData,
    SettingsInvalid,
    StudyInvalid,
    UnknownStudy,
)
from hedgerow.export import read_run
from hedgerow.study import load, run_study
from hedgerow.study.registry import own
from hedgerow.synth import provenance_of

STUDY = """
[data]
path = "real.csv"
[data.columns.age]
kind = "integer"
range = [18, 90]
[data.columns.dose]
kind = "number"
range = [0, 5]
[data.columns.sex]
levels = ["Female", "Male"]
role = "target"
[partition]
by = "iid"
parties = 2
[program]
name = "copula"
bins = 8
epsilon = 2.0
delta = 1e-5
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study, and the folder of a run of it."""
    folder, rng = tmp_path_factory.mktemp("synth"), np.random.default_rng(0)
    age = rng.integers(18, 91, 400)
    frame = pd.DataFrame({"age": age, "dose": rng.uniform(0, 5, 400), "sex": np.where(age > 50, "Female", "Male")})
    frame.to_csv(folder / "real.csv", index=False)
    (folder / "people.toml").write_text(STUDY)
    run_study(load(folder / "people.toml"), folder / "runs" / "people-001")
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def invoke(*arguments):
    return CliRunner().invoke(app, ["synth", *(str(argument) for argument in arguments)], catch_exceptions=True)


def test_conditions_are_words_ranges_and_several_words():
    given = ["sex=Female", "age=40..60", "dose=..2.5", "x=-3..", "y=7", "z=a", "z=b", "eq=a=b", "v=1.5.."]
    assert read_conditions(given) == {
        "sex": "Female",
        "age": (40, 60),
        "dose": (None, 2.5),
        "x": (-3, None),
        "y": "7",
        "z": ["a", "b"],
        "eq": "a=b",
        "v": (1.5, None),
    }


@pytest.mark.parametrize(
    "wrong", [["sex"], ["=Female"], ["sex="], ["age=.."], ["age=60..40"], ["a=1..2", "a=3"], ["a=1", "a=1..2"]]
)
def test_a_condition_that_is_none_is_refused_before_anything_is_read(wrong):
    said = [part for one in wrong for part in ("--where", one)]
    ended = invoke("no such study", *said)
    assert isinstance(ended.exception, SettingsInvalid)
    assert ended.exception.code == "HR-511"


COLUMNS = Schema(
    (Column("g", "category", levels=("1", "2", "3", "4..5")), Column("age", "integer", low=0, high=90), Column("ill", "binary"))
)


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        (["g=1..3"], "--where g=1 --where g=2"),
        (["ill=0.."], "--where ill=0 --where ill=1"),
        (["age=40", "age=44"], "age=40..44"),
        (["age=40", "age=42", "age=44"], "age=40..44"),
        (["age=40-60"], "age=40..60"),
        (["g=1,3"], "--where g=1 --where g=3"),
    ],
)
def test_a_range_of_levels_and_two_values_of_a_number_are_refused(wrong, remedy):
    with pytest.raises(SettingsInvalid) as refused:
        read_conditions(wrong, COLUMNS)
    assert remedy in refused.value.remedy


def test_conditions_are_those_of_the_columns():
    found = read_conditions(["g=1", "g=3", "age=40..44", "ill=1"], COLUMNS)
    assert found == {"g": ["1", "3"], "age": (40, 44), "ill": "1"}
    assert read_conditions(["g=4..5"], COLUMNS) == {"g": "4..5"}  # a level of that name
    with pytest.raises(MissingColumn):
        read_conditions(["height=1"], COLUMNS)


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (["--seed", "-1"], SettingsInvalid),
        (["--out", "people.xlsx"], SettingsInvalid),
        (["--out", "real.csv"], CannotWrite),
        (["--rows", "0"], SettingsInvalid),
    ],
)
def test_a_place_and_a_number_are_refused_before_anything_is_read(here, wrong, kind):
    assert isinstance(invoke("no such study", *wrong).exception, kind)


@pytest.mark.slow
def test_records_are_drawn_from_a_run_and_say_so(here, tmp_path):
    out = tmp_path / "people.csv"
    ended = invoke(
        "runs/people-001", "--rows", 200, "--where", "sex=Female", "--where", "age=40..60", "--seed", 3, "--out", out
    )
    assert ended.exit_code == 0, ended.exception
    frame = pd.read_csv(out)
    assert len(frame) == 200
    assert set(frame.sex) == {"Female"}
    assert frame.age.between(40, 60).all()
    said, run = provenance_of(out), read_run(here / "runs/people-001")
    assert said["epsilon"] == pytest.approx(run.said.epsilon)
    assert said["epsilon"] == pytest.approx(2.0, rel=1e-6)
    assert (said["delta"], said["seed"], said["study"], said["digest"]) == (1e-5, 3, "people", "")  # a simulation's is not told
    assert said["where"] == {"sex": "Female", "age": [40, 60]}
    assert run.said.sentence in ended.output
    assert "epsilon 2 at delta 1e-05 per record" in " ".join(ended.output.split())
    again = invoke("runs/people-001", "--rows", 200, "--where", "sex=Female", "--where", "age=40..60", "--seed", 3, "--json")
    pd.testing.assert_frame_equal(pd.DataFrame(json.loads(again.stdout)["records"]), frame.head(10))
    assert frame.age.dtype == np.int64  # whole numbers are written as such


@pytest.mark.slow
def test_the_digest_is_told_where_the_operating_system_drew(here, tmp_path):
    result = run_study(load("people.toml", {"seed": "system"}), tmp_path / "run")
    assert read_run(result.folder).synthesizer.provenance.digest == load(tmp_path / "run" / "study.toml").digest


def test_a_few_records_are_printed_without_a_file(here):
    ended = invoke("runs/people-001", "--rows", 30)
    assert ended.exit_code == 0, ended.exception
    assert "10 of 30 made-up records" in ended.output
    told = json.loads(invoke("runs/people-001", "--rows", 3, "--json").stdout)
    assert [sorted(one) for one in told["records"]] == [["age", "dose", "sex"]] * 3
    assert told["provenance"]["seed"] is None


@pytest.mark.slow
def test_made_up_records_are_a_study_s_data_as_they_are(here, tmp_path):
    for name in ("people.csv", "people.parquet"):
        assert invoke("runs/people-001", "--seed", 0, "--out", tmp_path / name).exit_code == 0
        table = hr.data.read(tmp_path / name)
        assert [(c.low, c.high, c.levels, c.role) for c in table.schema] == [
            (18, 90, (), "feature"),
            (0, 5, (), "feature"),
            (None, None, ("Female", "Male"), "target"),
        ]
        assert "not declared" not in table.source
    again = '[data]\npath = "people.csv"\n[program]\nname = "copula"\nbins = 8\nepsilon = 2.0\ndelta = 1e-5\n'
    (tmp_path / "again.toml").write_text(again)
    assert run_study(load(tmp_path / "again.toml"), tmp_path / "again").report.privacy_ok
    narrower = hr.data.read(tmp_path / "people.csv", declared={"age": {"kind": "integer", "range": [0, 120]}})
    assert narrower.schema["age"].high == 120
    assert narrower.schema["dose"].high == 5


def test_of_a_study_the_newest_finished_run_of_it_as_it_is_now_is_used(here, monkeypatch):
    study = load("people.toml")
    (here / "runs" / "people-002").mkdir(exist_ok=True)  # not finished
    assert runs.newest_run(study).name == "people-001"
    assert runs.newest_run(load("people.toml", {"program.epsilon": 1.0})) is None
    ended = invoke("people.toml", "--rows", 5)
    assert "Drawn from runs/people-001" in ended.output


@pytest.mark.slow
def test_a_study_without_a_run_is_run_first_and_says_its_privacy(here, tmp_path, monkeypatch):
    monkeypatch.setattr("hedgerow.cli.synth.RUNS", tmp_path)
    monkeypatch.setattr("hedgerow.cli.synth.newest_run", lambda study: None)
    assert isinstance(invoke("people.toml", "--where", "age=100..").exception, SettingsInvalid)
    assert isinstance(invoke("people.toml", "--where", "height=100..").exception, MissingColumn)
    (here / "two.toml").write_text(STUDY + 'columns = ["dose", "sex"]\n')
    assert isinstance(invoke("two.toml", "--where", "age=40").exception, MissingColumn)  # its records have no age
    assert isinstance(invoke("people.toml", "--where", "sex=1..2").exception, SettingsInvalid)
    assert not any(tmp_path.iterdir())  # nobody was asked
    ended = invoke("people.toml", "--rows", 5)
    assert ended.exit_code == 0, ended.exception
    assert (tmp_path / "people-001" / "report.html").exists()
    assert "at delta 1e-05 per record" in ended.output


@pytest.mark.slow
def test_the_planned_noise_of_a_budget_does_not_hide_a_run(here, tmp_path):
    text = STUDY.replace("epsilon = 2.0\ndelta = 1e-5\n", "")
    text += '[protection.mechanism]\nlaw = "gaussian"\n[budget]\nepsilon = 2.0\ndelta = 1e-5\nunit = "record"\n'
    (here / "budget.toml").write_text(text)
    run_study(load("budget.toml"), tmp_path / "budget-001")
    assert runs.newest_run(load("budget.toml"), tmp_path).name == "budget-001"


@pytest.mark.slow
def test_programs_that_draw_nothing_are_refused_with_those_that_do():
    ended = invoke("breast-cancer-glm")
    assert isinstance(ended.exception, StudyInvalid)
    assert "Programs that make records" in str(ended.exception)
    assert "copula" in str(ended.exception)
    assert isinstance(invoke("heterogeneity").exception, StudyInvalid)
    assert isinstance(invoke("no such study").exception, UnknownStudy)
    assert {name for name, place in own().items() if place.draws} >= {"copula"}


def test_the_report_of_such_a_run_says_how_to_draw(here):
    assert any("hedgerow synth FOLDER" in note for note in read_run(here / "runs/people-001").report.notes)
    ended = CliRunner().invoke(app, ["report", "runs/people-001"])
    assert "hedgerow synth runs/people-001 --rows 1000" in ended.output


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda run: (run / "model.safetensors").unlink(), MissingData),
        (lambda run: _replaced(run / "study.toml", "bins = 8", "bins = 6"), CheckpointMismatch),
    ],
)
def test_a_folder_that_was_changed_is_refused(here, tmp_path, spoil, kind):
    run = shutil.copytree(here / "runs/people-001", tmp_path / "run")
    assert len(read_run(run).synthesizer.sample(3)) == 3
    spoil(run)
    ended = invoke(run, "--rows", 3)
    assert isinstance(ended.exception, kind)
    assert ended.exception.remedy


def _replaced(path, old, new):
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
