"""Square figures: both axes the same, for shares against shares, as of a ROC curve or of a calibration.

Lines have bands; of a curve whose shape is "points" each value is a dot with its interval. A calibration of rare events is
drawn as far as its values reach, so that they do not lie in a corner.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from .figures import nice_ticks, series_inks
from .markup import Html, tag
from .model import Curve, Series
from .numerals import show

_SIZE, _LEFT, _BOTTOM, _EDGE = 320.0, 62.0, 46.0, 14.0
_DOT = 4.0


def square_chart(curve: Curve) -> Html | None:
    """Return the drawing, or `None` when no value is finite."""
    if not any(math.isfinite(y) for one in _own(curve) for y in one.y):
        return None
    reach = [value for one in _own(curve) for value in (*one.x, *one.y, *one.high) if math.isfinite(value)]
    ticks = [tick for tick in nice_ticks(0.0, max(*reach, 1e-6), outward=True) if tick >= 0]
    top = ticks[-1]

    def across(value: float) -> float:
        return _LEFT + min(max(value / top, 0.0), 1.0) * (_SIZE - _LEFT - _EDGE)

    def upward(value: float) -> float:
        return _SIZE - _BOTTOM - min(max(value / top, 0.0), 1.0) * (_SIZE - _BOTTOM - _EDGE)

    parts = list(_frame(curve, ticks, across, upward))
    for one, ink in zip(curve.series, series_inks(curve.series), strict=True):
        if one not in _own(curve):  # from corner to corner
            parts.append(tag("path", d=f"M{across(0):.1f} {upward(0):.1f}L{across(top):.1f} {upward(top):.1f}", class_="limit"))
        elif curve.shape == "points":
            parts += _points(one, across, upward, ink)
        else:
            parts += _line(one, across, upward, ink)
    said = "; ".join(f"{one.name}: {len(one.x)} points" for one in _own(curve))
    label = f"{curve.title}: {curve.y_label} by {curve.x_label}. {said}."
    return tag("svg", *parts, viewBox=f"0 0 {_SIZE:g} {_SIZE:g}", role="img", aria_label=label, class_="square")


def _own(curve: Curve) -> list[Series]:
    """What is shown, without the line from corner to corner."""
    return [one for one in curve.series if one.style == "main"]


def _frame(
    curve: Curve, ticks: list[float], across: Callable[[float], float], upward: Callable[[float], float]
) -> Iterator[Html]:
    top = ticks[-1]
    for tick in ticks:
        said = f"{show(round(100 * tick, 6))}%"
        yield tag("line", x1=across(tick), x2=across(tick), y1=upward(0), y2=upward(top), class_="rule")
        yield tag("line", x1=across(0), x2=across(top), y1=upward(tick), y2=upward(tick), class_="rule")
        yield tag("text", said, x=across(tick), y=upward(0) + 16, text_anchor="middle")
        if tick > 0:
            yield tag("text", said, x=across(0) - 6, y=upward(tick) + 4, text_anchor="end")
    middle = (upward(0) + upward(top)) / 2
    yield tag("text", curve.x_label, x=across(top / 2), y=_SIZE - 8, text_anchor="middle", class_="axis-name")
    turned = f"translate(13 {middle:.0f}) rotate(-90)"
    yield tag("text", curve.y_label, transform=turned, text_anchor="middle", class_="axis-name")


def _line(one: Series, across: Callable[[float], float], upward: Callable[[float], float], ink: str) -> Iterator[Html]:
    if one.low:
        up = [f"{across(x):.1f} {upward(y):.1f}" for x, y in zip(one.x, one.high, strict=True)]
        down = [f"{across(x):.1f} {upward(y):.1f}" for x, y in zip(one.x, one.low, strict=True)]
        yield tag("path", d=f"M{'L'.join([*up, *reversed(down)])}Z", class_=f"band {ink.rsplit(' ', 1)[-1]}")
    places = [f"{across(x):.1f} {upward(y):.1f}" for x, y in zip(one.x, one.y, strict=True) if math.isfinite(y)]
    yield tag("path", d=f"M{'L'.join(places)}", class_=ink)


def _points(one: Series, across: Callable[[float], float], upward: Callable[[float], float], ink: str) -> Iterator[Html]:
    colour = ink.rsplit(" ", 1)[-1]
    ends = zip(one.low, one.high, strict=True) if one.low else [(math.nan, math.nan)] * len(one.x)
    for x, y, (low, high) in zip(one.x, one.y, ends, strict=True):
        if math.isfinite(low) and math.isfinite(high):
            yield tag("line", x1=across(x), x2=across(x), y1=upward(low), y2=upward(high), class_=f"interval {colour}")
        if math.isfinite(y):
            yield tag("circle", cx=across(x), cy=upward(y), r=_DOT, class_=f"dot flat {colour}")
