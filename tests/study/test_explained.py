"""What the page of a run says of itself: no more than holds, and a curve only where there is one."""

import pytest

import hedgerow.study.explain as explain
from hedgerow.study import run_study
from hedgerow.study.baselines import Baselines
from hedgerow.study.build import build
from hedgerow.study.study import parse

LINE = {
    "name": "line",
    "data": {"name": "breast_cancer"},
    "partition": {"by": "iid", "parties": 4},
    "program": {"name": "logistic_regression", "formula": "malignant ~ mean_texture", "rounds": 2},
}
NOISE = {"mechanism": {"noise_multiplier": 1.0}}
BUDGET = {"epsilon": 50.0, "delta": 1e-4, "unit": "record"}


def test_a_noisy_page_does_not_say_that_the_fit_is_the_pooled_one(tmp_path):
    exact = parse({**LINE, "program": {**LINE["program"], "rounds": 25}, "baselines": False})
    assert explain.sentence_of(build(exact)) == "Logistic regression; equal to the pooled fit."
    result = run_study(parse(LINE | {"protection": NOISE, "budget": BUDGET, "baselines": False}), tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text()
    assert "equal to the pooled fit" not in page
    assert "without noise" not in result.report.description
    assert "not the pooled fit" in result.report.description


def test_noisy_counts_of_records_are_about_so_many(tmp_path):
    result = run_study(parse(LINE | {"protection": NOISE, "budget": BUDGET, "baselines": False}), tmp_path / "run")
    words = dict(result.report.text)["Summary"]
    assert "records about 5" in words
    found = words.split("records about ")[1].split()[0]
    assert found.isdigit()


def test_metrics_behind_noise_are_called_noisy(tmp_path):
    changes = {"protection": NOISE, "budget": BUDGET, "baselines": False, "evaluation": {"on": "parties"}}
    result = run_study(parse(LINE | changes), tmp_path / "run")
    names = [name for name, _ in result.report.metrics]
    assert {"noisy log-loss", "noisy accuracy", "noisy AUC"} <= set(names)
    assert not any("interval" in name for name in names)


@pytest.mark.parametrize(("n", "drawn"), [(1, 0), (2, 0), (3, 1)])
def test_two_points_are_no_curve(n, drawn):
    history = [{"round": k, "seconds": 0.0, "test accuracy": 0.1 * k} for k in range(1, n + 1)]
    assert len(explain.metric_curves(history, Baselines())) == drawn


def test_coefficients_stand_above_the_figures(tmp_path):
    result = run_study(parse(LINE | {"evaluation": {"on": "parties"}}), tmp_path / "run")
    assert result.report.tables_first
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.index("Coefficients</h2>") < page.index("ROC curve</h3>")


def test_a_standard_error_is_shown_as_an_interval_within_zero_and_one():
    shown = explain.with_intervals({"AUC": 0.99, "AUC standard error": 0.02, "loss": 1.0})
    assert shown == (("AUC", 0.99), ("AUC, 95 % interval", "0.951 to 1.000"), ("loss", 1.0))
    assert explain.with_intervals({"AUC": 0.9, "AUC standard error": float("nan")}) == (("AUC", 0.9),)
