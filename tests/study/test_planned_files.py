"""From a plan to a study, to a run, to its report, and to owners' guards: one number, the same to the last digit."""

import dataclasses
import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import BudgetExhausted, BudgetInvalid, SettingsInvalid, StudyInvalid
from hedgerow.learn.queries import Inputs, Steps, answers_for, gradient_queries, loss_of
from hedgerow.network.station.config import GuardSection
from hedgerow.privacy.accounting.gaussian import gaussian_delta, gaussian_noise
from hedgerow.store import read_chain
from hedgerow.study import load, run_study
from hedgerow.study.owners_file import PilotSection, load_owners
from hedgerow.study.pilot_question import released, spent_by, was_asked
from hedgerow.study.planned_files import (
    guard_text,
    sections,
    snippet,
    study_text,
    write_guards,
    write_question,
    write_study,
)
from hedgerow.study.planning import asked_of, known_of, plan_file, plan_owners
from hedgerow.study.toml import read_toml, to_toml

BASE = {
    "title": "Visits",
    "data": {"name": "hie", "target": "mdvis", "features": ["lncoins", "physlm", "disea"], "records": 3000},
    "partition": {"by": "iid", "parties": 3},
    "program": {
        "name": "gradient_queries",
        "n_records": 3000,
        "rounds": 8,
        "step": 0.5,
        "box": 1.0,
        "radius": 2.0,
        "noise": "gaussian",
        "ridge": 0.1,
    },
    "evaluation": {"on": "none"},
    "baselines": False,
}
OWNERS = {f"party {k}": {"records": 1000, "epsilon": [0.2, 30.0], "cost": cost} for k, cost in ((1, 0.1), (2, 0.3), (3, 1.0))}


def written(folder, pilot=None, base=BASE, value=3000.0, **changes):
    (folder / "base.toml").write_text(to_toml(base))
    path = folder / "owners.toml"
    numbers = {"residual": 0.02, "curvature": [0.3, 0.5, 0.9], "best": [0.2, 0.1, -0.1]}
    given = {"title": "Visits", "study": "base.toml", "pilot": pilot or numbers, "owners": OWNERS}
    path.write_text(to_toml(given | ({"value": {"per_fitness": value}} if value else {}) | changes))
    return path


def shared(folder):
    return BASE | {"budget": {"epsilon": 40.0, "delta": 1e-6, "unit": "record", "ledger": "owners.sqlite"}}


def grid(report, title):
    return next(one for one in report.tables if one.title == title)


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


@pytest.mark.slow
def test_budgets_of_laplace_noise_have_the_delta_of_the_private_question_before_it(tmp_path):
    """At a smaller one Gaussian noise of the question costs more than what was agreed for it."""
    base = shared(tmp_path)
    path = written(tmp_path, {"epsilon": 0.5, "delta": 1e-7}, base | {"program": base["program"] | {"noise": "laplace"}})
    plan = plan_owners(path)
    write_study(plan, tmp_path / "base.toml", tmp_path / "study.toml")
    report = run_study(load(tmp_path / "study.toml"), tmp_path / "run").report
    rows = grid(report, "Budgets of parties").rows
    assert {delta for *_, delta in rows} == {1e-7}
    for name, limit, spent, *_ in rows:
        assert plan.budgets[name] * (1 - 1e-3) < spent <= limit == plan.budgets[name]


@pytest.mark.slow
def test_a_private_question_is_asked_once_and_charged_to_the_shared_ledger(tmp_path):
    base = shared(tmp_path)
    path = written(tmp_path, {"epsilon": 0.5}, base)
    plan = plan_owners(path)
    entries = read_chain(tmp_path / "owners.sqlite").entries
    assert len(entries) == 1
    again = plan_owners(path)
    assert len(read_chain(tmp_path / "owners.sqlite").entries) == 1, "a plan that is made again asks nobody"
    assert again.epsilons == plan.epsilons
    assert released(tmp_path / "owners-pilot").gram.shape == (3, 3)
    for name, epsilon in plan.epsilons.items():
        assert math.isclose(plan.budgets[name], epsilon + 0.5, abs_tol=1e-12)
    assert [rule["name"] for rule in read_toml(guard_text(plan, "party 1"))["guard"]["programs"]] == [
        "pilot_moments",
        "gradient_queries",
    ]
    write_study(plan, tmp_path / "base.toml", tmp_path / "study.toml")
    report = run_study(load(tmp_path / "study.toml"), tmp_path / "run").report
    for name, limit, spent, *_ in grid(report, "Budgets of parties").rows:
        assert plan.epsilons[name] * 0.99 < spent <= limit == plan.budgets[name]
    assert len(read_chain(tmp_path / "owners.sqlite").entries) == 9
    with pytest.raises(StudyInvalid, match=r"asked another question: epsilon \(0.5, now 0.4\)"):
        plan_owners(written(tmp_path, {"epsilon": 0.4}, base))


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_laplace_plan_asks_a_question_without_delta_and_the_ledger_adds_both_up(tmp_path, neighbours):
    base = shared(tmp_path) | {"program": BASE["program"] | {"noise": "laplace", "neighbours": neighbours}}
    plan = plan_owners(written(tmp_path, {"epsilon": 0.5}, base, value=None, owners=free(OWNERS)))
    times = 2 if neighbours == "replace-one" else 1
    assert plan.spent == 0.5 * times
    assert {name: one["epsilon"] * times for name, one in sections(plan)["party_budgets"].items()} == dict.fromkeys(
        OWNERS, 30.0
    )
    (entry,) = read_chain(tmp_path / "owners.sqlite").entries
    assert entry.event.kind == "laplace"
    write_study(plan, tmp_path / "base.toml", tmp_path / "study.toml")
    report = run_study(load(tmp_path / "study.toml"), tmp_path / "run").report
    for _, limit, spent, *_ in grid(report, "Budgets of parties").rows:
        assert limit == 30.0 / times
        assert limit * 0.99 < spent <= limit


def free(owners):
    return {name: {key: value for key, value in one.items() if key != "cost"} for name, one in owners.items()}


@pytest.mark.parametrize(
    ("owner", "value", "rounds", "error"),
    [
        ({"records": 1000, "epsilon": [0.01, 0.05]}, None, 8, "costs epsilon 0.5, all that party 2 offers"),
        ({"records": 1000, "epsilon": [0.2, 600.0], "cost": 0.1}, 3000.0, 8, "up to 500"),
        ({"records": 1000, "epsilon": [0.2, 30.0], "cost": 0.1}, 3000.0, 1, "amplification 0"),
    ],
)
def test_offers_without_a_plan_are_refused_before_anybody_is_asked(tmp_path, owner, value, rounds, error):
    base = shared(tmp_path) | {"program": BASE["program"] | {"rounds": rounds}}
    others = OWNERS if value else free(OWNERS)
    path = written(tmp_path, {"epsilon": 0.5}, base, value=value, owners=others | {"party 2": owner})
    with pytest.raises((BudgetInvalid, SettingsInvalid), match=error):
        plan_owners(path)
    with pytest.raises((BudgetInvalid, SettingsInvalid), match=error):
        write_question(load_owners(path), tmp_path / "question.toml")
    assert not (tmp_path / "owners.sqlite").exists()
    assert not (tmp_path / "owners-pilot").exists()


@pytest.mark.parametrize(("neighbours", "half"), [("add-remove", 1), ("replace-one", 2)])
def test_the_private_question_carries_what_each_owner_offers_at_most(tmp_path, neighbours, half):
    base = shared(tmp_path) | {"program": BASE["program"] | {"neighbours": neighbours}}
    owners = free(OWNERS) | {"party 2": {"records": 1000, "epsilon": [0.1, 3.0]}}
    path = written(tmp_path, {"epsilon": 0.5}, base, value=None, owners=owners)
    write_question(load_owners(path), tmp_path / "question.toml")
    budgets = load(tmp_path / "question.toml").party_budgets
    assert {name: one.epsilon for name, one in budgets.items()} == {
        name: top / half for name, top in (("party 1", 30.0), ("party 2", 3.0), ("party 3", 30.0))
    }


def test_the_gaussian_question_costs_a_replaced_record_what_a_release_that_moves_twice_as_far_costs(tmp_path):
    """Twice the epsilon holds at a larger delta only."""
    base = shared(tmp_path) | {"program": BASE["program"] | {"neighbours": "replace-one"}}
    owners = free(OWNERS) | {"party 2": {"records": 1000, "epsilon": [0.1, 1.04]}}
    file = load_owners(written(tmp_path, {"epsilon": 0.5}, base, value=None, owners=owners))
    spent = spent_by(file, asked_of(file))
    assert 1.05 < spent < 1.06
    assert gaussian_delta(gaussian_noise(0.5, 1e-6) / 2, spent) <= 1e-6 < gaussian_delta(gaussian_noise(0.5, 1e-6) / 2, 1.0)
    with pytest.raises(BudgetInvalid, match=r"1\.05253, all that party 2 offers"):
        plan_owners(tmp_path / "owners.toml")


@pytest.mark.slow
def test_a_party_without_an_offer_is_neither_asked_nor_charged(tmp_path):
    two = {name: one for name, one in free(OWNERS).items() if name != "party 3"}
    base = shared(tmp_path)
    with pytest.raises(StudyInvalid, match="parties party 3 are no owners"):
        plan_owners(written(tmp_path, {"epsilon": 0.5}, base, value=None, owners=two))
    assert not (tmp_path / "owners.sqlite").exists()
    base |= {"program": BASE["program"] | {"left_out": ["party 3"]}}
    plan = plan_owners(written(tmp_path, {"epsilon": 0.5}, base, value=None, owners=two))
    (entry,) = read_chain(tmp_path / "owners.sqlite").entries
    assert entry.parties == 2
    asked = load(tmp_path / "owners-pilot" / "study.toml")
    assert asked.program.model_extra["n_records"] == 2000
    assert set(asked.party_budgets) == set(two)
    write_study(plan, tmp_path / "base.toml", tmp_path / "study.toml")
    study = load(tmp_path / "study.toml")
    assert study.program.model_extra["left_out"] == ["party 3"]
    assert len(run_study(study, tmp_path / "run").report.tables) > 0


@pytest.mark.slow
def test_a_plan_made_again_without_an_owner_or_with_more_records_asks_nobody_and_keeps_its_curvature(tmp_path):
    base, owners = shared(tmp_path), free(OWNERS)
    path = written(tmp_path, {"epsilon": 0.5}, base, value=None, owners=owners)
    first = plan_owners(path)
    two = {name: one | {"records": 1001} for name, one in owners.items() if name != "party 3"}
    again = plan_owners(written(tmp_path, {"epsilon": 0.5}, base, value=None, owners=two))
    assert len(read_chain(tmp_path / "owners.sqlite").entries) == 1
    assert list(again.epsilons) == list(two)
    assert again.known.least == first.known.least
    assert "asked when they were 3\N{NO-BREAK SPACE}000" in again.known.source
    fewer = base | {"data": base["data"] | {"records": 1500}}
    with pytest.raises(StudyInvalid, match=r"another question: data.records \(3000, now 1500\)"):
        plan_owners(written(tmp_path, {"epsilon": 0.5}, fewer, value=None, owners=owners))
    moved = base | {"data": base["data"] | {"features": ["lncoins", "physlm"]}}
    with pytest.raises(StudyInvalid, match=r"another question: data\.features"):
        plan_owners(written(tmp_path, {"epsilon": 0.5}, moved, value=None, owners=owners))


def test_whether_a_question_was_asked_follows_from_what_it_released_and_not_from_its_folder(tmp_path):
    folder = tmp_path / "owners-pilot"
    assert not was_asked(folder)
    folder.mkdir()
    assert not was_asked(folder)
    (folder / "study.toml").touch()
    with pytest.raises(StudyInvalid, match="did not end"):
        was_asked(folder)
    (folder / "checkpoint.safetensors").touch()
    assert was_asked(folder)


def test_a_question_that_no_ledger_counts_is_refused(tmp_path):
    with pytest.raises(StudyInvalid, match="names none"):
        plan_owners(written(tmp_path, {"epsilon": 0.5}))
    assert not (tmp_path / "owners-pilot").exists()


def test_a_question_beyond_the_shared_budget_is_refused(tmp_path):
    base = BASE | {"budget": {"epsilon": 0.3, "delta": 1e-6, "unit": "record", "ledger": "owners.sqlite"}}
    with pytest.raises(BudgetExhausted):
        plan_owners(written(tmp_path, {"epsilon": 0.5}, base))


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
