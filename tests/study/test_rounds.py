"""What a history of rounds says: the best, the target, and when it is enough."""

import json
import math
from types import SimpleNamespace

import pytest
from comparing import study

from hedgerow.study.rounds import best, first_metric, metrics_of, reached, read_rounds, rises, stalled


def rows(values, name="test accuracy"):
    return [{"round": i, "seconds": float(i), **({} if v is None else {name: v})} for i, v in enumerate(values, 1)]


@pytest.mark.parametrize(
    ("name", "up"),
    [
        ("test accuracy", True),
        ("R2", True),
        ("log-likelihood", True),
        ("validation loss", False),
        ("mean squared error", False),
        ("relative fitness", False),
    ],
)
def test_losses_and_errors_are_better_when_they_fall(name, up):
    assert rises(name) == up


def test_costs_are_no_metrics():
    row = {"round": 1, "seconds": 2.0, "bytes_up": 3.0, "bytes_down": None, "loss": 1.0}
    assert metrics_of(row) == {"loss": 1.0}
    assert first_metric([{"round": 1, "seconds": 1.0}, row]) == "loss"
    assert first_metric([]) is None


def test_the_best_round_is_the_first_of_equal_ones_and_skips_what_is_no_number():
    assert best(rows([0.1, 0.7, math.nan, 0.7, None]), "test accuracy") == (2, 0.7)
    assert best(rows([3.0, 1.0, 2.0], "test loss"), "test loss") == (2, 1.0)
    assert best(rows([math.nan]), "test accuracy") is None


def test_a_target_is_reached_from_its_better_side():
    assert reached(rows([0.1, 0.9, 0.95]), "test accuracy", 0.9)["round"] == 2
    assert reached(rows([3.0, 0.5], "test loss"), "test loss", 1.0)["round"] == 2
    assert reached(rows([0.1]), "test accuracy", 0.9) is None


@pytest.mark.parametrize(
    ("values", "improvement", "since"),
    [
        ([0.1, 0.2, 0.3], 0.0, 0),
        ([0.1, 0.3, 0.3, 0.2], 0.0, 2),
        ([0.1, 0.105, 0.11, 0.115], 0.02, 3),
        ([0.1, None, None, 0.05], 0.0, 1),
        ([math.nan, math.nan], 0.0, 2),
        ([math.nan, 0.1], 0.0, 0),
    ],
)
def test_measurements_without_improvement_are_counted(values, improvement, since):
    assert stalled(rows(values), "test accuracy", improvement) == since


def test_a_line_that_a_crash_cut_short_ends_the_history(tmp_path):
    path = tmp_path / "rounds.jsonl"
    assert read_rounds(path) == []
    path.write_text(json.dumps({"round": 1}) + "\n" + '{"round": 2, "test acc')
    assert read_rounds(path) == [{"round": 1}]


def test_bytes_are_those_of_a_party_on_average(tmp_path):
    from hedgerow.study.build import build
    from hedgerow.study.rounds import Rounds

    built = build(study(partition={"by": "iid", "parties": 8}))
    found = Rounds(built, tmp_path / "rounds.jsonl", 0, lambda progress: None)
    built.run.ledger.entries += [
        SimpleNamespace(parties=8, bytes_up=100.0, bytes_down=10.0),
        SimpleNamespace(parties=2, bytes_up=100.0, bytes_down=None),
    ]
    assert found._traffic() == {"bytes_up": 125.0, "bytes_down": None}
    assert found._traffic() == {"bytes_up": 125.0, "bytes_down": None}  # counted once
