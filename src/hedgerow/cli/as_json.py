"""What commands tell by `--json`: the objects, whose keys docs/command.md lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow.report import Grid


def result_told(result: Any) -> dict[str, Any]:
    """A finished run: where it lies, what it claims, what was measured."""
    report = result.report
    return {
        "folder": result.folder,
        "report": result.folder / "report.html",
        "study": report.study,
        "title": report.title,
        "privacy": report.privacy,
        "promise": report.promise[1],
        "metrics": dict(report.metrics),
        "facts": dict(report.facts),
        "comparison": None
        if report.comparison is None
        else {"metric": report.comparison.metric, "rows": {name: value for name, value, _ in report.comparison.rows}},
        "tables": [grid_told(grid) for grid in report.tables],
        "left": None if report.left is None else grid_told(report.left),
        "warnings": report.warnings,
        "nothing": report.nothing or None,
        **({"saw": dict(report.saw)} if report.saw else {}),
        **({"letters": grid_told(report.traffic)} if report.traffic else {}),
    }


def grid_told(grid: Grid) -> dict[str, Any]:
    """A table of a report."""
    return {"title": grid.title, "columns": grid.columns, "rows": grid.rows}


def rehearsal_told(rehearsal: Any) -> dict[str, Any]:
    """A rehearsal: each run of equal questions, and what would be claimed."""
    questions = []
    for first, last in rehearsal.runs():
        entry, (bound, mechanism) = rehearsal.entries[first], rehearsal.entries[first].protection
        questions.append(
            {
                "first": first + 1,
                "last": last + 1,
                "verb": entry.verb,
                "query": entry.query,
                "sampling": str(entry.sampling),
                "parties": entry.parties,
                "numbers": entry.numbers,
                "contribution": entry.contribution,
                "bytes_up": entry.bytes_up,
                "bound": bound,
                "mechanism": mechanism,
                "aggregation": entry.aggregation,
                "compression": entry.compression,
                "event": str(entry.event),
                "epsilon_after_first": rehearsal.epsilon_after(first + 1),
                "epsilon_after_last": rehearsal.epsilon_after(last + 1),
            }
        )
    return {
        "study": rehearsal.study.name,
        "title": rehearsal.study.title,
        "parties": rehearsal.parties,
        "ended": rehearsal.ended,
        "questions": questions,
        "statement": rehearsal.statement.text,
        "room": rehearsal.room or None,
        **({"agreed": [grid_told(grid) for grid in rehearsal.agreed]} if rehearsal.agreed else {}),
    }


def study_told(kept: Any) -> dict[str, Any]:
    """A study at a coordinator."""
    stations = [
        {
            "station": one.station,
            "status": one.status,
            "code": one.code or None,
            "parties": len(one.parties or ()),
            "at": one.at,
        }
        for one in kept.boarded
    ]
    return {
        "id": kept.id,
        "state": kept.state,
        "reason": kept.reason or None,
        "ended": kept.ended,
        "round": kept.round,
        "rounds": kept.rounds,
        "submitted": kept.submitted,
        "changed": kept.changed,
        "asked": kept.asked,
        "stations": stations,
        "untold": kept.untold,
    }


def submission_told(submission: Any) -> dict[str, Any]:
    """A study that asked to board at a station."""
    return {
        "id": submission.id,
        "study": submission.study,
        "title": submission.title,
        "status": submission.status,
        "code": submission.code or None,
        "ready": submission.ready,
        "came": submission.came,
        "by": submission.by or None,
        "at": submission.at or None,
        "because": submission.because or None,
        "coordinator": submission.coordinator,
        "program": submission.program,
        "stations": submission.n_stations,
        "columns": submission.columns,
        "summary": submission.summary,
        "questions": [dict(row) for row in submission.rows],
    }


def station_told(config: Any, held: Any) -> dict[str, Any]:
    """What a station's own check tells, of which a coordinator sees the columns and the parties."""
    from hedgerow.network.station.code import code_hash, installed_version

    columns = [
        {
            "name": column.name,
            "kind": column.kind,
            "low": column.low,
            "high": column.high,
            "levels": column.levels,
            "unit": column.unit,
            "allowed": column.name in config.allowed,
        }
        for column in held.schema
    ]
    return {
        "station": config.name,
        "data": config.data.name,
        "parties": len(held),
        "records_here": int(held.sizes.sum()),
        "records_told": config.guard.tell_records,
        "version": installed_version(),
        "code": code_hash(config.guard.modules),
        "columns": columns,
    }


def spent_told(one: Any) -> Mapping[str, Any]:
    """A budget of a station."""
    budget = one.budget
    limit = {"epsilon": budget.epsilon, "delta": budget.delta, "unit": budget.unit}
    return {"of": one.whose, "spent": one.epsilon, "left": one.left, "budget": limit, "parties": one.n_parties}
