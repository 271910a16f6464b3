"""The table of records left out: how many records each model of a run has read, and why not the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hedgerow.core.disclosure import LEAST
from hedgerow.data import LeftOut
from hedgerow.data.cases import all_left_out, lacking_in
from hedgerow.report import Grid

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
