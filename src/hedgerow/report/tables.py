"""Tables: aligned columns, row headings, and the long ones summed up first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeVar

import numpy as np

from hedgerow.report.flow import Flow
from hedgerow.report.forest import ForestPlot
from hedgerow.report.heat import Heat
from hedgerow.report.markup import Html, join, tag
from hedgerow.report.model import Cell, Curve, Grid
from hedgerow.report.numerals import is_number, is_numeric, show, show_column

Item = TypeVar("Item")

ROWS_SHOWN, PARTIES_DRAWN, LABELS_DRAWN, _SHORT = 30, 40, 100, 12


def table(grid: Grid, *, cards: int = 4) -> Html:
    """Return a table; one of four columns or more (`cards`) becomes cards on a phone, a narrower one scrolls by itself.

    Columns of numbers are aligned to the right and share their decimals. The first column names its row, so whole
    numbers there are written as they are. Columns in which nothing is known are left out, and named beneath.
    """
    grid, unknown = _without_empty_columns(grid)
    cells = list(zip(*grid.rows, strict=True)) or [() for _ in grid.columns]
    shown = [show_column(name, column) for name, column in zip(grid.columns, cells, strict=True)]
    shown[:1] = [[str(cell) if isinstance(cell, int | np.integer) else show(cell) for cell in cells[0]]] if cells else []
    sides = ["number" if all_numeric(column) else None for column in cells]
    sides[:1] = [None] * bool(sides)
    head = [tag("th", name, scope="col", class_=side) for name, side in zip(grid.columns, sides, strict=True)]
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            *(
                tag("td", c, class_=side or ("none" if cell is None else None), data_label=name)
                for name, c, cell, side in zip(grid.columns[1:], row[1:], given[1:], sides[1:], strict=True)
            ),
        )
        for row, given in zip(zip(*shown, strict=True), grid.rows, strict=True)
    ]
    wide = None if len(grid.columns) < cards else "cards pairs" if all(sides[1:]) else "cards"
    made = _scrolling(grid.title, tag("thead", tag("tr", *head)), tag("tbody", *body), class_=wide)
    return (
        join([made, tag("p", f"Left out, as there is nothing in it: {', '.join(unknown)}.", class_="note")])
        if unknown
        else made
    )


def _without_empty_columns(grid: Grid) -> tuple[Grid, list[str]]:
    """A grid without columns of which no cell is known, and their names; a grid that would have no other keeps them."""
    columns = list(zip(*grid.rows, strict=True))
    empty = [i for i, column in enumerate(columns) if i and all(cell is None or cell != cell for cell in column)]
    if not empty or len(empty) == len(grid.columns) - 1:
        return grid, []
    kept = [i for i in range(len(grid.columns)) if i not in empty]
    rows = tuple(tuple(row[i] for i in kept) for row in grid.rows)
    return Grid(grid.title, tuple(grid.columns[i] for i in kept), rows, grid.note), [grid.columns[i] for i in empty]


def party_tables(grid: Grid) -> Html:
    """Return a short grid whole; a long one as quantiles, with its first rows folded away."""
    n = len(grid.rows)
    if n <= _SHORT:
        return table(grid)
    first = Grid(grid.title, grid.columns, grid.rows[:ROWS_SHOWN])
    summary = f"All {n} parties" if n <= ROWS_SHOWN else f"The first {ROWS_SHOWN} of {show(n)} parties"
    quantiles = _quantiles(grid)
    return join([table(quantiles) if quantiles.rows else None, folded(summary, table(first))])


def curve_table(curve: Curve) -> Html:
    """Return the numbers of a curve, thinned evenly, for those who read rather than look."""
    places = sorted({x for series in curve.series if not series.is_level for x in series.x})
    kept = evenly(places, ROWS_SHOWN)
    found = [dict(zip(series.x, series.y, strict=True)) for series in curve.series]
    heads = [curve.x_label]
    lines: list[list[Cell]] = [[show(x)] for x in kept]
    for series, at in zip(curve.series, found, strict=True):
        columns = [(series.name, at)]
        for end, values in (("low", series.low), ("high", series.high)):
            if values:
                columns.append((f"{end} of {series.name}", dict(zip(series.x, values, strict=True))))
        for name, numbers in columns:
            heads.append(name)
            for x, line in zip(kept, lines, strict=True):
                line.append(series.y[0] if series.is_level else numbers.get(x))
    rows = tuple(map(tuple, lines))
    thinned = "" if len(kept) == len(places) else f", {len(kept)} of {show(len(places))}"
    grid = Grid(curve.title, tuple(heads), rows)
    return folded(f"Numbers{thinned}", table(grid), class_="numbers")


def heat_table(heat: Heat) -> Html:
    """Return the counts as a table whose cells are shaded by `shades`, or by the square root of their share of the greatest."""
    rows = evenly(range(len(heat.rows)), PARTIES_DRAWN)
    columns = evenly(range(len(heat.columns)), LABELS_DRAWN)
    greatest = max((heat.counts[i][j] for i in rows for j in columns), default=0) or 1
    shades = heat.shades or [[(max(count, 0) / greatest) ** 0.5 for count in counts] for counts in heat.counts]
    head = [tag("th", heat.columns[j], scope="col") for j in columns]
    marks, body = heat.marks or [[""] * len(heat.columns)] * len(heat.rows), list[Html]()
    begins = dict(zip(accumulate([0, *(n for _, n in heat.groups)]), heat.groups, strict=False))
    for i in rows:
        if i in begins:
            body.append(tag("tr", tag("th", begins[i][0], scope="rowgroup", colspan=len(columns) + 1, class_="group")))
        cells = [_shaded(heat.counts[i][j], shades[i][j], bool(heat.shades), marks[i][j]) for j in columns]
        body.append(tag("tr", tag("th", heat.rows[i], scope="row"), *cells))
    spread = "heat dense" if len(columns) > 20 else "heat marked" if heat.marks else "heat"
    return join(
        [
            tag("p", _left_out(heat), class_="note") if _left_out(heat) else None,
            _scrolling(heat.title, tag("thead", tag("tr", tag("td"), *head)), tag("tbody", *body), class_=spread),
        ]
    )


def flow_list(flow: Flow) -> Html:
    """Return the steps below one another, and between them who goes no further."""
    items = list[Html]()
    for step in flow.steps:
        items.append(tag("li", tag("span", step.label), tag("b", show(step.count))))
        items += [tag("li", tag("span", f"− {reason}"), tag("span", show(count)), class_="lost") for reason, count in step.lost]
    return tag("ol", *items, class_="flow")


def flow_grid(flow: Flow) -> Grid:
    """Return the same as a table, for a terminal."""
    rows = list[tuple[Cell, ...]]()
    for step in flow.steps:
        rows += [(step.label, step.count), *((f"  − {reason}", count) for reason, count in step.lost)]
    return Grid(flow.title, ("", "records"), tuple(rows), flow.note)


def forest_grid(forest: ForestPlot) -> Grid:
    """Return the numbers of a forest plot, for who reads rather than looks and for a terminal."""
    rows = [(row.name, row.estimate, row.low, row.high) for row in forest.drawn]
    if forest.prediction is not None:
        rows.append(("expected elsewhere", math.nan, *forest.prediction))
    return Grid(forest.title, ("", forest.x_label, "low", "high"), tuple(rows), forest.sentence)


def folded(summary: str, *children: str | None, class_: str | None = None) -> Html:
    """Return a part that opens on demand, without a script."""
    return tag("details", tag("summary", summary), *children, class_=class_)


def evenly(items: Sequence[Item], most: int) -> list[Item]:
    """Return at most `most` of the items, evenly spaced, with the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[i] for i in np.linspace(0, len(items) - 1, most).round().astype(int)]


def all_numeric(column: Sequence[Cell]) -> bool:
    """Whether a column holds numbers, perhaps with gaps, and so is aligned to the right."""
    return any(map(is_numeric, column)) and all(cell is None or cell != cell or is_numeric(cell) for cell in column)


def _quantiles(grid: Grid) -> Grid:
    rows = []
    for name, column in zip(grid.columns[1:], list(zip(*grid.rows, strict=True))[1:], strict=True):
        values = [cell for cell in column if is_number(cell)]
        if values and all_numeric(column):
            least, *middle, greatest = np.quantile(values, [0, 0.25, 0.5, 0.75, 1], method="inverted_cdf").tolist()
            rows.append((name, *show_column("", [least, *middle, greatest])))
    return Grid(f"{grid.title}: quantiles", ("over parties", "least", "25%", "median", "75%", "greatest"), tuple(rows))


def _shaded(count: float, shade: float, with_zeros: bool, mark: str = "") -> Html:
    if count != count or not (count or with_zeros):
        return tag("td", "")
    share = round(100 * shade)
    return tag("td", show(count), tag("b", mark) if mark else None, style=f"--shade:{share}%" if share else None)


def _left_out(heat: Heat) -> str:
    told = []
    if len(heat.rows) > PARTIES_DRAWN:
        told.append(f"{PARTIES_DRAWN} of {show(len(heat.rows))} parties are shown, evenly spaced.")
    if len(heat.columns) > LABELS_DRAWN:
        told.append(f"{LABELS_DRAWN} of {show(len(heat.columns))} labels are shown, evenly spaced.")
    return " ".join(told)


def _scrolling(name: str, *children: str | None, class_: str | None = None) -> Html:
    return tag("div", tag("table", *children, class_=class_), class_="scroll", role="region", aria_label=name, tabindex="0")
