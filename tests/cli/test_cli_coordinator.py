"""`hedgerow coordinator start|check`, `hedgerow submit|status|cancel|fetch`."""

import os
import signal
import subprocess
import sys

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from hedgerow.cli.coordinator import register
from hedgerow.errors import HedgerowError, StationUnknown, StudyInvalid, UnknownStudy
from hedgerow.network.coordinator.states import Boarded
from hedgerow.network.coordinator.store import Store
from hedgerow.network.identity.key_folder import KeyFolder
from hedgerow.study import load, run_study
from patience import PATIENCE, until

app = typer.Typer()
register(app)


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """A terminal that breaks no line."""
    monkeypatch.setattr("hedgerow.cli.coordinator.console", Console(width=240))


@pytest.fixture
def hub(tmp_path):
    """A coordinator's folder, without stations."""
    KeyFolder.make(tmp_path / "hub" / "keys", "hub", authority=True, hosts=["127.0.0.1"])
    (tmp_path / "hub" / "coordinator.toml").write_text('name = "hub"\nrail = { kind = "socket", path = "state/rail.sock" }\n')
    return tmp_path / "hub"


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def submitted(hub, *more):
    return invoke("submit", "breast-cancer-glm", "--at", hub, *more).output.strip()


def test_a_study_is_submitted_while_no_service_runs(hub):
    assert submitted(hub) == "breast-cancer-glm-001"
    assert submitted(hub, "--set", "name=other") == "other-001"
    shown = invoke("status", "--at", hub).output
    for words in ("breast-cancer-glm-001", "other-001", "submitted"):
        assert words in shown


def test_what_needs_a_simulation_is_refused_at_once(hub):
    found = invoke("submit", "diabetes-tree", "--at", hub).exception
    assert isinstance(found, StudyInvalid)
    assert "evaluation.holdout" in found.remedy


def test_a_program_setting_that_does_not_fit_is_refused_at_once(hub):
    assert isinstance(invoke("submit", "breast-cancer-glm", "--at", hub, "--set", "program.formla=1").exception, StudyInvalid)


def test_a_station_that_nobody_knows_is_refused_at_once(hub):
    found = invoke("submit", "breast-cancer-glm", "--at", hub, "--stations", "alpha,beta").exception
    assert isinstance(found, StationUnknown)
    assert "alpha" in found.reason


def test_status_tells_the_history_of_one_study_in_words(hub):
    id = submitted(hub)
    store = Store(hub / "state")
    store.move(id, "boarding", "stations are asked")
    store.board(id, [Boarded("beta", "refused", "HR-608", at=5.0)])
    store.enter(id, "asked", {"kind": "board", "number": 7, "bytes": {"beta": 5}})
    store.enter(id, "came", {"kind": "board", "number": 7, "bytes": {}, "codes": {"beta": "HR-608"}, "silent": []})
    store.close()
    shown = invoke("status", id, "--at", hub).output
    for words in ("boarding: stations are asked", "beta: refused (HR-608)", "beta refused: HR-608 SubmissionRefused"):
        assert words in shown
    assert "asked beta 5 bytes" not in shown
    assert "asked beta 5 bytes" in invoke("status", id, "--at", hub, "--letters").output


def test_cancel_leaves_a_wish_and_says_what_had_ended(hub):
    id = submitted(hub)
    assert "before its next question" in invoke("cancel", id, "--at", hub).output
    store = Store(hub / "state")
    assert store.wants_end(id)
    store.move(id, "cancelled", "by its researcher")
    store.close()
    assert "had ended: cancelled" in invoke("cancel", id, "--at", hub).output


def test_fetch_wants_a_study_that_finished(hub):
    found = invoke("fetch", submitted(hub), "--at", hub).exception
    assert isinstance(found, UnknownStudy)
    assert "is submitted" in found.reason


@pytest.mark.slow
def test_fetch_copies_the_run_and_shows_the_report(hub, tmp_path):
    id = submitted(hub)
    run_study(load("breast-cancer-glm"), hub / "runs" / id)
    store = Store(hub / "state")
    for state in ("boarding", "running", "finished"):
        store.move(id, state)
    store.close()
    shown = invoke("fetch", id, "--at", hub, "--out", tmp_path / "mine")
    assert shown.exit_code == 0
    assert "mean_radius" in shown.output
    assert (tmp_path / "mine" / "report.html").exists()
    assert isinstance(invoke("fetch", id, "--at", hub, "--out", tmp_path / "mine").exception, HedgerowError)


def test_check_tells_what_a_start_would_find(hub):
    assert "none yet" in invoke("coordinator", "check", hub).output
    submitted(hub)
    shown = invoke("coordinator", "check", hub).output
    for words in ("socket state/rail.sock", "none; hedgerow keys enrol", "1; not ended: 1", "whole: 1 entries"):
        assert words in shown


def test_check_refuses_the_keys_of_somebody_else(hub):
    (hub / "coordinator.toml").write_text('name = "other"\nrail = { kind = "socket", path = "state/rail.sock" }\n')
    assert "the keys in" in str(invoke("coordinator", "check", hub).exception)


def test_the_folder_may_be_in_the_environment(hub, monkeypatch):
    monkeypatch.setenv("HEDGEROW_COORDINATOR", str(hub))
    assert "coordinator" in invoke("coordinator", "check").output
    assert invoke("status").exit_code == 0


@pytest.mark.slow
def test_a_service_ends_in_good_order_on_sigterm_and_refuses_a_second_one(hub):
    pytest.importorskip("hedgerow.engines.rails.socket_rail")
    command = [sys.executable, "-c", "from hedgerow.cli.coordinator import app; app()", "start", str(hub)]
    first = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)
    try:
        until((hub / "state" / "rail.sock").exists, ended=lambda: first.poll() is not None)
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert second.returncode != 0
        assert "runs already" in second.stderr
        first.send_signal(signal.SIGTERM)
        _, said = first.communicate(timeout=PATIENCE)
    finally:
        first.kill()
    assert first.returncode == 0
    assert "hub stopped" in said
