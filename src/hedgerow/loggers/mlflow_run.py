"""Rows as metrics of a run of MLflow."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from hedgerow.errors import MissingExtra


class MLflow:
    """Writes a metric for each number of a row, by round; `mlflow ui` shows them.

    Parameters
    ----------
    experiment : str
        Made where it is missing.
    uri : str, optional
        Of the tracking server, such as `http://host:5000`; by default what MLflow is set to. The extra `loggers` has what a
        server needs; a database of your own, such as `sqlite:///mlflow.db`, needs the whole of MLflow.
    name : str, optional
        Of the run.
    parameters : mapping, optional
        Settings to be shown beside it. They are written as they are given.

    Raises
    ------
    MissingExtra (HR-105)
        MLflow is not installed.
    """

    def __init__(
        self,
        experiment: str = "hedgerow",
        *,
        uri: str | None = None,
        name: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        try:
            from mlflow.entities import Metric
            from mlflow.tracking import MlflowClient

            self._metric, self._client = Metric, MlflowClient(tracking_uri=uri)
        except ImportError as error:
            where = uri or "a database of its own"
            wanted = "MLflow" if error.name in (None, "mlflow") else f"{error.name}, which MLflow needs for {where},"
            remedy = "pip install 'hedgerow[loggers]' is enough for a tracking server; a database needs 'pip install mlflow'."
            raise MissingExtra(f"{wanted} is not installed.", remedy=remedy) from error
        found = self._client.get_experiment_by_name(experiment)
        where = self._client.create_experiment(experiment) if found is None else found.experiment_id
        self.run_id: str = self._client.create_run(where, run_name=name).info.run_id
        for key, value in (parameters or {}).items():
            self._client.log_param(self.run_id, _lawful(key), value)

    def log(self, row: Mapping[str, Any]) -> None:
        """Write a round."""
        now = round(1000 * time.time())
        metrics = [self._metric(_lawful(name), value, now, row["round"]) for name, value in row.items() if name != "round"]
        self._client.log_batch(self.run_id, metrics=metrics)

    def close(self) -> None:
        """End the run."""
        self._client.set_terminated(self.run_id)


def _lawful(name: str) -> str:
    """A name with the characters that MLflow allows."""
    return re.sub(r"[^\w\-. /]", "_", name)
