"""Rows of a run, its best round, what shows it, and who is given its rows."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import hedgerow as hr
from hedgerow.errors import CheckpointMismatch, HedgerowWarning, SettingsInvalid
from hedgerow.notebook.progress import Bar, CellBar, progress_bar, words_of
from hedgerow.store import drive, load_checkpoint
from hedgerow.store.rows import Best, numbers_of
from helpers import federation as made

SCORES = (0.2, 0.7, 0.5, 0.7, 0.1)


@dataclass(frozen=True)
class Step:
    round: int
    w: np.ndarray


def steps(federation: hr.Federation, *, rounds: int, start: Step | None = None) -> Iterator[Step]:
    """A program that asks nothing."""
    for t in range(start.round if start else 0, rounds):
        yield Step(t + 1, np.full(2, float(t + 1)))


def score(state: Step) -> dict[str, Any]:
    return {"accuracy": SCORES[state.round - 1], "loss": 1 - SCORES[state.round - 1]}


@pytest.fixture
def federation() -> hr.Federation:
    return made()


class Kept:
    """A logger that remembers."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.closed = 0

    def log(self, row: Any) -> None:
        self.rows.append(dict(row))

    def close(self) -> None:
        self.closed += 1


def test_rows_hold_what_watch_returned(federation: hr.Federation) -> None:
    run = drive(partial(steps, rounds=5), federation, watch=score)
    assert [row["accuracy"] for row in run.rounds] == list(SCORES)
    assert run.state.round == 5
    assert list(run.to_frame().index) == [1, 2, 3, 4, 5]
    assert "epsilon" not in run.rounds[0]


def test_the_first_of_the_best_rounds_is_kept(federation: hr.Federation) -> None:
    run = drive(partial(steps, rounds=5), federation, watch=score, keep="best")
    assert run.state.round == 2
    assert drive(partial(steps, rounds=5), federation, watch=score, keep="best", by="loss").state.round == 2
    assert drive(partial(steps, rounds=5), federation, watch=score, keep="best", by="loss", better="higher").state.round == 5


def test_rounds_that_measured_nothing_are_passed_over(federation: hr.Federation) -> None:
    run = drive(partial(steps, rounds=5), federation, watch=lambda s: score(s) if s.round % 2 else {}, keep="best")
    assert run.state.round == 3
    with pytest.warns(HedgerowWarning, match="no round with a metric"):
        assert drive(partial(steps, rounds=2), federation, keep="best").state.round == 2


def test_a_metric_that_is_not_measured_is_refused_with_those_that_are(federation: hr.Federation) -> None:
    with pytest.raises(SettingsInvalid, match=r"'auc'.*accuracy, loss"):
        drive(partial(steps, rounds=5), federation, watch=score, keep="best", by="auc")


def test_what_to_keep_is_one_of_two_words(federation: hr.Federation) -> None:
    with pytest.raises(SettingsInvalid, match="keep='bets'") as caught:
        drive(partial(steps, rounds=1), federation, keep="bets")  # type: ignore[arg-type]
    assert "Did you mean 'best'" in str(caught.value)


def test_the_best_round_outlives_an_interruption(federation: hr.Federation, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    first = drive(
        partial(steps, rounds=3), federation, watch=score, keep="best", by="accuracy", checkpoint=path, study="s", seconds=0.0
    )
    assert first.state.round == 2
    start = load_checkpoint(path, Step, "s")
    assert start.state.round == 3  # what is continued is the last round, not the best
    again = made()
    run = drive(
        partial(steps, rounds=5), again, watch=score, keep="best", by="accuracy", checkpoint=path, study="s", start=start
    )
    assert [row["round"] for row in run.rounds] == [4, 5]
    assert run.state.round == 2
    np.testing.assert_array_equal(run.state.w, np.full(2, 2.0))
    with pytest.raises(CheckpointMismatch, match="another metric: 'accuracy'"):
        Best("loss", None, tmp_path / "best-checkpoint.safetensors", "s").load(Step)


def test_loggers_are_given_numbers_and_nothing_else(federation: hr.Federation) -> None:
    kept = Kept()
    table = np.arange(12.0).reshape(4, 3)

    def leaky(state: Step) -> dict[str, Any]:
        return score(state) | {
            "records": table,
            "state": state,
            "federation": federation,
            "names": ["a"],
            "word": "x",
            "yes": True,
        }

    run = drive(partial(steps, rounds=2), federation, watch=leaky, log=kept)
    assert [set(row) for row in kept.rows] == [{"round", "seconds", "accuracy", "loss"}] * 2
    assert all(type(value) in (int, float) for row in kept.rows for value in row.values())
    assert kept.closed == 1
    assert set(run.rounds[0]) == {"round", "seconds", "accuracy", "loss"}


def test_a_metric_cannot_take_the_place_of_a_cost() -> None:
    assert numbers_of({"epsilon": 0.0, "round": 7, "seconds": 1, "accuracy": np.float32(0.5)}) == {"accuracy": 0.5}


def test_a_logger_that_fails_does_not_end_a_run_that_was_paid_for(federation: hr.Federation) -> None:
    class Broken(Kept):
        def log(self, row: Any) -> None:
            super().log(row)
            raise OSError("no line to the server")

    broken, kept = Broken(), Kept()
    with pytest.warns(HedgerowWarning, match=r"Broken failed.*no line to the server"):
        run = drive(partial(steps, rounds=3), federation, watch=score, log=[broken, kept])
    assert run.state.round == 3
    assert len(broken.rows) == 1
    assert len(kept.rows) == 3


@pytest.mark.slow
def test_epsilon_of_a_logged_run_is_that_of_its_ledger() -> None:
    table = hr.data.load("digits").take(range(60))
    fed = hr.simulate(table, partition=hr.data.iid(parties=4), seed=0)
    fed = fed.protect(clip=hr.l2(0.5, "party"), mechanism=hr.Gaussian(2.0)).within(hr.Budget(9, 1e-3, "party"))
    kept = Kept()
    run = drive(partial(hr.learn.fedavg, module=hr.learn.linear(64, 10), rounds=2, learning_rate=0.1), fed, log=kept)
    budget = fed.ledger.limit
    assert isinstance(budget, hr.Budget)
    assert run.rounds[-1]["epsilon"] == budget.spent(fed.ledger.charges("party"))
    assert kept.rows[0]["epsilon"] < run.rounds[-1]["epsilon"]


# ---- progress -------------------------------------------------------------------------------------------------------
def test_a_terminal_shows_round_metric_and_epsilon() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with Bar("fedavg", console) as bar:
        bar.at(20, 50, words_of({"accuracy": 0.81234}, 1.25, 8.0))
        bar.bar.refresh()
    written = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(word in written for word in ("fedavg", "20/50", "accuracy 0.8123", "epsilon 1.25 of 8"))


def test_a_notebook_shows_the_same_in_one_line() -> None:
    bar = CellBar("fed<avg>")
    bar._first = 0
    said = bar.html(20, 50, words_of({"accuracy": 0.8}, 1.25, None))
    assert "fed&lt;avg&gt;: round 20 of 50" in said
    assert "accuracy 0.8, epsilon 1.25" in said
    assert "left" in said
    assert 'value="20" max="50"' in said
    assert "taken" in bar.html(50, 50, "", ended=True)


def test_nothing_is_shown_where_nobody_looks(federation: hr.Federation, capfd: pytest.CaptureFixture[str]) -> None:
    drive(partial(steps, rounds=3), federation, watch=score)
    assert capfd.readouterr() == ("", "")


def test_an_epsilon_of_an_earlier_round_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(Bar, "at", lambda self, number, rounds, said: seen.append(said))
    with progress_bar("fedavg", 2, 4.0) as show:
        for row in ({"round": 1, "epsilon": 1.5}, {"round": 2}, {"round": 2, "epsilon": 2.5}):
            show(row)
    assert seen == ["epsilon 1.5 of 4", "epsilon 1.5 of 4 by round 1", "epsilon 2.5 of 4"]


def test_what_is_asked_for_is_shown(federation: hr.Federation, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(Bar, "at", lambda self, *shown: seen.append(shown))
    drive(partial(steps, rounds=3), federation, watch=lambda s: score(s) if s.round == 1 else None, progress=True)
    assert [number for number, _, _ in seen] == [1, 2, 3, 3]
    assert {(rounds, said) for _, rounds, said in seen} == {(3, "accuracy 0.2, loss 0.8")}
