"""Rows in a CSV file, in TensorBoard and in MLflow."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import pytest

import hedgerow as hr
from hedgerow.errors import CannotWrite, MissingExtra, StudyInvalid
from hedgerow.loggers import logger_named

ROWS: list[dict[str, Any]] = [
    {"round": 1, "seconds": 0.5, "accuracy": 0.5},
    {"round": 2, "seconds": 1.0, "accuracy": 0.75, "loss (test)": 0.25},
]


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_csv_file_is_whole_after_every_round(tmp_path: Path) -> None:
    log = hr.loggers.CSV(tmp_path / "new" / "rounds.csv")
    log.log(ROWS[0])
    assert lines(log.path) == [{"round": "1", "seconds": "0.5", "accuracy": "0.5"}]
    log.log(ROWS[1])
    found = lines(log.path)
    assert [row["accuracy"] for row in found] == ["0.5", "0.75"]
    assert [row["loss (test)"] for row in found] == ["", "0.25"]
    log.log({"round": 3, "seconds": 2.0})
    assert lines(log.path)[2] == {"round": "3", "seconds": "2.0", "accuracy": "", "loss (test)": ""}


def test_a_resumed_run_continues_its_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "rounds.csv"
    for rows in (ROWS, [{"round": 2, "seconds": 3.0, "accuracy": 0.9}]):
        log = hr.loggers.CSV(path)
        for row in rows:
            log.log(row)
        log.close()
    assert [(row["round"], row["accuracy"]) for row in lines(path)] == [("1", "0.5"), ("2", "0.9")]


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "patients.csv"
    path.write_text("name,age\nA,50\n", encoding="utf-8")
    with pytest.raises(CannotWrite, match="something else"):
        hr.loggers.CSV(path).log(ROWS[0])
    assert path.read_text(encoding="utf-8") == "name,age\nA,50\n"


@pytest.mark.parametrize(("name", "module"), [("tensorboard", "torch.utils.tensorboard"), ("mlflow", "mlflow.tracking")])
def test_what_is_missing_is_said_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, module: str
) -> None:
    for part in (module, module.partition(".")[0] if name == "mlflow" else module):
        monkeypatch.setitem(sys.modules, part, None)
    with pytest.raises(MissingExtra, match=r"hedgerow\[loggers\]"):
        logger_named(name, tmp_path)


def test_a_logger_of_another_name_is_refused(tmp_path: Path) -> None:
    assert logger_named("csv", tmp_path).path == tmp_path / "rounds.csv"
    assert logger_named(f"csv={tmp_path}/a.csv", tmp_path).path == tmp_path / "a.csv"
    with pytest.raises(StudyInvalid, match="Did you mean 'tensorboard'"):
        logger_named("tensorbord", tmp_path)


@pytest.mark.slow
def test_tensorboard_reads_what_was_logged(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = hr.loggers.TensorBoard(tmp_path)
    for row in ROWS:
        log.log(row)
    log.close()
    read = EventAccumulator(str(tmp_path)).Reload()
    assert [(event.step, event.value) for event in read.Scalars("accuracy")] == [(1, 0.5), (2, 0.75)]


@pytest.mark.slow
def test_mlflow_reads_what_was_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the extra holds no database
    log = hr.loggers.MLflow("trial", uri=tmp_path.as_uri(), name="first", parameters={"learning rate": 0.1})
    for row in ROWS:
        log.log(row)
    log.close()
    run = log._client.get_run(log.run_id)
    assert run.info.status == "FINISHED"
    assert run.data.params == {"learning rate": "0.1"}
    assert [(m.step, m.value) for m in log._client.get_metric_history(log.run_id, "accuracy")] == [(1, 0.5), (2, 0.75)]
    assert run.data.metrics["loss _test_"] == 0.25
