"""Run a matrix of attacks: check every kind of cell, run what is not there yet side by side, and write one page.

report.html       tables of accuracy and success, the price of each rule, one picture       result.json   the same, for programs
matrix.csv        a line for each act, rule and partition: medians and ranges over seeds     study.toml    the matrix
runs-NAME.jsonl   a line for each run
"""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from hedgerow.errors import CannotWrite, CheckpointMismatch, HedgerowError, HedgerowWarning, StudyInvalid
from hedgerow.report import Report, write
from hedgerow.store import write_bytes
from hedgerow.store.drive import interruptible
from hedgerow.study.check import check
from hedgerow.study.runner import write_study
from hedgerow.study.study import Study

from ..cells import named
from ..processes import INTERRUPTED, PAUSE, usable_cores
from ..records import SharedRecords
from .matrix_cells import MatrixCell, matrix_cells
from .matrix_measured import place_rows
from .matrix_report import matrix_report
from .matrix_runs import MatrixRun, read_runs, run_cells

MARK = "matrix "
"""How the `digest` of a matrix's folder begins."""

Progress = Callable[[int, int], None]
"""Told how many runs are there, of how many."""


@dataclass(frozen=True)
class MatrixResult:
    """A matrix that was run: its folder, report and runs, and whether it was interrupted."""

    folder: Path
    report: Report
    runs: tuple[MatrixRun, ...]
    interrupted: bool


def run_matrix(
    study: Study,
    folder: str | Path,
    *,
    jobs: int | None = None,
    data_dir: str | Path | None = None,
    resume: bool = False,
    on_progress: Progress = lambda there, of: None,
    command: str = "",
) -> MatrixResult:
    """Run every cell of a study's matrix with every seed, and write the tables.

    Parameters
    ----------
    folder : str or Path
        Made if missing; refused if it holds a run and `resume` is false.
    jobs : int, optional
        Processes side by side, one for each core by default; with 1, runs are made in this process.
    resume : bool
        Keep the runs that the folder holds, and make the others. They are the same as if nothing had stopped.
    on_progress : callable
        Told how many runs are there, of how many.

    Raises
    ------
    HedgerowError
        A cell is refused: before any run begins. A run that fails later leaves an empty cell, and is told of on the page.
    """
    folder, data_dir, started = Path(folder), None if data_dir is None else Path(data_dir), time.perf_counter()
    cells, records = matrix_cells(study), SharedRecords(data_dir)
    jobs = usable_cores() if jobs is None else jobs
    if jobs < 1:
        raise StudyInvalid(f"--jobs {jobs} runs nothing.", remedy="Give a whole number of at least 1.")
    _check(cells, records)
    _open_folder(folder, study, resume)
    kept = read_runs(folder)
    left = [number for number, cell in enumerate(cells) if cell.key not in kept]
    on_progress(len(cells) - len(left), len(cells))
    jobs = max(1, min(jobs, len(left)))
    if jobs == 1:
        interrupted = _here(study, cells, left, folder, records, on_progress)
    else:
        interrupted = _side_by_side(cells, left, folder, data_dir, jobs, on_progress)
    there = read_runs(folder)
    runs = tuple(there[cell.key] for cell in cells if cell.key in there)
    how = {"seconds": time.perf_counter() - started, "jobs": jobs, "interrupted": interrupted, "command": command}
    report = matrix_report(study, runs, len(cells), **how)  # type: ignore[arg-type]
    write_bytes(folder / "matrix.csv", _csv(study, runs).encode())
    write_bytes(folder / "result.json", (json.dumps(report.to_json(), indent=1) + "\n").encode())
    write(report, folder / "report.html")
    return MatrixResult(folder, report, runs, interrupted)


def check_matrix(study: Study, data_dir: str | Path | None = None) -> int:
    """Build and check each act, rule and partition of a study's matrix with the first seed; nobody is asked.

    Returns
    -------
    int
        How many runs the matrix has.

    Raises
    ------
    HedgerowError
        What the first wrong cell is refused for; the message names it.
    """
    cells = matrix_cells(study)
    _check(cells, SharedRecords(data_dir))
    return len(cells)


def _check(cells: Sequence[MatrixCell], records: SharedRecords) -> None:
    for cell in (cell for cell in cells if cell.seed == cells[0].seed):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HedgerowWarning)
                built = records.build(cell.study)
                check(built)
            if built.settings.get("rounds") is None:
                raise StudyInvalid(
                    f"the program {built.listing.name} has no rounds, over whose last ones a matrix measures.",
                    remedy="Choose a program that trains in rounds, such as fedavg.",
                )
        except HedgerowError as error:
            raise named(error, cell.name) from error


def _here(
    study: Study, cells: Sequence[MatrixCell], left: Sequence[int], folder: Path, records: SharedRecords, tell: Progress
) -> bool:
    """Run cells in this process; return whether somebody stopped them."""
    assert study.matrix is not None
    there = len(cells) - len(left)
    with interruptible() as asked:

        def done(run: MatrixRun) -> bool:
            nonlocal there
            there += 1
            tell(there, len(cells))
            return bool(asked())

        run_cells((cells[number] for number in left), folder / "runs-0.jsonl", records, study.matrix.last, done, threads=1)
    return there < len(cells)


def _side_by_side(
    cells: Sequence[MatrixCell], left: Sequence[int], folder: Path, data_dir: Path | None, jobs: int, tell: Progress
) -> bool:
    """Run cells in processes, each its share; return whether somebody stopped them."""
    shown, stopped, before = len(cells) - len(left), False, len(cells) - len(left)
    with _workers(left, folder, data_dir, jobs) as workers, interruptible() as asked:
        began = _lines(folder)
        while any(handle.poll() is None for handle, _ in workers):
            time.sleep(PAUSE)
            if asked() and not stopped:
                stopped = True
                for handle, _ in workers:
                    handle.send_signal(signal.SIGINT)
            now = before + _lines(folder) - began
            if now != shown:
                shown = now
                tell(shown, len(cells))
        for handle, said in workers:
            if handle.returncode not in (0, INTERRUPTED, -signal.SIGINT):
                said.seek(0)
                words = said.read().decode(errors="replace").strip().splitlines()
                raise StudyInvalid(
                    f"a process ended with status {handle.returncode}: {words[-1] if words else 'it said nothing'}",
                    remedy="--resume makes the runs that are left; was there enough memory?",
                )
    return stopped


@contextmanager
def _workers(left: Sequence[int], folder: Path, data_dir: Path | None, jobs: int) -> Iterator[list[tuple[Any, IO[bytes]]]]:
    """Processes in groups of their own, so that Ctrl-C reaches them once, through their parent; none is left behind."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, "1") | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    made: list[tuple[Any, IO[bytes]]] = []
    try:
        for k in range(jobs):
            said: IO[bytes] = TemporaryFile()  # noqa: SIM115  (it lives as long as the process)
            with TemporaryFile() as numbers:
                numbers.write(json.dumps(list(left[k::jobs])).encode())
                numbers.seek(0)
                given = [str(folder), str(os.getpid()), str(k), str(data_dir or "")]
                handle = subprocess.Popen(
                    [sys.executable, "-m", "hedgerow.compare.attack_matrix.matrix_worker", *given],
                    stdin=numbers,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    env=environment,
                    process_group=0,
                )
            made.append((handle, said))
        yield made
    finally:
        for handle, said in made:
            handle.kill()
            handle.wait()
            said.close()


def _lines(folder: Path) -> int:
    """Whole lines that runs have written."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("runs*.jsonl"))


def _open_folder(folder: Path, study: Study, resume: bool) -> None:
    mark = folder / "digest"
    held = mark.read_text(encoding="utf-8") if mark.exists() else ""
    if not resume and (held or (folder / "ledger.jsonl").exists()):
        raise CannotWrite(
            f"{folder} already holds a run.", remedy="Add --resume to continue it, or choose another --out.", asked=False
        )
    if resume and held != f"{MARK}{study.digest}":
        raise CheckpointMismatch(
            f"{folder} holds no run of this matrix.",
            remedy="Resume with the study and settings that started it, leave --resume out, or name its folder with --out.",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWrite(f"{folder}: {error.strerror}.", remedy="Choose another --out.", asked=False) from error
    write_bytes(mark, f"{MARK}{study.digest}".encode())
    write_study(study, folder / "study.toml")


def _csv(study: Study, runs: Sequence[MatrixRun]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("partition", "act", "rule", "metric", "runs", "median", "least", "most"))
    writer.writerows(place_rows(study, runs))
    return text.getvalue()
