"""Pages of errors without a network: every code is told, from the checkout and from the package."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from hedgerow.cli import explain
from hedgerow.cli.main import app
from hedgerow.errors import StudyInvalid, UnboundedSum, catalogue


def told(*arguments: str) -> str:
    found = CliRunner().invoke(app, ["explain", *arguments], catch_exceptions=False)
    assert found.exit_code == 0
    return found.stdout


@pytest.mark.parametrize("code", catalogue())
def test_every_code_has_a_page_that_begins_with_its_name(code):
    assert told(code).startswith(f"# {code} {catalogue()[code].__name__}\n\n**What happened.** ")


@pytest.mark.parametrize("word", ["HR-210", "hr-210", "210", "UnboundedSum"])
def test_a_code_can_be_written_as_it_comes(word):
    assert json.loads(told(word, "--json"))["code"] == "HR-210"


def test_without_a_code_all_are_listed():
    assert [one["code"] for one in json.loads(told("--json"))["errors"]] == list(catalogue())
    assert "HR-618" in told()


def test_an_unknown_code_is_refused_with_a_suggestion():
    with pytest.raises(StudyInvalid, match="no error has the code 'HR-219'"):
        told("HR-219")


def test_a_number_that_is_no_code_gets_no_code_for_a_suggestion():
    with pytest.raises(StudyInvalid) as caught:
        told("HR-999")
    assert caught.value.remedy == "`hedgerow explain` lists every code and its name."
    with pytest.raises(StudyInvalid) as caught:
        told("UnboundSum")
    assert caught.value.remedy.startswith("Did you mean 'UnboundedSum'?")


def test_completion_is_that_of_the_command_whoever_starts_it():
    completed = subprocess.run(
        [sys.executable, "-m", "hedgerow"],
        env={**os.environ, "_HEDGEROW_COMPLETE": "source_bash"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout.rstrip().endswith(" hedgerow")
    assert "-m" not in completed.stdout


def test_an_error_ends_with_the_command_that_tells_more():
    last = str(UnboundedSum("a reason")).splitlines()[-1]
    command = last.partition("More: hedgerow ")[2].split()
    assert told(*command[1:]).startswith("# HR-210")


def test_without_its_pages_a_code_is_told_in_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(explain.hedgerow, "__file__", str(tmp_path / "src" / "hedgerow" / "__init__.py"))
    assert explain.page("HR-105") == "# HR-105 MissingExtra\n\nAn optional package is needed and not installed."


def test_the_version_is_told_before_anything_is_imported():
    code = "import sys; sys.argv = ['hedgerow', '--version']\nfrom hedgerow.cli.start import main; main()\nprint(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    version, _, modules = found.partition("\n")
    assert version == told_version()
    assert not {"numpy", "typer", "rich", "cryptography", "hedgerow.cli.main"} & set(modules.split())


def told_version() -> str:
    return CliRunner().invoke(app, ["--version"]).stdout.strip()


def test_of_a_study_s_file_the_next_command_is_one_that_runs(tmp_path, monkeypatch):
    text = 'name = "tumours"\n[data]\nname = "breast_cancer"\n[partition]\nby = "iid"\nparties = 3\n'
    (tmp_path / "own.toml").write_text(text + '[program]\nname = "moments"\ncolumns = ["mean_radius"]\n')
    monkeypatch.chdir(tmp_path)
    for name in ("own.toml", "diabetes-tree"):
        assert f"`hedgerow rehearse {name}`" in " ".join(told(name).split())
