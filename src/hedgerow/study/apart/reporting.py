"""From a finished run of parties with different columns to its report: what was found, who saw what, what it cost."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from hedgerow.core.ledger import Entry
from hedgerow.crypto.peer_protocol import Traffic
from hedgerow.privacy.statement import statement
from hedgerow.report import Curve, Grid, Outcome, Report, Series
from hedgerow.report.frames import grid_of
from hedgerow.report.model import Cell
from hedgerow.store import Driven

from ..explain import LEAST_POINTS, provenance, short_name, total
from ..rounds import Row, metrics_of
from .seen import bytes_in_all, letters_of, saw_of

if TYPE_CHECKING:
    from .opened import OpenedStudy
    from .ready import BuiltApart

EXPOSED = "Outside any epsilon: each party learned which of its own people are common to all, and everybody how many."
ASSUMED = (
    "Parties and hub follow the protocols and do not collude: the hub together with a party could open what both know. An id "
    "that a party makes up is common where another party has it."
)


def report_apart(
    opened: OpenedStudy,
    ended: Driven,
    outcome: Outcome,
    history: Sequence[Row],
    *,
    seconds: float,
    warnings: tuple[str, ...],
    command: str,
) -> Report:
    """Put a run into words, tables and figures."""
    built, study, traffic = opened.built, opened.built.study, opened.traffic
    assert study.alignment is not None
    parties, handle = list(built.held), opened.handles[-1] if opened.handles else None
    common = getattr(handle, "n", None)
    said = statement(opened.ledger, {"party": len(parties), "record": common or 0})
    notes = [one.table.source for one in built.held.values()][:1] if built.whole is not None else []
    if ended.reason:
        notes.insert(0, f"The run stopped: {ended.reason}")
    notes += outcome.notes
    if built.whole is not None and study.alignment.on not in built.whole.schema:
        notes.append(f"The ids in {study.alignment.on!r} were made by the simulator: the data have none.")
    notes.append(ASSUMED)
    saw = opened.saw or getattr(ended.state, "saw", {})
    return Report(
        title=study.title or study.name,
        study=study.name,
        description=study.description or built.listing.sentence,
        privacy=said.sentence,
        exposed=EXPOSED if common is not None else said.exposed,
        privacy_ok=said.private,
        privacy_weak=said.weak,
        facts=facts(built, common, ended, history, opened.ledger.entries, traffic, opened.engine, seconds, outcome.metrics),
        metrics=tuple(outcome.metrics.items()),
        curves=(*outcome.curves, *(() if built.listing.takes == "anew" else curves_by_round(history))),
        dots=tuple(outcome.dots),
        bars=tuple(outcome.bars),
        heats=tuple(outcome.heats),
        pictures=tuple(outcome.pictures),
        forests=tuple(outcome.forests),
        flows=tuple(outcome.flows),
        left=released(opened.ledger.entries),
        tables=(*outcome.grids, *(grid_of(title, frame) for title, frame in outcome.tables.items())),
        text=tuple(outcome.text.items()),
        notes=tuple(note for note in notes if note),
        warnings=warnings,
        provenance=provenance(study, command),
        tables_first=outcome.coefficients is not None,
        saw=saw_of(saw, parties),
        traffic=letters_of(traffic, parties),
    )


def facts(
    built: BuiltApart,
    common: int | None,
    ended: Driven,
    history: Sequence[Row],
    entries: Sequence[Entry],
    traffic: Sequence[Traffic],
    engine: str,
    seconds: float,
    names: Collection[str] = (),
) -> tuple[tuple[str, Cell], ...]:
    """Who took part, how many people are common, and what it cost."""
    study = built.study
    assert study.alignment is not None
    rounds = history[-1]["round"] if history else 0
    endings = {"finished": "finished", "budget": "stopped by the budget"}
    after = f" after {rounds} rounds" if rounds != 1 else ""  # steps of a single fit are its own to tell
    found: list[tuple[str, Cell]] = [("parties", len(built.held))]
    if built.simulated:
        found += [(f"people at {party}", len(one)) for party, one in built.held.items()]
    if common is not None and "people in common" not in names:
        found.append(("people in common", common))
    found += [
        ("columns", ", ".join(f"{len(one.table.schema)} at {party}" for party, one in built.held.items())),
        ("program", study.program.name),
        ("run", endings.get(ended.stopped, ended.stopped) + after),
        ("alignment", f"{study.alignment.by} on {study.alignment.on}, at least {study.alignment.least} in common"),
        ("questions asked", len(entries)),
    ]
    if traffic:
        found += [("rounds of letters", sum(one.rounds for one in traffic)), ("bytes of letters", bytes_in_all(traffic))]
        for who, words in (("parties", "processor seconds, all parties"), ("hub", "processor seconds, hub")):
            found.append((words, round(sum(one.seconds.get(who, 0.0) for one in traffic), 3)))
    return (*found, ("engine", engine), ("seconds", round(seconds, 2)))


def curves_by_round(history: Sequence[Row]) -> tuple[Curve, ...]:
    """One figure for each metric that was measured in three rounds or more."""
    names = list(dict.fromkeys(key for row in history for key in metrics_of(row)))
    made = []
    for name in names:
        points = [(float(row["round"]), float(row[name])) for row in history if name in row]
        if len(points) >= LEAST_POINTS:
            x, y = (tuple(column) for column in zip(*points, strict=True))
            made.append(Curve(name[:1].upper() + name[1:], "round", name, (Series("this run", x, y),)))
    return tuple(made)


def released(entries: Sequence[Entry]) -> Grid:
    """What was asked: one row for each kind of question, with what its answer is and what it was charged."""
    kinds: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        bound, noise = entry.protection
        kinds.setdefault((entry.verb, entry.query, entry.aggregation, bound, noise, entry.cost), []).append(entry)
    rows = []
    for (verb, query, aggregation, bound, noise, cost), asked in kinds.items():
        name = short_name(query) + ("" if verb == "sum" else f" ({verb})")
        rows.append((name, len(asked), total([one.numbers for one in asked]), aggregation, bound, noise, cost))
    note = (
        "One row for each kind of question. Numbers are those that all answers of this kind have. Rows are records: they go to "
        "a seat, are never released, and no budget allows them."
    )
    return Grid("What was asked", ("query", "times", "numbers in all", "how", "bound", "noise", "charge"), tuple(rows), note)
