"""A report survives JSON, and refuses what it cannot hold."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hedgerow.errors import StudyInvalid
from hedgerow.report import Comparison, Report, Series


def test_report_returns_equal_from_strict_json(report):
    written = json.dumps(report.to_json(), allow_nan=False)
    assert Report.from_json(json.loads(written)) == report


def test_scalars_of_numpy_become_plain_numbers():
    report = Report(
        title="", study="", description="", privacy="", privacy_ok=False, facts=(("n", np.int64(3)), ("x", np.float32(0.5)))
    )
    assert json.loads(json.dumps(report.to_json()))["facts"] == [["n", 3], ["x", 0.5]]


@pytest.mark.parametrize("damage", [{"colour": "red"}, {"curves": [{"title": "x"}]}, {"heat": {"rows": []}}, {"curves": 3}])
def test_damaged_reports_are_refused(report, damage):
    with pytest.raises(StudyInvalid, match="HR-101"):
        Report.from_json(report.to_json() | damage)


def test_series_needs_one_y_for_every_x():
    with pytest.raises(StudyInvalid, match="2 x and 1 y"):
        Series("accuracy", (1, 2), (0.5,))


@pytest.mark.parametrize(("higher_is_better", "loss"), [(True, 0.25), (False, -0.25)])
def test_loss_is_how_much_worse_the_federated_value_is(higher_is_better, loss):
    rows = (("Federated", 0.5, ""), ("Centralised", 0.75, ""))
    assert Comparison("score", higher_is_better, rows).loss == loss


def test_loss_needs_both_values():
    assert Comparison("score", True, (("federated", 0.5, ""),)).loss is None
