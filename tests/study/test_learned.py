"""A run that learned nothing is told so: metric by metric against chance, by hand, and on the pages of whole studies."""

import math
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import hedgerow as hr
from hedgerow.cli.show import show_result
from hedgerow.report import Report
from hedgerow.report.page import loss_sentence, render
from hedgerow.study import parse, run_study
from hedgerow.study.learned import Chance, verdict

TEN = {"": Chance.of_classes(10)}
COIN = {"": Chance(0.52, math.log(2), n=400, known=True)}
MEAN = {"": Chance(error=2.0, n=50, known=True)}


def rows(name, *values):
    return [{"round": i, "seconds": 0.1, name: value} for i, value in enumerate(values, 1)]


@pytest.mark.parametrize(
    ("last", "chance", "said"),
    [
        ({"test accuracy": 0.51}, COIN, "test accuracy 0.51, where always saying the most common class gives 0.52."),
        (
            {"test accuracy": 0.54},
            COIN,
            "may have learned nothing: test accuracy 0.54 is within a standard error of what",
        ),  # within a standard error of 400 records
        ({"test accuracy": 0.56}, COIN, ""),
        ({"test accuracy": 0.52, "test loss": 0.60}, COIN, ""),  # the loss is better than that of the shares
        ({"test accuracy": 0.52, "test loss": 0.70}, COIN, "learned nothing"),
        ({"test accuracy": 0.52, "test loss": 0.70, "test Matthews correlation": 0.2}, COIN, ""),
        ({"test accuracy": 0.88, "test loss": 7047.0}, COIN, "The test loss of this run is 7.05e+03, where saying the share"),
        ({"accuracy": 0.09, "loss": 2.5}, TEN, "accuracy 0.09, where drawing a class by chance gives 0.1."),
        ({"accuracy": 0.2, "loss": 2.5}, TEN, ""),
        ({"mean squared error": 2.0}, MEAN, "mean squared error 2, where always saying the mean gives 2."),
        ({"mean squared error": 1.9, "loss": 1.9}, MEAN, ""),
        ({"mean squared error": 3e8, "loss": 3e8}, MEAN, "mean squared error 3.00e+08"),
        ({"test R2": -0.3}, {"": Chance()}, "test R2 -0.3, where a model that looks at no feature gives 0."),
        ({"test R2": 0.1}, {"": Chance()}, ""),
        ({"AUC": 0.49}, {"": Chance()}, "AUC 0.49"),
        ({"mean squared error": 7.0}, {"": Chance()}, ""),  # nobody knows what the mean would give
        ({"test loss": math.nan}, COIN, "diverged: test loss is nan"),
        ({"mean squared error": math.inf}, MEAN, "diverged"),
        ({"party mean": 0.1, "accuracy standard error": 0.1, "questions": 3.0, "name": "x"}, COIN, ""),
        ({}, COIN, ""),
    ],
)
def test_a_verdict_by_hand(last, chance, said):
    found = verdict([], last, chance)
    assert said in found if said else found == ""


def test_the_table_that_a_metric_was_measured_on_is_what_it_is_compared_with():
    both = {"": Chance(0.9, 0.3, n=1e6, known=True), "test": Chance(0.5, 0.7, n=1e6, known=True)}
    assert verdict([], {"test accuracy": 0.8}, both) == ""
    assert "0.9" in verdict([], {"validation accuracy": 0.8}, both)


@pytest.mark.parametrize(
    ("history", "chance", "said"),
    [
        (rows("test loss", 0.7, 0.9, 40.0), COIN, "the test loss was 0.7 in round 1 and is 40 in round 3."),
        (rows("test loss", 0.3, 0.5, 0.6), COIN, ""),  # overfitted, and still better than chance
        (rows("test loss", 0.9, 0.6, 0.5), COIN, ""),
        (rows("test loss", 1.0, 1.05), {"": Chance()}, ""),
        (rows("test loss", 1.0, 1.2), {"": Chance()}, "grew"),
        (rows("mean squared error", 1.0, 4e8), MEAN, "4.00e+08"),
    ],
)
def test_a_loss_that_grew_is_said(history, chance, said):
    found = verdict(history, {key: value for key, value in history[-1].items() if key not in ("round", "seconds")}, chance)
    assert said in found if said else found == ""


def test_chance_on_a_table_counts_records_by_their_weights():
    schema = hr.data.Schema(
        (hr.data.Column("y", "binary", role="target"), hr.data.Column("w", "number", low=0, high=9, role="weight"))
    )
    table = hr.data.Table(schema.admit({"y": [1.0, 0.0, 0.0], "w": [6.0, 1.0, 1.0]}), schema)
    found = Chance.on(table, "y")
    assert (found.accuracy, found.n) == (0.75, 8.0)
    assert found.loss == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    numbers = hr.data.Schema((hr.data.Column("y", "number", role="target"),))
    assert Chance.on(hr.data.Table(numbers.admit({"y": [1.0, 3.0]}), numbers), "y").error == 1.0


# ---- whole studies -----------------------------------------------------------------------------------------------------------
IDLE = {"model": "mlp", "hidden": [8], "learning_rate": 1e-9}


def ran(tmp_path, data="digits", protection=None, evaluation=None, baselines=True, **program):
    study = parse(
        {
            "name": "try",
            "data": {"name": data},
            "partition": {"by": "iid", "parties": 4},
            "program": {"name": "fedavg", "rounds": 3, "learning_rate": 0.3} | program,
            "protection": protection or {},
            "evaluation": evaluation or {"on": "test", "holdout": 0.2},
            "baselines": baselines,
        }
    )
    return run_study(study, tmp_path / "run")


def printed(result):
    console = Console(file=StringIO(), width=160)
    show_result(result, console)
    return console.file.getvalue()


def test_a_run_that_learned_is_told_nothing(tmp_path):
    report = ran(tmp_path).report
    assert report.nothing == ""
    assert "Read this first" not in render(report)
    assert loss_sentence(report.comparison)


@pytest.mark.parametrize("evaluation", [{"on": "test", "holdout": 0.2}, {"on": "parties"}, {"on": "none"}])
def test_a_run_at_chance_is_told_so_first_and_last(tmp_path, evaluation):
    result = ran(tmp_path, **IDLE, evaluation=evaluation)
    report = result.report
    assert "learned nothing" in report.nothing
    assert "always saying the most common class gives" in report.nothing
    page = render(report)
    assert page.index("Read this first") < page.index(report.privacy[:30])
    assert report.comparison.loss is None
    assert "than centralised" not in page
    assert "equals the centralised" not in page
    last = [line for line in printed(result).splitlines() if line.strip()][-3:]
    assert "learned nothing" in " ".join(last)
    assert Report.from_json(report.to_json()) == report


def test_without_baselines_and_test_table_chance_is_what_the_declaration_says(tmp_path):
    report = ran(tmp_path, learning_rate=1e-60, evaluation={"on": "parties"}, baselines=False).report
    assert "drawing a class by chance gives 0.1." in report.nothing


def test_a_run_that_noise_has_drowned_is_told_so(tmp_path):
    protection = {"clip": {"radius": 0.001}, "mechanism": {"noise_multiplier": 5e6}}
    assert ran(tmp_path, protection=protection).report.nothing


def test_a_run_that_diverged_is_told_so_and_equals_nothing(tmp_path):
    report = ran(tmp_path, data="diabetes", learning_rate=0.5).report
    assert "diverged" in report.nothing or "grew" in report.nothing or "learned nothing" in report.nothing
    assert report.comparison is None or loss_sentence(report.comparison) is None


def test_a_comparison_says_which_of_its_runs_learned_nothing(tmp_path):
    from hedgerow.compare import compare, sweep

    study = parse(
        {
            "name": "try",
            "data": {"name": "digits"},
            "partition": {"by": "iid", "parties": 4},
            "program": {"name": "fedavg", "rounds": 2} | IDLE,
            "evaluation": {"on": "test", "holdout": 0.2},
            "baselines": False,
        }
    )
    found = compare(sweep(study, ["program.learning_rate=0.3,1e-9"]), tmp_path / "sweep", jobs=1)
    assert "1 of 2 runs learned nothing" in " ".join(found.report.warnings)
    assert found.report.nothing == ""
    assert np.isfinite(dict(found.report.metrics)["best test accuracy"])


# ---- what nobody can tell ----------------------------------------------------------------------------------------------------
def of(kind, **columns):
    """A table of a target y, of one kind, and weights w, of which either may be missing."""
    levels = ("a", "b", "c") if kind == "category" else ()
    y = hr.data.Column("y", kind, levels=levels, role="target", optional=True)
    w = hr.data.Column("w", "number", low=0, high=9, role="weight", optional=True)
    schema = hr.data.Schema((y, w))
    return hr.data.Table({name: np.asarray(values) for name, values in columns.items()}, schema)


@pytest.mark.parametrize(
    ("kind", "y", "found"),
    [
        ("category", np.array([0, 0, 1, -1], np.int16), (0.75, 4.0)),
        ("binary", [0.0, 0.0, 1.0, np.nan], (0.75, 4.0)),
    ],
)
def test_chance_is_of_records_that_have_target_and_weight(kind, y, found):
    chance = Chance.on(of(kind, y=np.append(y, y[0]), w=[2.0, 1.0, 1.0, 5.0, np.nan]), "y")
    assert (chance.accuracy, chance.n) == found
    number = Chance.on(of("number", y=[1.0, 3.0, np.nan], w=[1.0, 1.0, 1.0]), "y")
    assert (number.error, number.n) == (1.0, 2.0)


def test_records_of_one_class_judge_nobody():
    one = {"": COIN[""], "test": Chance.on(of("binary", y=[0.0, 0.0, 0.0], w=[1.0, 1.0, 1.0]), "y")}
    assert verdict([], {"test accuracy": 1.0, "test log-loss": 0.04, "test AUC": math.nan}, one) == ""
    assert verdict(rows("test log-loss", 0.01, 0.02), {"test log-loss": 0.02, "test Matthews correlation": 0.0}, one) == ""
    assert "diverged" in verdict([], {"test log-loss": math.nan}, one)


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ({"noisy R2": math.nan, "noisy mean squared error": 0.1}, ""),
        ({"noisy AUC": math.nan, "noisy accuracy": 0.8, "noisy log-loss": 0.4}, ""),
        ({"accuracy": 0.97, "AUC": 0.5, "log-loss": 0.135}, "AUC 0.5, where a model that looks at no feature gives 0.5"),
        ({"accuracy": 0.97, "AUC": 0.52, "AUC standard error": 0.03, "log-loss": 0.135}, "AUC 0.52"),
        ({"accuracy": 0.97, "AUC": 0.6, "AUC standard error": 0.03, "log-loss": 0.135}, ""),
        ({"accuracy": 0.97, "Matthews correlation": 0.0, "loss": 0.135}, "Matthews correlation 0,"),
        ({"accuracy": 0.97, "AUC": math.nan, "log-loss": 0.135}, ""),
        ({"noisy accuracy": 0.97, "noisy AUC": 0.47, "noisy log-loss": 0.135}, ""),
        ({"R2": -math.inf}, "diverged"),
    ],
)
def test_a_number_that_could_not_be_computed_and_a_common_class_are_no_verdict(last, said):
    found = verdict([], last, {"": Chance.of_classes(2)})
    assert said in found if said else found == ""


def test_weights_that_are_no_numbers_are_a_run_that_diverged(tmp_path):
    from types import SimpleNamespace

    from hedgerow.study.baselines import Baselines
    from hedgerow.study.learned import nothing_learned

    for state in (SimpleNamespace(beta=np.array([0.1, math.nan])), SimpleNamespace(weights={"w": np.array([math.inf])})):
        assert "diverged" in nothing_learned(None, [], {"accuracy": 0.9}, Baselines(), state)


@pytest.mark.parametrize("target", ["y", "c"])
def test_a_study_of_a_target_with_gaps_and_a_test_table_has_a_page(tmp_path, target):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200).clip(-4, 4)
    y, c = (x > 0).astype(int), np.array(["no", "yes", "so"])[np.digitize(x, [-0.5, 0.5])]
    lines = [
        f"{a:.4f},{'' if i % 9 == 0 else b},{'' if i % 9 == 0 else e}" for i, (a, b, e) in enumerate(zip(x, y, c, strict=True))
    ]
    (tmp_path / "gaps.csv").write_text("x,y,c\n" + "\n".join(lines))
    study = parse(
        {
            "name": "gaps",
            "data": {
                "path": str(tmp_path / "gaps.csv"),
                "target": target,
                "features": ["x"],
                "missing": "drop",
                "ranges": {"x": [-4, 4]},
            },
            "partition": {"by": "iid", "parties": 2},
            "program": {"name": "fedavg", "model": "linear", "rounds": 3, "learning_rate": 0.5},
            "evaluation": {"on": "test", "holdout": 0.2},
        }
    )
    result = run_study(study, tmp_path / "run")
    assert result.report.nothing == ""
    assert math.isfinite(dict(result.report.metrics)["test accuracy"])


@pytest.mark.parametrize("family", ["hinge", "check"])
def test_a_loss_of_another_kind_is_not_held_against_an_entropy_or_a_variance(tmp_path, family):
    import pandas as pd

    x = np.random.default_rng(2).normal(size=600)
    pd.DataFrame({"x": x, "y": (x > 0).astype(int) if family == "hinge" else 0.01 * x}).to_csv(tmp_path / "t.csv", index=False)
    program = {"name": "gradient_descent", "formula": "y ~ x", "family": family, "rounds": 3, "learning_rate": 1e-3}
    whole = {"name": "other", "data": {"path": str(tmp_path / "t.csv"), "target": "y", "ranges": {"x": [-6, 6]}}}
    whole |= {"partition": {"by": "iid", "parties": 4}, "program": program | {"with_loss": True}, "evaluation": {"on": "none"}}
    ended = run_study(parse(whole), tmp_path / "run")
    assert "learned nothing" not in " ".join([*ended.report.warnings, *ended.report.notes])
