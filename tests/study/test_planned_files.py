"""From a plan to a study, to a run, to its report, and to owners' guards: one number, the same to the last digit."""

import dataclasses

import numpy as np
import pytest
from plans_of_visits import BASE, OWNERS, free, grid, written

import hedgerow as hr
from hedgerow.core.toml import read_toml, to_toml
from hedgerow.errors import BudgetInvalid, SettingsInvalid, StudyInvalid
from hedgerow.learn.queries import Inputs, Steps, answers_for, gradient_queries, loss_of
from hedgerow.market.plans.owners_plan import money
from hedgerow.market.plans.plan_page import left_out
from hedgerow.network.station.config import GuardSection
from hedgerow.study import load, run_study
from hedgerow.study.plans.owners_file import PilotSection, load_owners
from hedgerow.study.plans.planned_files import (
    guard_text,
    sections,
    snippet,
    study_text,
    write_guards,
    write_study,
)
from hedgerow.study.plans.planning import asked_of, known_of, plan_file, plan_owners


@pytest.mark.slow
def test_one_number_from_the_plan_to_the_study_the_run_the_report_and_the_guard(tmp_path):
    path = written(tmp_path)
    plan = plan_owners(path)
    write_study(plan, tmp_path / "base.toml", tmp_path / "planned" / "study.toml", path.name)
    study = load(tmp_path / "planned" / "study.toml")
    assert study.program.model_extra["epsilons"] == plan.epsilons
    assert study.program.model_extra["weights"] == plan.weights
    assert {name: one.epsilon for name, one in study.party_budgets.items()} == plan.budgets
    report = run_study(study, tmp_path / "run").report
    for name, limit, spent, _, delta in grid(report, "Budgets of parties").rows:
        assert limit == plan.epsilons[name]
        assert plan.epsilons[name] * 0.99 < spent <= limit
        assert delta == plan.noise.delta
    (row,) = grid(report, "Forecast").rows
    assert row[:4] == ("relative fitness", study.forecast.expected, study.forecast.low, study.forecast.high)
    assert study.forecast.expected == pytest.approx(plan.own.expected, rel=1e-3)
    for name in plan.epsilons:
        guard = GuardSection.model_validate(read_toml(guard_text(plan, name))["guard"])
        assert guard.budget.epsilon == plan.budgets[name]
        assert (guard.budget.unit, guard.budget.trust, guard.require.noise) == ("record", "nobody", "party")
        assert [rule.name for rule in guard.programs] == ["gradient_queries"]


def test_a_study_says_on_top_what_it_was_made_from_and_keeps_the_rest(tmp_path):
    path = written(tmp_path, base=BASE | {"data": {"path": "records.csv", "target": "mdvis"}} | {"program": BASE["program"]})
    plan = plan_owners(written(tmp_path))
    path = tmp_path / "base.toml"
    path.write_text(to_toml(BASE | {"data": {"path": "records.csv", "target": "mdvis"}}))
    text = study_text(plan, path, tmp_path / "planned", "owners.toml")
    assert text.startswith(f"# Made by `hedgerow plan owners.toml`, digest {plan.digest}.\n")
    found = read_toml(text)
    assert found["data"]["path"] == "../records.csv"
    assert found["program"]["ridge"] == 0.1
    assert found["program"]["n_records"] == dict.fromkeys(plan.epsilons, 1000)
    assert found["program"]["neighbours"] == "add-remove"


@pytest.mark.parametrize(
    ("budget", "error"),
    [
        ({"epsilon": 4.4}, r"costs epsilon 4\.49\d+ per record, and the study's \[budget\] is epsilon 4.4"),
        ({"epsilon": 4.5, "delta": 1e-9}, r"costs epsilon 5\.69\d+ "),
        ({"epsilon": 4.5, "unit": "party"}, "bounded per record"),
    ],
)
def test_a_study_whose_own_budget_is_below_the_plan_is_not_written(tmp_path, budget, error):
    owners = free(OWNERS) | {"party 2": {"records": 1000, "epsilon": 4.5}}
    owners |= {name: owners[name] | {"epsilon": 1.0} for name in ("party 1", "party 3")}
    plan = plan_owners(written(tmp_path, value=None, owners=owners))
    base, path = {"epsilon": 4.5, "delta": 1e-6, "unit": "record"}, tmp_path / "base.toml"
    path.write_text(to_toml(BASE | {"budget": base | budget}))
    with pytest.raises(StudyInvalid, match=error):
        study_text(plan, path, tmp_path)
    path.write_text(to_toml(BASE | {"budget": base}))
    assert read_toml(study_text(plan, path, tmp_path))["budget"]["epsilon"] == 4.5


def test_the_digest_is_of_the_study_and_of_what_is_known_too(tmp_path):
    numbers = {"residual": 0.02, "curvature": [0.3, 0.5, 0.9], "best": [0.2, 0.1, -0.1]}
    digests = {
        plan_owners(written(tmp_path, base=BASE | {"program": BASE["program"] | {"step": s}})).digest for s in (0.5, 0.6)
    }
    file, asked = load_owners(tmp_path / "owners.toml"), asked_of(load_owners(tmp_path / "owners.toml"))
    more = PilotSection.model_validate(numbers | {"residual": 0.03})
    known = [known_of(file.model_copy(update={"pilot": pilot}), asked) for pilot in (file.pilot, more)]
    digests |= {plan_file(file, asked, one).digest for one in known}
    assert len(digests) == 3


def test_who_is_left_out_after_the_private_question_is_paid_for_it_and_guarded(tmp_path):
    asked = asked_of(load_owners(written(tmp_path, owners=OWNERS | {"party 3": OWNERS["party 3"] | {"cost": 4e3}})))
    file = load_owners(tmp_path / "owners.toml")
    found = plan_file(file, asked, known_of(file, asked), spent=0.1, spent_delta=1e-6)
    (out,) = [one for one in found.owners if not one.taken]
    assert out.payment > 0
    assert f"epsilon 0.1 each, for which they are paid {money(out.payment)} in all: party 3 {money(out.payment)}." in left_out(
        found
    )
    guard = read_toml(guard_text(found, "party 3"))["guard"]
    assert guard["programs"] == [{"name": "pilot_moments"}]
    assert guard["budget"]["epsilon"] == 0.1
    assert len(write_guards(found, tmp_path / "guards")) == 3
    assert "least_records" in guard_text(found, "party 1")


def test_the_sections_are_those_of_the_study(tmp_path):
    plan = plan_owners(written(tmp_path))
    found, whole = read_toml(snippet(plan)), sections(plan)
    assert found["party_budgets"] == whole["party_budgets"]
    assert found["forecast"] == whole["forecast"]
    assert found["program"].items() <= whole["program"].items()


def test_guards_are_files_with_the_names_of_owners(tmp_path):
    plan = plan_owners(written(tmp_path))
    paths = write_guards(plan, tmp_path / "guards")
    assert [one.name for one in paths] == [f"{name}.toml" for name in plan.epsilons]
    with pytest.raises(StudyInvalid, match="takes no part"):
        guard_text(plan, "party 9")


@pytest.mark.slow
def test_public_rows_of_a_study_say_what_is_known(tmp_path):
    base = BASE | {"evaluation": {"on": "none", "holdout": 0.2}}
    plan = plan_owners(written(tmp_path, {"data": "server"}, base))
    assert plan.known.source == "600 public records of hie"
    assert plan.known.begin > 0
    few = plan_owners(written(tmp_path, {"data": "server", "records": 500}, base))
    assert few.known.source == "500 public records of hie"
    with pytest.raises(StudyInvalid, match="holds none out"):
        plan_owners(written(tmp_path, {"data": "server"}))


def test_records_of_the_owners_are_no_public_ones(tmp_path):
    with pytest.raises(StudyInvalid, match="study's own records"):
        plan_owners(written(tmp_path, {"data": "hie", "records": 500}))
    text = "a,t\n" + "0.5,0.1\n-0.2,0.3\n" * 6
    for name in ("own.csv", "copy.csv"):
        (tmp_path / name).write_text(text)
    (tmp_path / "others.csv").write_text(text + "0.1,0.1\n")
    ranges = {"a": [-1, 1], "t": [-1, 1]}
    base = BASE | {"data": {"path": "own.csv", "target": "t", "features": ["a"], "ranges": ranges}}
    for name in ("own.csv", "copy.csv"):
        with pytest.raises(StudyInvalid, match="study's own records"):
            plan_owners(written(tmp_path, {"data": name}, base, value=None, owners=free(OWNERS)))
    plan = plan_owners(written(tmp_path, {"data": "others.csv"}, base, value=None, owners=free(OWNERS)))
    assert plan.known.source.startswith("13 public records")


def test_epsilons_for_replaced_records_are_halved_for_the_ledger(tmp_path):
    base = BASE | {"program": BASE["program"] | {"neighbours": "replace-one", "noise": "laplace"}}
    plan = plan_owners(written(tmp_path, base=base))
    assert plan.noise.neighbours == "replace-one"
    budgets = sections(plan)["party_budgets"]
    assert {name: 2 * one["epsilon"] for name, one in budgets.items()} == plan.epsilons


def test_a_study_of_another_program_is_refused(tmp_path):
    base = BASE | {"program": {"name": "moments"}}
    with pytest.raises(StudyInvalid, match="'moments'"):
        plan_owners(written(tmp_path, base=base))


def test_who_is_left_out_is_not_asked():
    table = hr.data.load("hie").with_roles(target="mdvis", features=["lncoins", "physlm"]).take(range(300))
    partition, steps = hr.data.iid(parties=3)(table, 0), Steps("algorithm-2", 0.5, 1.0)
    loss, spec = loss_of("linear"), Inputs.scaled(table.schema)
    changed = dict(table.columns) | {"mdvis": np.where(np.isin(np.arange(300), partition.indices[2]), 0.0, table["mdvis"])}
    agreed = {"party 1": 20.0, "party 2": 20.0}

    def result(records, left_out, epsilons):
        federation = hr.simulate(records, partition, seed=0)
        answers = answers_for(federation.schema, epsilons, 3, loss, spec, 1.0) if epsilons else None
        how = {"loss": loss, "spec": spec, "n_records": 200, "rounds": 3, "steps": steps, "answers": answers}
        return hr.last(gradient_queries(federation, left_out=left_out, **how)).average.tolist()

    other = dataclasses.replace(table, columns=changed)
    assert result(table, ["party 3"], agreed) == result(other, ["party 3", "a station elsewhere"], agreed)
    assert result(table, None, agreed | {"party 3": 20.0}) != result(other, None, agreed | {"party 3": 20.0})
    with pytest.raises(BudgetInvalid, match="party 3 agreed on no epsilon"):
        result(table, None, agreed)
    with pytest.raises(SettingsInvalid, match="'party 2', which agreed on an epsilon"):
        result(table, ["party 2", "party 3"], agreed)
    with pytest.raises(SettingsInvalid, match="'party 4', which is no party"):
        result(table, ["party 4"], None)
    with pytest.raises(SettingsInvalid, match="every party"):
        result(table, ["party 1", "party 2", "party 3"], None)
