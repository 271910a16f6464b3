"""What shows a run while it goes on: round, metrics, epsilon spent and the time left, in a terminal and in a notebook."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hedgerow.display import in_notebook
from hedgerow.report.markup import tag
from hedgerow.store.rows import COSTS

METRICS_SHOWN = 2
_SECONDS = 0.2
"""A notebook is written to at most so often."""


class RoundProgress(Protocol):
    """One round's progress."""

    round: int
    rounds: int | None
    metrics: Mapping[str, float]
    epsilon: float | None
    budget: float | None


def words_of(metrics: Mapping[str, float], epsilon: float | None, budget: float | None) -> str:
    """The first metrics, and epsilon of the budget."""
    told = [(name, value) for name, value in metrics.items() if name != "n"]  # how many were measured stays the same
    said = [f"{name} {value:.4g}" for name, value in told[:METRICS_SHOWN]]
    if epsilon is not None:
        said.append(f"epsilon {epsilon:.3g}" + ("" if budget is None else f" of {budget:g}"))
    return ", ".join(said)


class Bar:
    """A progress bar of a terminal."""

    def __init__(self, name: str, console: Console) -> None:
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[said]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self.task = self.bar.add_task(name, total=None, said="")

    def __enter__(self) -> Bar:
        self.bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.bar.stop()

    def show(self, progress: RoundProgress) -> None:
        """Take one round's progress."""
        self.at(progress.round, progress.rounds, words_of(progress.metrics, progress.epsilon, progress.budget))

    def at(self, number: int, rounds: int | None, said: str) -> None:
        """Show a round, and what is said of it."""
        self.bar.update(self.task, completed=number, total=rounds, said=said)


class CellBar:
    """A progress bar in a cell of a notebook: one output, which is replaced; no widgets are needed."""

    def __init__(self, name: str) -> None:
        self.name, self._began, self._shown = name, time.monotonic(), 0.0
        self._first: int | None = None
        self._handle: Any = None
        self._last: tuple[int, int | None, str] | None = None

    def __enter__(self) -> CellBar:
        from IPython.display import HTML, display

        self._handle = display(HTML(self.html(0, None, "")), display_id=True)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._last is not None:
            self._update(*self._last, ended=True)

    def at(self, number: int, rounds: int | None, said: str) -> None:
        """Show a round, and what is said of it."""
        self._first = number - 1 if self._first is None else self._first
        self._last = (number, rounds, said)
        if time.monotonic() - self._shown >= _SECONDS:
            self._update(number, rounds, said)
            self._shown = time.monotonic()

    def _update(self, number: int, rounds: int | None, said: str, *, ended: bool = False) -> None:
        from IPython.display import HTML

        self._handle.update(HTML(self.html(number, rounds, said, ended=ended)))

    def html(self, number: int, rounds: int | None, said: str, *, ended: bool = False) -> str:
        """The bar and a line of words."""
        taken = time.monotonic() - self._began
        done = number - (self._first or 0)
        time_said = f"{_clock(taken)} taken"
        if rounds is not None and done and number < rounds and not ended:
            time_said = f"{_clock(taken / done * (rounds - number))} left"
        of = "" if rounds is None else f" of {rounds}"
        words = [
            f"{self.name}: round {number}{of}" if number else f"{self.name}: first round",
            said,
            time_said if number else "",
        ]
        bar = None if rounds is None else tag("progress", value=number, max=rounds, style="width: 14rem; max-width: 100%")
        line = tag("span", ", ".join(filter(None, words)), style="font-variant-numeric: tabular-nums")
        style = "display: flex; flex-wrap: wrap; gap: 0 1em; align-items: center"
        return tag("div", bar, line, style=style)


@contextmanager
def progress_bar(name: str, rounds: int | None, budget: float | None) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Give a function that shows rows as they come.

    Parameters
    ----------
    name : str
    rounds : int or None
        How many there will be, where that is known.
    budget : float or None
        Epsilon that may be spent.
    """
    held: dict[str, Any] = {"metrics": {}, "epsilon": None, "priced": None}
    with CellBar(name) if in_notebook() else Bar(name, Console(stderr=True)) as bar:

        def show(row: Mapping[str, Any]) -> None:
            metrics = {key: value for key, value in row.items() if key not in COSTS}
            held["metrics"] = metrics or held["metrics"]  # of a run that is measured every few rounds the last ones
            if "epsilon" in row:
                held.update(epsilon=row["epsilon"], priced=row["round"])
            late = "" if held["priced"] in (None, row["round"]) else f" by round {held['priced']}"
            bar.at(row["round"], rounds, words_of(held["metrics"], held["epsilon"], budget) + late)

        yield show


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
