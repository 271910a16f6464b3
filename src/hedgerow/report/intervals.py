"""Estimates with intervals, one row each: a name and its numbers above, a line and a dot beneath."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.errors import StudyInvalid

from .figures import nice_ticks, tick_labels
from .markup import Html, tag
from .numerals import fixed, show

MOST_ROWS = 60
_WIDTH, _ROW, _TOP, _BOTTOM, _MARGIN = 440.0, 38.0, 6.0, 40.0, 8.0
_APART = 40.0
"""Where the largest value is so many times the width of the narrowest interval, a common axis would show nothing of that."""
_LONGEST_NAME = 34


@dataclass(frozen=True)
class Intervals:
    """Estimates with intervals.

    Parameters
    ----------
    title, x_label : str
    names : sequence of str
    values, low, high : sequences of float
        Equally long. NaN ends leave the interval out.
    level : float
        Of the intervals, such as 0.95.
    line : float or None
        Where no effect is: 0 of coefficients.
    note : str
    """

    title: str
    x_label: str
    names: Sequence[str]
    values: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    level: float = 0.95
    line: float | None = 0.0
    note: str = ""

    def __post_init__(self) -> None:
        sizes = {len(self.names), len(self.values), len(self.low), len(self.high)}
        if len(sizes) > 1:
            raise StudyInvalid(
                f"the intervals have {sorted(sizes)} names and ends.", remedy="Give one value and two ends for every name."
            )


def interval_chart(given: Intervals) -> Html | None:
    """Return the drawing, or `None` when no value is finite.

    Where the columns are so different that a common axis would show a line of no length, estimates are drawn in multiples of
    their standard errors, which have a common length; the numbers beside the names are always the estimates themselves.
    """
    rows = [row for row in zip(given.names, given.values, given.low, given.high, strict=True) if math.isfinite(row[1])][
        :MOST_ROWS
    ]
    if not rows:
        return None
    units = _units(rows, given.level) if given.line == 0.0 else None
    scales = units or [1.0] * len(rows)
    drawn = [tuple(end / by for end in ends) for (_, *ends), by in zip(rows, scales, strict=True)]
    places = [place for row in drawn for place in row if math.isfinite(place)] + ([] if given.line is None else [given.line])
    low, high = min(places), max(places)
    apart = high - low if high - low > 1e-9 * max(abs(low), abs(high), 1e-300) else max(abs(low), 1.0)
    ticks = nice_ticks(low if high > low else low - apart / 2, high if high > low else high + apart / 2, outward=True)
    base = _TOP + _ROW * len(rows)

    def across(value: float) -> float:
        return _MARGIN + (value - ticks[0]) / (ticks[-1] - ticks[0]) * (_WIDTH - 2 * _MARGIN)

    tops = [_TOP + _ROW * index for index in range(len(rows))]

    def upright(value: float, class_: str) -> Html:
        """A rule behind the lines of all rows, which leaves their words free."""
        path = "".join(f"M{across(value):.1f} {top + 21:g}V{top + 33:g}" for top in tops)
        return tag("path", d=path, class_=class_, style="stroke-dasharray: none")

    parts = [upright(tick, "rule") for tick in ticks if tick != given.line]
    if given.line is not None:
        parts.append(upright(given.line, "limit"))
    for top, (name, *ends), (at, first, last) in zip(tops, rows, drawn, strict=True):
        parts.append(tag("text", _short(name), x=0, y=top + 15, class_="axis-name"))
        parts.append(tag("text", _in_numbers(*ends), x=_WIDTH, y=top + 15, text_anchor="end"))
        y = top + 27
        if math.isfinite(first) and math.isfinite(last):
            parts.append(tag("line", x1=across(first), x2=across(last), y1=y, y2=y, class_="main ink0"))
        parts.append(tag("circle", cx=across(at), cy=y, r=4.5, class_="dot ink0"))
    for place, (value, label) in enumerate(zip(ticks, tick_labels(ticks), strict=True)):
        anchor = "start" if place == 0 else "end" if place == len(ticks) - 1 else "middle"
        at = 0.0 if place == 0 else _WIDTH if place == len(ticks) - 1 else across(value)
        parts.append(tag("text", label, x=at, y=base + 18, text_anchor=anchor))
    label = f"{given.x_label} in standard errors" if units else given.x_label
    parts.append(tag("text", label, x=_WIDTH, y=base + 36, text_anchor="end", class_="axis-name"))
    words = "; ".join(f"{name}: {_in_numbers(*ends)}" for name, *ends in rows)
    return tag("svg", *parts, viewBox=f"0 0 {_WIDTH:g} {base + _BOTTOM:g}", role="img", aria_label=f"{given.title}. {words}.")


def note_of(given: Intervals) -> str:
    """What is drawn: the level of the intervals, and how many rows are left out."""
    left_out = max(0, len(given.values) - MOST_ROWS)
    said = [f"Lines are {given.level:.0%} intervals." if any(map(math.isfinite, given.low)) else "", given.note]
    said.append(f"{left_out} more are in to_frame()." if left_out else "")
    return " ".join(filter(None, said))


def _units(rows: Sequence[tuple[str, float, float, float]], level: float) -> list[float] | None:
    """Standard errors, where the rows are too different for one axis."""
    widths = [high - low for _, _, low, high in rows]
    if not all(math.isfinite(width) and width > 0 for width in widths) or len(rows) < 2:
        return None
    largest = max(abs(end) for _, _, *ends in rows for end in ends)
    if largest < _APART * min(widths):
        return None
    from scipy.special import ndtri

    return [width / (2 * float(ndtri(0.5 + level / 2))) for width in widths]


def _in_numbers(value: float, low: float, high: float) -> str:
    if not (math.isfinite(low) and math.isfinite(high)):
        return show(value)
    width = high - low
    decimals = max(0, 1 - math.floor(math.log10(width))) if width > 0 else 4
    if decimals > 6:
        return f"{show(value)} ({show(low)} to {show(high)})"
    return f"{fixed(value, decimals)} ({fixed(low, decimals)} to {fixed(high, decimals)})"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
