"""Tables and figures of the runs of a comparison, put together: those of one title become one, in the order of the runs.

A table that several runs have alike is shown once, as a line of a figure is.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from hedgerow.report import Curve, Grid, Series

from .standings import Standings


def collected(found: Standings) -> tuple[Grid, ...]:
    """The tables that `comparison.collect` names; a column that a run lacks stays empty there."""
    grids: dict[str, list[Grid]] = {}
    for run in found.runs:
        for grid in run.report.tables if run.report is not None else ():
            if grid.title.startswith(tuple(found.section.collect)) and grid not in grids.get(grid.title, []):
                grids.setdefault(grid.title, []).append(grid)
    return tuple(one_of(grids[title]) for title in sorted(grids, key=_natural))


def collected_curves(found: Standings) -> tuple[Curve, ...]:
    """The figures that `comparison.collect` names, with the lines of all runs; a line that several runs have is drawn once."""
    curves: dict[str, Curve] = {}
    for run in found.runs:
        for curve in run.report.curves if run.report is not None else ():
            if curve.title.startswith(tuple(found.section.collect)):
                lines: tuple[Series, ...] = curves[curve.title].series if curve.title in curves else ()
                lines += tuple(line for line in curve.series if line not in lines)
                curves[curve.title] = replace(curve, series=lines)
    return tuple(curves[title] for title in sorted(curves, key=_natural))


def one_of(grids: list[Grid]) -> Grid:
    """One table with the rows of all."""
    columns = tuple(dict.fromkeys(name for grid in grids for name in grid.columns))
    rows = []
    for grid in grids:
        places = [grid.columns.index(name) if name in grid.columns else None for name in columns]
        rows += [tuple(None if place is None else row[place] for place in places) for row in grid.rows]
    return Grid(grids[0].title, columns, tuple(rows), grids[0].note)


def file_names(grids: Sequence[Grid]) -> list[str]:
    """What each table's file is called: its title up to the colon; all of it where several begin alike; then a number."""
    short = [_slug(grid.title.partition(":")[0]) for grid in grids]
    found: list[str] = []
    for name, grid in zip(short, grids, strict=True):
        name = name if short.count(name) == 1 else _slug(grid.title)
        taken = {*found, "comparison"}
        same = (f"{name}-{number}" for number in count(2))
        found.append(name if name not in taken else next(one for one in same if one not in taken))
    return [f"{name}.csv" for name in found]


def _slug(words: str) -> str:
    return re.sub(r"[^\w.]+", "-", words.lower()).strip("-") or "table"


def csv_of(grid: Grid) -> str:
    """A table for programs that read tables; numbers with all digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(name.strip() for name in grid.columns)
    writer.writerows([["" if cell is None else cell for cell in row] for row in grid.rows])
    return text.getvalue()


def _natural(title: str) -> list[tuple[int, str]]:
    """Table 6.9 stands before table 6.10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", title)]
