"""`Subprocesses`: a process for each rehearsal and for each admitted study, with limits, which can be ended at any moment.

The records are read once, by a child of their own, into memory without a name; every child that answers maps it, and the gate
only keeps it open. A child that takes longer than the guard's limits allow, or more memory, is ended, and what it was asked is
refused; the next question finds a new one. Nobody waits for a child under a lock of the station.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.engines.pipes import Sheet, laid_out
from hedgerow.errors import LimitExceeded, SubmissionUnapproved
from hedgerow.network.station.config import GuardSection, StationConfig
from hedgerow.network.station.disclosed import AskedNumbers
from hedgerow.network.station.local_data import HeldElsewhere, LocalData, Roll
from hedgerow.network.station.submissions import Submission

from .facts import AskedQuestion, Computed, Uncomputed, error_of
from .process import Child, Limits, Off, Stopped
from .runner import Done, OwnKeys, StudyChild, ToOpen, ToRehearse

log = logging.getLogger("hedgerow")

AT_ONCE = 1000
"""Charges in one message to a rehearsal."""

REHEARSALS = 2
"""At once: a small study does not wait for a large one, and several large ones do not take the machine."""

PAUSE = 0.2
"""Seconds between two looks at whether there is room for one more process."""


class Records:
    """A station's records in memory that children map, and what the gate knows of them.

    Attributes
    ----------
    held : HeldElsewhere
    """

    def __init__(self, sheet: Sheet, where: bytes, roll: bytes, sizes: bytes, config: StationConfig) -> None:
        self.sheet, self.where, self.roll, self.sizes = sheet, where, roll, sizes
        self.held = HeldElsewhere(config.declared, Roll.unpack(roll), np.frombuffer(sizes, np.int64))

    @classmethod
    def of(cls, config: StationConfig, held: LocalData) -> Records:
        """Records that this process has."""
        sheet, where = laid_out(held.columns)
        return cls(sheet, where.encode(), held.roll.pack(), held.sizes.astype(np.int64).tobytes(), config)

    @classmethod
    def read(cls, config: StationConfig, folder: Path, secret: bytes, off: Off = lambda: False) -> Records:
        """Let a child read the records.

        Raises
        ------
        SourceUnreadable (HR-614), DataError (HR-4xx), ConfigInvalid (HR-601)
            They are not there, or do not fit their declaration.
        Stopped
            `off` said so meanwhile.
        """
        sheet = Sheet(1)
        about = json.dumps({"folder": str(folder.resolve()), "secret": secret.hex()}).encode()
        child = Child(sheet.descriptor)
        try:
            told = child.ask("read", [written(config), about], Limits(), off)
            where, roll, sizes = (bytes(body) for body in told.bodies)
        except BaseException:
            sheet.close()
            raise
        finally:
            child.end()
        return cls(sheet, where, roll, sizes, config)


class Subprocesses:
    """Runs every rehearsal and every admitted study in a process of its own.

    Parameters
    ----------
    records : Records
    """

    def __init__(self, records: Records) -> None:
        self.records = records
        self._lock = threading.Lock()
        self._turns = threading.Semaphore(REHEARSALS)
        self._rehearsing: dict[str, Child | None] = {}
        self._studies: dict[str, StudyProcess] = {}
        self._closed = False

    def rehearse(self, task: ToRehearse, done: Done, off: Off) -> None:
        """Rehearse a study in a thread that waits for its process; of which few run at once."""
        study = task.submission.study
        with self._lock:
            self._rehearsing[study] = None
        threading.Thread(target=self._rehearse, args=(task, done, off), name="hedgerow-rehearsal", daemon=True).start()

    def open(self, task: ToOpen, off: Off) -> StudyChild:
        """Make an approved study ready, in a process that is started when it is asked."""
        found = StudyProcess(self, task, off)
        with self._lock:
            self._studies[task.submission.study] = found
        return found

    def stop(self, study: str) -> None:
        """End the processes of a study."""
        with self._lock:
            rehearsal = self._rehearsing.pop(study, None)
            answering = self._studies.pop(study, None)
        if rehearsal is not None:
            rehearsal.end()
        if answering is not None:
            answering.close()

    def close(self) -> None:
        """End all processes."""
        self._closed = True
        with self._lock:
            running = [*self._rehearsing.values(), *(one.child for one in self._studies.values())]
            studies = {*self._rehearsing, *self._studies}
        for child in filter(None, running):
            child.kill()
        for study in studies:
            self.stop(study)
        self.records.sheet.close()

    def forget(self, closed: StudyProcess) -> None:
        """Know nothing more of a study that was closed."""
        with self._lock:
            self._studies = {study: one for study, one in self._studies.items() if one is not closed}

    def room(self, most: int, wanted: StudyProcess, off: Off) -> None:
        """Wait until fewer than `most` other studies have a process, ending one that has been idle for longest.

        Raises
        ------
        Stopped
        """
        while True:
            with self._lock:
                busy = [one for one in self._studies.values() if one is not wanted and one.running]
                if len(busy) < most or any(one.rest() for one in sorted(busy, key=lambda one: one.used)):
                    return
            if off() or self._closed:
                raise Stopped
            time.sleep(PAUSE)

    def _rehearse(self, task: ToRehearse, done: Done, off: Off) -> None:
        came = task.submission
        try:
            with self._turn(lambda: off() or came.study not in self._rehearsing):
                found: Submission | Exception = self._rehearsed(task, off)
        except Stopped:
            return
        except Exception as error:
            found = error
        finally:
            with self._lock:
                self._rehearsing.pop(came.study, None)
        try:
            done(found)
        except Exception:
            log.exception("what a rehearsal found cannot be kept")

    @contextmanager
    def _turn(self, off: Off) -> Iterator[None]:
        """Wait for the rehearsals before this one."""
        while not self._turns.acquire(timeout=PAUSE):
            if off():
                raise Stopped
        try:
            if off():
                raise Stopped
            yield
        finally:
            self._turns.release()

    def _rehearsed(self, task: ToRehearse, off: Off) -> Submission:
        limits, came, records = task.config.guard.limits, task.submission, self.records
        child = Child(records.sheet.descriptor, threads=1)
        try:
            with self._lock:
                if came.study not in self._rehearsing:
                    raise Stopped
                self._rehearsing[came.study] = child
            if task.config.guard.budget is not None:
                charges = iter(task.charges())
                while some := list(islice(charges, AT_ONCE)):
                    child.tell("charges", [json.dumps([vars(one) for one in some]).encode()])
            known = json.dumps(task.roster).encode()
            parts = [written(task.config), records.roll, records.sizes, *submitted(came), known]
            told = child.ask("rehearse", parts, Limits("the rehearsal", limits.rehearsal_seconds, limits.megabytes), off)
            return Submission.from_json(json.loads(bytes(told.bodies[0])), came.toml, came.description)
        finally:
            child.end()


class StudyProcess:
    """An admitted study's parties in a process: started with the first question, and again where it was ended.

    Parameters
    ----------
    runner : Subprocesses
    task : ToOpen
    off : callable
        Whether the study may ask no more.
    """

    def __init__(self, runner: Subprocesses, task: ToOpen, off: Off) -> None:
        self._runner, self._task, self._stopped = runner, task, off
        self.child: Child | None = None
        self._busy = threading.Lock()
        self._closed = False
        self._guard = task.config.guard
        self.used = 0.0

    @property
    def running(self) -> bool:
        """Whether it has a process now."""
        return self.child is not None

    def foresee(self, guard: GuardSection, at: datetime, common: bytes, own: bytes) -> AskedQuestion:
        """Let the process read and judge a question."""
        with self._asking() as child:
            if guard != self._guard:
                child.tell("guard", [json.dumps(guard.model_dump(mode="json", exclude_unset=True)).encode()])
                self._guard = guard
            told = child.ask("foresee", [at.isoformat().encode(), common, own], self._limits(guard), self._off)
            return AskedQuestion.from_json(json.loads(bytes(told.bodies[0])))

    def compute(self, question: AskedQuestion) -> Computed:
        """Let the process answer it."""
        try:
            with self._asking(again=False) as child:
                raw = json.dumps(question.to_json()).encode()
                self._task = replace(self._task, begun=True)
                told = child.ask("compute", [raw], self._limits(self._guard), self._off)
        except Uncomputed:
            raise
        except Exception as error:
            raise Uncomputed(error, "") from error
        if told.kind == "uncomputed":
            about = json.loads(bytes(told.bodies[0]))
            raise Uncomputed(error_of(about), about["first"])
        about = json.loads(bytes(told.bodies[0]))
        came = about["came"] and AskedNumbers(*about["came"])
        return Computed(bytes(told.bodies[1]), about["codes"], about["n_answered"], about["cohort"], came)

    def rest(self) -> bool:
        """End the process unless it is at work; returns whether it has ended."""
        if not self._busy.acquire(blocking=False):
            return False
        try:
            self._end()
            return True
        finally:
            self._busy.release()

    def close(self) -> None:
        """End the process, also in the middle of an answer."""
        self._closed = True
        self._end()
        self._runner.forget(self)

    @contextmanager
    def _asking(self, again: bool = True) -> Iterator[Child]:
        with self._busy:
            try:
                if self.child is None or not self.child.alive:
                    if not again:
                        raise LimitExceeded("the process that was to answer has ended.", remedy="Ask again.")
                    self._end()
                    self._start()
                assert self.child is not None
                yield self.child
            except Stopped:
                self._end()
                raise SubmissionUnapproved("the study was taken back, or the station stops.") from None
            finally:
                if self.child is not None and not self.child.alive:
                    self._end()
                self.used = time.monotonic()

    def _start(self) -> None:
        task, records = self._task, self._runner.records
        limits = task.config.guard.limits
        self._runner.room(limits.processes, self, self._off)
        if self._off():
            raise Stopped
        self.child = Child(records.sheet.descriptor)
        self._guard = task.config.guard
        parts = [written(task.config), records.where, records.roll, records.sizes, *submitted(task.submission), _own(task)]
        try:
            ready = Limits("making a study ready", limits.rehearsal_seconds, limits.megabytes)
            self.child.ask("open", parts, ready, self._off)
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        child, self.child = self.child, None
        if child is not None:
            child.end()

    def _off(self) -> bool:
        return self._closed or self._stopped()

    def _limits(self, guard: GuardSection) -> Limits:
        return Limits("the question", guard.limits.question_seconds, guard.limits.megabytes)


def written(config: StationConfig) -> bytes:
    """A configuration, for a child."""
    return json.dumps(config.model_dump(mode="json", by_alias=True, exclude_unset=True)).encode()  # which has infinity


def submitted(submission: Submission) -> list[bytes]:
    """A submission, for a child."""
    return [json.dumps(submission.to_json()).encode(), submission.toml, submission.description]


def _own(task: ToOpen) -> bytes:
    keys: OwnKeys = task.keys
    roster: dict[str, Any] | None = None if keys.roster is None else {k: v.hex() for k, v in keys.roster.items()}
    answered = None if task.answered is None else os.fspath(task.answered.resolve())
    states = None if task.states.folder is None else os.fspath(task.states.folder.resolve())
    about = {"answered": answered, "states": states, "begun": task.begun}
    return json.dumps({"identity": keys.identity.private.hex(), "roster": roster, **about}).encode()
