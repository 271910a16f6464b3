"""What the runs of a comparison came to: read from their folders, and written as a table."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hedgerow.core.events import Unit
from hedgerow.core.ledger import Ledger
from hedgerow.errors import HedgerowError
from hedgerow.privacy.statement import Statement, statement
from hedgerow.report import Report
from hedgerow.report.model import Cell as Value
from hedgerow.store import LedgerFile
from hedgerow.study.agreed import agreed_delta
from hedgerow.study.catalogue import listing
from hedgerow.study.comparison import ComparisonSection
from hedgerow.study.explain import planned_delta
from hedgerow.study.rounds import COSTS, Row, best, first_metric, reached, read_rounds, rises

from .cells import Cell
from .seeds import SeedMean, with_margin

COLUMNS = (
    *("row", "column", "value", "published", "difference", "best", "best_round", "last", "rounds", "seconds"),
    *(
        "rounds_to_target",
        *(f"{cost}_to_target" for cost in COSTS),
        "epsilon",
        "delta",
        "unit",
        "chosen_on",
        "folder",
        "problem",
        "seed",
    ),
)
"""Columns of `comparison.csv`, a line for each run."""

AT_PARTIES = "the parties' records"
"""By which records something was chosen where metrics are sums over the parties, or follow from what was released."""
BY_SIMULATION = "the parties' records, by exact results that only a simulation has"
"""By which records something was chosen where the program computes metrics from all records, beside its answers."""


@dataclass(frozen=True)
class Standing:
    """Where one run stands.

    Attributes
    ----------
    value : float or None
        What the table shows: the best value of the measure, its last, or rounds to the target.
    best : (round, value) or None
    last : float or None
    target : dict or None
        The row of the round in which the target was reached.
    said : Statement or None
        What the run's ledger guarantees.
    problem : str
        Why it failed, where it did.
    margin : float or None
        Half the width of the 95 % interval of `value`, where that is a mean over seeds.
    """

    cell: Cell
    value: float | None = None
    published: float | None = None
    best: tuple[int, float] | None = None
    last: float | None = None
    target: Row | None = None
    history: Sequence[Row] = ()
    report: Report | None = None
    said: Statement | None = None
    problem: str = ""
    margin: float | None = None

    @property
    def shown(self) -> Value:
        """The value, with its margin where it has one."""
        return self.value if self.value is None or self.margin is None else with_margin(self.value, self.margin)

    @property
    def difference(self) -> float | None:
        """Ours less the published."""
        return None if self.value is None or self.published is None else self.value - self.published

    @property
    def seconds(self) -> float | None:
        """Seconds of work."""
        return self.history[-1].get("seconds") if self.history else None


@dataclass(frozen=True)
class Standings:
    """All runs of a comparison, row by row, by one measure."""

    section: ComparisonSection
    measure: str
    runs: tuple[Standing, ...]

    @property
    def more_is_better(self) -> bool:
        return self.section.take != "rounds" and rises(self.measure)

    @property
    def at_end(self) -> bool:
        """Whether the measure is a number of a whole run, which no round has."""
        told = any(run.report is not None and self.measure in dict(run.report.metrics) for run in self.runs)
        return told and not any(self.measure in row for run in self.runs for row in run.history)

    @property
    def finished(self) -> list[Standing]:
        """Runs that have a value to show."""
        return [run for run in self.runs if run.value is not None]

    @property
    def winner(self) -> Standing | None:
        """The run with the best value, the first of equal ones; of several seeds the best mean."""
        sign = 1 if self.more_is_better else -1
        found = [run for run in self.places if run.value is not None]
        return max(found, key=lambda run: sign * (run.value or 0.0), default=None)

    @property
    def seeds(self) -> int:
        """Runs of each place."""
        return len(self.runs) // max(1, len(self.section.rows) * len(self.section.columns))

    @property
    def places(self) -> list[Standing]:
        """One for each row and column."""
        return [self.at(*place) for place in dict.fromkeys((run.cell.row, run.cell.column) for run in self.runs)]

    def at(self, row: str, column: str) -> Standing:
        """One run by its place; where there are several seeds, the first of them with the mean over all, and its margin."""
        found = self.seeds_at(row, column)
        if len(found) == 1:
            return found[0]
        cell, mean = replace(found[0].cell, seed=None), SeedMean.of([run.value for run in found])
        if mean is None:
            return replace(found[0], cell=cell, value=None)
        return replace(found[0], cell=cell, value=mean.value, margin=mean.margin)

    def seeds_at(self, row: str, column: str) -> list[Standing]:
        """All runs of a place."""
        return [run for run in self.runs if (run.cell.row, run.cell.column) == (row, column)]

    def by(self, measure: str) -> Standings:
        """The same runs by another measure: its last value, or that at the end; without published numbers and reference."""
        plain: dict[str, Any] = {"measure": measure, "take": "last", "published": {}, "reference": "", "target": None}
        section = self.section.model_copy(update=plain)
        runs = (
            replace(run, value=None, published=None)
            if run.report is None or run.said is None
            else _standing(section, measure, run.cell, run.report, run.history, run.said)
            for run in self.runs
        )
        return Standings(section, measure, tuple(runs))


def finished_report(folder: Path, digest: str) -> Report | None:
    """The report of a run that is in a folder, of this study and these records, and was not interrupted."""
    try:
        if (folder / "digest").read_text(encoding="utf-8") != digest:
            return None
        report = Report.from_json(json.loads((folder / "result.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, HedgerowError):
        return None
    return None if str(dict(report.facts).get("run", "")).startswith("interrupted") else report


def standings(
    section: ComparisonSection,
    cells: Sequence[Cell],
    folder: Path,
    digests: Mapping[str, str],
    units: Mapping[str, Mapping[Unit, int]],
    problems: Mapping[str, str],
) -> Standings:
    """Read what every run came to; `digests` and `units` (parties and records) are by name of the cell."""
    reports = {cell.name: finished_report(folder / cell.folder, digests[cell.name]) for cell in cells}
    histories = {name: read_rounds(folder / cell.folder / "rounds.jsonl") for name, cell in ((c.name, c) for c in cells)}
    measure = section.measure or _first(reports, histories)
    runs = []
    for cell in cells:
        report, history = reports[cell.name], histories[cell.name]
        if report is None:
            published = section.published.get(cell.row, {}).get(cell.column)
            runs.append(Standing(cell, published=published, problem=problems.get(cell.name, "")))
            continue
        runs.append(_standing(section, measure, cell, report, history, _said(cell, folder / cell.folder, units[cell.name])))
    return Standings(section, measure, tuple(runs))


def chosen_on(found: Standings, run: Standing) -> str:
    """By which records the run, or the round that is shown of it, was chosen; "" where nothing was."""
    evaluation = run.cell.study.evaluation
    if not (found.section.choose or (found.section.take == "best" and not found.at_end)) or run.value is None:
        return ""
    if found.at_end:
        return BY_SIMULATION if listing(run.cell.study.program.name).with_records else AT_PARTIES
    if evaluation.on == "none":
        return ""
    if evaluation.on == "parties":
        return AT_PARTIES
    return "a test table that was held out of the records" if evaluation.holdout else "the server's test table"


def to_csv(found: Standings) -> str:
    """One line for each run, for programs that read tables."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for run in found.runs:
        at_target = run.target or {}
        line = {
            "row": run.cell.row,
            "column": run.cell.column,
            "value": run.value,
            "published": run.published,
            "difference": run.difference,
            "best": run.best and run.best[1],
            "best_round": run.best and run.best[0],
            "last": run.last,
            "rounds": run.history[-1]["round"] if run.history else None,
            "seconds": run.seconds,
            "rounds_to_target": at_target.get("round"),
            **{f"{cost}_to_target": at_target.get(cost) for cost in COSTS},
            "epsilon": run.said and run.said.epsilon,
            "delta": run.said and run.said.delta,
            "unit": run.said and run.said.unit,
            "chosen_on": chosen_on(found, run),
            "folder": run.cell.folder,
            "seed": run.cell.study.seed,
            "problem": run.problem.splitlines()[0] if run.problem else "",
        }
        writer.writerow(line)
    return text.getvalue()


def _standing(
    section: ComparisonSection, measure: str, cell: Cell, report: Report, history: Sequence[Row], said: Statement
) -> Standing:
    at_end = dict(report.metrics).get(measure)  # a metric that only a finished run has
    measured = [row[measure] for row in _of_result(cell, history) if row.get(measure) is not None]
    last = measured[-1] if measured else at_end
    last = float(last) if isinstance(last, int | float) and math.isfinite(last) else None
    top = best(history, measure) or (None if last is None else (len(history), last))
    target = None if section.target is None else reached(history, measure, section.target)
    value = {
        "best": top and top[1],
        "last": last,
        "rounds": None if target is None else float(target["round"]),
    }[section.take]
    published = section.published.get(cell.row, {}).get(cell.column)
    return Standing(cell, value, published, top, last, target, history, report, said)


def _of_result(cell: Cell, history: Sequence[Row]) -> Sequence[Row]:
    """The rows of a run up to that whose model is its result."""
    if cell.study.evaluation.keep == "last":
        return history
    kept = best(history, first_metric(history) or "")
    return history if kept is None else [row for row in history if row["round"] <= kept[0]]


def _said(cell: Cell, folder: Path, units: Mapping[Unit, int]) -> Statement:
    budget = cell.study.budget
    ledger = Ledger(budget.budget() if budget else None)
    ledger.attach(LedgerFile(folder / "ledger.jsonl"))
    given = cell.study.program.model_extra or {}
    return statement(ledger, units, delta=planned_delta(given) or agreed_delta(cell.study.party_budgets))


def _first(reports: Mapping[str, Report | None], histories: Mapping[str, Sequence[Row]]) -> str:
    """The first metric that any run has."""
    for name, report in reports.items():
        if report is not None:
            return first_metric(histories[name]) or next((label for label, _ in report.metrics), "")
    return ""
