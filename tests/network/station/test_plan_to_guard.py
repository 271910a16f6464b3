"""From a file of owners to each station's guard: one plan, its study run over three stations, the same digits everywhere."""

import json
import tomllib
from dataclasses import dataclass
from typing import Any

import pandas
import pytest
from test_own_noise import Service
from typer.testing import CliRunner

import hedgerow.study as studies
from hedgerow.cli.main import app
from hedgerow.core.ledger import grouped
from hedgerow.network.station.config import GuardSection
from station_house import records

OWNERS = {"alpha": 0.5, "beta": 1.53, "gamma": 2.98}
STUDY = """
name = "queries"
baselines = false
[data]
path = "heart.csv"
target = "sick"
features = ["age", "dose"]
[data.columns]
age = { kind = "number", range = [20, 90] }
dose = { kind = "number", range = [0, 1] }
sick = { kind = "binary" }
[program]
name = "gradient_queries"
rounds = 3
n_records = 180
model = "logistic"
ridge = 0.1
"""
FILE = """
title = "Three clinics"
study = "queries.toml"
[pilot]
residual = 0.6
amplification = 2.0
bias = 0.01
sampling = 1.0
[owners]
"""


@dataclass
class Planned:
    """What `hedgerow plan` wrote."""

    told: dict[str, Any]
    text: str
    guards: dict[str, dict[str, Any]]

    @classmethod
    def of(cls, folder, law):
        clinics = pandas.concat([pandas.DataFrame(records(name)) for name in OWNERS])
        clinics[["age", "dose", "sick"]].to_csv(folder / "heart.csv", index=False)
        (folder / "queries.toml").write_text(STUDY + f'noise = "{law}"\n')
        lines = [f"{name} = {{ records = 60, epsilon = {epsilon} }}" for name, epsilon in OWNERS.items()]
        (folder / "owners.toml").write_text(FILE + "\n".join(lines) + "\n")
        study, guards = folder / "planned.toml", folder / "guards"
        said = CliRunner().invoke(
            app, ["plan", str(folder / "owners.toml"), "--write-study", str(study), "--write-guards", str(guards), "--json"]
        )
        assert said.exit_code == 0, said.output
        read = {name: tomllib.loads((guards / f"{name}.toml").read_text())["guard"] for name in OWNERS}
        return cls(json.loads(said.stdout), study.read_text(), read)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_a_plan_is_kept_to_the_digit_by_study_run_report_and_guards(tmp_path, law):
    plan = Planned.of(tmp_path, law)
    study = studies.parse(tomllib.loads(plan.text))
    for name, epsilon in OWNERS.items():  # one number everywhere
        budget = GuardSection.model_validate(plan.guards[name]).budget
        assert epsilon == study.party_budgets[name].epsilon == budget.epsilon == study.program.model_extra["epsilons"][name]
        assert budget.delta == study.party_budgets[name].delta
        assert budget.accountant == study.party_budgets[name].accountant

    guards = {name: guard | {"approval": "automatic"} for name, guard in plan.guards.items()}
    service = Service(tmp_path, guards)
    kept = service.run(plan.text)
    assert kept.state == "finished", kept.reason

    report = json.loads((service.coordinator.config.runs_folder / kept.id / "result.json").read_text())
    tables = {
        one["title"]: {row[0]: dict(zip(one["columns"], row, strict=True)) for row in one["rows"]} for one in report["tables"]
    }
    for name, agreed in OWNERS.items():
        station = service.house.stations[name]
        limit = station.config.guard.budget.budget()
        spent = limit.spent(grouped([charge.entry() for _, charge in station.journal.charges()], "record"))
        assert spent <= agreed
        assert spent == pytest.approx(agreed, rel=1e-15 if law == "laplace" else 1.01e-3)
        shown = tables["Budgets of parties"][name]
        assert (shown["budget"], shown["spent"], shown["delta"]) == (agreed, spent, limit.delta)
        assert station.account.spent()[0][1] == spent
        [submission] = station.submissions.all()
        assert f"By the noise that is added here: epsilon {spent:.4g}, of the epsilon {agreed:g}, delta" in submission.summary
    expected = tables["Forecast"]["relative fitness"]
    assert expected["expected"] == study.forecast.expected
    assert expected["which is"] == "not known: only a simulation can compute it"

    asked = {name: service.house.codes(name).count(("ask", "answered")) for name in OWNERS}
    assert set(asked.values()) == {3}
    again = service.run(plan.text.replace('"queries"', '"again"'))
    assert again.state == "refused"
    assert "HR-213" in again.reason
    assert {name: service.house.codes(name).count(("ask", "answered")) for name in OWNERS} == asked
