"""A figure by itself: shown by a notebook, written as an SVG file."""

from __future__ import annotations

from collections.abc import Sequence
from html import unescape
from pathlib import Path

from hedgerow.errors import CannotWrite, StudyInvalid

from .dots import dots_chart, mark
from .figures import line_chart, series_inks
from .forest import ForestPlot
from .forest_chart import forest_chart, reading
from .intervals import Intervals, interval_chart, note_of
from .markup import Html, join, tag
from .model import Curve, Dots
from .numerals import show
from .scoped import FIGURE, figure_style

_WIDTH, _PAD, _HEAD, _LEGEND, _FOOT = 440.0, 14.0, 26.0, 20.0, 20.0
_NOTE_WRAP = 66

Drawn = Curve | Intervals | Dots | ForestPlot
"""What a figure draws."""


class Figure:
    """One or several drawings with their titles, as SVG.

    A notebook shows it; `save` writes a file that any browser or drawing program opens. It holds released numbers only, loads
    nothing, and is light or dark as the reader's system is.

    Parameters
    ----------
    *drawn : Curve, Intervals, Dots or ForestPlot
        One below the other.

    Raises
    ------
    StudyInvalid (HR-101)
        No value is finite, so that there is nothing to draw.
    """

    def __init__(self, *drawn: Drawn) -> None:
        self.drawn = drawn
        self.svg = _together(drawn)

    def save(self, path: str | Path) -> Path:
        """Write the SVG file, and return its path.

        Raises
        ------
        CannotWrite (HR-104)
            The name does not end in `.svg`, or the file cannot be written there.
        """
        path = Path(path)
        if path.suffix.lower() != ".svg":
            raise CannotWrite(
                f"{path} would be a file of another kind; a figure is SVG.", remedy="Name it as name.svg.", says=False
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.svg, encoding="utf-8")
        except OSError as error:
            raise CannotWrite(
                f"{path}: {error.strerror}.", remedy="Name a file in a folder that you may write to.", says=False
            ) from error
        return path

    def __repr__(self) -> str:
        return f"Figure({', '.join(repr(one.title) for one in self.drawn)}); save('name.svg') writes it"

    def _repr_svg_(self) -> str:
        return self.svg


def _together(drawn: Sequence[Drawn]) -> str:
    parts, top = [], _PAD
    for one in drawn:
        chart = _chart(one)
        if chart is None:
            raise StudyInvalid(f"no value of {one.title!r} is finite, so there is nothing to draw.", asked=False)
        parts.append(tag("text", one.title, x=_PAD, y=top + 14, class_="heading"))
        top += _HEAD
        if isinstance(one, Curve) and len(one.series) > 1:
            parts.append(_legend(one, top))
            top += _LEGEND
        if isinstance(one, Dots):
            parts.append(_dots_legend(one, top))
            top += _LEGEND
        height = _height(chart)
        parts.append(_placed(chart, _PAD, top, height))
        top += height
        for line in _lines(_note(one)):
            parts.append(tag("text", line, x=_PAD, y=top + 14, class_="note"))
            top += _FOOT * 0.85
        top += _FOOT / 2
    width, height = _WIDTH + 2 * _PAD, top + _PAD / 2
    own = f"{FIGURE} .heading {{ font-weight: 600; font-size: 15px; }}\n{FIGURE} .note {{ font-size: 12px; }}\n"
    return tag(
        "svg",
        tag("style", Html(figure_style() + own)),
        tag("rect", width=width, height=height, class_="ground"),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        width=width * 1.2,
        class_=FIGURE[1:],
        role="img",
        style="max-width: 100%; height: auto",
    )


def _chart(one: Drawn) -> Html | None:
    if isinstance(one, Dots):
        return dots_chart(one)
    if isinstance(one, ForestPlot):
        return forest_chart(one, narrow=True)
    return line_chart(one) if isinstance(one, Curve) else interval_chart(one)


def _note(one: Drawn) -> str:
    if isinstance(one, ForestPlot):
        return reading(one)
    return note_of(one) if isinstance(one, Intervals) else one.note


def _dots_legend(given: Dots, top: float) -> Html:
    parts, x = [], _PAD
    for index, (name, _) in enumerate(given.marks):
        parts += [mark(index, x + 6, top + 6), tag("text", name, x=x + 17, y=top + 10)]
        x += 17 + 7.2 * len(name) + 14
    return join(parts)


def _legend(curve: Curve, top: float) -> Html:
    parts, x = [], _PAD
    for series, ink in zip(curve.series, series_inks(curve.series), strict=True):
        said = f"{series.name} {show(series.y[-1])}" if series.y else series.name
        parts.append(tag("line", x1=x, x2=x + 22, y1=top + 6, y2=top + 6, class_=ink))
        parts.append(tag("text", said, x=x + 28, y=top + 10))
        x += 28 + 7.2 * len(said) + 16
    return join(parts)


def _height(chart: Html) -> float:
    return float(chart.split('viewBox="0 0 ', 1)[1].split('"', 1)[0].split()[1])


def _placed(chart: Html, x: float, y: float, height: float) -> Html:
    """A drawing at its place in a larger one."""
    return Html(chart.replace("<svg ", f'<svg x="{x:g}" y="{y:g}" width="{_WIDTH:g}" height="{height:g}" ', 1))


def _lines(note: str) -> list[str]:
    import textwrap

    return textwrap.wrap(unescape(note), _NOTE_WRAP)
