"""`--json`: one object on the standard output, with the keys that docs/command.md lists, and nothing else."""

import json
import re
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from hedgerow.cli.json_output import plain
from hedgerow.cli.main import app

PAGE = (Path(__file__).parents[2] / "docs" / "command.md").read_text(encoding="utf-8")
LISTED = dict(re.findall(r"^\| `([a-z -]+)` \| (.*) \|$", PAGE, flags=re.MULTILINE))
SILENT = {  # they run until they are stopped, or only write files and say which
    "aggregator card",
    "aggregator init",
    "aggregator rekey",
    "aggregator start",
    "coordinator start",
    "dictionary draft",
    "dictionary export",
    "dictionary import",
    "keys request",
    "keys enrol",
    "keys init",
    "keys revoke",
    "keys rotate",
    "keys welcome",
    "ledger show",
    "station begin-anew",
    "station journal",
    "station start",
}


def told(*arguments, code=0):
    """The object that a command prints; its keys are those of the page."""
    found = CliRunner().invoke(app, [*map(str, arguments), "--json"], catch_exceptions=False)
    assert found.exit_code == code, found.output
    value = json.loads(found.stdout)
    name = next(name for name in sorted(LISTED, key=len, reverse=True) if " ".join(map(str, arguments)).startswith(name))
    assert set(value) <= set(re.findall(r"`(\w+)`", LISTED[name])), name
    return value


def commands(group, before=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        else:
            yield " ".join((*before, name)), command


def test_every_command_that_prints_has_json_and_a_line_on_the_page():
    found = dict(commands(get_command(app)))
    with_json = {name for name, command in found.items() if any("--json" in option.opts for option in command.params)}
    assert set(found) - with_json <= SILENT
    assert with_json - set(LISTED) <= {"aggregator journal", "keys list", "ledger show", "station journal"}
    assert set(LISTED) <= with_json


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (float("inf"), "infinity"),
        (float("nan"), None),
        ((1, 2.5, True, None), [1, 2.5, True, None]),
        ({1: {"a"}}, {"1": ["a"]}),
        (Path("a") / "b", "a/b"),
    ],
)
def test_values_have_one_form(value, written):
    assert plain(value) == written


@pytest.mark.slow
def test_what_is_bundled():
    found = told("studies")
    assert "breast-cancer-glm" in found["studies"]
    assert "heart_failure" in found["data"]


def test_plans_of_noise():
    z = told("privacy", "noise", "--epsilon", "2", "--delta", "1e-5")
    assert told("privacy", "epsilon", "-z", z["noise_multiplier"], "--delta", "1e-5")["epsilon"] == pytest.approx(z["epsilon"])
    assert z["plan"] == {"rounds": 1, "sampling_rate": 1.0, "law": "gaussian", "sampling": "all", "adjacency": "add-remove"}
    rounds = told("privacy", "rounds", "-z", "1", "--epsilon", "2", "--delta", "1e-5", "--spent", "1", "--accountant", "rdp")
    assert rounds["left"] == max(0, rounds["rounds"] - 1)


@pytest.mark.slow
def test_a_run_its_report_its_rehearsal_and_its_ledger(tmp_path):
    rehearsed = told("rehearse", "breast-cancer-glm")
    ran = told("run", "breast-cancer-glm", "--out", tmp_path / "run")
    assert rehearsed["questions"][0]["numbers"] == 24
    assert (ran["stopped"], ran["metrics"]["AIC"]) == ("finished", pytest.approx(195.29, abs=0.01))
    assert {**told("report", tmp_path / "run"), "stopped": "finished"} == ran
    assert told("ledger", "verify", tmp_path / "run")["entries"] == 9
    assert told("ledger", "budget", tmp_path / "run", "--epsilon", "8", "--delta", "1e-3")["spent"] == "infinity"
    lines = (tmp_path / "run" / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    (tmp_path / "run" / "ledger.jsonl").write_text("\n".join(lines[:3] + lines[4:]) + "\n", encoding="utf-8")
    assert not told("ledger", "verify", tmp_path / "run", code=1)["whole"]


@pytest.mark.slow
def test_a_pilot_its_coordinator_and_its_stations(tmp_path):
    laid = told("pilot", tmp_path / "pilot", "--stations", "2", "--rail", "socket")
    assert laid["stations"] == ["alpha", "beta"]
    hub, alpha = tmp_path / "pilot" / "hub", tmp_path / "pilot" / "alpha"
    id = told("submit", tmp_path / "pilot" / "study.toml", "--at", hub)["id"]
    assert told("status", "--at", hub)["studies"][0]["state"] == "submitted"
    assert told("cancel", id, "--at", hub)["cancelled"]
    assert told("status", id, "--at", hub)["history"]
    assert told("coordinator", "check", hub)["stations"] == ["alpha", "beta"]
    assert {column["name"] for column in told("station", "check", alpha)["columns"]} >= {"mean_radius", "malignant"}
    assert told("station", "inbox", alpha)["submissions"] == []
    assert told("station", "budget", alpha)["budgets"] == []
