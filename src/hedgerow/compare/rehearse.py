"""Rehearse a comparison: what each of its cells would ask, without asking anybody."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hedgerow.study.changes import Change
from hedgerow.study.rehearse import Rehearsal, rehearse
from hedgerow.study.study import Study

from .cells import cells
from .run import check_cells

FEW_ROUNDS = 2
"""Rounds of each cell of a comparison that are rehearsed."""


def rehearse_cells(
    study: Study, *, quick: bool = False, changes: Iterable[Change] = (), data_dir: str | Path | None = None
) -> list[tuple[list[str], Rehearsal]]:
    """Check every cell of a comparison, and rehearse its first rounds; cells that would ask the same stand together.

    Returns
    -------
    list of (names, rehearsal)
        Names of the cells that ask the same, and the rehearsal of the first of them.
    """
    found = cells(study, quick=quick, changes=changes)
    lacking = {one.cell.name for one in check_cells(study, found, data_dir) if one.absent}
    alike: dict[object, tuple[list[str], Rehearsal]] = {}
    for cell in (cell for cell in found if cell.name not in lacking):
        made = rehearse(cell.study, data_dir=data_dir, rounds=FEW_ROUNDS)
        kind = tuple((e.verb, e.query, e.numbers, e.protection, str(e.event), str(e.sampling)) for e in made.entries)
        alike.setdefault((kind, made.parties), ([], made))[0].append(cell.name)
    return list(alike.values())
