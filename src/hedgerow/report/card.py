"""A card: what one value has to say for itself, in a cell of a notebook or in a few lines of text.

A card is made of the parts of the page: facts, tables, figures, preformatted text. It stands in a notebook beside the work of
others; so its style reaches nothing else, and it loads nothing.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from .forest import ForestPlot
from .intervals import Intervals, interval_chart, note_of
from .markup import Html, tag
from .model import Curve, Grid, Pairs, Report
from .numerals import show
from .page import body_of, curve_figure, forest_figure, pairs_list, text_block
from .pictures import CELL_STYLE, Pictures, pictures_rows
from .scoped import CELL, cell_style
from .tables import folded, table

_LINE = 80
_PAIRS_IN_TEXT = 8
ROWS_UNFOLDED, ROWS_FOLDED = 8, 100


@dataclass(frozen=True, kw_only=True)
class Card:
    """What one value has to say for itself.

    Parameters
    ----------
    kind : str
        What it is: "logistic regression", "ledger".
    title : str
        Its own name, such as a formula.
    facts, metrics : pairs
        Metrics are the numbers that a reader looks for first.
    privacy : (str, {"private", "weak", "open"}) or None
        What is promised, and which kind of promise that is.
    tables : tuple of Grid
        Long ones are folded.
    figures : tuple of Curve, Intervals and ForestPlot
    pictures : tuple of Pictures
    text : tuple of (title, text)
        Folded away.
    said : tuple of str
        Lines of its `repr` below those of facts and metrics.
    """

    kind: str
    title: str = ""
    facts: Pairs = ()
    metrics: Pairs = ()
    privacy: tuple[str, Literal["private", "weak", "open"]] | None = None
    tables: tuple[Grid, ...] = ()
    figures: tuple[Curve | Intervals | ForestPlot, ...] = ()
    pictures: tuple[Pictures, ...] = ()
    text: tuple[tuple[str, str], ...] = ()
    said: tuple[str, ...] = ()


def card_html(card: Card) -> str:
    """Return the card as HTML with a style that reaches nothing outside of it."""
    privacy = None
    if card.privacy is not None:
        words, kind = card.privacy
        privacy = tag("div", tag("p", words), class_=f"privacy {kind}")
    parts = [*map(_table, card.tables), *filter(None, map(_figure, card.figures))]
    return _cell(
        tag("style", Html(CELL_STYLE)) if card.pictures else None,
        tag("p", tag("span", "Hedgerow", class_="brand"), f" {card.kind}", class_="kicker"),
        tag("h3", card.title) if card.title else None,
        pairs_list(card.metrics, "metrics") if card.metrics else None,
        pairs_list(card.facts, "facts") if card.facts else None,
        privacy,
        tag("div", *parts, class_="parts") if parts else None,
        *map(pictures_rows, card.pictures),
        *(folded(title, text_block(block)) for title, block in card.text),
    )


def card_lines(name: str, card: Card) -> str:
    """Return a few lines of text for a `repr`; `name` is that of the class."""
    lines = [name, *([card.kind] if card.kind.lower() not in name.lower() else ()), *filter(None, [card.title])]
    lines = [f"{lines[0]}: {', '.join(lines[1:])}" if lines[1:] else name]
    lines += [_in_line(pairs) for pairs in (card.facts, card.metrics) if pairs]
    return "\n".join(line for said in (*lines, *card.said) for line in _wrapped(said, first=said is lines[0]))


def report_html(report: Report) -> str:
    """Return a report as a cell: its page without the frame around it."""
    heading = tag("p", tag("span", "Hedgerow", class_="brand"), f" {report.study}", class_="kicker")
    style = tag("style", Html(CELL_STYLE)) if report.pictures else None
    return _cell(style, heading, tag("h3", report.title), tag("p", report.description, class_="lead"), body_of(report))


def _cell(*children: Html | None) -> str:
    return tag("div", tag("style", Html(cell_style())), *children, class_=CELL[1:])


def _table(grid: Grid) -> Html:
    """A short table whole; of a long one the first rows, and most of the others folded away."""
    n, short = len(grid.rows), len(grid.rows) <= ROWS_UNFOLDED + 2
    first = Grid(grid.title, grid.columns, grid.rows if short else grid.rows[:ROWS_UNFOLDED])
    most = Grid(grid.title, grid.columns, grid.rows[:ROWS_FOLDED])
    all_of = f"All {n:,} rows" if n <= ROWS_FOLDED else f"The first {ROWS_FOLDED} of {n:,} rows"
    note = tag("p", grid.note, class_="note") if grid.note else None
    return tag("div", tag("h4", grid.title), table(first), None if short else folded(all_of, table(most)), note)


def _figure(drawn: Curve | Intervals | ForestPlot) -> Html | None:
    if isinstance(drawn, ForestPlot):
        return forest_figure(drawn)
    if isinstance(drawn, Curve):
        return curve_figure(drawn)
    chart, note = interval_chart(drawn), note_of(drawn)
    if chart is None:
        return None
    return tag("figure", tag("figcaption", tag("h4", drawn.title)), chart, tag("p", note, class_="note") if note else None)


def _in_line(pairs: Pairs) -> str:
    said = [f"{name} {show(value)}" for name, value in pairs[:_PAIRS_IN_TEXT]]
    return ", ".join(said)


def _wrapped(line: str, *, first: bool) -> list[str]:
    """At most two lines, indented below the first."""
    margin = "" if first else "  "
    return textwrap.wrap(line, _LINE, initial_indent=margin, subsequent_indent="    ", max_lines=2, placeholder=" …")


def listed(items: Iterator[str] | tuple[str, ...] | list[str], most: int) -> str:
    """Return the first items, and how many more there are."""
    every = list(items)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more
