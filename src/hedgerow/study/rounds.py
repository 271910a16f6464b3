"""The rounds of a run: what was measured in each and what it had cost by then, in memory and on disk; when it is enough."""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.core.judged_rows import in_all
from hedgerow.errors import BudgetExhausted, CannotWrite, DisclosureExceeded, HedgerowWarning
from hedgerow.privacy import Budget
from hedgerow.report.model import to_plain
from hedgerow.store import write_bytes
from hedgerow.store.rows import rises, spent_so_far

from .build import Built

Row = dict[str, Any]
"""One round: its number, its costs so far (`COSTS`), and its metrics, where it was measured."""

COSTS = ("seconds", "bytes_up", "bytes_down")
"""Since the run began: seconds of work, and bytes sent and received by a party on average."""
REFUSED, CAME = "rows refused", "rows that came"
"""Of a round whose rows were proved to be within their bound."""
FIGURES, ASKED = "figures", "evaluated at the end"
"""Beside the metrics of a last round: figures that go with them, and a mark that they were asked for once."""


@dataclass(frozen=True)
class Progress:
    """What a progress bar shows after a round."""

    round: int
    rounds: int | None
    metrics: dict[str, float]
    epsilon: float | None
    budget: float | None


def metrics_of(row: Row) -> dict[str, float]:
    """What was measured in a round."""
    return {key: value for key, value in row.items() if key not in ("round", FIGURES, ASKED, REFUSED, CAME, *COSTS)}


def first_metric(history: Sequence[Row]) -> str | None:
    """The first metric of a run, by which it is stopped early."""
    return next((name for row in history for name in metrics_of(row)), None)


def points(history: Sequence[Row], metric: str) -> list[tuple[int, float]]:
    """A metric by round, where it was measured and is a finite number."""
    found = [(row["round"], row.get(metric)) for row in history]
    return [(n, float(value)) for n, value in found if value is not None and math.isfinite(value)]


def best(history: Sequence[Row], metric: str) -> tuple[int, float] | None:
    """The round in which a metric was best, the first of equal ones, and its value there."""
    found = points(history, metric)
    sign = 1 if rises(metric) else -1
    return max(found, key=lambda point: (sign * point[1], -point[0]), default=None)


def reached(history: Sequence[Row], metric: str, target: float) -> Row | None:
    """The first row in which a metric was at least as good as a target."""
    sign = 1 if rises(metric) else -1
    first = next((n for n, value in points(history, metric) if sign * value >= sign * target), None)
    return next((row for row in history if row["round"] == first), None)


def stalled(history: Sequence[Row], metric: str, improvement: float) -> int:
    """How many measurements have passed since a metric last became better by more than `improvement`."""
    sign, highest, since = (1 if rises(metric) else -1), -math.inf, 0
    for value in (row[metric] for row in history if metric in row):
        if sign * value > highest + improvement:
            highest, since = sign * value, 0
        else:
            since += 1
    return since


def read_rounds(path: Path) -> list[Row]:
    """Read a run's rounds; a line that a crash cut short ends them."""
    rows: list[Row] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:  # cut short by a crash: the round is measured again
            break
    return rows


def _say_refused(metrics: Mapping[str, float]) -> None:
    """Say that some of the metrics were not asked for; those that came are kept."""
    if refusal := getattr(metrics, "refused", None):
        warnings.warn(f"A part of the evaluation was not asked: {refusal.reason}", HedgerowWarning, stacklevel=2)


class Rounds:
    """Measures states as they come and keeps the history of metrics, also on disk."""

    def __init__(self, built: Built, path: Path, kept: int, on_progress: Callable[[Progress], None]) -> None:
        self.built, self.path, self.on_progress = built, path, on_progress
        self._epsilon: float | None = None
        self._spent_at = -math.inf
        self.history: list[Row] = [row for row in read_rounds(path) if row["round"] <= kept]
        self._seconds = float(self.history[-1].get("seconds", 0.0)) if self.history else 0.0
        self._started = time.perf_counter()
        self._counted, self._bytes = 0, {"bytes_up": 0.0, "bytes_down": 0.0}
        self._judged = (sum(row.get(REFUSED, 0) for row in self.history), sum(row.get(CAME, 0) for row in self.history))
        write_bytes(path, "".join(json.dumps(row) + "\n" for row in self.history).encode())

    def watch(self, state: Any) -> dict[str, float]:
        """Measure a state, remember and report it; gives its metrics."""
        metrics = self.built.measure(state)
        _say_refused(metrics)
        seconds = self._seconds + time.perf_counter() - self._started
        row = {"round": state.round, "seconds": round(seconds, 4), **self._traffic(), **self._refused(), **metrics}
        self.history.append(row)
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        except OSError as error:
            raise CannotWrite(f"{self.path}: {error.strerror}.", remedy="Make room, then add --resume.") from error
        limit = self.built.run.ledger.limit
        self.on_progress(
            Progress(state.round, self.built.settings.get("rounds"), metrics, self._spent(), limit and limit.epsilon)
        )
        return metrics

    def finish(self, state: Any) -> None:
        """Measure the last state, where that is done once; a run that may not ask any more keeps its result, and says so.

        A run that is resumed behind its end asks again where a seed repeats the answers, and not where that would be charged.
        """
        done = self.built.run.streams.seed is None and bool(self.history) and ASKED in self.history[-1]
        if self.built.study.evaluation.between is not None or done:
            return
        try:
            metrics = self.built.measure_last(state)
        except (BudgetExhausted, DisclosureExceeded) as refusal:
            warnings.warn(f"The evaluation was not asked: {refusal.reason}", HedgerowWarning, stacklevel=2)
            return
        _say_refused(metrics)
        if not self.history:
            self.history.append({"round": state.round, "seconds": round(self._seconds, 4)})
        if not metrics:
            return
        self.history[-1] |= {**self._traffic(), **metrics, ASKED: True, FIGURES: to_plain(getattr(metrics, "figures", ()))}
        write_bytes(self.path, "".join(json.dumps(row) + "\n" for row in self.history).encode())

    def enough(self) -> str:
        """Why the run should stop early, or nothing."""
        evaluation, metric = self.built.study.evaluation, first_metric(self.history)
        if metric is None or self.history[-1]["round"] == self.built.settings.get("rounds"):
            return ""
        if evaluation.stop and evaluation.target is not None and reached(self.history, metric, evaluation.target):
            return f"{metric} reached {evaluation.target:g}."
        if evaluation.patience is None:
            return ""
        if stalled(self.history, metric, evaluation.improvement) < evaluation.patience:
            return ""
        top = best(self.history, metric)
        where = f"best in round {top[0]} ({top[1]:.4g})" if top else "it was never a number"
        by = f" by more than {evaluation.improvement:g}" if evaluation.improvement else ""
        return f"{metric} has not improved{by} for {evaluation.patience} measurements: {where}."

    def _traffic(self) -> Mapping[str, float | None]:
        """Bytes so far, by party on average; None where the size of a contribution is not known."""
        run = self.built.run
        entries = run.ledger.entries
        for entry in entries[self._counted :]:
            share = entry.parties / run.size
            for key in self._bytes:
                self._bytes[key] += math.nan if getattr(entry, key) is None else getattr(entry, key) * share
        self._counted = len(entries)
        return {key: round(total, 1) if math.isfinite(total) else None for key, total in self._bytes.items()}

    def _refused(self) -> Mapping[str, int]:
        """Rows that were judged by their proofs since the last round, and those of them that were refused."""
        before, self._judged = self._judged, in_all(self.built.run.judged)
        refused, came = (now - then for now, then in zip(self._judged, before, strict=True))
        return {REFUSED: refused, CAME: came} if came > 0 else {}

    def _spent(self) -> float | None:
        """Epsilon so far, computed again only when a second has passed: the tightest accountant takes a moment."""
        ledger = self.built.run.ledger
        if isinstance(ledger.limit, Budget) and time.monotonic() - self._spent_at > 1.0:
            self._epsilon = spent_so_far(ledger, ledger.limit)
            self._spent_at = time.monotonic()
        return self._epsilon
