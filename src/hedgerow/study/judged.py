"""Rows that were proved to be within their bound, in a run's report: how many came in each round, and how many were refused."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from hedgerow.report import Grid

from .rounds import CAME, REFUSED, Row

if TYPE_CHECKING:
    from hedgerow.core.run import Run

TITLE = "Rows refused"
FACT = "rows refused"


def judged_facts(history: Sequence[Row]) -> tuple[tuple[str, str], ...]:
    """How many rows were refused: in each round where all are alike, else in all; nothing where none were proved."""
    found = _judged(history)
    if not found:
        return ()
    refused, came = (sum(numbers) for numbers in zip(*(pair for _, pair in found), strict=True))
    if len(found) == 1 or len({pair for _, pair in found}) > 1:
        return ((FACT, f"{refused} of {came}"),)
    return ((FACT, f"{found[0][1][0]} of {found[0][1][1]} in each round"),)


def judged_grids(history: Sequence[Row], run: Run) -> tuple[Grid, ...]:
    """Rows refused, round by round; rounds that are alike stand in one line."""
    rows = []
    for pair, alike in groupby(_judged(history), key=lambda one: one[1]):
        rounds = [number for number, _ in alike]
        where = str(rounds[0]) if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]}"
        rows.append((where, pair[1], pair[0]))
    if not rows:
        return ()
    note = "Rounds that are alike stand in one line. Whose rows were refused, nobody is told."
    if not any(one.proved for one in run.judged):
        note += (
            " A simulation: no proof was carried out; rows beyond the bound left the total in the open, as proofs make them."
        )
    return (Grid(TITLE, ("round", "rows that came", "refused"), tuple(rows), note),)


def _judged(history: Sequence[Row]) -> list[tuple[int, tuple[int, int]]]:
    """(round, (refused, came)) of rounds in which rows were judged."""
    return [(row["round"], (row[REFUSED], row[CAME])) for row in history if CAME in row]
