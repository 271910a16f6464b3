"""An evaluation at the parties is one question at the end, unless the study says how often; the ledger proves it."""

import json

import numpy as np
import pytest
from comparing import study
from sklearn import metrics

import hedgerow as hr
from hedgerow.errors import StudyInvalid
from hedgerow.study import rehearse, run_study
from hedgerow.study.build import build
from hedgerow.study.rounds import metrics_of, read_rounds
from hedgerow.study.study import parse

CANCER = {
    "name": "small",
    "data": {"name": "breast_cancer"},
    "partition": {"by": "iid", "parties": 2},
    "program": {"name": "logistic_regression", "formula": "malignant ~ mean_texture + mean_radius"},
    "baselines": False,
}


def parties(**evaluation):
    return study(evaluation={"on": "parties", "holdout": 0.0, **evaluation}, baselines=False)


def scoring(entries):
    """Questions that measure a model, of those that a ledger has."""
    return [
        entry for entry in entries if entry.query.rpartition(":")[2] in ("score", "score_own", "classified", "scores_by_class")
    ]


def ledger(folder):
    return [json.loads(line) for line in (folder / "ledger.jsonl").read_text().splitlines()]


def test_a_trained_model_is_measured_once_at_the_end(tmp_path):
    result = run_study(parties(), tmp_path / "run")
    left = {row[0]: row[1] for row in result.report.left.rows}
    assert left["learn.score_own"] == 1
    rows = read_rounds(tmp_path / "run" / "rounds.jsonl")
    assert [bool(metrics_of(row)) for row in rows] == [False] * (len(rows) - 1) + [True]
    assert 0 < dict(result.report.metrics)["accuracy"] <= 1
    asked = [row for row in ledger(tmp_path / "run") if "score_own" in json.dumps(row)]
    assert len(asked) == 1
    assert len(scoring(rehearse(parties()).entries)) == 1


def test_every_says_how_often(tmp_path):
    result = run_study(parties(every=1), tmp_path / "run")
    rounds = result.run.state.round
    assert rounds > 1
    assert {row[0]: row[1] for row in result.report.left.rows}["learn.score_own"] == rounds
    assert len(scoring(rehearse(parties(every=1)).entries)) == rounds


def test_a_metric_that_ends_a_run_is_asked_by_round():
    assert parties().evaluation.between is None
    assert [parties(**more).evaluation.between for more in ({"patience": 2}, {"target": 0.9}, {"every": 3})] == [1, 1, 3]
    assert study(evaluation={"on": "test", "holdout": 0.2}).evaluation.between == 1


@pytest.mark.slow
def test_a_resumed_run_has_asked_once_too(tmp_path):
    whole = run_study(parties(), tmp_path / "run")
    again = run_study(parties(), tmp_path / "run", resume=True)
    assert dict(again.report.metrics)["accuracy"] == dict(whole.report.metrics)["accuracy"]
    assert again.report.left.rows == whole.report.left.rows
    assert len([row for row in ledger(tmp_path / "run") if "score_own" in json.dumps(row)]) == 1


def test_a_fit_is_measured_by_two_questions_of_which_one_is_the_curve(tmp_path):
    result = run_study(parse(CANCER | {"evaluation": {"on": "parties"}}), tmp_path / "run")
    left = {row[0]: row for row in result.report.left.rows}
    assert left["stats.classified"][1] == left["stats.scores_by_class"][1] == 1
    assert left["stats.scores_by_class"][2] == 40
    announced = rehearse(parse(CANCER | {"evaluation": {"on": "parties"}})).entries
    assert [entry.numbers for entry in announced if "scores_by_class" in entry.query] == [40] * announced_fits(announced)
    found = dict(result.report.metrics)
    frame = hr.data.load("breast_cancer").to_pandas()
    coef = result.outcome.coefficients["coef"].to_numpy()
    eta = coef[0] + frame[["mean_texture", "mean_radius"]].to_numpy() @ coef[1:]
    y = frame["malignant"].to_numpy()
    events, others = eta[y == 1], eta[y == 0]
    wins = (events[:, None] > others) + 0.5 * (events[:, None] == others)
    error = np.sqrt(wins.mean(1).var(ddof=1) / len(events) + wins.mean(0).var(ddof=1) / len(others))
    assert abs(found["AUC"] - metrics.roc_auc_score(y, eta)) < 0.5 * error
    low, high = map(float, found["AUC, 95 % interval"].split(" to "))
    assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.1)
    curve = next(curve for curve in result.report.curves if curve.title == "ROC curve")
    assert "20 bins" in curve.note
    assert f"{found['AUC']:.3f}" in curve.note
    assert len(curve.series[0].low) == len(curve.series[0].x)


def announced_fits(entries):
    """A fit on made-up records may end early, and has then no curve to be announced."""
    return len([entry for entry in entries if "classified" in entry.query])


def test_a_study_names_a_finer_resolution_and_the_page_says_so(tmp_path):
    result = run_study(
        parse(CANCER | {"evaluation": {"on": "parties", "bins": 300}, "protection": {"disclosure": 2.0}}), tmp_path / "run"
    )
    assert {row[0]: row[2] for row in result.report.left.rows}["stats.scores_by_class"] == 600
    assert "300 bins" in next(curve for curve in result.report.curves if curve.title == "ROC curve").note
    with pytest.raises(StudyInvalid, match="choose on"):
        parse(CANCER | {"evaluation": {"on": "test", "bins": 300}})


def test_bins_follow_the_records_that_are_known_before_and_no_answer():
    built = build(parse(CANCER))
    assert built.bins == 20
    assert build(parse(CANCER | {"evaluation": {"on": "parties", "bins": 50}})).bins == 50


@pytest.mark.slow
def test_a_budget_that_ends_a_run_may_leave_no_question_for_its_evaluation(tmp_path):
    protection = {"clip": {"radius": 1.0}, "mechanism": {"noise_multiplier": 2.0}}
    budget = {"epsilon": 3.0, "delta": 1e-3, "unit": "party"}
    made = study(evaluation={"on": "parties", "holdout": 0.0}, baselines=False, protection=protection, budget=budget)
    result = run_study(made, tmp_path / "run")
    assert result.run.stopped in ("budget", "finished")
    asked = [row for row in result.report.left.rows if "score" in row[0]]
    refused = [warning for warning in result.report.warnings if "evaluation was not asked" in warning]
    assert len(asked) + len(refused) == 1


def test_a_fit_is_kept_where_so_many_numbers_may_not_be_asked_any_more(tmp_path, monkeypatch):
    """Made-up records may be fitted in fewer rounds than the real ones, so that a rehearsal does not foresee it."""
    monkeypatch.setattr("hedgerow.study.runner.refuse_beyond", lambda built: None)
    few = CANCER | {"partition": {"by": "iid", "parties": 4}, "evaluation": {"on": "parties"}}
    result = run_study(parse(few), tmp_path / "run")
    assert result.run.stopped == "finished"
    assert any("evaluation was not asked" in warning for warning in result.report.warnings)
    assert "Coefficients" in [grid.title for grid in result.report.tables]
    assert not any("scores_by_class" in row[0] for row in result.report.left.rows)


def test_metrics_that_came_before_a_refusal_are_kept_and_shown(tmp_path, monkeypatch):
    """The curve is the second question of an evaluation; what the first one told has left the parties."""
    from hedgerow.errors import DisclosureExceeded

    def refused(*given, **settings):
        raise DisclosureExceeded("with scores_by_class: too much", remedy="Ask for less.")

    monkeypatch.setattr("hedgerow.study.runner.refuse_beyond", lambda built: None)
    monkeypatch.setattr("hedgerow.stats.scores.roc", refused)
    result = run_study(parse(CANCER | {"evaluation": {"on": "parties"}}), tmp_path / "run")
    found = dict(result.report.metrics)
    assert 0.8 < found["accuracy"] < 1
    assert 0 < found["log-loss"] < 0.4
    assert "AUC" not in found
    assert any("part of the evaluation was not asked: with scores_by_class" in warning for warning in result.report.warnings)
    assert metrics_of(read_rounds(tmp_path / "run" / "rounds.jsonl")[-1])["accuracy"] == found["accuracy"]
