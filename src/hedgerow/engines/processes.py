"""`Processes`: parties spread over processes of this machine.

Each process is started by `python -m hedgerow.engines.worker`, with this program's import path, and talks over a line
(`engines.lines`): columns and large broadcasts lie in memory that all processes map. They end with this program, however it
ends: they see that their line is closed.
"""

from __future__ import annotations

import subprocess
import threading
import time
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from hedgerow.core.arrays import Array
from hedgerow.errors import RailUnavailable

from .pipes import LARGE, Gone, Pipe, Sheet, laid_out
from .shard import Reply
from .sharded import Crew, Sharded
from .starting import started

PATIENCE = 5.0
"""Seconds that a process has to end by itself."""


class Processes(Sharded):
    """Parties in processes of this machine.

    All engines that come from one `Processes(...)` share its processes, which start with the first question and end with
    `close()`, at the end of a `with`, or when no engine is left.
    """

    def _crew(self) -> Crew:
        return _Processes(self.shards, self.threads_each)


@dataclass
class _Worker:
    """A process, and the line to it."""

    process: subprocess.Popen[bytes]
    line: Pipe


@dataclass
class _Parcels:
    """What a simulation's shards hold: words and sheets."""

    common: tuple[Sheet, str]
    each: Sequence[tuple[str, Sheet, str]]


class _Processes:
    """A crew of processes."""

    def __init__(self, shards: int, threads_each: int) -> None:
        self.shards, self.threads_each = shards, threads_each
        self._workers: dict[int, _Worker] = {}
        self._lives = dict.fromkeys(range(shards), 0)
        self._hosted: dict[int, _Parcels] = {}
        self._dropped: list[int] = []
        self._numbers = count(1)
        self._lock, self._closed = threading.RLock(), False
        self._end = weakref.finalize(self, _end, self._workers)

    @property
    def processes(self) -> dict[int, int]:
        """The process of each shard that runs."""
        return {k: worker.process.pid for k, worker in self._workers.items()}

    def host(self, common: Mapping[str, Array], each: Sequence[tuple[str, Mapping[str, Array]]]) -> int:
        parcels = _Parcels(laid_out(common), [(about, *laid_out(arrays)) for about, arrays in each])
        with self._lock:
            number = next(self._numbers)
            self._hosted[number] = parcels
            for k in range(len(each)):
                if k in self._workers:
                    self._give(k, number)
        return number

    def drop(self, number: int) -> None:
        self._dropped.append(number)  # sent before the next question: this may be called while a message is written

    def ready(self, shards: Collection[int]) -> Mapping[int, int]:
        with self._lock:
            self._refuse_closed()
            self._drop()
            for k in shards:
                if k in self._workers and self._workers[k].process.poll() is not None:
                    self._lose(k)
            begun = [k for k in shards if k not in self._workers]
            try:
                self._begin(begun)
            except BaseException:  # also where somebody interrupts: nobody will read what these say
                for k in begun:
                    self._lose(k)
                raise
            return {k: self._lives[k] for k in shards}

    def ask(self, number: int, kind: str, common: Sequence[bytes], own: Mapping[int, bytes]) -> Mapping[int, Reply]:
        sheets = [Sheet.of(body) if len(body) >= LARGE else body for body in common]
        with self._lock:
            self._refuse_closed()
            waiting, replies = set(own), dict[int, Reply]()
            try:
                for k, body in own.items():
                    try:
                        self._workers[k].line.send(number, kind, [*sheets, body])
                    except (Gone, KeyError):
                        self._lose(k)
                        waiting.discard(k)
                for k in sorted(waiting):
                    try:
                        told = self._workers[k].line.receive()
                        replies[k] = (told.kind, told.bodies[0])
                    except Gone:
                        self._lose(k)
                    waiting.discard(k)
            finally:
                for k in waiting:  # interrupted: nobody will read what these reply
                    self._lose(k)
        return replies

    def close(self) -> None:
        with self._lock:
            self._closed = True
            _end(self._workers)
            self._hosted.clear()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise RailUnavailable("these processes were closed.", remedy="Make a new Processes(...).")

    def _begin(self, shards: Sequence[int]) -> None:
        """Start processes, all at once, then let each of them host its parts."""
        for k in shards:
            self._workers[k] = _started(self.threads_each)
            self._lives[k] += 1
        for k in shards:
            try:
                self._workers[k].line.receive()
            except Gone as error:
                raise RailUnavailable(
                    f"the process of shard {k + 1} ended with status {self._lose(k)} before it was ready.",
                    remedy="Its standard error says why; memory may have run out.",
                ) from error
            for number in self._hosted:
                self._give(k, number)

    def _give(self, k: int, number: int) -> None:
        """Let a shard host its part of a simulation."""
        parcels = self._hosted[number]
        if k >= len(parcels.each) or k not in self._workers:
            return
        about, sheet, where = parcels.each[k]
        words = [words.encode() for words in (about, parcels.common[1], where)]
        try:
            self._workers[k].line.send(number, "host", [*words, parcels.common[0], sheet])
            told = self._workers[k].line.receive()
        except BaseException as error:
            self._lose(k)
            if isinstance(error, Gone):
                return
            raise
        if told.kind == "refused":
            raise RailUnavailable(f"shard {k + 1} cannot hold its parties.", remedy="Its process's log says why.")

    def _drop(self) -> None:
        while self._dropped:
            number = self._dropped.pop()
            self._hosted.pop(number, None)
            for k in list(self._workers):
                try:
                    self._workers[k].line.send(number, "drop")
                except Gone:
                    self._lose(k)

    def _lose(self, k: int) -> int | None:
        """End a shard's process for good."""
        worker = self._workers.pop(k, None)
        if worker is None:
            return None
        worker.line.close()
        worker.process.kill()
        return worker.process.wait()


def _started(threads: int) -> _Worker:
    return _Worker(*started("hedgerow.engines.worker", [str(threads)], threads=threads))


def _end(workers: dict[int, _Worker]) -> None:
    """Close all lines, then see to it that nobody stays."""
    ending = list(workers.values())
    workers.clear()
    for worker in ending:
        worker.line.close()
    last = time.monotonic() + PATIENCE
    for worker in ending:
        try:
            worker.process.wait(max(0.0, last - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
