"""`InProcess`: many parties in one process, fast, with simulated dropouts and stragglers.

A planner picks one of five paths for each question; all give the numbers of `Loop`, and parity tests say so:

    alone       noise pays for how far one unit moves the total (`Release.by_itself`): every party computes as it would if
                it were the only one, one on each core, and its row has the bits that `Loop` gives it
    collapse    the local function is additive and nothing is done party by party: one call on the pooled records
    stack       the local function accepts a leading axis: one call for each chunk of parties that fits the cache
    wide        few parties with large steps: one party after the other, with all threads for its products
    threads     anything else: one party at a time on each core

A chunk holds as many parties as 1.5 times a core's second-level cache holds broadcasts and records (the prepared columns
of a party's records, padded). If all parties fit, there is one chunk, else at least one for each thread; where not even
two parties fit, or padding would more than triple the records, stacking is given up. Chunks are added in the order of
the parties, so a result does not depend on which thread was first.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.engine import Inbox, Outbox, collect, declined
from hedgerow.core.party import Parties
from hedgerow.core.state import StateStore
from hedgerow.errors import CannotWrite, CheckpointMismatch
from hedgerow.privacy.guard import Guard, willing

from .acting import Acting
from .alone import answered, at_places, prepared
from .arrivals import Arrivals
from .correspondence import converse
from .ondisk import OnDisk
from .overlong import held_to_bounds
from .threads import one_thread_here, threads_for_each

BLOCK = 8
"""Parties that are asked one by one are added up in blocks of so many, whatever the number of threads."""

PADDING_LIMIT = 3.0
"""Stack only where padded records stay below this multiple of the real ones."""


@dataclass
class InProcess:
    """Run parties in this process.

    Parameters
    ----------
    threads : int, optional
        One for each core by default.
    dropout_rate : float
        Probability that a party does not answer a question.
    dropped : collection of str
        Parties that never answer.
    returns : bool
        Whether a party that dropped out answers later questions; if not, `dropout_rate` is the share of the parties that
        leave for good, in the course of the first question.
    deadline : float, optional
        Simulated seconds after which an answer comes too late and is not counted.
    latency : (float, float)
        Median (seconds) and log-standard-deviation of the simulated, lognormal time to answer.
    collapse : bool
        Whether pooled records may stand for the sum of distinct contributions.
    state_folder : str or Path, optional
        Keep parties' states in files of this folder (see `OnDisk`) instead of in memory; a folder for each run.
    guards : mapping from party to Guard
        Parties with a policy of their own (`hedgerow.privacy.Guard`), which debits a question or declines it.
    acts : Acting, optional
        Parties that lie.
    """

    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    dropout_rate: float = 0.0
    dropped: Collection[str] = ()
    returns: bool = True
    deadline: float | None = None
    latency: tuple[float, float] = (1.0, 0.5)
    collapse: bool = True
    state_folder: str | Path | None = None
    guards: Mapping[str, Guard] = field(default_factory=dict)
    acts: Acting | None = None
    held: Parties = field(default_factory=lambda: Parties((), {}, ()), repr=False)

    def __post_init__(self) -> None:
        self._arrivals = Arrivals(self.dropout_rate, self.dropped, self.returns, self.deadline, self.latency)
        self._leaving = self._arrivals.leaving

    def hosting(self, held: Parties, states: StateStore | None = None) -> InProcess:
        """Return this engine with these parties; what they keep is in `states`, where they are given."""
        if states is not None:
            held.states = states
        if self.state_folder is not None:
            held.states = OnDisk(self.state_folder)
        return replace(self, held=held)

    @property
    def parties(self) -> Sequence[str]:
        return self.held.ids

    def exchange(self, outbox: Outbox) -> Inbox:
        """Ask every party in the outbox; those that decline, drop out or come too late are missing from the inbox."""
        self._arrivals.dropped = self.dropped  # parties may come back between questions
        if outbox.step is not None:
            forgers = () if self.acts is None else self.acts.liars.forgers
            return converse(outbox, self.held, self._arrivals.of_step(outbox, self.held), self._rows, forgers)
        willing_ids, _ = willing(self.guards, outbox.ids, outbox)
        found = self._answers(outbox, self._arrivals.of_question(outbox, willing_ids, self.held))
        return found if self.acts is None else held_to_bounds(outbox, found)

    def _rows(self, outbox: Outbox) -> Inbox:
        """The contributions of those that are willing, for their correspondents."""
        return self._answers(outbox, willing(self.guards, outbox.ids, outbox)[0])

    def _answers(self, outbox: Outbox, ids: Sequence[str]) -> Inbox:
        if not ids:
            return Inbox(())
        if self.acts is not None:
            return self.acts.answers(outbox, ids, self.held, self._asked)
        return self._asked(outbox, ids, self.held)

    def _asked(self, outbox: Outbox, ids: Sequence[str], held: Parties) -> Inbox:
        """Ask some parties, which hold these records."""
        outbox = at_places(outbox)
        parties = prepared(held, outbox, together=True)
        which = np.arange(len(parties)) if ids is parties.ids else np.array([parties.position[name] for name in ids])
        if self.collapse and collapses(outbox):
            with threads_for_each(1):
                return self._collapsed(outbox, parties, which, ids)
        jobs = self._stacks(outbox, parties, which) if stacks(outbox) else [np.array([i]) for i in which]
        hidden = outbox.by_itself or outbox.release.mechanism is not None  # how many records others have decides no last bit
        wide = len(jobs) < 2 * self.threads and setting(outbox, "wide", False) and not hidden
        with threads_for_each(self.threads if wide else 1):
            blocks = (
                [jobs[i : i + BLOCK] for i in range(0, len(jobs), BLOCK)]
                if len(jobs[0]) == 1 and not wide
                else [[j] for j in jobs]
            )
            return collect(outbox, self._map(lambda block: _block(outbox, parties, block), blocks, in_turn=wide), tuple(ids))

    def _collapsed(self, outbox: Outbox, parties: Parties, which: Array, ids: Sequence[str]) -> Inbox:
        pooled = parties.pool(which)
        together = Parties(("pooled parties",), pooled.columns, [len(pooled.w)], pooled.w)
        return collect(outbox, [_guarded(outbox, together, np.array([0]))], tuple(ids))

    def _stacks(self, outbox: Outbox, parties: Parties, which: Array) -> list[Array]:
        """Split parties into chunks that fit the cache: one if all do, else at least one for each thread."""
        sizes = parties.sizes[which]
        padded = len(which) * int(sizes.max())
        made = {name: column for name, column in parties.columns.items() if name not in self.held.columns}
        record = sum(column.nbytes / max(1, len(column)) for column in (made or parties.columns).values())
        chunk = int(1.5 * l2_bytes() / max(1.0, _nbytes(outbox.question.broadcast) + record * int(sizes.max())))
        if chunk < setting(outbox, "least_stack", 2) or padded > PADDING_LIMIT * int(sizes.sum()):
            return [np.array([i]) for i in which]
        if chunk < len(which):
            chunk = min(chunk, -(-len(which) // self.threads))
        return [which[i : i + chunk] for i in range(0, len(which), chunk)]

    def _map(self, job: Callable[[Any], Any], parts: Sequence[Any], *, in_turn: bool) -> Iterable[Any]:
        """Answers in the order of the parts, made when they are needed, at most a few ahead."""
        if in_turn or self.threads == 1 or len(parts) == 1:
            yield from map(job, parts)
            return
        ahead: deque[Future[Any]] = deque()
        try:
            for part in parts:
                ahead.append(pool(self.threads).submit(job, part))
                if len(ahead) > 4 * self.threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:  # where a party failed: nobody is still at work when the caller goes on
            for future in ahead:
                future.cancel()
            wait(ahead)


@lru_cache
def pool(threads: int) -> ThreadPoolExecutor:
    """Threads that outlive a round, so that what a thread keeps is made once."""
    return ThreadPoolExecutor(threads, thread_name_prefix="hedgerow", initializer=one_thread_here)


def collapses(outbox: Outbox) -> bool:
    """Whether pooled records give the same total: an additive sum through an open channel, with no row kept."""
    question = outbox.question
    summed = question.verb == "sum" and question.poolable and question.init is None
    return summed and outbox.release.bare and not outbox.keep_rows and not outbox.by_itself


def stacks(outbox: Outbox) -> bool:
    """Whether several parties may be answered for in one call."""
    return outbox.question.stackable and not outbox.by_itself


def setting(outbox: Outbox, name: str, default: Any) -> Any:
    """What the query's settings, such as a model, say of how they are best computed."""
    return max((getattr(value, name, default) for value in outbox.question.settings.values()), default=default)


def _block(outbox: Outbox, parties: Parties, block: Sequence[Array]) -> Any:
    """Answer for a few chunks of parties, and add them up; rows that are to be kept stay apart."""
    if len(block) == 1:
        return _guarded(outbox, parties, block[0])
    part = collect(outbox, (_guarded(outbox, parties, which) for which in block), ())
    if part.layout is None or part.total is None:
        return None
    return part.layout, (part.total[None] if part.rows is None else part.rows)


def _guarded(outbox: Outbox, parties: Parties, which: Array) -> Any:
    try:
        return answered(outbox, parties, which)
    except (CannotWrite, CheckpointMismatch):  # the simulation's disk, not the party's
        raise
    except Exception as error:
        name = parties.ids[int(which[0])] if len(which) == 1 else f"{len(which)} parties"
        raise declined(name, error) from error


def _nbytes(arrays: Any) -> int:
    values: Iterable[Any] = arrays.values() if isinstance(arrays, dict) else [] if arrays is None else [arrays]
    return sum(np.asarray(value).nbytes for value in values)


@lru_cache
def l2_bytes() -> int:
    """Size of a core's second-level cache, or 1 MiB where the system does not say."""
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index2/size").read_text().strip()
        return int(text[:-1]) * {"K": 1024, "M": 1024**2}[text[-1]]
    except (OSError, KeyError, ValueError):
        return 1024**2
