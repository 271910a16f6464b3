"""The private question of a plan: whom it asks, once, what it costs them, and what is refused before it."""

import math

import pytest
from plans_of_visits import BASE, OWNERS, free, grid, shared, written

from hedgerow.core.toml import read_toml
from hedgerow.errors import BudgetExhausted, BudgetInvalid, SettingsInvalid, StudyInvalid
from hedgerow.privacy.accounting.gaussian import gaussian_delta, gaussian_noise
from hedgerow.store import read_chain
from hedgerow.study import load, run_study
from hedgerow.study.plans.owners_file import load_owners
from hedgerow.study.plans.pilot_question import released, spent_by, was_asked
from hedgerow.study.plans.planned_files import (
    charges_of,
    guard_text,
    sections,
    write_question,
    write_study,
)
from hedgerow.study.plans.planning import asked_of, plan_owners


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
    same_charges(plan, tmp_path / "owners.sqlite")


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


def same_charges(plan, ledger):
    """Whether what a plan foresees is what the ledger has, the question before it first."""
    pilot, *asked = (entry.event for entry in read_chain(ledger).entries)
    *planned, before = (event for _, (event,) in charges_of(plan))
    assert asked == planned
    assert (pilot.kind, pilot.noise_multiplier) == (before.kind, pytest.approx(before.noise_multiplier, rel=1e-4))


@pytest.mark.slow
def test_a_plan_for_replaced_records_foresees_what_its_ledger_will_hold(tmp_path):
    base = shared(tmp_path) | {"program": BASE["program"] | {"neighbours": "replace-one"}}
    plan = plan_owners(written(tmp_path, {"epsilon": 0.5}, base, value=None, owners=free(OWNERS)))
    write_study(plan, tmp_path / "base.toml", tmp_path / "study.toml")
    run_study(load(tmp_path / "study.toml"), tmp_path / "run")
    same_charges(plan, tmp_path / "owners.sqlite")
