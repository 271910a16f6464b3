"""Audits that cannot be made are refused before anything is trained, and options that would do nothing are not taken."""

from __future__ import annotations

import pytest
from test_audit_section import STUDY
from typer.testing import CliRunner

from hedgerow.cli.main import app
from hedgerow.errors import SettingsInvalid
from hedgerow.study import load, run_study
from hedgerow.study.audits import audit


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "noisy-means.toml"
    file.write_text(STUDY)
    return file


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"canaries": 0}, "canaries is 0"),
        ({"runs": -1}, "runs is -1"),
        ({"seed": -1}, "seed is -1"),
        ({"level": float("nan")}, "level nan"),
        ({"level": 2.0}, "level 2.0"),
    ],
)
def test_numbers_out_of_range_are_refused(path, given, why):
    with pytest.raises(SettingsInvalid, match=why):
        audit(load(path), **given)


@pytest.mark.slow
def test_a_study_that_cannot_be_audited_is_not_trained(path, tmp_path):
    study = load(path, {"audit.canaries": 10, "protection": {"disclosure": 1000.0}, "budget": None})
    with pytest.raises(SettingsInvalid, match="releases no noisy sum"):
        run_study(study.model_copy(update={"budget": None}), tmp_path / "run")
    assert not (tmp_path / "run" / "ledger.jsonl").exists()


def test_a_folder_without_a_run_is_told(tmp_path):
    made = CliRunner().invoke(app, ["audit", str(tmp_path)])
    assert made.exit_code == 1
    assert "without a finished run" in str(made.exception)


def test_options_for_an_audit_that_was_made_are_refused(tmp_path):
    (tmp_path / "result.json").write_text("{}")
    made = CliRunner().invoke(app, ["audit", str(tmp_path), "--canaries", "7"])
    assert made.exit_code == 1
    assert "options change nothing" in str(made.exception)
