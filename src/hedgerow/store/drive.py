"""The loop around a program: watch its states, checkpoint, resume, stop on budget or when there is enough.

A program is a generator of states, `(federation, *, start=None) -> iterator`, where `start` is a state that it yielded
before; what it yields is everything needed to resume.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hedgerow.core.federation import Federation, inside
from hedgerow.errors import BudgetExhausted

from .checkpoint import Checkpoint, save_checkpoint

log = logging.getLogger("hedgerow")

Program = Callable[..., Iterator[Any]]


@dataclass(frozen=True)
class Driven:
    """How a program ended.

    Attributes
    ----------
    state : object or None
        The last state that was yielded; None if the budget did not allow a single round.
    stopped : {"finished", "budget", "patience", "interrupted"}
    reason : str
        Why it stopped before the program's own end, where it did.
    """

    state: Any
    stopped: Literal["finished", "budget", "patience", "interrupted"] = "finished"
    reason: str = ""


def last(states: Iterator[Any]) -> Any:
    """Run a program to its end and return its last state."""
    state = None
    for state in states:  # noqa: B007
        pass
    return state


def drive(
    program: Program,
    federation: Federation,
    *,
    watch: Callable[[Any], object] | None = None,
    enough: Callable[[], str] = str,
    checkpoint: Path | None = None,
    study: str = "",
    start: Checkpoint | None = None,
    seconds: float = 1.0,
) -> Driven:
    """Run a program until it ends, there is enough, the budget refuses a question, or Ctrl-C asks for an end after the round.

    Parameters
    ----------
    program : callable
        For example `functools.partial(fedavg, model=net, rounds=50)`.
    watch : callable, optional
        Called with every state, before it can be checkpointed: evaluation, logging, progress.
    enough : callable, optional
        Called after `watch`, and once before a run that is continued: a sentence ends the run, "" does not. Early stopping.
    checkpoint : Path, optional
        File to resume from; written between rounds when `seconds` have passed since the last time, and at the end;
        after every round without a seed.
    study : str
        Identifies what may resume from the checkpoint.
    start : Checkpoint, optional
        Continue from here; see `load_checkpoint`.
    """
    dear = inside(federation).run.streams.seed is None  # what is lost would be asked, and charged, again
    state, saved_at = (start.state if start else None), time.monotonic()
    try:
        states = program(federation, start=state)  # before the clock is set: a budget of its own comes before its questions
        if start is not None:
            start.restore(federation)
        if start is not None and (reason := enough()):
            return Driven(state, "patience", reason)
        with interruptible() as interrupted:
            for state in states:
                if watch is not None:
                    watch(state)
                reason = enough()
                due = reason or interrupted() or dear or time.monotonic() - saved_at >= seconds
                if checkpoint is not None and due:
                    save_checkpoint(checkpoint, state, federation, study)
                    saved_at = time.monotonic()
                if reason:
                    return Driven(state, "patience", reason)
                if interrupted():
                    return Driven(state, "interrupted", "interrupted from the keyboard")
    except BudgetExhausted as refusal:
        return Driven(state, "budget", refusal.reason)
    if checkpoint is not None and state is not None:
        save_checkpoint(checkpoint, state, federation, study)
    return Driven(state)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C take effect between rounds, where a state is whole; a second one stops at once."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def handle(number: int, frame: Any) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        log.warning("stopping after this round; Ctrl-C again stops at once, and the last checkpoint stands")
        asked.set()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
