"""`hedgerow audit` and `[audit]`: lights in the terminal, in JSON and on a page; studies that cannot be audited say why."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from hedgerow.cli.main import app
from hedgerow.errors import SettingsInvalid
from hedgerow.report import AuditLights, Report, render
from hedgerow.study import load, run_study
from hedgerow.study.audits import audit, audited

STUDY = """
seed = 0
baselines = false
[data]
name = "breast_cancer"
[partition]
by = "iid"
parties = 3
[program]
name = "means"
columns = ["mean_radius", "mean_texture", "mean_area", "mean_smoothness"]
[protection]
disclosure = inf
mechanism = { law = "gaussian", noise_multiplier = 2.0 }
[budget]
epsilon = 8
delta = 1e-5
unit = "record"
[evaluation]
on = "none"
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "noisy-means.toml"
    file.write_text(STUDY)
    return file


@pytest.mark.slow
def test_the_command_prints_three_lights_and_what_it_would_see(path, tmp_path):
    page = tmp_path / "audit.html"
    made = CliRunner().invoke(app, ["audit", str(path), "--runs", "12", "--out", str(page)])
    assert made.exit_code == 0, made.output
    for words in ("accounted", "law", "bound", "attack", "would see", "GREEN", "half the noise:"):
        assert words in made.output
    assert "Scores of canaries" in page.read_text()


@pytest.mark.slow
def test_json_has_the_same_lights(path):
    made = CliRunner().invoke(app, ["audit", str(path), "--runs", "12", "--json"])
    told = json.loads(made.stdout)
    assert set(told) == {"accounted", "audit", "lights", "would_see", "red"}
    assert {name: one["light"] for name, one in told["lights"].items()} == {"law": "dim", "bound": "green", "attack": "green"}


def test_one_run_of_few_numbers_is_dim_and_says_that_it_sees_little(path):
    found = audit(load(path))
    assert found.law.power.against(0.5) < 0.5
    assert {name: light for name, light, *_ in found.lights.lights}["law"] == "dim"


@pytest.mark.slow
def test_a_run_with_the_section_has_lights_on_its_page_and_the_command_reads_them(path, tmp_path):
    study = load(path, {"audit.canaries": 10, "audit.runs": 12})
    result = run_study(study, tmp_path / "run")
    lights = result.report.audit
    assert lights is not None
    assert not lights.red
    assert Report.from_json(json.loads(json.dumps(result.report.to_json()))).audit == lights
    assert "Audit" in render(result.report)
    assert any(grid.title == "Audit by canaries" for grid in result.report.tables)
    assert "the audit" in result.report.exposed
    made = CliRunner().invoke(app, ["audit", str(tmp_path / "run")])
    assert made.exit_code == 0
    assert "GREEN" in made.output


def test_a_red_light_is_a_failure(monkeypatch, path):
    red = AuditLights("epsilon 1", "one run", (("law", "red", "too little noise", ""),), "all")
    monkeypatch.setattr("hedgerow.cli.audit._audited", lambda *given: red)
    assert CliRunner().invoke(app, ["audit", str(path)]).exit_code == 1


@pytest.mark.slow
def test_a_run_without_an_audit_says_how_to_make_one(path, tmp_path):
    run_study(load(path), tmp_path / "run")
    made = CliRunner().invoke(app, ["audit", str(tmp_path / "run")])
    assert made.exit_code == 1
    assert "has no audit" in str(made.exception)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"protection.mechanism.law": "tree", "protection.mechanism.rounds": 1}, "shared with other questions"),
        ({"engine.name": "loop"}, "the engine is Loop"),
        ({"protection": {"disclosure": 1000.0}, "budget": None}, "releases no noisy sum"),
    ],
)
def test_what_cannot_be_audited_is_refused_with_the_reason(path, change, why):
    study = load(path, {key: value for key, value in change.items() if value is not None})
    with pytest.raises(SettingsInvalid, match=why):
        audited(study if "budget" not in change else study.model_copy(update={"budget": None}), canaries=4)


def test_a_program_that_makes_runs_of_its_own_is_refused_before_anything_is_rehearsed():
    with pytest.raises(SettingsInvalid, match="runs of its own"):
        audited(load("private-adult"))


def test_parties_with_different_columns_are_not_audited():
    with pytest.raises(SettingsInvalid, match="hold different columns"):
        audited(load("vertical-heart"))


def test_an_audit_is_part_of_what_identifies_a_run_and_its_absence_is_not(path):
    assert load(path).digest != load(path, {"audit.canaries": 5}).digest
