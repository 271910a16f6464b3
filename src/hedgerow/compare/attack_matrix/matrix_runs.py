"""Runs of a matrix: each is trained and measured over its last rounds, and leaves one line on disk.

A run writes no page and no ledger of its own: the same study with `hedgerow run` and the keys of its cell has them.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hedgerow.core.judged_rows import in_all
from hedgerow.errors import CannotWrite, HedgerowError, HedgerowWarning

from ..records import SharedRecords
from .matrix_cells import MatrixCell

REFUSED = "rows refused in a round"
"""A metric of runs whose rows are to be proved to be within their bound: the mean of all rounds."""

Key = tuple[str, str, str, int]
"""Act, rule, partition and seed."""


@dataclass(frozen=True)
class MatrixRun:
    """What one run measured, or why it could not.

    Attributes
    ----------
    metrics : dict
        Means over the last rounds.
    problem : str
        Why the run stopped before its last round, such as a model without finite numbers; empty where it did not.
    """

    act: str
    rule: str
    partition: str
    seed: int
    metrics: dict[str, float]
    seconds: float
    problem: str = ""

    @property
    def key(self) -> Key:
        return self.act, self.rule, self.partition, self.seed


def run_cell(cell: MatrixCell, records: SharedRecords, last: int, threads: int | None = None) -> MatrixRun:
    """Train one cell to its end, and measure its last rounds; of one that stops before, the last state that there was."""
    started, measured, problem, state = time.perf_counter(), list[dict[str, float]](), "", None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HedgerowWarning)  # a row of a matrix is no place for them
        try:
            built = records.build(cell.study, threads=threads)
            rounds = built.settings["rounds"]
            for state in built.listing.program(built.settings, built.test)(built.federation):
                if state.round > rounds - last:
                    measured.append(built.metrics(state))
        except HedgerowError as error:
            problem = str(error).splitlines()[0]
            measured = [] if state is None else [built.metrics(state)]
    names = measured[-1] if measured else {}
    metrics = {name: float(np.mean([one[name] for one in measured])) for name in names}
    aggregation = cell.study.protection.aggregation
    if state is not None and aggregation is not None and aggregation.verified:
        metrics[REFUSED] = in_all(built.run.judged)[0] / state.round
    return MatrixRun(*cell.key, metrics, round(time.perf_counter() - started, 3), problem)


def run_cells(
    cells: Iterable[MatrixCell], path: Path, records: SharedRecords, last: int, done: Callable[[MatrixRun], bool], threads: int
) -> None:
    """Run cells one after the other, a line of the file for each, until `done` says that it is enough."""
    _end_line(path)
    for cell in cells:
        found = run_cell(cell, records, last, threads)
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(vars(found), allow_nan=True) + "\n")
        except OSError as error:
            raise CannotWrite(f"{path}: {error.strerror}.", remedy="Make room, then add --resume.") from error
        if done(found):
            return


def _end_line(path: Path) -> None:
    """End a line that a crash cut short, so that the next one begins anew."""
    if path.exists() and not path.read_bytes().endswith(b"\n"):
        with path.open("ab") as file:
            file.write(b"\n")


def read_runs(folder: Path) -> dict[Key, MatrixRun]:
    """The runs that a folder holds; a line that a crash cut short is left out, and that run is made again."""
    found: dict[Key, MatrixRun] = {}
    for path in sorted(folder.glob("runs*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                one = MatrixRun(**json.loads(line))
            except (ValueError, TypeError):
                continue
            found[one.key] = one
    return found
