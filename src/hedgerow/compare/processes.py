"""Runs of a comparison: one after the other here, or side by side in processes that share nothing but their folders."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from hedgerow.errors import HedgerowError
from hedgerow.store.drive import interruptible
from hedgerow.study.rounds import Progress, metrics_of
from hedgerow.study.runner import run, write_study

from .cells import Cell
from .records import SharedRecords

INTERRUPTED = 130
"""Exit status of a process whose run was interrupted, and can be resumed."""

PAUSE = 0.1
"""Seconds between two looks at the processes."""

Watch = Callable[["RunTask", Progress | None], None]
"""Told of a task's progress, and with None that it ended."""


@dataclass(frozen=True, eq=False)
class RunTask:
    """A cell that is to run."""

    cell: Cell
    folder: Path
    rounds: int | None
    resume: bool


@dataclass
class Ended:
    """How tasks ended: the problem of each that failed, and whether the rest was interrupted."""

    problems: dict[str, str]
    interrupted: bool = False


def run_all(tasks: Sequence[RunTask], jobs: int, data_dir: Path | None, command: str, watch: Watch) -> Ended:
    """Run tasks, at most `jobs` at once. A task that fails does not stop the others; Ctrl-C stops all after their rounds."""
    if jobs == 1:
        return _one_by_one(tasks, data_dir, command, watch)
    return _side_by_side(tasks, jobs, data_dir, command, watch)


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _one_by_one(tasks: Sequence[RunTask], data_dir: Path | None, command: str, watch: Watch) -> Ended:
    ended, records = Ended({}), SharedRecords(data_dir)
    for task in tasks:

        def show(progress: Progress, task: RunTask = task) -> None:
            watch(task, progress)

        try:
            make = partial(records.build, state_folder=task.folder / "states")
            result = run(task.cell.study, task.folder, on_progress=show, make=make, resume=task.resume, command=command)
            ended.interrupted = result.run.stopped == "interrupted"
        except HedgerowError as error:
            ended.problems[task.cell.name] = str(error)
        watch(task, None)
        if ended.interrupted:
            break
    return ended


def _side_by_side(tasks: Sequence[RunTask], jobs: int, data_dir: Path | None, command: str, watch: Watch) -> Ended:
    threads = max(1, usable_cores() // jobs)
    waiting, running, ended = deque(tasks), dict[RunTask, _Process](), Ended({})
    with interruptible() as asked, _none_left(running):
        while waiting or running:
            if asked() and not ended.interrupted:
                ended.interrupted = True
                waiting.clear()
                for process in running.values():
                    process.ask_to_stop()
            while waiting and len(running) < jobs:
                task = waiting.popleft()
                running[task] = _Process(task, threads, data_dir, command)
            time.sleep(PAUSE)
            for task, process in list(running.items()):
                status = process.handle.poll()
                if (progress := latest(task)) is not None:
                    watch(task, progress)
                if status is None:
                    continue
                watch(task, None)
                if status not in (0, INTERRUPTED, -signal.SIGINT):
                    ended.problems[task.cell.name] = process.problem(status)
                running.pop(task).end()
    return ended


class _Process:
    """A task in a process group of its own, so that Ctrl-C reaches it once, through its parent."""

    def __init__(self, task: RunTask, threads: int, data_dir: Path | None, command: str) -> None:
        task.folder.mkdir(parents=True, exist_ok=True)
        write_study(task.cell.study, task.folder / "study.toml")
        self.said: IO[bytes] = TemporaryFile()  # noqa: SIM115  (it lives as long as the process)
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        limits = dict.fromkeys(names, str(threads))
        same = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        given = [str(task.folder), str(os.getpid()), str(threads), str(data_dir or ""), "resume" * task.resume, command]
        self.handle = subprocess.Popen(
            [sys.executable, "-m", "hedgerow.compare.cell", *given],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.said,
            env=os.environ | limits | same,
            process_group=0,
        )

    def ask_to_stop(self) -> None:
        """Let it stop after its round."""
        self.handle.send_signal(signal.SIGINT)

    def end(self) -> None:
        """Leave nothing of it."""
        self.handle.kill()
        self.handle.wait()
        self.said.close()

    def problem(self, status: int) -> str:
        """What it said at its end, or its status where it said nothing."""
        self.said.seek(0)
        said = self.said.read().decode(errors="replace").strip()
        if "Traceback" in said:
            return said.splitlines()[-1]
        return said or f"the process ended with status {status}; was there enough memory?"


@contextmanager
def _none_left(running: dict[RunTask, _Process]) -> Iterator[None]:
    """Leave no process behind: a second Ctrl-C, or an error here, ends them at once; their last checkpoints stand."""
    try:
        yield
    finally:
        for process in running.values():
            process.end()


def latest(task: RunTask) -> Progress | None:
    """The last round that a run has written."""
    try:
        with (task.folder / "rounds.jsonl").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 8192))
            lines = file.read().split(b"\n")[:-1]
        row: dict[str, Any] = json.loads(lines[-1])
    except (OSError, ValueError, IndexError):
        return None
    return Progress(row["round"], task.rounds, metrics_of(row), None, None)
