"""Budgets of single parties in a study: by each one's own noise, before the first question and at each, and in the report."""

import math
from dataclasses import replace

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.ledger import Entry, Ledger
from hedgerow.core.toml import to_toml
from hedgerow.errors import BudgetExhausted, MixedUnits, StudyInvalid
from hedgerow.learn.queries import optimum, pooled
from hedgerow.learn.queries.keys import loss_of_keys, spec_of_keys
from hedgerow.learn.queries.results import fitness_of
from hedgerow.store import LedgerFile, read_chain
from hedgerow.study import parse, rehearse, run_study
from hedgerow.study.agreed import budget_grids, budgets_of, forecast_grids
from hedgerow.study.build import build
from hedgerow.study.explain import what_left
from hedgerow.study.party_budgets import refuse_unaffordable

AGREED = {"party 1": 0.5, "party 2": 4.0, "party 3": 2.0}
ROUNDS = 4


def allowed(epsilons=AGREED, **more):
    return {name: {"epsilon": epsilon, "delta": 1e-6, **more} for name, epsilon in epsilons.items()}


def study(budgets=None, **more):
    program = {"name": "gradient_queries", "rounds": ROUNDS, "n_records": 400, "neighbours": "add-remove", "epsilons": AGREED}
    program |= {"box": 2.0, "step": 0.3} | more.pop("program", {})
    program = {key: value for key, value in program.items() if value is not None}
    return parse(
        {
            "name": "owners",
            "data": {"name": "hie", "target": "mdvis", "features": ["lncoins", "physlm", "disea"], "records": 400},
            "partition": {"by": "iid", "parties": 3},
            "program": program,
            "party_budgets": allowed(accountant="basic") if budgets is None else budgets,
            "baselines": False,
            **more,
        }
    )


def line(budgets, at="server", **more):
    """Another program, whose noise is the channel's."""
    return parse(
        {
            "name": "line",
            "data": {"name": "breast_cancer"},
            "partition": {"by": "iid", "parties": 3},
            "program": {"name": "logistic_regression", "formula": "malignant ~ mean_texture", "rounds": 3},
            "protection": {"mechanism": {"law": "gaussian", "noise_multiplier": 3.0, "at": at}},
            "party_budgets": budgets,
            "baselines": False,
            **more,
        }
    )


def grid(report, title):
    return next(one for one in report.tables if one.title == title)


def asked(one, count=None):
    """Run the program itself, without the comparison of its plan; the ledger."""
    built = build(one)
    states = built.listing.program(built.settings)(built.federation)
    for _, _ in zip(range(ROUNDS if count is None else count), states, strict=False):
        pass
    return built.run.ledger


# ---- the section ----------------------------------------------------------------------------------------------------
def test_a_name_that_is_no_party_is_told_with_the_nearest():
    with pytest.raises(StudyInvalid, match="'party 11', which is no party") as caught:
        build(study(allowed({"party 11": 1.0})))
    assert "party 1" in caught.value.remedy


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0.0}, {"epsilon": -1.0}, {"delta": 0.0}, {"accountant": "gues"}, {"unit": "party"}]
)
def test_a_budget_that_is_none_is_told_with_its_place(wrong):
    with pytest.raises(StudyInvalid, match="HR-101") as caught:
        study({"party 1": {"epsilon": 1.0, "delta": 1e-6} | wrong})
    assert "party_budgets" in caught.value.remedy


def test_budgets_are_part_of_what_may_resume_and_a_forecast_is_not():
    said = {"expected": 0.1, "low": 0.05, "high": 0.2}
    plain, budgeted, forecast = (study({}), study(), study({}, forecast=said))
    assert len({plain.digest, budgeted.digest, study(allowed({"party 1": 0.5})).digest}) == 3
    assert forecast.digest == plain.digest


def test_a_study_without_these_sections_keeps_the_digest_that_it_had():
    kept = study({}).model_dump(mode="json")
    assert kept["party_budgets"] == {}
    assert "party_budgets" not in to_toml(kept)


# ---- before the first question --------------------------------------------------------------------------------------
def test_a_plan_that_no_budget_allows_is_refused_before_anybody_is_asked(tmp_path):
    tight = study(allowed(AGREED | {"party 2": 3.9}, accountant="basic"))
    with pytest.raises(BudgetExhausted, match=r"costs party 2 epsilon 4, and its budget is epsilon 3\.9") as caught:
        run_study(tight, tmp_path / "run")
    assert "party_budgets.party 2" in caught.value.remedy
    assert not (tmp_path / "run").exists()


def test_the_plan_of_very_many_rounds_is_priced_from_two_of_them(tmp_path):
    """A thousand rounds are compared with the budgets without being rehearsed."""
    many = study(allowed({"party 1": 0.49}), program={"rounds": 1000, "noise": "gaussian"})
    with pytest.raises(BudgetExhausted, match=r"costs party 1 epsilon 0\.4995"):
        run_study(many, tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("at", ["server", "party"])
def test_noise_of_the_channel_counts_for_every_party(tmp_path, at):
    one = line(allowed({"party 2": 50.0}), at)
    found = run_study(one, tmp_path / "run").report
    said = dict(zip(grid(found, "Budgets of parties").columns, grid(found, "Budgets of parties").rows[0], strict=True))
    ledger = Ledger(hr.Budget(50.0, 1e-6, "record"), LedgerFile(tmp_path / "run" / "ledger.jsonl"))
    assert said["spent"] == ledger.epsilon() < 50.0
    with pytest.raises(BudgetExhausted, match="costs party 2"):
        run_study(line(allowed({"party 2": 0.9 * said["spent"]}), at), tmp_path / "refused")


def test_exact_sums_fit_no_budget_and_sums_per_party_none_per_record(tmp_path):
    with pytest.raises(BudgetExhausted, match="nonprivate at party 1"):
        run_study(line(allowed({"party 1": 100.0}), protection={}), tmp_path / "exact")
    clipped = {"clip": {"radius": 1.0}, "mechanism": {"noise_multiplier": 1.0}}
    with pytest.raises(MixedUnits, match="HR-215"):
        run_study(line(allowed({"party 1": 100.0}), protection=clipped), tmp_path / "party")


# ---- at each question -----------------------------------------------------------------------------------------------
def test_each_party_is_counted_by_its_own_noise_and_the_first_without_room_ends_the_run():
    """The broken twin counts everybody as the most open owner, and would let the most careful one answer a single question."""
    ledger = asked(study())
    spent = {name: cost.spent for name, cost in ledger.by_party().costs.items()}
    assert spent == pytest.approx(AGREED, rel=1e-15)
    assert all(spent[name] <= most for name, most in AGREED.items())
    twin = Ledger()
    twin.party_limits = budgets_of(study().party_budgets)
    with pytest.raises(BudgetExhausted, match="budget of party 1"):
        twin.debit(replace(ledger.entries[0], by_party=()))


def test_a_question_beyond_a_party_s_budget_is_refused_while_nobody_was_asked():
    built = build(study(allowed(AGREED | {"party 3": 1.25}, accountant="basic")))
    with pytest.raises(BudgetExhausted, match=r"laplace\(2\) at party 3\) would exceed the budget of party 3") as caught:
        hr.last(built.listing.program(built.settings)(built.federation))
    assert len(built.run.ledger) == 2
    assert "party 3 adds more noise" in caught.value.remedy


def test_a_rehearsal_says_where_a_budget_of_a_party_ends_it_and_what_each_would_lose():
    found = rehearse(study(allowed(AGREED | {"party 3": 1.25}, accountant="basic")))
    assert "the budget of party 3" in found.ended
    (shown,) = found.agreed
    assert [row[2] for row in shown.rows] == pytest.approx([0.25, 2.0, 1.0], rel=1e-12)


@pytest.mark.slow
def test_owners_that_answer_in_turn_pay_for_their_own_questions_alone(tmp_path):
    """Groups of one partition cost what one of them does, for each party by its own noise."""
    program = {"name": "async_queries", "every": 3, "n_records": {"party 1": 130, "party 2": 130, "party 3": 140}}
    run = run_study(study(program=program), tmp_path / "run")
    rows = grid(run.report, "Budgets of parties").rows
    assert {name: spent for name, _, spent, *_ in rows} == pytest.approx(AGREED, rel=1e-15)
    assert ROUNDS < dict(run.report.facts)["questions asked"] <= 3 * ROUNDS  # a step that nobody fell to asks nobody


# ---- from the ledger ------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_what_was_spent_is_counted_again_from_the_ledger_of_a_run(tmp_path):
    run_study(study(), tmp_path / "run")
    again = Ledger(record=LedgerFile(tmp_path / "run" / "ledger.jsonl"))
    again.party_limits = budgets_of(study().party_budgets)
    assert [cost.spent for cost in again.by_party().costs.values()] == pytest.approx([*AGREED.values()], rel=1e-15)
    with pytest.raises(BudgetExhausted, match="HR-213"):
        again.debit(replace(again.entries[-1], round=ROUNDS + 1))
    resumed = run_study(study(), tmp_path / "run", resume=True)
    assert grid(resumed.report, "Budgets of parties").rows[0][:3] == ("party 1", 0.5, 0.5)


def test_questions_that_a_resumed_run_has_yet_to_ask_again_are_counted_for_each_party():
    """They were released before. The broken twin counts the questions since the resumption, and has more left than there is."""
    ledger = asked(study())
    ledger.rewind(1, replay=True)
    assert [cost.spent for cost in ledger.by_party().costs.values()] == pytest.approx([*AGREED.values()], rel=1e-15)
    (shown,) = budget_grids(ledger)
    assert [row[3] for row in shown.rows] == pytest.approx([0.0] * 3, abs=1e-15)
    for entry in [*ledger.own[1:]]:
        ledger.debit(entry)
    assert [cost.spent for cost in ledger.by_party().costs.values()] == pytest.approx([*AGREED.values()], rel=1e-15)


@pytest.mark.parametrize("program", [{}, {"name": "async_queries", "every": 3, "n_records": dict.fromkeys(AGREED, 130)}])
def test_epsilon_by_owner_counts_a_round_that_was_broken_off(program):
    """Its answers had left. The broken twin counts rounds of the result, and tells owners that they spent less."""
    built = build(study(allowed({name: 2 * most for name, most in AGREED.items()}, accountant="basic"), program=program))
    states = built.listing.program(built.settings)(built.federation)
    kept = next(states)
    next(states)  # of which no state is kept
    again = next(built.listing.program(built.settings)(built.federation, start=kept))
    shown = built.shown(again).tables["Epsilon by owner"]
    assert again.round == 2
    assert [*shown["spent, add-remove"]] == pytest.approx([3 / ROUNDS * most for most in AGREED.values()], rel=1e-15)
    assert [cost.spent for cost in built.run.ledger.by_party().costs.values()] == pytest.approx([*shown["spent, add-remove"]])


def test_a_party_that_is_left_out_by_name_pays_nothing():
    few = {"epsilons": {name: AGREED[name] for name in ("party 1", "party 2")}, "left_out": ["party 3"]}
    ledger = asked(study(allowed({"party 1": 0.5, "party 3": 0.1}, accountant="basic"), program=few))
    assert [cost.spent for cost in ledger.by_party().costs.values()] == pytest.approx([0.5, 0.0], rel=1e-15)
    assert dict(ledger.entries[0].by_party)["party 3"].kind == "none"
    assert [row[-1] for row in what_left(ledger.entries, "").rows] == ["all but party 3"]
    assert [row[-1] for row in what_left(asked(study()).entries, "").rows] == ["all parties"]


def test_it_pays_nothing_for_noise_of_the_channel_either():
    channel = {"mechanism": {"law": "laplace", "noise_multiplier": 5.0, "at": "server"}}
    budgets = allowed({"party 1": 9.0, "party 3": 0.1}, accountant="basic")
    few = study(budgets, program={"epsilons": None, "left_out": ["party 3"]}, protection=channel)
    ledger = asked(few)
    assert [cost.spent for cost in ledger.by_party().costs.values()] == pytest.approx([ROUNDS / 5.0, 0.0], rel=1e-12)
    assert [name for name, _ in ledger.entries[0].by_party] == ["party 3"]


@pytest.mark.slow
def test_a_party_that_stops_by_itself_is_counted_for_all_rounds_and_told_so(tmp_path):
    """Its own count is in no ledger; the remedy is not that it adds more noise."""
    steps = {"noise_multiplier": 1.0, "sampling_rate": 0.1, "batch_size": 15, "steps": 2, "clip": 1.0, "delta": 1e-6}
    program = {"name": "local_dpsgd", "model": "linear", "rounds": 6, "stop_at": [2.5, 50.0, 50.0]} | steps
    data = {"name": "breast_cancer", "features": ["mean_radius", "mean_texture"], "target": "malignant"}
    one = line(allowed({"party 1": 2.6}), data=data, program=program, protection={})
    with pytest.raises(BudgetExhausted, match="costs party 1 epsilon 3") as caught:
        run_study(one, tmp_path / "run")
    assert "also for those after stop_at" in caught.value.remedy
    assert "more noise" not in caught.value.remedy


def test_the_order_of_parties_in_an_entry_is_that_of_the_federation():
    """A resumed run, in another process, writes the same entries."""
    few = {"epsilons": {"party 2": 1.0}, "left_out": ["party 3", "party 1"]}
    assert [name for name, _ in asked(study({}, program=few), 1).entries[0].by_party] == ["party 1", "party 3"]


@pytest.mark.slow
def test_a_run_that_was_interrupted_spends_no_more_than_one_that_was_not(tmp_path):
    def stop(progress):
        if progress.round == 2:
            raise RuntimeError("the lights went out")

    with pytest.raises(RuntimeError, match="lights"):
        run_study(study(), tmp_path / "run", on_progress=stop)
    assert len(read_chain(tmp_path / "run").entries) == 2
    whole = run_study(study(), tmp_path / "run", resume=True)
    assert whole.run.state.round == ROUNDS
    assert {name: spent for name, _, spent, *_ in grid(whole.report, "Budgets of parties").rows} == pytest.approx(
        AGREED, rel=1e-15
    )


@pytest.mark.slow
def test_two_runs_that_share_a_ledger_share_the_budgets_of_parties(tmp_path):
    shared = {"budget": {"epsilon": 100.0, "delta": 1e-6, "unit": "record", "ledger": str(tmp_path / "all.sqlite")}}
    run_study(study(**shared), tmp_path / "first")
    with pytest.raises(BudgetExhausted, match="party 1"):
        run_study(study(**shared), tmp_path / "second")
    with pytest.raises(BudgetExhausted, match=r"party 1 epsilon \S+, with the \S+ that earlier runs"):
        refuse_unaffordable(build(study(**shared)))
    double = study(allowed({name: 2 * most for name, most in AGREED.items()}, accountant="basic"), **shared)
    rows = grid(run_study(double, tmp_path / "third").report, "Budgets of parties").rows
    assert [row[2] for row in rows] == pytest.approx([1.0, 8.0, 4.0], rel=1e-15)


def test_an_entry_with_events_of_its_parties_comes_back_equal():
    entry = asked(study(), 1).entries[0]
    assert dict(entry.by_party).keys() == {"party 1", "party 3"}
    assert Entry.from_json(entry.to_json()) == entry
    assert "by_party" not in replace(entry, by_party=()).to_json()


def test_the_ledger_names_all_parties_also_those_whom_a_cohort_leaves_out():
    """Of a cohort that was drawn, names of those that were asked would tell who came."""
    built = build(study())
    few = built.federation.sample(size=1)
    next(iter(built.listing.program(built.settings)(few)))
    assert {name for name, _ in built.run.ledger.entries[0].by_party} == {"party 1", "party 3"}


# ---- the forecast ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("low", "high", "verdict"), [(0.0, 1e9, "inside the interval"), (0.0, 1e-9, "outside the interval")])
def test_a_report_says_what_was_expected_and_what_was_achieved(tmp_path, low, high, verdict):
    said = {"expected": high, "low": low, "high": high, "source": "1000 public rows."}
    report = run_study(study(forecast=said), tmp_path / "run").report
    found = grid(report, "Forecast")
    (row,) = found.rows
    assert dict(zip(found.columns, row, strict=True))["which is"] == verdict
    assert dict(report.metrics)["relative fitness"] == row[found.columns.index("achieved")] > 0
    assert found.note.endswith("1000 public rows.")
    assert "exact results beside the released ones" in report.exposed


def test_nothing_is_said_of_a_run_that_ended_early_or_of_what_is_no_number():
    """The broken twin calls a run that asked one question of four inside the interval of four."""
    one = study(forecast={"expected": 0.01, "low": 0.0, "high": 1e9})

    def verdict(metrics, **more):
        return forecast_grids(one, metrics, **more)[0].rows[0][-1]

    assert verdict({"relative fitness": 0.02}) == "inside the interval"
    assert verdict({"relative fitness": 0.02}, finished=False).startswith("not compared: the run ended before")
    assert verdict({"relative fitness": math.inf}) == verdict({"relative fitness": math.nan}) != verdict({})


@pytest.mark.slow
def test_a_run_that_its_budget_ends_is_not_compared_with_its_forecast(tmp_path):
    tight = {"epsilon": 1.5, "delta": 1e-6, "unit": "record", "accountant": "basic"}
    run = run_study(study({}, budget=tight, forecast={"expected": 0.01, "low": 0.0, "high": 1e9}), tmp_path / "run")
    assert run.run.stopped == "budget"
    assert grid(run.report, "Forecast").rows[0][-1].startswith("not compared: the run ended before")


@pytest.mark.parametrize("wrong", [{"expected": 9.0}, {"expected": -1.0}, {"high": math.inf}, {"expected": math.nan}])
def test_a_forecast_lies_inside_its_interval_and_is_finite(wrong):
    with pytest.raises(StudyInvalid, match="HR-101"):
        study({}, forecast={"expected": 0.01, "low": 0.0, "high": 1.0} | wrong)


def test_fitness_is_that_on_the_records_of_those_who_take_part():
    few = {"epsilons": {name: AGREED[name] for name in ("party 1", "party 2")}, "left_out": ["party 3"]}
    built = build(study({}, program=few))
    records, settings = hr.engines.records(built.federation), built.settings
    pair = records.pool(np.array([0, 1]))
    loss, spec = loss_of_keys(built.schema, settings), spec_of_keys(built.schema, settings)
    best = optimum(loss, *pooled(pair, spec), settings["box"])
    assert fitness_of(best, built.schema, settings, records) == pytest.approx(0.0, abs=1e-12)
    assert fitness_of(best, built.schema, settings | {"left_out": None}, records) > 1e-6


def test_stations_cannot_know_what_was_achieved_and_a_forecast_is_an_interval():
    one = study(forecast={"expected": 0.01, "low": 0.0, "high": 1.0})
    (found,) = forecast_grids(one, {}, simulated=False)
    assert found.rows[0][-2:] == (None, "not known: only a simulation can compute it")
    assert "no such number" in forecast_grids(one, {"accuracy": 1.0})[0].rows[0][-1]
    with pytest.raises(StudyInvalid, match="HR-101") as caught:
        study(forecast={"expected": 0.01, "low": 1.0, "high": 0.0})
    assert "low is at most high" in caught.value.remedy
    assert math.isfinite(found.rows[0][1])
