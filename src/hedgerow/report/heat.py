"""Shaded tables: one row per party and one column per label, or any numbers by rows and columns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Heat:
    """A shaded table, such as how records spread: `counts` holds one row per party and one column per label.

    Cells are shaded by their share of the greatest, or by `shades` from 0 to 1; NaN leaves a cell empty. `marks` are short
    words below the numbers, on a colour of warning; "" leaves one out. `groups` are headings, each with how many rows stand
    below it.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: tuple[tuple[float, ...], ...]
    sentence: str = ""
    shades: tuple[tuple[float, ...], ...] = ()
    note: str = "The stronger the colour, the more records; empty cells hold none."
    marks: tuple[tuple[str, ...], ...] = ()
    groups: tuple[tuple[str, int], ...] = ()
