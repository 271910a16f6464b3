"""Studies of parties with different columns on the command line: explained, checked, rehearsed and run."""

import json

import pytest
from typer.testing import CliRunner

from hedgerow.cli.main import app, main
from hedgerow.errors import StudyInvalid

STUDY = """
title = "Hearts"
[data]
name = "heart_failure"
[roles]
clinic = ["age", "sex"]
laboratory = ["serum_creatinine", "death_event"]
label = "laboratory.death_event"
overlap = 0.5
[alignment]
on = "nin"
least = 20
[program]
name = "alignment"
[quick]
"data.records" = 100
"""


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "hearts.toml"
    path.write_text(STUDY)
    return str(path)


def said(*arguments):
    found = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


@pytest.mark.parametrize("command", ["explain", "rehearse"])
def test_a_study_says_who_will_learn_what_without_reading_data(study, command):
    told = json.loads(said(command, study, "--json"))
    assert list(told["learns"]) == ["clinic", "laboratory", "hub", "world"]
    assert "Which of its own people are in all lists" in told["learns"]["clinic"][0]
    assert told["rules"]["fewest people in common"] == 20
    assert "Who will learn what" in said(command, study)


def test_a_study_of_parties_with_the_same_columns_is_explained_in_a_sentence():
    assert "hedgerow rehearse breast-cancer-glm" in said("explain", "breast-cancer-glm")


def test_check_reads_everything_and_asks_nobody(study):
    told = json.loads(said("check", study, "--json"))
    assert told["columns"]["clinic"] == ["age", "sex"]
    assert told["people"] == {"clinic": 225, "laboratory": 224}
    assert "columns clinic: age, sex" in said("check", study)


def test_check_of_parties_with_the_same_columns_counts_them():
    assert json.loads(said("check", "breast-cancer-glm", "--json"))["parties"] == 5


def test_check_refuses_what_a_run_would(study):
    with pytest.raises(StudyInvalid, match="Did you mean 'laboratory'"):
        said("check", study, "--set", "roles.label=labratory.death_event")


def test_a_quick_run_prints_who_saw_what(study, tmp_path):
    shown = said("run", study, "--quick", "--out", tmp_path / "run")
    assert "Who saw what" in shown
    assert "Letters between roles" in shown
    told = json.loads(said("report", tmp_path / "run", "--json"))
    assert told["metrics"]["people in common"] == 50
    assert list(told["saw"]) == ["clinic", "laboratory", "hub", "world"]
    assert told["letters"]["columns"][0] == "purpose"


def test_why_a_party_of_a_simulation_declined_is_printed_with_its_remedy(tmp_path, monkeypatch, capsys):
    rows = "nin,{}\n" + "".join(f"{i},{i % 7}\n" for i in range(30))
    for name, column in (("a", "x"), ("b", "y")):
        (tmp_path / f"{name}.csv").write_text(rows.format(column))
    (tmp_path / "s.toml").write_text(FILES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["hedgerow", "run", "s.toml"])
    with pytest.raises(SystemExit):
        main()
    told = capsys.readouterr().err
    assert "HR-221" in told
    assert "Cause: IdsInvalid [HR-413]: ids look like one of about" in told
    assert '  Say small_domain="accepted"' in told


FILES = """
[data.parties]
a = "a.csv"
b = "b.csv"
[alignment]
on = "nin"
[program]
name = "alignment"
"""
