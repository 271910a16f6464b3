"""Loggers by their names, as a command takes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.errors import StudyInvalid, suggestion

if TYPE_CHECKING:
    from .csv_file import CSV
    from .mlflow_run import MLflow
    from .tensorboard_events import TensorBoard

NAMES = ("csv", "tensorboard", "mlflow")


def logger_named(words: str, folder: Path) -> CSV | TensorBoard | MLflow:
    """The logger that words name, with what it writes in a run's folder unless they say where: NAME, or NAME=PLACE.

    Raises
    ------
    StudyInvalid (HR-101)
        There is no such logger.
    MissingExtra (HR-105)
        What it needs is not installed.
    """
    name, _, place = words.partition("=")
    if name == "csv":
        from .csv_file import CSV

        return CSV(place or folder / "rounds.csv")
    if name == "tensorboard":
        from .tensorboard_events import TensorBoard

        return TensorBoard(place or folder / "tensorboard")
    if name == "mlflow":
        from .mlflow_run import MLflow

        return MLflow(uri=place or None, name=folder.name)
    raise StudyInvalid(f"--log {words}: there is no logger {name!r}.", remedy=suggestion(name, NAMES))
