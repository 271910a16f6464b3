"""Several numbers of each of several things, on one common axis: a name above, marks of different shapes below."""

from __future__ import annotations

import math

from .figures import nice_ticks, tick_labels
from .markup import Html, join, tag
from .model import Dots
from .numerals import show

_WIDTH, _ROW, _TOP, _BOTTOM, _MARGIN = 440.0, 38.0, 6.0, 40.0, 10.0
_R, _LOWER = 5.0, 8.0
"""A mark's radius, and by how much it is lowered for each mark that it would cover."""


def dots_chart(given: Dots) -> Html | None:
    """Return the drawing, or `None` when no value is finite. Marks differ in shape as well as in colour."""
    places = [value for _, values in given.marks for value in values if math.isfinite(value)]
    if not places:
        return None
    places += [] if given.line is None else [given.line]
    low, high = min(places), max(places)
    apart = 0.0 if high - low > 1e-9 * max(abs(low), abs(high), 1e-300) else max(abs(low), 1.0)
    ticks = nice_ticks(low - apart / 2, high + apart / 2, outward=True)
    base = _TOP + _ROW * len(given.names)

    def across(value: float) -> float:
        return _MARGIN + (value - ticks[0]) / (ticks[-1] - ticks[0]) * (_WIDTH - 2 * _MARGIN)

    tops = [_TOP + _ROW * index for index in range(len(given.names))]
    parts = []
    for value, class_ in [*((tick, "rule") for tick in ticks if tick != given.line), *_limit(given)]:
        path = "".join(f"M{across(value):.1f} {top + 20:g}V{top + 34:g}" for top in tops)
        parts.append(tag("path", d=path, class_=class_, style="stroke-dasharray: none"))
    for row, (top, name) in enumerate(zip(tops, given.names, strict=True)):
        parts.append(tag("text", name, x=0, y=top + 14, class_="axis-name"))
        taken: list[float] = []
        for index, (_, values) in enumerate(given.marks):
            if math.isfinite(values[row]):
                x = across(values[row])
                covers = sum(abs(x - other) < 2 * _R for other in taken)
                parts.append(mark(index, x, top + 24 + _LOWER * covers))
                taken.append(x)
    for place, (value, label) in enumerate(zip(ticks, tick_labels(ticks), strict=True)):
        anchor = "start" if place == 0 else "end" if place == len(ticks) - 1 else "middle"
        at = 0.0 if place == 0 else _WIDTH if place == len(ticks) - 1 else across(value)
        parts.append(tag("text", label, x=at, y=base + 18, text_anchor=anchor))
    parts.append(tag("text", given.x_label, x=_WIDTH, y=base + 36, text_anchor="end", class_="axis-name"))
    return tag("svg", *parts, viewBox=f"0 0 {_WIDTH:g} {base + _BOTTOM:g}", role="img", aria_label=_dots_in_words(given))


def mark(index: int, x: float, y: float) -> Html:
    """A disc, a square, a triangle, a cross or a ring, so that rows can be read without colours."""
    ink = f"ink{index % 5}"
    if index == 0:
        return tag("circle", cx=x, cy=y, r=_R, class_=f"dot {ink}")
    if index == 1:
        return tag("rect", x=x - _R + 0.5, y=y - _R + 0.5, width=2 * _R - 1, height=2 * _R - 1, class_=f"dot {ink}")
    if index == 2:
        return tag("path", d=f"M{x:.1f} {y - _R - 0.5:.1f}l{_R + 0.5:g} {2 * _R:g}h{-2 * _R - 1:g}Z", class_=f"dot {ink}")
    if index == 3:
        d = f"M{x - _R + 1:.1f} {y - _R + 1:.1f}l{2 * _R - 2:g} {2 * _R - 2:g}m0 {-2 * _R + 2:g}l{-2 * _R + 2:g} {2 * _R - 2:g}"
        return tag("path", d=d, class_=f"main {ink}")
    return tag("path", d=f"M{x - _R:.1f} {y:.1f}h{2 * _R:g}m{-_R:g} {-_R:g}v{2 * _R:g}", class_=f"main {ink}")


def dots_legend(given: Dots) -> Html:
    """What each mark means, as items of a list."""
    keys = [tag("svg", mark(index, 11, 6), viewBox="0 0 22 12", aria_hidden="true") for index in range(len(given.marks))]
    return join(tag("li", key, tag("span", name)) for key, (name, _) in zip(keys, given.marks, strict=True))


def _limit(given: Dots) -> list[tuple[float, str]]:
    return [] if given.line is None else [(given.line, "limit")]


def _dots_in_words(given: Dots) -> str:
    told = []
    for row, name in enumerate(given.names):
        values = [f"{what} {show(values[row])}" for what, values in given.marks if math.isfinite(values[row])]
        told.append(f"{name}: {', '.join(values)}")
    return f"{given.title}. " + "; ".join(told) + "."
