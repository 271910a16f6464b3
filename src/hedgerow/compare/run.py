"""Run a comparison: check every cell, run them side by side, and put them into one table.

report.html       the table, a matrix, curves         result.json        the same, for programs
comparison.csv    a line for each run                 study.toml         the comparison
TITLE.csv         each table that it collects from the runs
ROW--COLUMN/      the run folder of each cell, which can be resumed by itself
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hedgerow.compare.report import report_of
from hedgerow.core.events import Unit
from hedgerow.errors import (
    CannotWrite,
    CheckpointMismatch,
    HedgerowError,
    HedgerowWarning,
    MissingData,
    StudyInvalid,
    suggestion,
)
from hedgerow.report import Report, write
from hedgerow.store import write_bytes
from hedgerow.study.changes import Change
from hedgerow.study.check import check, measures
from hedgerow.study.planned import with_noise
from hedgerow.study.rounds import Progress
from hedgerow.study.runner import write_study
from hedgerow.study.study import Study

from .cells import Cell, cells, named
from .collected import collected, csv_of, file_names
from .processes import RunTask, run_all, usable_cores
from .records import SharedRecords
from .standings import Standings, finished_report, standings, to_csv

MARK = "comparison "
"""How the `digest` of a comparison's folder begins."""


@dataclass(frozen=True)
class Compared:
    """A comparison that was run: its folder, report and standings, what failed, and whether it was interrupted."""

    folder: Path
    report: Report
    standings: Standings
    problems: dict[str, str]
    interrupted: bool


MANY = 8
"""Quick runs of a comparison above which they are made one after the other."""


@dataclass(frozen=True)
class Ready:
    """A cell that was checked; what it needs to be run and read, without its records. `absent` says what data it lacks."""

    cell: Cell
    digest: str
    rounds: int | None
    units: dict[Unit, int]
    absent: str = ""


def compare(
    study: Study,
    folder: str | Path,
    *,
    quick: bool = False,
    changes: Iterable[Change] = (),
    jobs: int | None = None,
    data_dir: str | Path | None = None,
    resume: bool = False,
    on_check: Callable[[str, int, int], None] = lambda name, number, runs: None,
    on_start: Callable[[list[str], list[str]], None] = lambda todo, kept: None,
    on_progress: Callable[[str, Progress | None], None] = lambda name, progress: None,
    command: str = "",
) -> Compared:
    """Run every cell of a comparison into a folder of its own, and write the table.

    Parameters
    ----------
    quick : bool
        Apply the comparison's `quick` changes.
    changes : iterable of (dotted key, value)
        Applied to every cell, last.
    jobs : int, optional
        Runs side by side, each in a process with its share of the cores; one for each core by default. With one job, runs
        are made in this process, as by default more than `MANY` quick ones are: they would take less time than to begin.
    resume : bool
        Keep the cells that are finished, continue those that are not.
    on_check : callable
        Told which run is checked, and its noise planned, of how many.
    on_start : callable
        Told the names of the cells that will run, and of those that are kept.
    on_progress : callable
        Told of every round of a cell, and with None of its end.

    Raises
    ------
    HedgerowError
        Some cell is refused, or the measure is none of its metrics: before any party of any cell is asked.
    """
    folder, data_dir = Path(folder), None if data_dir is None else Path(data_dir)
    started, found = time.perf_counter(), cells(study, quick=quick, changes=changes)
    assert study.comparison is not None
    section = study.comparison.quickly if quick else study.comparison
    jobs = (1 if quick and len(found) > MANY else usable_cores()) if jobs is None else jobs
    if jobs < 1:
        raise StudyInvalid(f"--jobs {jobs} runs nothing.", remedy="Give a whole number of at least 1.")
    ready = check_cells(study, found, data_dir, on_check)
    _open_folder(folder, study, ready, resume)
    kept = [one for one in ready if resume and finished_report(folder / one.cell.folder, one.digest) is not None]
    todo = [one for one in ready if one not in kept and not one.absent]
    jobs = max(1, min(jobs, len(todo)))
    on_start([one.cell.name for one in todo], [one.cell.name for one in kept])
    tasks = [RunTask(one.cell, folder / one.cell.folder, one.rounds, _begun(folder, one)) for one in todo]
    ended = run_all(tasks, jobs, data_dir, command, lambda task, progress: on_progress(task.cell.name, progress))
    digests, units = {one.cell.name: one.digest for one in ready}, {one.cell.name: one.units for one in ready}
    problems = {one.cell.name: one.absent for one in ready if one.absent} | ended.problems
    stood = standings(section, [one.cell for one in ready], folder, digests, units, problems)
    how = {"quick": quick, "interrupted": ended.interrupted, "jobs": jobs, "command": command}
    report = report_of(study, stood, seconds=time.perf_counter() - started, **how)  # type: ignore[arg-type]
    write_bytes(folder / "comparison.csv", to_csv(stood).encode())
    write_bytes(folder / "result.json", (json.dumps(report.to_json(), indent=1) + "\n").encode())
    grids = collected(stood)
    for name, grid in zip(file_names(grids), grids, strict=True):
        write_bytes(folder / name, csv_of(grid).encode())
    write(report, folder / "report.html")
    return Compared(folder, report, stood, problems, ended.interrupted)


def check_cells(
    study: Study,
    found: Sequence[Cell],
    data_dir: str | Path | None,
    on_check: Callable[[str, int, int], None] = lambda name, number, runs: None,
) -> list[Ready]:
    """Build and check every cell, and find the measure among its metrics; nobody is asked.

    Raises
    ------
    HedgerowError
        What the first wrong cell is refused for; the message names the cell. A cell whose data are missing is left out
        where the comparison says so, and some cell has its data.
    """
    ready, measured, records = [], set(), SharedRecords(data_dir)
    lenient = study.comparison is not None and study.comparison.absent == "leave out"
    missing: list[HedgerowError] = []
    for number, cell in enumerate(found, 1):
        on_check(cell.name, number, len(found))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HedgerowWarning)  # the cell's own page says them
                kind = (cell.study.program.name, str(cell.study.evaluation), str(cell.study.data), str(cell.study.protection))
                cell = replace(cell, study=with_noise(cell.study, records.build, data_dir))
                built = records.build(cell.study)
                check(built)
                if kind not in measured:
                    measured.add(kind)
                    _find_measure(study, measures(built))
        except MissingData as error:
            missing.append(named(error, cell.name))
            if not lenient:
                raise missing[0] from error
            ready.append(Ready(cell, "", None, {"party": 0, "record": 0}, str(error)))
            continue
        except HedgerowError as error:
            raise named(error, cell.name) from error
        units: dict[Unit, int] = {"party": built.federation.size, "record": len(built.table)}
        ready.append(Ready(cell, built.digest, built.settings.get("rounds"), units))
    if missing and len(missing) == len(ready):
        raise missing[0]
    return ready


def _find_measure(study: Study, names: list[str] | None) -> None:
    assert study.comparison is not None
    wanted = study.comparison.measure
    unknown = [] if names is None else [one for one in study.comparison.also if one not in names]
    if unknown and names:
        raise StudyInvalid(
            f"comparison.also names {unknown[0]!r}, which is none of its metrics.", remedy=suggestion(unknown[0], names)
        )
    if names is None or wanted in names:
        return
    if not names:
        raise StudyInvalid(
            "nothing is measured, so that nothing can be compared.",
            remedy="Give the server a table, e.g. [evaluation] holdout = 0.2, or measure at the parties: on = 'parties'.",
        )
    if wanted:
        raise StudyInvalid(f"comparison.measure = {wanted!r} is none of its metrics.", remedy=suggestion(wanted, names))


def _begun(folder: Path, one: Ready) -> bool:
    """Whether a cell's folder holds its run, not yet ended."""
    return (folder / one.cell.folder / "digest").exists()


def _open_folder(folder: Path, study: Study, ready: Sequence[Ready], resume: bool) -> None:
    mark = folder / "digest"
    held = mark.read_text(encoding="utf-8") if mark.exists() else ""
    if not resume and (held or (folder / "ledger.jsonl").exists()):
        raise CannotWrite(
            f"{folder} already holds a run.", remedy="Add --resume to continue it, or choose another --out.", asked=False
        )
    if resume and not held.startswith(MARK):
        raise CheckpointMismatch(
            f"{folder} holds no comparison to resume.", remedy="Leave --resume out, or name its folder with --out."
        )
    for one in ready:
        path = folder / one.cell.folder / "digest"
        if path.exists() and path.read_text(encoding="utf-8") != one.digest:
            raise CheckpointMismatch(
                f"{path.parent} holds a run of another study or of other records.",
                remedy="Resume with the study and settings that started it, or choose another --out.",
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWrite(f"{folder}: {error.strerror}.", remedy="Choose another --out.", asked=False) from error
    write_bytes(mark, f"{MARK}{study.digest}".encode())
    write_study(study, folder / "study.toml")
