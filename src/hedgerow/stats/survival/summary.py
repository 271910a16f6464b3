"""The summary of a regression of survival as text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.report.numerals import fixed, show, show_column

if TYPE_CHECKING:
    import pandas

    from hedgerow.data import LeftOut

WIDTH = 79


def survival_summary(
    title: str,
    ending: str,
    formula: str,
    facts: Sequence[tuple[str, str | None]],
    table: Iterable[str],
    said: Mapping[str, str],
    cases: str | None,
) -> str:
    """Return a heading, facts, the coefficients, and paragraphs, at most `WIDTH` wide unless a name or number is wider."""
    lines = [
        title + ending.rjust(WIDTH - len(title)),
        *textwrap.wrap(formula, WIDTH, subsequent_indent="  "),
        *pairs(facts),
        *([cases] if cases else []),
        "",
        *table,
        "",
        *(line for heading, words in said.items() for line in paragraph(heading, words)),
    ]
    return "\n".join(line.rstrip() for line in lines)


def pairs(facts: Sequence[tuple[str, str | None]]) -> list[str]:
    """Names with their values, in as many lines as they need."""
    lines: list[str] = []
    for one in (f"{name} {value}" for name, value in facts if value is not None):
        joined = f"{lines[-1]}     {one}" if lines else one
        lines = [*lines[:-1], joined] if lines and len(joined) <= WIDTH else [*lines, one]
    return lines


def paragraph(heading: str, words: str) -> list[str]:
    """Words beside their heading."""
    return textwrap.wrap(words, WIDTH, initial_indent=heading.ljust(18), subsequent_indent=" " * 18)


def ratio_table(frame: pandas.DataFrame, level: float) -> list[str]:
    """Coefficients with errors, hazard ratios with intervals, z and p; `frame` as `to_frame` of a fit gives it."""
    ratios = np.exp(frame[["coef", "low", "high"]].to_numpy())
    columns = [
        ["", *map(str, frame.index)],
        ["coef", *map(_like_error, frame["coef"], frame["se"])],
        ["se(coef)", *map(_like_error, frame["se"], frame["se"])],
        ["hazard ratio", *(show(value) for value in ratios[:, 0])],
        [f"{level:.0%} CI", *(f"{show(low)} to {show(high)}" for low, high in ratios[:, 1:])],
        ["z", *show_column("z", frame["z"].tolist())],
        ["p", *show_column("p", frame["p"].tolist())],
    ]
    widths = [max(map(len, column)) for column in columns]
    rows = ["  ".join(map(str.rjust, row, widths[1:])) for row in zip(*columns[1:], strict=True)]
    width = min(widths[0], max(WIDTH - len(rows[0]) - 2, 12))  # of names; a longer one has a line of its own
    return [
        line
        for name, row in zip(columns[0], rows, strict=True)
        for line in ([f"{name.ljust(width)}  {row}"] if len(name) <= width else [name, f"{' ' * width}  {row}"])
    ]


def shown_count(cases: LeftOut | None, count: float) -> str:
    """A count of records as people see it: about how many, where records that were left out are told so."""
    return show(round(count)) if cases is None or cases.exact else f"about {show(cases.shown(count))}"


def answered(n_parties: int, n_missing: int) -> str:
    """How many parties there were, and whether all answered."""
    return f"{n_parties} ({'all answered' if not n_missing else f'{n_missing} answers missing'})"


def _like_error(value: float, error: float) -> str:
    """A number with the decimals that give its error three digits."""
    if not math.isfinite(value):
        return show(value)
    return fixed(value, max(0, 2 - math.floor(math.log10(error))) if error > 0 and math.isfinite(error) else 4)
