"""What was measured by round: numbers only, and what they had cost by then; and the state of the best round."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from hedgerow.core.ledger import Ledger, grouped
from hedgerow.core.run import Run
from hedgerow.errors import CheckpointMismatch, SettingsInvalid

from .checkpoint import join, split
from .snapshot import read_arrays, write_arrays

Row = dict[str, Any]
"""One round: `round`, `seconds` since the beginning, `epsilon` where it was computed, and metrics by name."""

COSTS = ("round", "seconds", "epsilon")
_SHARE = 0.1
"""Of the time that a run takes, at most so much is spent on computing epsilon for its rows."""


class Logger(Protocol):
    """Writes rows somewhere; `hedgerow.loggers` has some. It is given numbers by name, and no state, record or federation."""

    def log(self, row: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


def rises(metric: str) -> bool:
    """Whether more is better: less is of losses, errors, deviances, deviations, fitness (an excess loss) and leakage."""
    lower = ("loss", "error", "deviance", "deviation", "fitness", "leakage", "membership")
    return not any(word in metric.lower() for word in lower)


def numbers_of(found: object) -> dict[str, float]:
    """The numbers of what a watcher returned, by name; whatever else it holds is left out, so that it is logged nowhere."""
    if not isinstance(found, Mapping):
        return {}
    return {
        str(name): float(value)
        for name, value in found.items()
        if type(value) is not bool and isinstance(value, numbers.Real) and name not in COSTS
    }


def spent_so_far(ledger: Ledger, limit: Any) -> float:
    """Epsilon up to the last question: of a run that was resumed without the questions that it has yet to ask again."""
    return float(limit.spent(grouped([*ledger.others, *ledger.entries], limit.unit)))


class History:
    """Makes a row of each round; with epsilon only where somebody reads it, since the tightest accountant takes a moment."""

    def __init__(self, run: Run, *, priced: bool) -> None:
        self.run, self.made, self.priced = run, list[Row](), priced
        self._began, self._spent, self._warm = time.monotonic(), 0.0, False

    def add(self, state: Any, found: object) -> Row:
        """The row of a state, with what a watcher returned of it."""
        seconds = time.monotonic() - self._began
        row: Row = {"round": getattr(state, "round", len(self.made) + 1), "seconds": round(seconds, 4)}
        if self._spent <= _SHARE * seconds:
            row |= self._epsilon()
        row |= numbers_of(found)
        self.made.append(row)
        return row

    def ended(self) -> tuple[Row, ...]:
        """All rows; the last one has epsilon, where rows have it."""
        if self.made and "epsilon" not in self.made[-1]:
            self.made[-1] |= self._epsilon()
        return tuple(self.made)

    def _epsilon(self) -> dict[str, float]:
        limit = self.run.ledger.limit
        if not self.priced or limit is None or not hasattr(limit, "spent"):
            return {}
        began = time.monotonic()
        spent = spent_so_far(self.run.ledger, limit)
        self._spent += time.monotonic() - began if self._warm else 0.0  # the first time is mostly imports
        self._warm = True
        return {"epsilon": spent}


@dataclass
class Best:
    """The state of the round in which a metric was best.

    Which round that is follows from metrics that were published; so it costs nothing beyond what measuring them cost.

    Parameters
    ----------
    by : str or None
        Name of the metric; None for the first that is measured.
    better : {"higher", "lower"} or None
        None for what the name says: of losses, errors, deviances, deviations and fitness less is better.
    path : Path or None
        File to keep it in beside a checkpoint.
    """

    by: str | None = None
    better: Literal["higher", "lower"] | None = None
    path: Path | None = None
    study: str = ""
    state: Any = None
    value: float = math.nan
    _saved: bool = field(default=True, repr=False)

    def take(self, row: Row, state: Any) -> None:
        """Keep a state where its round is better than all before; the first of equal ones stays."""
        metrics = {name: value for name, value in row.items() if name not in COSTS}
        self.by = self.by or next(iter(metrics), None)
        if self.by is None or not metrics:
            return
        if self.by not in metrics:
            raise SettingsInvalid(
                f"the best round is to be chosen by {self.by!r}, and round {row['round']} measured {', '.join(metrics)}.",
                remedy="Name one of these: by=...",
                asked=True,
            )
        value, sign = metrics[self.by], 1 if self._rises else -1
        if math.isfinite(value) and (self.state is None or sign * value > sign * self.value):
            self.state, self.value, self._saved = state, value, False

    @property
    def _rises(self) -> bool:
        return rises(self.by or "") if self.better is None else self.better == "higher"

    def save(self) -> None:
        """Write the file where it is behind."""
        if self.path is not None and not self._saved:
            arrays, plain = split(self.state)
            about = {"study": self.study, "state": type(self.state).__name__, "plain": plain, "by": self.by}
            write_arrays(self.path, arrays, about | {"value": float(self.value)})
            self._saved = True

    def load(self, kind: type[Any]) -> None:
        """Read what an interrupted run kept; nothing where it had measured nothing."""
        if self.path is None or not self.path.exists():
            return
        arrays, about = read_arrays(self.path)
        if (about.get("study"), about.get("state")) != (self.study, kind.__name__) or self.by not in (None, about.get("by")):
            raise CheckpointMismatch(
                f"{self.path} holds the best round of another study, or by another metric: {about.get('by')!r}.",
                remedy="Resume with the settings that wrote it, or start afresh in another folder.",
            )
        self.by, self.state, self.value = about["by"], join(kind, arrays, about["plain"]), about["value"]


def best_beside(checkpoint: Path | None) -> Path | None:
    """Where the best round of a run with this checkpoint is kept."""
    return None if checkpoint is None else checkpoint.with_name(f"best-{checkpoint.name}")
