"""Statements cover everything that a run publishes, and something new has no place until it has an entry."""

import json
from dataclasses import fields, make_dataclass

import pytest

from hedgerow.core.ledger import Ledger
from hedgerow.report import Outcome, Report
from hedgerow.study import parse, rehearse, run_study
from hedgerow.study import publication_kinds as kinds
from hedgerow.study.baselines import Baselines
from hedgerow.study.build import build
from hedgerow.study.explain import statement_of
from hedgerow.study.published import published

DIGITS = {
    "name": "digits",
    "data": {"name": "digits"},
    "partition": {"by": "iid", "parties": 4},
    "program": {"name": "fedavg", "rounds": 2, "learning_rate": 0.5},
    "protection": {"clip": {"radius": 1.0}, "mechanism": {"noise_multiplier": 2.0}},
    "evaluation": {"on": "test", "holdout": 0.2},
    "budget": {"epsilon": 8.0, "delta": 1e-2},
}


def study(**changes):
    return parse({key: value for key, value in (DIGITS | changes).items() if value is not None})


def statuses(built):
    return {one.what: one.status for one in published(built, Ledger())}


def without_place(names, places):
    """Names that no entry has: of places, some are beginnings."""
    return [name for name in names if not any(name == place or name.startswith(place) for place in places)]


# ---- one list -------------------------------------------------------------------------------------------------------
def field_names(kind):
    return [item.name for item in fields(kind)]


def test_every_field_of_a_report_and_of_what_it_is_made_from_has_an_entry():
    assert set(field_names(Report)) == set(kinds.REPORT)
    assert set(field_names(Outcome)) == set(kinds.OUTCOME)
    assert set(field_names(Baselines)) == set(kinds.BASELINES)


def test_every_entry_is_of_a_known_kind():
    named = {name for several in kinds.REPORT.values() for name in several}
    named |= {*kinds.FACTS.values(), *kinds.OUTCOME.values(), *kinds.BASELINES.values(), *kinds.FILES.values()}
    assert named <= set(kinds.KINDS)
    assert {kind.status for kind in kinds.KINDS.values()} == {"charged", "exposed", "declared", "public"}
    in_ledger = {"answers", "open answers"}
    assert set(kinds.KINDS) - named - in_ledger == set()


def test_something_new_that_is_published_without_an_entry_is_caught():
    grown = make_dataclass("Grown", [*field_names(Report), "records_shown"])
    assert without_place(field_names(grown), kinds.REPORT) == ["records_shown"]
    assert without_place(["report.html", "rows.csv"], kinds.FILES) == ["rows.csv"]
    assert without_place(["seconds", "rounds to accuracy 0.9", "oldest patient"], kinds.FACTS) == ["oldest patient"]


@pytest.mark.slow
def test_what_a_run_writes_is_what_the_list_has(tmp_path):
    made = study(evaluation={"on": "test", "holdout": 0.2, "target": 0.1, "stop": True}, engine={"states": "disk"})
    report = run_study(made, tmp_path / "run").report
    assert without_place([path.name for path in (tmp_path / "run").iterdir()], kinds.FILES) == []
    assert without_place([name for name, _ in report.facts], kinds.FACTS) == []
    written = json.loads((tmp_path / "run" / "result.json").read_text())
    page = (tmp_path / "run" / "report.html").read_text()
    assert "20 % of the records (359) were used as a test table without protection." in written["exposed"]
    assert "20 % of the records (359) were used as a test table without protection." in page
    assert "Differentially private, but for what is exposed" in page
    assert "when the run ended" in written["exposed"]
    assert Report.from_json(written) == report
    shown = {row[0]: row[2] for row in report.published.rows}
    assert shown["models fitted to all records in one place, and by parties alone"] == "exposed"
    assert any("to a question" in what and status == "charged" for what, status in shown.items())
    assert "What is published" in page


# ---- what is said of whom -------------------------------------------------------------------------------------------
def said(made, **more):
    built = build(made, **more)
    return statement_of(built, Ledger())


def test_records_that_became_a_test_table_are_said():
    assert said(study()).exposed.startswith("20 % of the records (359) were used as a test table without protection.")
    nothing = said(study(evaluation={"on": "none"}, baselines=False))
    assert "test table" not in nothing.exposed
    by_parties = said(study(evaluation={"on": "parties"}, baselines=False, data={"name": "breast_cancer"}))
    assert "test table" not in by_parties.exposed


def test_baselines_alone_are_said():
    assert "baselines, metrics at single parties" in said(study(evaluation={"on": "none"})).exposed
    assert "baselines" not in said(study(evaluation={"on": "none"}, baselines=False)).exposed


def test_a_run_that_a_metric_ends_says_whose_metric_it_is():
    stopped = {"on": "test", "holdout": 0.2, "patience": 2}
    by_table = {one.what: one for one in said(study(evaluation=stopped)).published}["when the run ends, which a metric decides"]
    assert by_table.status == "exposed"
    at_parties = said(study(evaluation={"on": "parties", "patience": 2}, baselines=False)).published
    assert {one.what: one.status for one in at_parties}["when the run ends, which a metric decides"] == "charged"


def test_a_round_that_a_metric_chose_says_whose_metric_it_is():
    kept = {"on": "test", "holdout": 0.2, "keep": "best"}
    found = {one.what: one.status for one in said(study(evaluation=kept)).published}
    assert found["when the run ends, which a metric decides"] == "exposed"


def test_declarations_say_where_they_come_from(tmp_path):
    catalogued = {one.what: one for one in said(study()).published}["kinds, levels and ranges of columns"]
    assert (catalogued.whose, catalogued.status) == ("the catalogue, for 'digits'", "declared")
    (tmp_path / "people.csv").write_text("age,sick\n" + "\n".join(f"{20 + k},{k % 2}" for k in range(40)))
    made = study(
        data={"path": str(tmp_path / "people.csv"), "target": "sick", "ranges": {"age": [0, 100]}},
        program={"name": "counts", "columns": ["sick"]},
        evaluation=None,
        protection=None,
        budget=None,
    )
    read = {one.what: one.status for one in said(made).published}
    assert read["kinds and levels of columns, read off the file; ranges are the study's"] == "exposed"


def test_without_a_simulation_seed_nothing_exact_is_named():
    exposed = said(study(seed="system", evaluation={"on": "none"})).exposed
    assert exposed == (
        "The run publishes exact values of the parties' records, without protection and outside any epsilon: a hash of them."
    )


def test_answers_without_noise_are_exposed_also_where_others_are_charged():
    built = build(study(protection=None, budget=None, evaluation={"on": "none"}, baselines=False))
    next(iter(built.listing.program(built.settings)(built.federation)))
    found = {one.what: one.status for one in published(built, built.run.ledger)}
    assert found["1 answer to a question without noise"] == "exposed"
    assert found["the model, tables, figures and metrics that are computed from answers"] == "exposed"


def test_a_rehearsal_says_what_a_run_would_publish():
    rehearsed = rehearse(study(), rounds=1).statement
    assert "20 % of the records (359) were used as a test table" in rehearsed.text
    assert rehearsed.text.startswith("Epsilon")


@pytest.mark.slow
def test_what_a_paper_claims_is_called_claimed_and_not_proved():
    program = {"name": "geyer", "rounds": 2, "parties": 3, "printed": True}
    printed = said(study(program=program, protection=None, budget=None, baselines=False))
    assert "claimed, not proved: at epsilon 8, by a moments accountant" in printed.exposed
    built = build(study(program=program, protection=None, budget=None, baselines=False))
    state = next(iter(built.listing.program(built.settings)(built.federation)))
    assert any(name.startswith("delta, claimed, not proved, at epsilon 8") for name in built.metrics(state))
    corrected = said(study(program=program | {"printed": False}, protection=None, budget=None, baselines=False))
    assert "claimed" not in corrected.exposed


# ---- by which theorem -----------------------------------------------------------------------------------------------
def test_a_study_with_a_filter_claims_its_limit_and_says_the_theorem():
    made = study(budget={"epsilon": 8.0, "delta": 1e-2, "filter": "rdp"})
    built = build(made)
    next(iter(built.listing.program(built.settings)(built.federation)))
    found = statement_of(built, built.run.ledger)
    assert found.epsilon == 8.0
    assert "held by a Renyi filter (Feldman & Zrnic 2021), order" in found.sentence
    assert "also where noise and sampling followed from answers" in found.sentence


@pytest.mark.slow
def test_noise_that_a_budget_decides_is_enough_for_its_filter():
    from hedgerow.study.planned import with_noise

    plain = study(protection={"clip": {"radius": 1.0}, "mechanism": {}}, program=DIGITS["program"] | {"rate": 0.5})
    held = plain.model_copy(update={"budget": plain.budget.model_copy(update={"filter": "rdp"})})
    less, more = (with_noise(one).protection.mechanism.noise_multiplier for one in (plain, held))
    assert 1.0 < more / less < 1.5
    built = build(with_noise(held))
    assert sum(1 for _ in built.listing.program(built.settings)(built.federation)) == 2
