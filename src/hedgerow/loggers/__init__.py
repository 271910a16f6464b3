"""Where a run's numbers go while it goes on: a CSV file, TensorBoard, MLflow.

    hr.drive(program, federation, watch=measure, log=hr.loggers.CSV("rounds.csv"))

A logger is given a row for each round: the number of the round, seconds, epsilon where a budget is set, and the numbers that
`watch` returned. It is never given a state, a federation or a record; what else a watcher returns does not reach it. Those
numbers are released, or public, as far as `watch` computes them of released states, of answers of the parties, and of public
tables; numbers that a watcher computes of records at hand are published by whoever logs them.

A logger of your own is an object with `log(row)` and `close()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from hedgerow.loggers.csv_file import CSV
    from hedgerow.loggers.mlflow_run import MLflow
    from hedgerow.loggers.named import logger_named
    from hedgerow.loggers.tensorboard_events import TensorBoard

__all__ = ["CSV", "MLflow", "TensorBoard", "logger_named"]

lazily(__name__, checks=True)
