"""Forest plots drawn, twice: with names beside the bars, and with names above them for a phone; a style sheet shows one.

An interval that leaves the axis ends in an arrow. An estimate beyond the axis has no mark, since there is no place for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .figures import nice_ticks, tick_labels
from .forest import ForestPlot, ForestRow
from .markup import Html, join, tag
from .numerals import fixed, show

_WIDE, _NARROW, _NAMES, _VALUES = 720.0, 352.0, 216.0, 158.0
_LINE, _TWO_LINES, _TOP, _BOTTOM = 30.0, 50.0, 8.0, 44.0
_REACH, _NEAR = 2.5, 4.0
"""Half-widths of a usual interval that the axis reaches from its middle, and within which it shows where no effect is."""
_FINEST, _LARGEST_BOX, _SMALLEST_BOX = 6, 13.0, 6.0
_FACTORS = (
    (1.0,),
    (1.0, 3.0),
    (1.0, 2.0, 5.0),
    (1.0, 1.5, 2.0, 3.0, 5.0, 7.0),
    (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0),
)
"""Ticks of an axis of factors within one power of ten, from coarse to fine."""


def forest_charts(given: ForestPlot) -> Html | None:
    """Return the drawings for a wide and for a narrow screen, or `None` when no estimate is finite."""
    drawn = [forest_chart(given, narrow=narrow) for narrow in (False, True)]
    return None if drawn[0] is None else join(drawn)


def forest_chart(given: ForestPlot, *, narrow: bool) -> Html | None:
    """Return one drawing, or `None` when no estimate is finite."""
    if not any(math.isfinite(row.estimate) for row in given.drawn):
        return None
    width, line = (_NARROW, _TWO_LINES) if narrow else (_WIDE, _LINE)
    start, end = (12.0, width - 12.0) if narrow else (_NAMES, width - _VALUES)
    ends = _axis(given)
    forward: Callable[[float], float] = math.log if given.ratio else float
    low, high = map(forward, ends)

    def across(value: float) -> float:
        return start + (forward(value) - low) / (high - low) * (end - start)

    lines = len(given.drawn) + (given.prediction is not None)
    base = _TOP + line * lines
    ticks, labels = _ticks(*ends, ratio=given.ratio, most=4 if narrow else 7)
    marks = [(tick, "rule") for tick in ticks if tick != given.no_effect]
    if ends[0] <= given.no_effect <= ends[1]:
        marks.append((given.no_effect, "limit"))
    uprights = ((_TOP + line * i + 26, _TOP + line * i + 44) for i in range(lines)) if narrow else [(_TOP, base)]
    spans = list(uprights)
    parts = [
        tag("path", d="".join(f"M{across(value):.1f} {top:g}V{last:g}" for top, last in spans), class_=class_)
        for value, class_ in marks
    ]
    decimals = _decimals(given)
    largest = max((row.weight for row in given.rows if math.isfinite(row.weight)), default=1.0) or 1.0
    for i, row in enumerate(given.drawn):
        top, of_all = _TOP + line * i, row is given.total
        y = top + (35 if narrow else 15)
        parts += _words(row.name, in_numbers(row, decimals), top, width, narrow=narrow, bold=of_all)
        if of_all:
            parts += _diamond(row, across, y, ends)
        else:
            share = math.sqrt(row.weight / largest) if math.isfinite(row.weight) else 0.0
            parts += _row(row, across, y, ends, max(_SMALLEST_BOX, _LARGEST_BOX * share))
    if given.prediction is not None:
        top = _TOP + line * len(given.drawn)
        first, last = given.prediction
        said = f"{fixed(first, decimals)} to {fixed(last, decimals)}"
        parts += _words("Expected elsewhere", said, top, width, narrow=narrow)
        parts += _interval(first, last, across, top + (35 if narrow else 15), ends, "expected ink1")
    for value, label in zip(ticks, labels, strict=True):
        parts.append(tag("text", label, x=across(value), y=base + 16, text_anchor="middle"))
    middle = min(max((start + end) / 2, 3.4 * len(given.x_label)), width - 3.4 * len(given.x_label))
    scale = " (log scale)" if given.ratio else ""
    parts.append(tag("text", given.x_label + scale, x=middle, y=base + 36, text_anchor="middle", class_="axis-name"))
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {width:g} {base + _BOTTOM:g}",
        role="img",
        aria_label=in_words(given),
        class_="narrow" if narrow else "wide",
    )


def reading(given: ForestPlot) -> str:
    """How the drawing is read, and the plot's own note."""
    said = [f"Squares: each site's own estimate, larger where it counts for more; lines: {given.level:.0%} intervals."]
    if not given.rows:
        said = []
    if given.total is not None:
        said.append("Diamond: all together.")
    if given.prediction is not None:
        said.append(f"Below: where another site's value is expected ({given.level:.0%} prediction interval).")
    if _leaves(given):
        said.append("An arrow: the interval goes on beyond the axis.")
    return " ".join(filter(None, [*said, given.note]))


def in_numbers(row: ForestRow, decimals: int) -> str:
    """An estimate with its interval, as it stands beside its name."""
    if not math.isfinite(row.estimate):
        return show(None)
    if not (math.isfinite(row.low) and math.isfinite(row.high)):
        return fixed(row.estimate, decimals)
    return f"{fixed(row.estimate, decimals)} ({fixed(row.low, decimals)} to {fixed(row.high, decimals)})"


def in_words(given: ForestPlot) -> str:
    """The plot for who cannot see it."""
    decimals = _decimals(given)
    said = [f"{row.name}: {in_numbers(row, decimals)}" for row in given.drawn]
    if given.prediction is not None:
        said.append(f"expected elsewhere: {fixed(given.prediction[0], decimals)} to {fixed(given.prediction[1], decimals)}")
    return f"{given.title} {given.x_label}. {'; '.join(said)}."


def _axis(given: ForestPlot) -> tuple[float, float]:
    """Ends of the axis: usual intervals, the total and where no effect is; not those that would squeeze all others."""
    forward: Callable[[float], float] = math.log if given.ratio else float
    rows = [[forward(value) for value in (row.estimate, row.low, row.high)] for row in given.drawn]
    known = [row for row in rows if math.isfinite(row[0])]
    whole = [row for row in known if math.isfinite(row[1]) and math.isfinite(row[2])]
    total = given.total if given.total is not None and math.isfinite(given.total.estimate) else None
    middle = forward(total.estimate) if total else _median([row[0] for row in known])
    half = _median([(row[2] - row[1]) / 2 for row in whole]) if whole else 0.0
    half = half or max(abs(row[0] - middle) for row in known) or max(abs(middle), 1.0)
    places = [end for row in whole for end in row[1:]] or [row[0] for row in known]
    low = max(min(places), middle - _REACH * half)
    high = min(max(places), middle + _REACH * half)
    nothing = forward(given.no_effect)
    if abs(nothing - middle) <= _NEAR * half:
        low, high = min(low, nothing), max(high, nothing)
    if total and math.isfinite(total.low) and math.isfinite(total.high):
        low, high = min(low, forward(total.low)), max(high, forward(total.high))
    apart = (high - low) * 0.03 or half
    ends = low - apart, high + apart
    return (math.exp(ends[0]), math.exp(ends[1])) if given.ratio else ends


def _ticks(low: float, high: float, *, ratio: bool, most: int) -> tuple[list[float], list[str]]:
    if not ratio:
        ticks = nice_ticks(low, high)
        ticks = ticks[:: math.ceil(len(ticks) / most)]
        return ticks, tick_labels(ticks)
    found: list[float] = []
    for factors in _FACTORS:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        every = [factor * 10.0**power for power in powers for factor in factors]
        inside = [tick for tick in every if low <= tick <= high]
        if len(inside) > most and found:
            break
        found = inside[:: math.ceil(len(inside) / most) or 1] if inside else found
    if len(found) < 3:
        linear = nice_ticks(low, high)
        found = linear[:: math.ceil(len(linear) / most)]
    return found, [show(tick) for tick in found]


def _decimals(given: ForestPlot) -> int:
    """Two digits of the narrowest interval, for all rows alike."""
    widths = [row.high - row.low for row in given.drawn if math.isfinite(row.high - row.low) and row.high > row.low]
    return 2 if not widths else min(_FINEST, max(0, 1 - math.floor(math.log10(min(widths)))))


def _words(name: str, numbers: str, top: float, width: float, *, narrow: bool, bold: bool = False) -> list[Html]:
    most = int((width - 7.0 * len(numbers) - 14) / 7.2) if narrow else 30
    short = name if len(name) <= most else f"{name[: most - 1]}…"
    y = top + (18 if narrow else 19)
    named = tag("text", short, x=0, y=y, class_="strong" if bold else "named")
    return [named, tag("text", numbers, x=width, y=y, text_anchor="end", class_="strong" if bold else "named")]


def _row(row: ForestRow, across: Callable[[float], float], y: float, ends: tuple[float, float], size: float) -> list[Html]:
    parts = _interval(row.low, row.high, across, y, ends, "main ink0")
    if ends[0] <= row.estimate <= ends[1]:
        box = {"x": f"{across(row.estimate) - size / 2:.1f}", "y": f"{y - size / 2:.1f}"}
        parts.append(tag("rect", **box, width=f"{size:.1f}", height=f"{size:.1f}", class_="dot flat ink0"))
    return parts


def _diamond(row: ForestRow, across: Callable[[float], float], y: float, ends: tuple[float, float]) -> list[Html]:
    places = [min(max(value, ends[0]), ends[1]) for value in (row.low, row.estimate, row.high) if math.isfinite(value)]
    if len(places) < 3:
        return _row(row, across, y, ends, _LARGEST_BOX)
    left, middle, right = map(across, places)
    return [
        tag("path", d=f"M{left:.1f} {y:g}L{middle:.1f} {y - 7:g}L{right:.1f} {y:g}L{middle:.1f} {y + 7:g}Z", class_="dot ink0")
    ]


def _interval(
    low: float, high: float, across: Callable[[float], float], y: float, ends: tuple[float, float], ink: str
) -> list[Html]:
    """A line between its ends where these are on the axis, and arrows where they are not."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return []
    first, last = across(min(max(low, ends[0]), ends[1])), across(max(min(high, ends[1]), ends[0]))
    parts = [tag("line", x1=first, x2=last, y1=y, y2=y, class_=ink)] if first < last else []
    colour = ink.rsplit(" ", 1)[-1]
    if low < ends[0]:
        parts.append(tag("path", d=f"M{first - 3:.1f} {y:g}l8 -4.5v9Z", class_=f"dot flat {colour}"))
    if high > ends[1]:
        parts.append(tag("path", d=f"M{last + 3:.1f} {y:g}l-8 -4.5v9Z", class_=f"dot flat {colour}"))
    return parts


def _leaves(given: ForestPlot) -> bool:
    low, high = _axis(given)
    return any(row.low < low or row.high > high for row in given.rows)


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
