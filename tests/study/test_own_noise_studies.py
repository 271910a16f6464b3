"""Studies whose program divides a budget of its own: what is said before they run, refused, and stated in a report."""

import pytest
from typer.testing import CliRunner

from hedgerow.cli.main import app
from hedgerow.errors import BudgetExhausted, SlotFilled
from hedgerow.store import last
from hedgerow.study import parse, rehearse, run_study
from hedgerow.study.baselines import baselines
from hedgerow.study.build import build
from hedgerow.study.check import check

STUDY = """
name = "tumours"
[data]
name = "breast_cancer"
[partition]
by = "iid"
parties = 4
[program]
name = "private_logistic"
formula = "malignant ~ mean_texture + mean_smoothness"
rounds = 3
"""
OWN = {"program": {"epsilon": 1.0, "delta": 1e-5}}
BUDGET = {"budget": {"epsilon": 1.0, "delta": 1e-5, "unit": "record"}}
MECHANISM = {"protection": {"mechanism": {"law": "gaussian"}}}


def study(*changes):
    import tomllib

    found = tomllib.loads(STUDY)
    for change in changes:
        for section, keys in change.items():
            found[section] = {key: value for key, value in (found.get(section, {}) | keys).items() if value is not None}
    return parse(found)


@pytest.mark.parametrize("changes", [(OWN,), (OWN, BUDGET), (BUDGET, MECHANISM)], ids=["own", "own within", "channel"])
def test_every_way_costs_the_budget_at_its_delta(changes):
    rehearsed = rehearse(study(*changes))
    said = rehearsed.statement
    assert said.delta == 1e-5
    assert 0.999 < said.epsilon <= 1.0
    assert said.unit == "record"
    assert said.disclosed == "No exact number leaves a party."
    assert rehearsed.ended == f"ends after {len(rehearsed.entries)} rounds"


def test_without_budget_and_noise_sums_are_exact_and_no_epsilon_is_claimed():
    assert "No epsilon is claimed" in rehearse(study({"program": {"rounds": 2}})).statement.sentence


def test_a_budget_of_the_study_refuses_a_larger_one_of_the_program_before_anybody_is_asked():
    large = study({"program": {"epsilon": 2.0, "delta": 1e-5}}, BUDGET)
    with pytest.raises(BudgetExhausted, match="4 questions that cost epsilon=2"):
        check(build(large))


def test_two_mechanisms_are_refused():
    with pytest.raises(SlotFilled, match="would plan its own"):
        check(build(study(OWN, {"protection": {"mechanism": {"law": "gaussian", "noise_multiplier": 2.0}}})))


@pytest.mark.slow
def test_commands_say_what_leaves(tmp_path):
    path = tmp_path / "tumours.toml"
    path.write_text(STUDY + "epsilon = 1.0\ndelta = 1e-5\n")
    said = {}
    for command in ("check", "explain", "rehearse"):
        ran = CliRunner().invoke(app, [command, str(path)])
        assert ran.exit_code == 0, ran.output
        said[command] = " ".join(ran.output.split())
    assert "hedgerow rehearse tumours" in said["explain"]
    assert "Epsilon 1 at delta 1e-05 per record" in said["rehearse"]
    assert "Gaussian(6.81117) at the server" in said["rehearse"]
    assert "Gaussian(7.72314) at the server" in said["rehearse"]


@pytest.mark.slow
def test_a_run_reports_what_was_planned(tmp_path):
    result = run_study(study(OWN), tmp_path)
    assert "Epsilon 1 at delta 1e-05 per record" in result.report.privacy
    assert result.report.privacy_ok
    assert [row[-1] for row in result.report.left.rows]


@pytest.mark.slow
def test_baselines_have_no_noise_where_the_program_would_add_it():
    program = {"name": "additive_model", "rounds": 5, "features": ["mean_texture", "mean_smoothness"], "formula": None}
    free = {"evaluation": {"holdout": 0.3}, "protection": {"disclosure": float("inf")}}

    def compared(*more):
        built = build(study({"program": program}, free, *more))
        return baselines(built, last(built.listing.program(built.settings)(built.federation)))

    private, exact = compared({"program": OWN["program"] | {"epsilon": 0.01}}), compared()
    assert private.centralised == exact.centralised == pytest.approx(exact.federated, abs=1e-9)
    assert private.alone == exact.alone
    assert private.federated != exact.federated


def test_baselines_of_a_program_whose_noise_is_its_method_say_that_they_have_it(tmp_path):
    local = {"program": {"name": "private_local", "epsilon": 1.0, "delta": 1e-5, "rounds": None}}
    rows = run_study(study(local), tmp_path / "run").report.comparison.rows
    assert [words for name, _, words in rows if name == "centralised"] == [
        "same program, all records in one place, the program's own noise"
    ]
