"""Run a study of parties with different columns: align, carry the program out, report. The folder is that of any run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import BudgetExhausted, CannotWrite, StudyInvalid
from hedgerow.report import Outcome, plain_outcome
from hedgerow.store import Driven, record_of, write_bytes
from hedgerow.store.rows import Logger

from ..rounds import Progress, Row
from .opened import OpenedStudy
from .ready import BuiltApart, build_apart
from .reporting import report_apart
from .unasked import refuse_unasked
from .yardstick import TITLE, beside_pooled, largest

if TYPE_CHECKING:
    from ..runner import Result
    from ..study import Study


def run_apart(
    study: Study,
    folder: Path,
    *,
    data_dir: Path | None = None,
    resume: bool = False,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    command: str = "",
    threads: int | None = None,
    log: Sequence[Logger] = (),
) -> Result:
    """Run a study whose parties hold different columns into a folder.

    Raises
    ------
    HedgerowError
        Bad input before any party is asked; or what the alignment or the program refuses.
    """
    from ..runner import Result, heard, open_folder, over, said_in, write_results

    started = time.perf_counter()
    if resume:
        raise StudyInvalid(
            f"the study {study.name!r} is of parties with different columns, and its runs begin anew.",
            remedy="Leave --resume out: one list is aligned once in a study, and a run is one study.",
        )
    with heard() as caught:
        built = build_apart(study, data_dir=data_dir)
        bound = {name: make(built, built.settings) for name, make in built.listing.bind.items()}
        refuse_unasked(built)
        open_folder(folder, built, resume=False)
        shared = study.budget.shared if study.budget else None
        opened = OpenedStudy(built, threads, lambda before: record_of(_of_study(folder, before), shared))
        with over(opened):
            own = {key: value for key, value in built.settings.items() if key not in built.listing.keys}
            states = built.listing.function(opened.handle(), **own, **bound, start=None)
            ended, history = _driven(opened, states, folder, on_progress, log)
            outcome = shown_apart(built, opened.handles[-1] if opened.handles else None, ended.state)
        seconds = time.perf_counter() - started
        if study.baselines and ended.state is not None:
            outcome = with_yardstick(built, outcome)
    report = report_apart(opened, ended, outcome, history, seconds=seconds, warnings=said_in(caught), command=command)
    write_results(folder, report, outcome, {party: schema.to_json() for party, schema in built.schemas.items()})
    return Result(folder, report, ended, outcome)


def _driven(
    opened: OpenedStudy, states: Iterator[Any], folder: Path, on_progress: Callable[[Progress], None], log: Sequence[Logger]
) -> tuple[Driven, list[Row]]:
    """Carry the program out round by round, until it ends or the budget refuses a question."""
    built = opened.built
    history: list[Row] = []
    state, path, began = None, folder / "rounds.jsonl", time.perf_counter()
    write_bytes(path, b"")
    ended = Driven(None)
    try:
        for state in states:
            metrics = built.listing.watch(built.settings, state, opened, None) if built.listing.watch else {}
            row = {"round": state.round, "seconds": round(time.perf_counter() - began, 4), **metrics}
            history.append(row)
            _append(path, row)
            for logger in log:
                logger.log(row)
            on_progress(Progress(state.round, _rounds(built.settings), dict(metrics), None, None))
        ended = Driven(state, rounds=tuple(history))
    except BudgetExhausted as refusal:
        ended = Driven(state, "budget", refusal.reason, tuple(history))
    for logger in log:
        logger.close()
    return ended, history


def _of_study(folder: Path, before: int) -> Path:
    """Where the ledger of a study lies: in the run folder, and of studies that a program began after the first, below it."""
    made = folder if before == 0 else folder / f"study-{before + 1}"
    made.mkdir(parents=True, exist_ok=True)
    return made


def _rounds(settings: Mapping[str, Any]) -> int | None:
    given = settings.get("epochs", settings.get("rounds"))
    return given if isinstance(given, int) else None


def _append(path: Path, row: Row) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    except OSError as error:
        raise CannotWrite(f"{path}: {error.strerror}.", remedy="Make room, and run again into a new folder.") from error


def shown_apart(built: BuiltApart, handle: Any, state: Any) -> Outcome:
    """What a program's last state has to show."""
    return Outcome() if state is None else (built.listing.outcome or plain_outcome)(handle, built.settings, state)


def with_yardstick(built: BuiltApart, outcome: Outcome) -> Outcome:
    """An outcome with the pooled fit beside it, where the simulation can make one."""
    beside = beside_pooled(built, outcome.coefficients)
    if beside is None:
        return outcome
    return replace(outcome, metrics={**outcome.metrics, **largest(beside)}, tables={**outcome.tables, TITLE: beside})
