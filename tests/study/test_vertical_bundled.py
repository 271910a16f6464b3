"""Bundled studies of different columns on real data: golden values, hidden joins, attacks under defences."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hedgerow.study import load, run_study

DATA = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="set HEDGEROW_DATA to the folder of public data sets")

GOLDEN = {  # pooled Newton's method on 68 754 people: coefficient and standard error
    "Intercept": (-11.3169825, 0.231498215),
    "age": (0.000141060387, 3.70510482e-06),
    "gender": (-0.0185527755, 0.0219151637),
    "height": (-0.00359539532, 0.00128271069),
    "weight": (0.0108869115, 0.00068705358),
    "smoke": (-0.142033236, 0.0347751334),
    "ap_hi": (0.0535718691, 0.000884445039),
    "ap_lo": (0.0159238439, 0.00139127139),
    "cholesterol": (0.49945116, 0.0155989785),
    "gluc": (-0.119533761, 0.017683725),
    "alco": (-0.21402901, 0.0422890897),
    "active": (-0.227436819, 0.0218842245),
}


@pytest.mark.slow
@needs_data
def test_cardio_has_the_golden_coefficients_to_1e_7_and_standard_errors_to_1e_6(tmp_path):
    study = load("vertical-cardio", {"alignment.by": "kkrt", "baselines": False})
    result = run_study(study, tmp_path / "cardio", data_dir=DATA)
    golden = pd.DataFrame(GOLDEN, index=["coef", "se"]).T
    frame = result.outcome.coefficients.loc[golden.index]
    assert dict(result.report.facts)["people in common"] == 68_754
    np.testing.assert_allclose(frame["coef"], golden["coef"], rtol=0, atol=1e-7)
    np.testing.assert_allclose(frame["se"], golden["se"], rtol=1e-6)
    purposes = {row[0]: row[1:] for row in result.report.traffic.rows}
    assert purposes["rows for the hub"][0] <= 15
    assert dict(result.report.facts)["rounds of letters"] < 120


@pytest.mark.slow
@needs_data
def test_linear_regression_of_cardio_is_the_pooled_one_to_1e_8(tmp_path):
    study = load("vertical-cardio-linear", {"alignment.by": "kkrt", "data.records": 5000})
    metrics = run_study(study, tmp_path / "cardio", data_dir=DATA).outcome.metrics
    assert metrics["largest difference from pooled, in se"] < 1e-7
    assert metrics["largest relative difference of se"] < 1e-8


@pytest.mark.slow
@needs_data
def test_means_over_a_hidden_join_are_those_of_an_aligned_one_and_cost_more(tmp_path):
    quick = {"data.records": 300}
    found = {
        name: run_study(load(name, quick), tmp_path / name, data_dir=DATA) for name in ("psi-salary", "psi-salary-aligned")
    }
    hidden, aligned = (found[name].outcome.coefficients for name in ("psi-salary", "psi-salary-aligned"))
    columns = ["hours_per_week", "capital_gain"]
    assert list(hidden["count"]) == list(aligned["count"])
    np.testing.assert_allclose(hidden[columns], aligned[columns], rtol=1e-9)
    sent = {name: dict(one.report.facts)["bytes of letters"] for name, one in found.items()}
    assert sent["psi-salary"] > sent["psi-salary-aligned"]
    saw = dict(found["psi-salary"].report.saw)
    assert "which of its own people" not in " ".join(saw["town"] + saw["tax"])


@pytest.mark.slow
@needs_data
def test_fraud_is_found_in_slopes_and_not_behind_label_privacy(tmp_path):
    study = load("split-fraud", {"program.epochs": 1, "program.observe": [1], "program.defences": ["none", "label-dp 1"]})
    metrics = run_study(study, tmp_path / "fraud", data_dir=DATA).outcome.metrics
    assert metrics["none: attack by direction"] > 0.95
    assert metrics["label-dp 1: attack by direction"] < 0.70


@pytest.mark.slow
@needs_data
def test_sensors_are_seen_as_a_sum_alone(tmp_path):
    study = load("split-har", {"data.records": 400, "program.epochs": 1})
    result = run_study(study, tmp_path / "har", data_dir=DATA)
    said = " ".join(dict(result.report.saw)["diary"])
    assert "The total of rows of movement, rotation, gravity" in said
    assert "record by record, of movement" not in said


@pytest.mark.slow
@needs_data
def test_split_training_of_digits_learns_and_its_page_has_train_and_test(tmp_path):
    study = load("splitnn-mnist", {"data.records": 1500, "program.epochs": 3})
    result = run_study(study, tmp_path / "mnist", data_dir=DATA)
    titles = [curve.title for curve in result.report.curves]
    assert {"Training accuracy", "Test accuracy"} <= set(titles)
    last = result.run.rounds[-1]
    assert last["training accuracy"] > 0.8
    assert abs(last["training accuracy"] - last["test accuracy"]) < 0.15
    leaks = next(grid for grid in result.report.tables if grid.title == "What leaks, by defence")
    attack = leaks.rows[0][leaks.columns.index("nearest class, epoch 1")]
    assert attack > 0.9  # of all digits, by who knows one image of each in a batch


@needs_data
def test_groups_of_few_people_are_not_told(tmp_path):
    study = load(
        "vertical-heart", {"program": {"name": "vertical_means", "of": ["serum_creatinine"], "by": "smoking", "least": 100}}
    )
    with pytest.raises(Exception, match=r"HR-216"):
        run_study(study, tmp_path / "heart", data_dir=DATA)
