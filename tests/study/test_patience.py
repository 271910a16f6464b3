"""Early stopping and targets: on the server's table and at the parties, resumed or not."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from comparing import study

from hedgerow.errors import StudyInvalid
from hedgerow.store import drive, load_checkpoint
from hedgerow.study import run_study
from hedgerow.study.rounds import read_rounds
from helpers import federation, run_of, totals

LONG = {"rounds": 40, "learning_rate": 0.5}


def stopping(**evaluation):
    return study(program=LONG, evaluation={"holdout": 0.2, "patience": 2, **evaluation}, baselines=False)


@pytest.mark.slow
@pytest.mark.parametrize("on", [{"on": "test"}, {"on": "parties", "validation": 0.2}], ids=["test", "parties"])
def test_a_run_stops_when_its_first_metric_stalls_and_says_which_round_was_best(tmp_path, on):
    result = run_study(stopping(**on), tmp_path / "run")
    history = read_rounds(tmp_path / "run" / "rounds.jsonl")
    name = "test accuracy" if on["on"] == "test" else "validation accuracy"
    values = [row[name] for row in history]
    n, top = len(values), int(np.argmax(values)) + 1
    assert n == top + 2 < 40
    assert (result.run.stopped, result.run.state.round) == ("patience", n)
    assert dict(result.report.facts)["run"] == f"stopped early after {n} rounds, best in round {top}"
    assert f"{name} has not improved for 2 measurements" in result.run.reason


@pytest.mark.slow
def test_a_study_keeps_the_best_round_resumed_or_not(tmp_path):
    # Steps that are too large overshoot; where the last round happens to be the best, which hangs on last digits, a larger one
    # is tried.
    for learning_rate in (8.0, 10.0, 12.0, 16.0):
        program = {"rounds": 12, "learning_rate": learning_rate}
        made = study(program=program, evaluation={"holdout": 0.2, "keep": "best"}, baselines=False)
        whole = run_study(made, tmp_path / f"whole {learning_rate}")
        values = [row["test accuracy"] for row in read_rounds(tmp_path / f"whole {learning_rate}" / "rounds.jsonl")]
        top = int(np.argmax(values)) + 1
        if top < 12:
            break
    assert whole.run.state.round == top < len(values) == 12
    assert dict(whole.report.metrics)["test accuracy"] == max(values)
    assert dict(whole.report.facts)["run"] == "finished after 12 rounds"
    assert f"the model of round {top}" in whole.report.notes[0]

    class Killed(BaseException):
        pass

    def kill(progress):
        if progress.round == min(top + 1, 12):
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hedgerow.study.runner.drive", partial(drive, seconds=0.0))
        with pytest.raises(Killed):
            run_study(made, tmp_path / "cut", on_progress=kill)
    again = run_study(made, tmp_path / "cut", resume=True)
    assert again.run.state.round == top
    for key, value in whole.run.state.weights.items():
        np.testing.assert_array_equal(again.run.state.weights[key], value)


def test_a_best_round_needs_a_metric():
    with pytest.raises(StudyInvalid, match="keep"):
        study(evaluation={"on": "none", "keep": "best"})


@pytest.mark.slow
@pytest.mark.parametrize("cut", [3, "last"])
def test_a_resumed_run_stops_in_the_same_round(tmp_path, cut):
    made = stopping()
    whole = run_study(made, tmp_path / "whole")
    last = whole.run.state.round
    cut = last if cut == "last" else cut
    assert cut <= last

    class Killed(BaseException):
        pass

    def kill(progress):
        if progress.round == cut:
            raise Killed

    with pytest.raises(Killed):
        run_study(made, tmp_path / "cut", on_progress=kill)
    again = run_study(made, tmp_path / "cut", resume=True)
    assert (again.run.stopped, again.run.state.round, again.run.reason) == ("patience", last, whole.run.reason)
    for key, value in whole.run.state.weights.items():
        np.testing.assert_array_equal(again.run.state.weights[key], value)
    once_more = run_study(made, tmp_path / "cut", resume=True)  # nothing is asked of a run that had stopped
    assert once_more.run.state.round == last
    assert (tmp_path / "cut" / "ledger.jsonl").read_text() == (tmp_path / "whole" / "ledger.jsonl").read_text()


@dataclass(frozen=True)
class Step:
    """A state of `steps`."""

    round: int


def steps(federation, *, rounds, start=None):
    """Ask for the same sum in every round."""
    for i in range(start.round if start else 0, rounds):
        federation.sum(totals)
        yield Step(i + 1)


def test_what_had_enough_is_asked_nothing_when_it_continues(tmp_path):
    seen, path = [], tmp_path / "checkpoint"
    first = federation()
    ended = drive(
        partial(steps, rounds=9), first, watch=seen.append, enough=lambda: "enough" * (len(seen) == 3), checkpoint=path
    )
    assert (ended.stopped, ended.reason, ended.state, len(first.ledger)) == ("patience", "enough", Step(3), 3)
    again = federation()
    run_of(again).ledger.entries = list(first.ledger.entries)
    ended = drive(partial(steps, rounds=9), again, enough=lambda: "enough", start=load_checkpoint(path, Step, ""))
    assert (ended.stopped, ended.state, len(again.ledger)) == ("patience", Step(3), 3)


def test_a_run_that_takes_all_its_rounds_was_not_stopped(tmp_path):
    made = study(program={"rounds": 2, "learning_rate": 0.0001}, evaluation={"patience": 1}, baselines=False)
    result = run_study(made, tmp_path / "run")
    assert (result.run.stopped, result.run.state.round) == ("finished", 2)


@pytest.mark.slow
def test_a_run_may_end_at_its_target(tmp_path):
    result = run_study(study(program=LONG, evaluation={"target": 0.92, "stop": True}, baselines=False), tmp_path / "run")
    values = [row["test accuracy"] for row in read_rounds(tmp_path / "run" / "rounds.jsonl")]
    assert values[-1] >= 0.92 > max(values[:-1])
    assert dict(result.report.facts)["run"] == f"stopped at its target after {len(values)} rounds"
    again = run_study(study(program=LONG, evaluation={"target": 0.92, "stop": True}), tmp_path / "run", resume=True)
    assert again.run.state.round == len(values)


@pytest.mark.parametrize(("target", "when"), [(0.4, "round"), (1.1, "not reached")])
def test_a_target_is_reported_with_its_cost(tmp_path, target, when):
    result = run_study(study(evaluation={"target": target}, baselines=False), tmp_path / "run")
    facts, row = dict(result.report.facts), None
    for row in read_rounds(tmp_path / "run" / "rounds.jsonl"):
        if row["test accuracy"] >= target:
            break
    if when == "not reached":
        assert facts["rounds to test accuracy 1.1"] == "not reached"
        return
    assert facts[f"rounds to test accuracy {target:g}"] == row["round"]
    assert facts["bytes up per party until then"] == row["bytes_up"] == row["round"] * 4 * (64 * 10 + 10 + 1)
    assert facts["seconds of work"] == row["seconds"] > 0
    assert result.report.curves[0].line == target


@pytest.mark.parametrize(
    ("evaluation", "said"),
    [
        ({"on": "none", "patience": 3}, "measures nothing"),
        ({"on": "none", "target": 0.5}, "measures nothing"),
        ({"patience": 0}, "patience"),
        ({"stop": True}, "stop ends a run at its target"),
        ({"improvement": -1.0}, "improvement"),
    ],
)
def test_patience_without_a_metric_is_refused(evaluation, said):
    with pytest.raises(StudyInvalid, match=said):
        study(evaluation=evaluation)


def test_patience_without_a_table_is_refused_before_anybody_is_asked(tmp_path):
    with pytest.raises(StudyInvalid, match=r"the server holds no table[\s\S]*No party was asked"):
        run_study(study(evaluation={"holdout": 0.0, "patience": 2}), tmp_path / "run")
    assert not (tmp_path / "run").exists()
