"""The model card: what somebody who is handed a model should know of it.

Everything on it is in the run folder: the study, the report and the ledger, from which epsilon is computed again. No value of
a record is on it.

Source : Mitchell et al. 2019, "Model cards for model reporting"; the front matter is that of the Hugging Face Hub.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hedgerow.data import Column
from hedgerow.privacy.statement import adjacency
from hedgerow.report import Grid
from hedgerow.study.build import words_of

if TYPE_CHECKING:
    from .folder import RunFolder

FRONT = """---
library_name: hedgerow
tags: [federated-learning{private}]
# license: to be chosen by whoever publishes the model
---
"""
LIMITS = (
    "Epsilon bounds what the releases of this run tell about one {unit}; it says nothing of what the model tells about groups.",
    "Settings that were chosen by earlier runs on the same records are not in this epsilon, unless those share its ledger.",
    "Metrics are of the records that are named with them. Nobody measured the model on other populations, or by subgroup.",
)
OPEN = (
    "No differential privacy is claimed: exact numbers were released, and the model may tell of single records.",
    *LIMITS[2:],
)
KEPT = ("run", "engine", "bytes up in all", "bytes down in all")
"""Facts of the report that stand under how a model was made."""
LEFT_OUT = ("command", "seed")
"""Provenance that is no business of a reader, or whose noise it would take off."""


def model_card(run: RunFolder) -> str:
    """Return the model card of a run as Markdown.

    Holds epsilon, delta, unit and neighbours; what was released and published; columns; metrics; how it was made; limits. A
    seed is left out, since whoever knows it can take the noise off, and so is the digest of a study that has one.
    """
    report = run.report
    lines = [
        FRONT.format(private=", differential-privacy" if run.said.private else ""),
        f"# {report.title}",
        "",
        *filter(None, (report.description, report.nothing)),
        "",
        *section("Privacy", [*privacy(run), "", run.said.sentence, "", report.exposed]),
        *section("What left each party", grid(report.left)),
        *section("What was published", grid(report.published)),
        *section("Data", data(run)),
        *section("Metrics", table(("metric", "value"), report.metrics)),
        *section("How it was made", table(("", ""), made(run))),
        *section("Warnings and notes", [f"- {line}" for line in (*report.warnings, *report.notes)]),
        *section("Limits", [f"- {line.format(unit=run.said.unit)}" for line in (LIMITS if run.said.private else OPEN)]),
        *section("Licence", ["To be chosen by whoever publishes the model."]),
    ]
    return "\n".join(lines).rstrip() + "\n"


def section(title: str, lines: Sequence[str]) -> Iterator[str]:
    """A heading and what is under it; nothing where nothing is."""
    if any(lines):
        yield from (f"## {title}", "", *lines, "")


def privacy(run: RunFolder) -> list[str]:
    """Epsilon, delta, unit and neighbours as a table."""
    said = run.said
    releases = [entry for entry in run.entries if entry.event.kind != "none"]
    noises = ", ".join(dict.fromkeys(entry.mechanism for entry in releases)) or "none"
    hidden = ", ".join(sorted({entry.aggregation for entry in releases})) or "none"
    rows: list[tuple[str, Any]] = [("epsilon", f"{said.epsilon:.4g}" if said.private else "none is claimed")]
    if said.private:
        rows += [("delta", f"{said.delta:g}"), ("unit", said.unit), ("neighbours", adjacency(releases, said.unit))]
    rows += [("noise", noises), ("aggregation", hidden), ("questions in the ledger", len(run.entries))]
    head = dict(run.report.facts).get("head of the ledger")
    return table(("", ""), [*rows, *([("head of the ledger", head)] if head else [])])


def data(run: RunFolder) -> list[str]:
    """Columns as they were declared, and how many records where the report tells it."""
    facts = dict(run.report.facts)
    told = [f"Parties: {facts.get('parties', 'not told')}. Records: {facts.get('records', 'not told')}."]
    if run.study.data.name:
        told[0] += f" Catalogued as `{run.study.data.name}`."
    if not (run.path / "schema.json").exists():
        return told
    return [*told, "", *table(("column", "kind", "role", "declared"), map(declared, shown(run)))]


def shown(run: RunFolder) -> list[Column]:
    """The columns that a program may have read: those that the study names, where a formula says what is read."""
    words = words_of(run.study)
    return [column for column in run.schema if (column.role != "ignore" if words is None else column.name in words)]


def declared(column: Column) -> tuple[str, ...]:
    """A column in words."""
    ends = (None if end is None or math.isinf(end) else f"{end:g}" for end in (column.low, column.high))
    low, high = ("open" if end is None else end for end in ends)
    words = ", ".join(column.levels) if column.levels else "" if low == high == "open" else f"{low} to {high}"
    shape = f" of shape {column.shape}" if column.shape else ""
    return column.name, f"{column.kind}{shape}", column.role, f"{words} {column.unit}".strip()


def made(run: RunFolder) -> list[tuple[str, Any]]:
    """Program, settings, rounds, versions."""
    facts = [
        (name, value) for name, value in run.report.facts if name in ("run", "engine", "bytes up in all", "bytes down in all")
    ]
    settings = ", ".join(f"{key} = {value}" for key, value in (run.study.program.model_extra or {}).items())
    left_out = {*LEFT_OUT, "study digest"} - run.about.keys()
    provenance = [(name, value) for name, value in run.report.provenance if name not in left_out]
    return [("program", run.study.program.name), ("settings", settings), *facts, *provenance]


def grid(found: Grid | None) -> list[str]:
    """A table of the report."""
    if found is None or not found.rows:
        return []
    return [*table(found.columns, found.rows), *(["", found.note] if found.note else [])]


def table(columns: Sequence[str], rows: Any) -> list[str]:
    """A table of Markdown; none without rows."""
    written = [f"| {' | '.join(map(cell, row))} |" for row in rows]
    return [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}", *written] if written else []


def cell(value: Any) -> str:
    """A value of a table as Markdown."""
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return " ".join(text.replace("|", "\\|").split())
