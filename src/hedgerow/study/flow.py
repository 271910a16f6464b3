"""The table of records left out: how many records each model of a run has read, and why not the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from hedgerow.core.disclosure import LEAST, rounded
from hedgerow.data import LeftOut
from hedgerow.data.cases import all_left_out, lacking_in
from hedgerow.data.catalogue import CATALOGUE
from hedgerow.report import Flow, FlowStep, Grid

from .build import Built

MOST_PARTIES = 50
"""So many parties have a row of their own at most."""


def records_left_out(built: Built) -> tuple[Grid, ...]:
    """Tables for the report: of each set of columns that a program has read, and by party where only a simulation knows.

    Exact in a simulation, whose user holds the records; elsewhere counts are multiples of `LEAST`.
    """
    found = list(all_left_out(built.federation))
    if not found:
        return ()
    columns = ("model of", "which records", "first missing", "missing in all")
    tables = [Grid("Records left out", columns, tuple(row for one in found for row in _rows(one)), _note(found))]
    if built.simulated and built.table.schema.optional:
        tables += [grid for one in found for grid in _by_party(built, one)]
    return tuple(tables)


def flow_of(built: Built, labels: Mapping[str, str]) -> tuple[Flow, ...]:
    """Where records were lost: as a catalogued set was chosen, and then those that the first model left out."""
    entry = CATALOGUE.get(built.study.data.name or "")
    chosen = entry.selection if entry is not None else ()
    steps = [FlowStep(label, count, ((why, others),) if others else ()) for label, count, why, others in chosen]
    first = next((one for one in all_left_out(built.federation) if one.known), None)
    if first is not None:
        told = _without_few(zip(first.optional, map(first.shown, first.counts[1:]), strict=True))
        few = 0 < sum(count for _, count in told) < LEAST
        lost = tuple(
            (
                f"{' or '.join(labels.get(f'flow.{name}', name) for name in names)} not recorded",
                f"below {LEAST}" if few else count,
            )
            for names, count in told
        )
        complete = first.shown(first.complete)
        if steps:
            steps[-1] = replace(steps[-1], lost=lost)
        else:
            steps.append(FlowStep("Records of the parties", first.shown(first.records), lost))
        steps.append(FlowStep("Every value of the model present", f"about {rounded(complete):,}" if few else complete))
    note = "" if first is None or first.exact else "Counts of the parties are rounded."
    return (Flow("Where records were lost", tuple(steps), note),) if len(steps) > 1 else ()


def _without_few(counts: Iterable[tuple[str, int]]) -> list[tuple[tuple[str, ...], int]]:
    """Columns and how many records lack them; those that fewer than `LEAST` lack are counted with the next more frequent ones.

    A page is for others than those who hold the records, and a count of one is a person.
    """
    found: list[tuple[tuple[str, ...], int]] = sorted(
        (((name,), count) for name, count in counts if count), key=lambda one: one[1]
    )
    while len(found) > 1 and found[0][1] < LEAST:
        (few, n), (more, m), *others = found
        found = sorted([((*few, *more), n + m), *others], key=lambda one: one[1])
    return found[::-1]


def _rows(one: LeftOut) -> Iterator[tuple[str | int | None, ...]]:
    """What is known of one model: all records, complete ones, and those that are left out by column."""
    model = ", ".join(one.columns)
    if not one.known:
        yield model, "left out: not asked", None, None
        return
    yield model, "at the parties", one.shown(one.records), None
    yield "", "complete", one.shown(one.complete), None
    yield "", "left out", one.shown(one.left_out), None
    for i, name in enumerate(one.optional):
        yield "", f"lack {name}", one.shown(one.counts[i + 1]), one.shown(one.each[i]) if one.each else None


def _note(found: list[LeftOut]) -> str:
    said = [
        "A model reads the records that lack none of its columns. A record that lacks several counts once where it is first "
        "missing, and for each of them in all."
    ]
    if any(one.known and not one.exact for one in found):
        said.append(f"Counts are rounded to multiples of {LEAST}, so that similar models tell nothing of single records.")
    if any(one.known and not one.each for one in found):
        said.append("Counts hold the noise of the channel; how many lack each column in all was not asked.")
    if not all(one.known for one in found):
        said.append("How many are left out is asked where exact sums are lawful, or where each has noise of its own.")
    return " ".join(said)


def _by_party(built: Built, one: LeftOut) -> Iterator[Grid]:
    """How many records of each party are complete; from the records, which a simulation holds."""
    lost = lacking_in(built.whole, [name for name in one.optional if name in built.schema])
    if lost is None or not lost.any():
        return
    parties = list(zip(built.partition.names, built.partition.indices, strict=True))
    rows = tuple((name, len(at), int(np.count_nonzero(~lost[at]))) for name, at in parties[:MOST_PARTIES])
    more = f" The first {MOST_PARTIES} of {len(parties)} parties." if len(parties) > MOST_PARTIES else ""
    note = f"A model of {', '.join(one.columns)}; counted by the simulator, which holds all records.{more}"
    yield Grid("Complete records by party", ("party", "records", "complete"), rows, note)
