"""Figures as small SVG: no plotting library, no ids, no colours of their own; the style sheet gives those.

Drawn by hand rather than by matplotlib so that they follow light and dark, keep their text as text, scale to a phone,
and are there in every installation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hedgerow.report.markup import Html, tag
from hedgerow.report.model import Comparison, Curve, Series
from hedgerow.report.numerals import fixed, show

_WIDTH, _HEIGHT = 440.0, 264.0
_TOP, _RIGHT, _BOTTOM = 30.0, 12.0, 40.0
_MOST_POINTS = 600  # more would be finer than the screen
_LARGEST = 1e300  # beyond it a range overflows
_LARGEST_FACTOR = 1e100  # the same, where steps are factors
_TRACK_WIDTH, _TRACK_HEIGHT = 180.0, 24.0


def line_chart(curve: Curve) -> Html | None:
    """Return the drawing of a curve, or `None` when no value is finite."""
    log_x, log_y = "x" in curve.log, "y" in curve.log
    values = [y for series in curve.series for y in (*series.y, *series.low, *series.high)]
    values += [] if curve.line is None else [curve.line]
    places = [x for series in curve.series if not series.is_level for x in series.x]
    values, places = _drawable(values, log_y), _drawable(places, log_x)
    if not values or not places:
        return None
    y_ticks, y_labels = _ticks(values, log_y, outward=True)
    x_ticks, x_labels = _ticks(places, log_x, whole=all(float(x).is_integer() for x in places))
    left = 12 + 8 * max(len(label) for label in y_labels)
    across = _Scale(*_extent(places, log_x), left, _WIDTH - _RIGHT, log_x)
    upward = _Scale(y_ticks[0], y_ticks[-1], _HEIGHT - _BOTTOM, _TOP, log_y)
    base = _HEIGHT - _BOTTOM

    parts = [tag("text", curve.y_label, x=0, y=12, class_="axis-name")]
    for value, label in zip(y_ticks, y_labels, strict=True):
        y = upward(value)
        parts.append(tag("line", x1=left, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="rule"))
        parts.append(tag("text", label, x=left - 7, y=y + 4, text_anchor="end"))
    parts += [
        tag("text", label, x=min(across(value), _WIDTH - 4 * len(label)), y=base + 17, text_anchor="middle")
        for value, label in zip(x_ticks, x_labels, strict=True)
    ]
    parts.append(tag("text", curve.x_label, x=_WIDTH - _RIGHT, y=_HEIGHT - 5, text_anchor="end", class_="axis-name"))
    if curve.line is not None and _drawable([curve.line], log_y):
        parts += _level(upward(curve.line), left, "limit")
        label = tag("text", show(curve.line), x=_WIDTH - _RIGHT, y=upward(curve.line) - 5, text_anchor="end")
        parts.append(label)
    inks = series_inks(curve.series)
    order = sorted(zip(curve.series, inks, strict=True), key=lambda pair: pair[0].style, reverse=True)
    for series, ink in order:
        parts += _band(series, across, upward, ink)
    for series, ink in order:  # by name of style: references and context first, so that the main lines lie on top
        if not series.is_level:
            parts += _line(series, across, upward, ink)
        elif _drawable(series.y, log_y):
            parts += _level(upward(series.y[0]), left, ink)
    return tag("svg", *parts, viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", role="img", aria_label=_in_words(curve))


def series_inks(series: Iterable[Series]) -> list[str]:
    """Return the CSS class of each series: its style, and a colour of its own unless it is muted.

    Five colours can be told apart; lines beyond the fifth have them again, and are dotted.
    """
    inks, n_coloured = [], 0
    for one in series:
        dotted = " dotted" if n_coloured >= 5 and one.style == "main" else ""
        inks.append(f"{one.style} ink{n_coloured % 5}{dotted}" if one.style != "muted" else "muted")
        n_coloured += one.style != "muted"
    return inks


def swatch(ink: str) -> Html:
    """Return a short piece of line for a legend."""
    return tag("svg", tag("line", x1=0, x2=22, y1=5, y2=5, class_=ink), viewBox="0 0 22 10", aria_hidden="true")


def dot_tracks(comparison: Comparison) -> tuple[tuple[str, str], list[Html]] | None:
    """Return the ends of the common axis, in words, and one drawing per row, or `None` when no value is finite."""
    ranges = {name: (low, high) for name, low, high in comparison.ranges}
    values = [value for _, value, _ in comparison.rows] + [end for pair in ranges.values() for end in pair]
    if not _drawable(values):
        return None
    ticks = nice_ticks(*_extent(values), outward=True)
    across = _Scale(ticks[0], ticks[-1], 8, _TRACK_WIDTH - 8)
    middle = _TRACK_HEIGHT / 2
    tracks = []
    for index, (name, value, _) in enumerate(comparison.rows):
        parts = [tag("line", x1=across(t), x2=across(t), y1=0, y2=_TRACK_HEIGHT, class_="rule") for t in ticks]
        if name in ranges:
            low, high = ranges[name]
            parts.append(tag("line", x1=across(low), x2=across(high), y1=middle, y2=middle, class_=f"spread ink{index % 5}"))
        if math.isfinite(value):
            parts.append(tag("circle", cx=across(value), cy=middle, r=5, class_=f"dot ink{index % 5}"))
        tracks.append(tag("svg", *parts, viewBox=f"0 0 {_TRACK_WIDTH:g} {_TRACK_HEIGHT:g}", aria_hidden="true"))
    labels = tick_labels(ticks)
    return (labels[0], labels[-1]), tracks


def nice_ticks(low: float, high: float, *, whole: bool = False, outward: bool = False) -> list[float]:
    """Return about five round values between `low` and `high`.

    Parameters
    ----------
    low, high : float
        Finite, and further apart than a billionth of the larger one.
    whole : bool
        Only whole numbers, for rounds.
    outward : bool
        Include the round values just outside, so that the ticks enclose the range.
    """
    wanted = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= wanted * (1 - 1e-9))
    step = max(1.0, step) if whole else step
    slack = 1e-9 if not outward else -1e-9
    first, last = (math.floor, math.ceil) if outward else (math.ceil, math.floor)
    return [k * step for k in range(first(low / step - slack), last(high / step + slack) + 1)]


def log_ticks(low: float, high: float, *, outward: bool = False) -> list[float]:
    """Return round values from `low` to `high` on an axis of factors: 1, 2 and 5 times powers of ten, or only the powers.

    Parameters
    ----------
    low, high : float
        Above zero; ticks of a wide range leave out powers, so that there are at most eight.
    outward : bool
        Include the round values just outside, so that the ticks enclose the range.
    """
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    every = math.ceil((last - first) / 7) or 1
    powers = [10.0**k for k in range(first, last + every, every)]
    fine = [factor * power for power in powers for factor in (1, 2, 5)] if len(powers) <= 3 else powers
    inside = [tick for tick in fine if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
    if not outward:
        return inside
    below, above = [tick for tick in fine if tick <= low * (1 + 1e-9)], [tick for tick in fine if tick >= high * (1 - 1e-9)]
    return [tick for tick in fine if below[-1] <= tick <= above[0]]


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Return the ticks with as many decimals as their step needs; powers of ten where all of them are small."""
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    powers = [show(tick if abs(tick) > step / 2 else 0.0) for tick in ticks]
    if decimals <= 4 or max(map(abs, ticks)) >= 1e-3 or len(set(powers)) < len(powers):
        return [fixed(tick, decimals) for tick in ticks]
    return powers


def _ticks(values: list[float], log: bool, *, whole: bool = False, outward: bool = False) -> tuple[list[float], list[str]]:
    if log:
        ticks = log_ticks(*_extent(values, log), outward=outward)
        return ticks, [show(tick) for tick in ticks]
    ticks = nice_ticks(*_extent(values), whole=whole, outward=outward)
    return ticks, tick_labels(ticks)


@dataclass(frozen=True)
class _Scale:
    """A map from values to places in the drawing, linear in the values or in their logarithms."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        part = (
            (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
            if self.log
            else (value - self.low) / (self.high - self.low)
        )
        return self.start + part * (self.end - self.start)


def _line(series: Series, across: _Scale, upward: _Scale, ink: str) -> list[Html]:
    """Return the line, broken where a value is not finite; a point that stands alone becomes a dot."""
    path, dots, run = "", [], []
    every = math.ceil(len(series.x) / _MOST_POINTS) or 1
    kept = [*zip(series.x, series.y, strict=True)][::-1][::every][::-1]  # counted from the end: the last value stays
    for x, y in [*kept, (math.nan, math.nan)]:
        if _drawable([x], across.log) and _drawable([y], upward.log):
            run.append(f"{across(x):.1f} {upward(y):.1f}")
            continue
        if len(run) == 1:
            cx, cy = run[0].split()
            dots.append(tag("circle", cx=cx, cy=cy, r=4, class_=f"dot {ink}"))
        elif run:
            path += "M" + "L".join(run)
        run = []
    return [tag("path", d=path, class_=ink)] * bool(path) + dots


def _band(series: Series, across: _Scale, upward: _Scale, ink: str) -> list[Html]:
    """Return the area between the ends of a series' band, where all of them have a place."""
    ends = (*series.low, *series.high)
    if not ends or len(_drawable(ends, upward.log)) < len(ends) or len(_drawable(series.x, across.log)) < len(series.x):
        return []
    above = [f"{across(x):.1f} {upward(y):.1f}" for x, y in zip(series.x, series.high, strict=True)]
    below = [f"{across(x):.1f} {upward(y):.1f}" for x, y in zip(series.x, series.low, strict=True)]
    return [tag("path", d=f"M{'L'.join(above + below[::-1])}Z", class_=f"band {ink}")]


def _level(y: float, left: float, ink: str) -> list[Html]:
    return [tag("line", x1=left, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_=ink)]


def _drawable(values: Iterable[float], log: bool = False) -> list[float]:
    if log:
        return [value for value in values if 1 / _LARGEST_FACTOR < value < _LARGEST_FACTOR]
    return [value for value in values if abs(value) < _LARGEST]


def _extent(values: Iterable[float], log: bool = False) -> tuple[float, float]:
    """Return the least and greatest drawable value, drawn apart when they are equal."""
    kept = _drawable(values, log)
    low, high = min(kept), max(kept)
    if log:
        return (low, high) if high > low * (1 + 1e-9) else (low / 2, high * 2)
    size = max(abs(low), abs(high))
    if high - low > max(1e-9 * size, 1 / _LARGEST):
        return low, high
    apart = 0.5 * size if size > 1 / _LARGEST else 1.0
    return low - apart, high + apart


def _in_words(curve: Curve) -> str:
    told = [f"{curve.y_label} against {curve.x_label}"]
    for series in curve.series:
        if series.is_level:
            told.append(f"{series.name}: {show(series.y[0])} throughout")
        elif series.y:
            (x0, x1), (y0, y1) = (series.x[0], series.x[-1]), (series.y[0], series.y[-1])
            told.append(f"{series.name}: {show(y0)} at {show(x0)}, {show(y1)} at {show(x1)}")
    if curve.line is not None:
        told.append(f"limit: {show(curve.line)}")
    return ". ".join(told) + "."
