"""Several programs on one page: numbers of their own fits, words for names, who saw what, and refusals."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from scipy.special import expit

import hedgerow as hr
from hedgerow.core.toml import to_toml
from hedgerow.data import load
from hedgerow.data.cases import LeftOut
from hedgerow.errors import ProgramForbidden, StudyInvalid, TooFewRecords
from hedgerow.network.coordinator.columns import used_columns
from hedgerow.network.station.config import GuardSection
from hedgerow.network.station.counts import most_rounds
from hedgerow.network.station.disclosed import refuse_small_folds
from hedgerow.network.station.policy import admit_program
from hedgerow.report import Curve, Outcome, Report, Series
from hedgerow.report.papers import coefficient_grid
from hedgerow.report.square import square_chart
from hedgerow.stats.quality.roc import Roc
from hedgerow.stats.scores import even_edges
from hedgerow.study import load as load_study
from hedgerow.study import parse, run_study
from hedgerow.study.build import build
from hedgerow.study.findings import page
from hedgerow.study.findings.analyses import AnalysesState, parts_of
from hedgerow.study.findings.page import area_headline

FORMULA = "death_event ~ age + ejection_fraction + C(sex)"
PARTS = {
    "model": {"name": "logistic_regression", "formula": FORMULA, "title": "What goes with death"},
    "everywhere": {
        "name": "meta_analysis",
        "formula": "death_event ~ age + ejection_fraction",
        "coefficients": ["age"],
        "sites_shown": True,
        "pooled": False,
        "title": "Does it hold?",
    },
    "who": {"name": "table_one", "columns": ["age", "sex"], "group": "death_event", "title": "Who"},
}
LABELS = {"age": "Each year", "who.age": "Age", "who.1": "Died", "events": "Died", "everywhere.P0": "North"}


def study(**changes):
    program = {"name": "analyses", "about": "age", "aside": ["sex"], "labels": LABELS, "parts": PARTS}
    made = {
        "name": "hearts",
        "title": "Who dies?",
        "data": {"name": "heart_failure"},
        "partition": {"by": "iid", "parties": 3},
        "program": program | changes.pop("program", {}),
        "protection": {"disclosure": 3.0},
        "evaluation": {"on": "parties", "groups": 5},
        "baselines": False,
    }
    return parse(made | changes)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "hearts"
    return run_study(study(), folder), (folder / "report.html").read_text()


def test_numbers_are_those_of_each_program_by_itself(ran):
    report = ran[0].report
    clinics = hr.simulate(load("heart_failure"), hr.data.iid(parties=3), seed=0)
    fit = hr.stats.logistic_regression(clinics, FORMULA)
    (ratio,) = [row for row in report.tables[0].rows if row[0] == "Each year"]
    assert ratio[1] == f"{np.exp(fit.coef_[list(fit.names).index('age')]):.2f}"
    assert "to" in ratio[2]
    assert ratio[3] == "below 0.001"
    meta = hr.stats.meta_analysis(clinics, PARTS["everywhere"]["formula"], ["age"], pooled=False)
    assert report.forests[0].total.estimate == pytest.approx(float(np.exp(meta["age"].mean)), rel=1e-6)
    assert report.headlines[2].value == f"× {report.forests[0].total.estimate:.2f}"


def test_the_page_has_words_for_names_and_leaves_out_what_stands_aside(ran):
    report, page = ran[0].report, ran[1]
    assert [one.label for one in report.headlines] == ["Records in the model", "Died", "Each year", "Tells them apart (AUC)"]
    assert report.headlines[0].value == "299"
    assert report.headlines[1].value == "32.1%"
    assert [row[0] for row in report.tables[0].rows] == ["Each year", "ejection_fraction"]  # neither intercept nor sex
    assert report.tables[1].title == "Who"
    assert "Died" in report.tables[1].columns
    places = [
        page.index(f"<h2>{title}</h2>") for title in ("What this page gives away", "Does it hold?", "What goes with death")
    ]
    assert places == sorted(places)
    assert page.index("<h2>How good is the prediction?</h2>") < page.index("<h2>Who</h2>") < page.index("<h2>Who saw what</h2>")
    assert "No sign that sites differ by more than chance.</p>" in page  # the lead says what the test does
    assert "<script" not in page
    assert Report.from_json(json.loads(json.dumps(report.to_json()))) == report


def test_who_saw_what_is_counted_from_the_ledger(ran):
    report = ran[0].report
    _, server, reader = report.witnesses.rows
    asked = [row for row in report.left.rows if "gather" not in row[0]]
    assert f"{sum(row[1] for row in asked)} questions" in server[1]
    assert "1 question, " in server[1]  # the estimates of sites
    assert "own estimate" in reader[1]
    assert "one estimate of each party" in report.privacy


def test_behind_hidden_rows_the_coordinator_sees_totals_and_no_site_is_drawn(tmp_path):
    parts = {name: PARTS[name] for name in ("model", "who")}
    hidden = {"disclosure": 3.0, "aggregation": {"by": "additive", "records": 300}}
    report = run_study(study(program={"parts": parts}, protection=hidden), tmp_path / "run").report
    assert report.witnesses.rows[1][1].startswith("totals of all 3 parties")
    assert report.forests == ()
    assert report.headlines[2].label == "Each year"  # of the table of coefficients


@pytest.mark.parametrize(
    ("parties", "aggregation", "said", "unsaid"),
    [
        (1, None, ["Numbers of one party alone"], ["any number of a single party", "of another party"]),
        (2, None, ["Totals over 2 parties", "it knows the other's"], ["any record or number of another party"]),
        (8, {"by": "pairwise", "group": 4, "records": 300}, ["in groups of 4 or more"], ["totals of all 8 parties"]),
    ],
)
def test_few_parties_and_small_groups_are_promised_no_more_than_holds(tmp_path, parties, aggregation, said, unsaid):
    channel = {"disclosure": 30.0} | ({"aggregation": aggregation} if aggregation else {})
    program = {"parts": {name: PARTS[name] for name in ("model", "who")}}
    asked = study(program=program, partition={"by": "iid", "parties": parties}, protection=channel, evaluation={"on": "none"})
    report = run_study(asked, tmp_path / "run").report
    words = report.privacy + " ".join(cell for row in report.witnesses.rows for cell in row)
    assert [one for one in said if one not in words] == []
    assert [one for one in unsaid if one in words] == []


def test_a_state_holds_the_states_of_its_parts():
    parts = parts_of(PARTS)
    clinics = hr.simulate(load("heart_failure"), hr.data.iid(parties=3), seed=0)
    inner = hr.last(parts[0].listing.program(parts[0].settings)(clinics))
    state = AnalysesState().reached(0, parts[0], inner)
    np.testing.assert_array_equal(state.of(parts[0]).beta, inner.beta)
    assert state.of(parts[0]).converged
    assert state.of(parts[1]) is None


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({}, "no parts"),
        ({"model": {"formula": FORMULA}}, "called None"),
        ({"a b": {"name": "counts"}}, "'a b'"),
        ({"model": {"name": "analyses", "parts": {}}}, "cannot be one of several"),
        ({"model": {"name": "logistic_regression", "formulae": FORMULA}}, "problem"),
    ],
)
def test_parts_that_cannot_run_are_refused_before_anybody_is_asked(parts, said):
    with pytest.raises(StudyInvalid, match=said):
        parts_of(parts)


def test_an_area_is_called_by_a_word():
    assert area_headline({"AUC": 0.62, "AUC standard error": 0.006}, {}).beneath == "95% 0.61 to 0.63: weakly"
    assert area_headline({"AUC": 0.55}, {}).beneath == "hardly"
    assert area_headline({"R2": 0.5}, {}) is None


def test_square_figures_have_equal_axes_and_reach_as_far_as_their_values():
    dots = Series("observed", (0.05, 0.1), (0.04, 0.12), low=(0.03, 0.1), high=(0.06, 0.15))
    corner = Series("perfect", (0.0, 1.0), (0.0, 1.0), "muted")
    drawn = square_chart(Curve("Calibration", "predicted", "occurred", (dots, corner), shape="points"))
    assert drawn.count("<circle") == 2
    assert drawn.count("15%") == 2  # on both axes, and no more
    assert "100%" not in drawn
    assert square_chart(Curve("x", "a", "b", (Series("m", (0.0,), (float("nan"),)),), shape="square")) is None


def test_shares_beside_rounded_counts_are_those_of_the_rounded_ones(monkeypatch):
    clinics = hr.simulate(load("heart_failure"), hr.data.iid(parties=3), seed=0)
    told = LeftOut(("age", "sex"), ("age", "sex"), (296.0, 2.0, 1.0), (2.0, 1.0), exact=False)
    monkeypatch.setattr(page, "all_left_out", lambda federation: iter([told]))
    monkeypatch.setattr(page, "is_simulated", lambda federation: False)
    headlines = page._headlines(clinics, [Outcome(counted={"records": 296.0, "events": 96.0})], None, "", {})
    assert [(one.value, one.beneath) for one in headlines] == [
        ("about 295", "98.3% of those asked about"),
        ("32.2%", "about 95 of them"),
    ]
    (said,) = page.cautions(clinics, {})
    assert "1.7%" in said
    assert "sex" not in said


# ---- at stations ----------------------------------------------------------------------------------------------------
def test_a_guard_admits_several_programs_only_if_it_admits_each():
    allowed = ["analyses", "logistic_regression", "meta_analysis"]
    guard = GuardSection.model_validate({"programs": [{"name": name} for name in allowed]})
    with pytest.raises(ProgramForbidden, match="'table_one' is not among those allowed"):
        admit_program(guard, study(), "1", "1", "")
    parts = {name: PARTS[name] for name in ("model", "everywhere")}
    admit_program(guard, study(program={"parts": parts}), "1", "1", "")


def test_rounds_of_several_programs_add_up_and_folds_of_each_are_looked_at():
    parts = {"model": PARTS["model"] | {"max_rounds": 30}, "test": {"name": "table_one", "columns": ["age"]}}
    assert most_rounds(build(study(program={"parts": parts})), noisy=False) == (31, True)
    folded = {"path": {"name": "penalty_path", "formula": FORMULA, "family": "binomial", "folds": 10}}
    with pytest.raises(TooFewRecords, match="10 folds"):
        refuse_small_folds(study(program={"parts": folded}), 20)


def test_columns_are_those_of_each_part_and_no_words_of_labels():
    known = ["age", "ejection_fraction", "sex", "death_event", "smoking", "platelets"]
    made = study(program={"parts": {"model": PARTS["model"]}, "labels": {"age": "smoking years"}})
    assert used_columns(made, known) == ["age", "ejection_fraction", "sex", "death_event"]


def test_the_study_of_the_documentation_runs(tmp_path):
    file = Path(__file__).parents[2] / "docs" / "examples" / "deaths.toml"
    report = run_study(load_study(file), tmp_path / "run").report
    assert [one.label for one in report.headlines] == [
        "Records in the model",
        "Died",
        "Each year of age",
        "Tells them apart (AUC)",
    ]
    assert [curve.shape for curve in report.curves] == ["square", "points"]
    assert report.tables[1].rows[1][0] == "Age (years)"


def test_groups_of_a_calibration_are_as_many_whatever_the_counts_are():
    edges = np.linspace(-3, 3, 19)
    skewed = Roc(edges, np.r_[1000.0, np.zeros(19)], np.r_[90.0, np.zeros(19)], np.zeros(20, bool), 1)
    even = Roc(edges, np.full(20, 50.0), np.full(20, 5.0), np.zeros(20, bool), 1)
    assert [len(even_edges(one, 10)) for one in (skewed, even)] == [11, 11]
    assert np.diff(even_edges(skewed, 10)).min() > 0
    np.testing.assert_allclose(even_edges(even, 10)[1:-1], expit(edges[1::2]))
    assert len(even_edges(even, 100)) == 21


def test_a_calibration_that_is_refused_leaves_the_metrics_before_it(tmp_path):
    parts = {"model": PARTS["model"]}
    enough, *_ = [run_study(study(program={"parts": parts}), tmp_path / "whole").report]
    ratio = float(next(note for note in enough.notes if "a ratio of" in note).split("a ratio of ")[1].split(",")[0])
    less = run_study(study(program={"parts": parts}, protection={"disclosure": ratio - 0.005}), tmp_path / "less").report
    assert [curve.title for curve in less.curves] == ["ROC curve"]
    assert dict(less.metrics)["AUC"] == dict(enough.metrics)["AUC"]
    assert any("A part of the evaluation was not asked" in one for one in less.warnings)


def test_a_page_about_another_term_than_its_forest_plot_takes_its_own_row(tmp_path):
    forests = {name: PARTS[name] for name in ("model", "everywhere")}
    report = run_study(study(program={"parts": forests, "about": "ejection_fraction"}), tmp_path / "run").report
    (row,) = [row for row in report.tables[0].rows if row[0] == "ejection_fraction"]
    assert report.headlines[2].value == f"× {row[1]}"
    absent = run_study(study(program={"parts": {"model": PARTS["model"]}, "about": "wealth"}), tmp_path / "other").report
    assert any("No part has a term 'wealth'" in note for note in absent.notes)
    assert len(absent.headlines) == 3


def test_terms_aside_are_those_of_the_column_alone():
    frame = pandas.DataFrame(
        {"coef": 0.1, "p": 0.5, "low": 0.0, "high": 0.2}, index=["age", "age10", "C(age)[T.old]", "C(ages)[T.b]", "age:sex"]
    )
    assert [row[0] for row in coefficient_grid("t", frame, {}, ["age"]).rows] == ["age10", "C(ages)[T.b]", "age:sex"]


def test_terms_are_called_as_the_dictionary_labels_them(tmp_path):
    rng = np.random.default_rng(0)
    made = {"age": rng.integers(40, 90, 300), "sex": rng.choice(["m", "w"], 300), "dead": rng.integers(0, 2, 300)}
    pandas.DataFrame(made).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "people.toml").write_text(
        '[dictionary]\nname = "people"\nversion = "1.0.0"\n'
        '[columns.age]\nkind = "integer"\nrange = [18, 110]\nlabel = "Age, years"\n'
        '[columns.sex]\nlabel = "Sex"\nlevels = { woman = "w", man = "m" }\n[columns.dead]\nkind = "binary"\n'
    )
    parts = {"model": {"name": "logistic_regression", "formula": "dead ~ age + C(sex)"}}
    (tmp_path / "study.toml").write_text(
        to_toml(
            {
                "name": "ours",
                "data": {"path": "people.csv", "dictionary": "people.toml"},
                "partition": {"by": "iid", "parties": 3},
                "program": {"name": "analyses", "about": "age", "parts": parts},
                "baselines": False,
                "evaluation": {"on": "none"},
            }
        )
    )
    report = run_study(load_study(tmp_path / "study.toml"), tmp_path / "run").report
    assert [row[0] for row in report.tables[0].rows] == ["Age, years", "Sex: man"]
    assert report.headlines[2].label == "Age, years"
