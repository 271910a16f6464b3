"""The loop around a program: watch its states, checkpoint, resume, stop on budget or when there is enough.

A program is a generator of states, `(federation, *, start=None) -> iterator`, where `start` is a state that it yielded
before; what it yields is everything needed to resume.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hedgerow.core.federation import Federation, inside
from hedgerow.core.run import Run
from hedgerow.display import displayed, figure, progress_bar, somebody_looks
from hedgerow.errors import BudgetExhausted, CannotWrite, HedgerowWarning, SettingsInvalid, suggestion

from .checkpoint import Checkpoint, save_checkpoint
from .rows import Best, History, Logger, Row, best_beside

if TYPE_CHECKING:
    import pandas

    Figure = Any

messages = logging.getLogger("hedgerow")

Program = Callable[..., Iterator[Any]]
Ending = Literal["finished", "budget", "patience", "interrupted"]


@displayed
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
    rounds : tuple of dict
        A row for each round since the run was begun or resumed: `round`, `seconds`, `epsilon` where a budget is set, the run
        is logged or shown and there was time to compute it, and the numbers that `watch` returned.
    """

    state: Any
    stopped: Ending = "finished"
    reason: str = ""
    rounds: tuple[Row, ...] = ()

    def to_frame(self) -> pandas.DataFrame:
        """Return one row for each round."""
        import pandas

        return pandas.DataFrame(list(self.rounds)).set_index("round") if self.rounds else pandas.DataFrame()

    def plot(self, *metrics: str) -> Figure:
        """Draw metrics by round, and epsilon where there is a budget, as SVG; all metrics by default."""
        drawn: Figure = figure(self, metrics=metrics)
        return drawn


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
    checkpoint: str | Path | None = None,
    study: str = "",
    start: Checkpoint | None = None,
    seconds: float = 1.0,
    log: Logger | Sequence[Logger] = (),
    keep: Literal["last", "best"] = "last",
    by: str | None = None,
    better: Literal["higher", "lower"] | None = None,
    progress: bool | Literal["auto"] = "auto",
) -> Driven:
    """Run a program until it ends, there is enough, the budget refuses a question, or Ctrl-C asks for an end after the round.

    Parameters
    ----------
    program : callable
        For example `functools.partial(fedavg, module=net, rounds=50)`.
    watch : callable, optional
        Called with every state, before it can be checkpointed: evaluation, logging. The numbers of a dict that it returns are
        the round's metrics, `accuracy` for example; they are shown, logged, and in `Driven.rounds`.
    enough : callable, optional
        Called after `watch`, and once before a run that is continued: a sentence ends the run, "" does not. Early stopping.
    checkpoint : str or Path, optional
        File to resume from later, by `start`; written between rounds when `seconds` have passed since the last time, and at the
        end; after every round without a seed. A file that is there is written over with `start` alone.
    study : str
        Identifies what may resume from the checkpoint.
    start : Checkpoint, optional
        Continue from here: `load_checkpoint(path, kind of state, study)`.
    log : Logger or sequence of Logger
        Given the row of every round, see `hedgerow.loggers`: numbers alone. Closed at the end.
    keep : {"last", "best"}
        Which state is returned: of the last round, or of the one in which the metric `by` was best. The best one is also in
        a file beside `checkpoint`, named `best-...`.
    by : str, optional
        With keep="best": a metric that `watch` returns; by default the first one.
    better : {"higher", "lower"}, optional
        With keep="best"; by default lower for losses, errors, deviances, deviations and fitness, and higher for all others.
    progress : {"auto", True, False}
        Show round, metrics, epsilon and the time left while it runs; "auto" does so in a terminal and in a notebook.

    Raises
    ------
    CannotWrite (HR-104)
        `checkpoint` is there and `start` is not given: what an earlier run left would be lost. Before any party is asked.
    """
    for name, given, known in (("keep", keep, ("last", "best")), ("better", better or "lower", ("higher", "lower"))):
        if given not in known:
            raise SettingsInvalid(f"{name}={given!r} is unknown.", remedy=suggestion(str(given), known), asked=False)
    checkpoint = writable(checkpoint, start)
    run = inside(federation).run
    dear = run.streams.seed is None  # what is lost would be asked, and charged, again
    state, saved_at = (start.state if start else None), time.monotonic()
    loggers = list(log) if isinstance(log, Sequence) else [log]
    looks = progress is True or (progress == "auto" and somebody_looks())
    rows = History(run, priced=looks or bool(loggers))
    top = Best(by, better, best_beside(checkpoint), study) if keep == "best" else None

    def ended(stopped: Ending, reason: str = "") -> Driven:
        if made := rows.ended():
            show(made[-1])
            for logger in loggers:
                if (amend := getattr(logger, "amend", None)) is not None:
                    told(logger, amend, made[-1])
        if top is not None and top.state is None and made:
            warnings.warn('keep="best" found no round with a metric, so the last one is kept.', HedgerowWarning, stacklevel=3)
        return Driven(state if top is None or top.state is None else top.state, stopped, reason, made)

    def save() -> None:
        if checkpoint is not None:
            if top is not None:
                top.save()
            save_checkpoint(checkpoint, state, federation, study)

    with shown(program, run, looks) as show:
        try:
            states = program(federation, start=state)  # before the clock is set: a budget of its own comes before its questions
            if start is not None:
                start.restore(federation)
                if top is not None:
                    top.load(type(start.state))
            if start is not None and (reason := enough()):
                return ended("patience", reason)
            with interruptible() as interrupted:
                for state in states:
                    row = rows.add(state, None if watch is None else watch(state))
                    loggers = [logger for logger in loggers if told(logger, logger.log, row)]
                    show(row)
                    if top is not None:
                        top.take(row, state)
                    reason = enough()
                    if reason or interrupted() or dear or time.monotonic() - saved_at >= seconds:
                        save()
                        saved_at = time.monotonic()
                    if reason:
                        return ended("patience", reason)
                    if interrupted():
                        return ended("interrupted", "interrupted from the keyboard")
        except BudgetExhausted as refusal:
            return ended("budget", refusal.reason)
        finally:
            for logger in loggers:
                told(logger, logger.close)
        if state is not None:
            save()
        return ended("finished")


def writable(checkpoint: str | Path | None, start: Checkpoint | None) -> Path | None:
    """The file of a checkpoint, which a run that begins anew must not write over."""
    if checkpoint is None:
        return None
    path = Path(checkpoint)
    if start is None and path.exists():
        raise CannotWrite(
            f"{path} is there already, and the run would begin anew and write over it.",
            remedy=f"Continue: start=hedgerow.store.load_checkpoint({str(path)!r}, ModelState, study=...), with the kind of\n"
            "the program's states and the study of that run, and with its ledger: federation.recorded(LedgerFile(...)).\n"
            "To begin anew, name another file or delete this one.",
            asked=False,
        )
    return path


def told(logger: Logger, call: Callable[..., None], *row: Row) -> bool:
    """Call a logger; one that fails is left out from then on, since the round has been paid for and the run has to go on."""
    try:
        call(*row)
    except Exception as error:
        name = type(logger).__name__
        warnings.warn(f"{name} failed, and logs nothing from here on: {error}", HedgerowWarning, stacklevel=3)
        return False
    return True


def shown(program: Program, run: Run, looks: bool) -> AbstractContextManager[Callable[[Row], None]]:
    """What shows a run while it goes on: nothing, unless somebody looks."""
    if not looks:
        return nullcontext(lambda row: None)
    named = getattr(program, "func", program)
    rounds = getattr(program, "keywords", {}).get("rounds")
    limit = getattr(run.ledger.limit, "epsilon", None)
    bar: AbstractContextManager[Callable[[Row], None]] = progress_bar(getattr(named, "__name__", "rounds"), rounds, limit)
    return bar


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
        messages.warning("stopping after this round; Ctrl-C again stops at once, and the last checkpoint stands")
        asked.set()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
