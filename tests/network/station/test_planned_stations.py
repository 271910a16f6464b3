"""A file of owners, its plan, the study, three guards, the run and its report: one epsilon for each owner, the same digits."""

import json

import pytest
from test_own_noise import Service
from typer.testing import CliRunner

from hedgerow.cli.main import app
from hedgerow.core.ledger import grouped
from hedgerow.privacy.accounting import epsilon
from hedgerow.study import read_report
from hedgerow.study.toml import read_toml, to_toml

STUDY = {
    "name": "queries",
    "data": {
        "name": "heart",
        "target": "sick",
        "features": ["age", "dose"],
        "columns": {name: {"kind": "number", "range": ends} for name, ends in (("age", [20, 90]), ("dose", [0, 1]))},
    },
    "program": {"name": "gradient_queries", "rounds": 3, "n_records": 180, "model": "logistic", "noise": "gaussian"},
}
OWNERS = {
    "title": "Three clinics",
    "study": "base.toml",
    "pilot": {"residual": 0.6, "sampling": 1.0, "curvature": [0.5, 1.0], "best": [0.8, -0.6]},
    "value": {"per_fitness": 200.0},
    "owners": {
        "alpha": {"records": 60, "epsilon": [0.5, 20.0], "cost": 1e-4},
        "beta": {"records": 60, "epsilon": [0.5, 20.0], "cost": 1e-3},
        "gamma": {"records": 60, "epsilon": [0.5, 9.25], "cost": 0.0},
    },
}


def charged(station):
    """Epsilon of everything in a station's journal, computed anew from its entries."""
    entries = [charge.entry() for _, charge in station.journal.charges()]
    return epsilon(grouped(entries, "record"), delta=1e-6, adjacency="add-remove", accountant="tightest")


@pytest.mark.slow
def test_a_plan_becomes_a_study_a_run_a_report_and_the_guards_of_three_stations(tmp_path):
    (tmp_path / "base.toml").write_text(to_toml(STUDY))
    (tmp_path / "owners.toml").write_text(to_toml(OWNERS))
    files = ["--write-study", tmp_path / "study.toml", "--write-guards", tmp_path / "guards", "--out", tmp_path / "plan.html"]
    said = CliRunner().invoke(app, ["plan", str(tmp_path / "owners.toml"), "--json", *map(str, files)], catch_exceptions=False)
    planned = {one["name"]: one["epsilon"] for one in json.loads(said.stdout)["owners"]}
    assert len(set(planned.values())) == 3
    assert planned["gamma"] == 9.25, "an owner without a cost is as open as it offers"

    study = read_toml((tmp_path / "study.toml").read_text())
    assert study["program"]["epsilons"] == planned
    assert {name: one["epsilon"] for name, one in study["party_budgets"].items()} == planned
    guards = {name: read_toml((tmp_path / "guards" / f"{name}.toml").read_text())["guard"] for name in planned}
    assert {name: guard["budget"]["epsilon"] for name, guard in guards.items()} == planned
    page = (tmp_path / "plan.html").read_text()
    assert all(repr(value).removesuffix(".0") in page for value in planned.values())

    service = Service(tmp_path, guards, approval="automatic")
    kept = service.run((tmp_path / "study.toml").read_text())
    assert kept.state == "finished", kept.reason
    for name, station in service.house.stations.items():
        assert planned[name] * (1 - 1.01e-3) < charged(station) <= planned[name]
    folder = service.coordinator.config.runs_folder / kept.id
    report = read_report(folder).report
    tables = {one.title: one for one in report.tables}
    assert {name: limit for name, limit, *_ in tables["Budgets of parties"].rows} == planned
    (row,) = tables["Forecast"].rows
    assert row[:4] == tuple(study["forecast"][key] for key in ("measure", "expected", "low", "high"))
