"""Bars side by side: shares of the same bins or levels in several tables, which a reader compares bin by bin."""

from __future__ import annotations

import math

from .figures import nice_ticks, tick_labels
from .markup import Html, join, tag
from .model import BarChart
from .numerals import show

_WIDTH, _HEIGHT, _TOP, _RIGHT, _BOTTOM = 440.0, 220.0, 26.0, 12.0, 40.0
_ROW, _NAMES, _LONGEST = 22.0, 152.0, 17
"""Of bars that lie: height of a row, room for its name, and letters of a name; a longer one is cut."""


def bars_chart(given: BarChart) -> Html | None:
    """Return the drawing, or `None` when no value is finite. Those of bins stand; those of levels lie beside names."""
    there = [value for _, values in given.bars for value in values if math.isfinite(value)]
    if not there:
        return None
    low, high = min(0.0, *there), max(0.0, *there)
    ticks = nice_ticks(low, high if high > low else low + 1.0, outward=True)
    return _standing(given, ticks) if given.ends else _lying(given, ticks)


def bars_legend(given: BarChart) -> Html:
    """What each colour means, as items of a list."""
    keys = [
        tag(
            "svg",
            tag("rect", x=5, y=1, width=12, height=10, class_=f"dot ink{index % 5}"),
            viewBox="0 0 22 12",
            aria_hidden="true",
        )
        for index in range(len(given.bars))
    ]
    return join(tag("li", key, tag("span", name)) for key, (name, _) in zip(keys, given.bars, strict=True))


def _standing(given: BarChart, ticks: list[float]) -> Html:
    """Bins from left to right, all equally wide, with some of their ends below."""
    labels = tick_labels(ticks)
    left, base = 12 + 8.0 * max(map(len, labels)), _HEIGHT - _BOTTOM
    wide = (_WIDTH - _RIGHT - left) / (len(given.ends) - 1)

    def upward(value: float) -> float:
        return base - (value - ticks[0]) / (ticks[-1] - ticks[0]) * (base - _TOP)

    parts = [tag("text", given.y_label, x=0, y=12, class_="axis-name")]
    for tick, label in zip(ticks, labels, strict=True):
        parts.append(tag("line", x1=left, x2=_WIDTH - _RIGHT, y1=upward(tick), y2=upward(tick), class_="rule"))
        parts.append(tag("text", label, x=left - 7, y=upward(tick) + 4, text_anchor="end"))
    each = 0.84 * wide / len(given.bars)
    for index, (_, values) in enumerate(given.bars):
        for place, value in enumerate(values):
            if math.isfinite(value) and value:
                x, y = left + place * wide + 0.08 * wide + index * each, upward(max(value, 0.0))
                parts.append(_bar(index, x, y, each, abs(upward(value) - upward(0.0))))
    ends = [show(end) for end in given.ends]
    every = math.ceil(len(ends) * (9.5 * max(map(len, ends)) + 14) / (_WIDTH - left)) or 1
    parts += [
        tag("text", end, x=min(left + place * wide, _WIDTH - 4 * len(end)), y=base + 17, text_anchor="middle")
        for place, end in enumerate(ends)
        if place % every == 0
    ]
    parts.append(tag("text", given.x_label, x=_WIDTH - _RIGHT, y=_HEIGHT - 5, text_anchor="end", class_="axis-name"))
    return tag("svg", *parts, viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", role="img", aria_label=_in_words(given))


def _lying(given: BarChart, ticks: list[float]) -> Html:
    """Levels from top to bottom, with their names on the left."""
    base = _TOP / 2 + _ROW * len(given.names)
    room = min(_NAMES, 14 + 8.2 * max(min(len(name), _LONGEST) for name in given.names))

    def across(value: float) -> float:
        return room + (value - ticks[0]) / (ticks[-1] - ticks[0]) * (_WIDTH - _RIGHT - room)

    parts = []
    for tick, label in zip(ticks, tick_labels(ticks), strict=True):
        parts.append(tag("line", x1=across(tick), x2=across(tick), y1=_TOP / 2, y2=base, class_="rule"))
        at = min(across(tick), _WIDTH - 4 * len(label))
        parts.append(tag("text", label, x=at, y=base + 17, text_anchor="middle"))
    each = 0.78 * _ROW / len(given.bars)
    for row, name in enumerate(given.names):
        top = _TOP / 2 + row * _ROW
        said = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
        parts.append(tag("text", said, x=room - 7, y=top + _ROW / 2 + 4, text_anchor="end"))
        for index, (_, values) in enumerate(given.bars):
            if math.isfinite(values[row]) and values[row]:
                x, y = across(min(values[row], 0.0)), top + 0.11 * _ROW + index * each
                parts.append(_bar(index, x, y, abs(across(values[row]) - across(0.0)), each))
    parts.append(tag("text", given.y_label, x=_WIDTH - _RIGHT, y=base + 34, text_anchor="end", class_="axis-name"))
    return tag("svg", *parts, viewBox=f"0 0 {_WIDTH:g} {base + _BOTTOM:g}", role="img", aria_label=_in_words(given))


def _bar(index: int, x: float, y: float, width: float, height: float) -> Html:
    placed = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{max(width, 0.5):.1f}", "height": f"{max(height, 0.5):.1f}"}
    return tag("rect", **placed, class_=f"dot ink{index % 5}", style="stroke: none")


def _in_words(given: BarChart) -> str:
    told = []
    for place, name in enumerate(given.labels):
        told.append(f"{name}: " + ", ".join(f"{what} {show(values[place])}" for what, values in given.bars))
    return f"{given.title}. " + "; ".join(told) + "."
