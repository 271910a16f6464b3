"""Tables for terminals of any width: words stay whole, and rows that do not fit are written one below the other."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

LONGEST = 44
"""Characters of a word that is kept whole; longer ones, such as hashes and paths, may be folded."""
MANY = 10_000


class Fits:
    """A table that is printed with columns no narrower than their longest word; where they do not fit, each row as a block.

    Parameters
    ----------
    table : rich.table.Table
        Of text. A block begins with the row's first cell; the others stand below it beside their headings.
    """

    def __init__(self, table: Table) -> None:
        self.table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table, columns = self.table, self.table.columns
        if not columns or not table.row_count:
            yield table
            return
        wide = options.update_width(MANY)
        full = [_measured(console, wide, column).maximum for column in columns]
        least = [min(_measured(console, wide, column).minimum, LONGEST) for column in columns]
        room = options.max_width - (Measurement.get(console, wide, table).maximum - sum(full))  # less what lies around cells
        if sum(least) > room:
            yield from _blocks(console, table)
            return
        for column, width in zip(columns, _shared(full, least, room), strict=True):
            column.width = None if table.expand else width
            column.overflow = "fold"
        yield table


def _measured(console: Console, options: ConsoleOptions, column: Column) -> Measurement:
    """The longest word and the longest line of a column, its heading among them."""
    found = [Measurement.get(console, options, cell) for cell in (column.header, *column.cells)]
    return Measurement(max(one.minimum for one in found), max(one.maximum for one in found))


def _shared(full: list[int], least: list[int], room: int) -> list[int]:
    """Widths that add up to at most `room`: of the longest words, and of what is left each as much as it wants."""
    widths, left, todo = list(least), room - sum(least), sorted(range(len(full)), key=lambda i: full[i] - least[i])
    for n, i in enumerate(todo):
        more = min(full[i] - least[i], left // (len(todo) - n))
        widths[i], left = widths[i] + more, left - more
    return widths


def _blocks(console: Console, table: Table) -> RenderResult:
    if table.title:
        yield Text.from_markup(table.title, style="bold") if isinstance(table.title, str) else table.title
    first, *others = table.columns
    for number, cell in enumerate(first.cells):
        yield _text(console, cell, "bold")
        lines = Table.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, 2))
        for column in others:
            values = list(column.cells)
            if str(values[number]):
                lines.add_row(_text(console, column.header, "dim"), values[number])
        yield Padding(lines, (0, 0, 0, 2))
    if table.caption:
        yield table.caption


def _text(console: Console, words: object, style: str) -> Text:
    text = console.render_str(words) if isinstance(words, str) else words
    assert isinstance(text, Text)
    found = text.copy()
    found.stylize(style)
    return found
