r"""Tables for papers: as CSV, as HTML that a word processor opens, and as LaTeX.

    fit.to_csv("table2.csv")                      every number with all its digits
    fit.to_html(labels={"age": "Age, years"})     <table>: estimate, interval, p
    fit.to_latex(caption="Odds of readmission")   \begin{table} with the rules of booktabs

Estimates that are logarithms of ratios are written as ratios. Nothing is computed here that the fit's `to_frame` has not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.errors import CannotWrite

from .frames import grid_of
from .markup import join, tag
from .model import Grid
from .numerals import DASH, MINUS, THIN_SPACE, fixed, show, show_column
from .tables import all_numeric

if TYPE_CHECKING:
    import pandas

BELOW = 0.001
"""Smaller p-values are not told apart."""
INTERCEPTS = ("Intercept", "(Intercept)")
LARGEST_LOG = 700.0
"""Beyond it an exponential overflows."""
ENDS = {"p", "low", "high"}
ESTIMATES = ("coef", "estimate", "mean")
_LATEX = {
    "\\": r"\textbackslash{}",
    **{mark: "\\" + mark for mark in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    MINUS: "$-$",
    DASH: "--",
    THIN_SPACE: r"\,",
    "×": r"$\times$",
}
_RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


class ForPapers:
    """What every fit with a `to_frame` can do: write its table for a paper."""

    def to_csv(self, path: str | Path) -> Path:
        """Write `to_frame()` to a CSV file, every number with all its digits, and return its path.

        Raises
        ------
        CannotWrite (HR-104)
            The file cannot be written there.
        """
        path = Path(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_frame_of(self).to_csv(), encoding="utf-8")
        except OSError as error:
            raise CannotWrite(
                f"{path}: {error.strerror}.", remedy="Name a file in a folder that you may write to.", says=False
            ) from error
        return path

    def to_html(self, *, labels: Mapping[str, str] | None = None, intercept: bool = False, caption: str = "") -> str:
        """Return the table as HTML without style or script, which word processors open.

        Parameters
        ----------
        labels : mapping from name to words, optional
            What terms are called.
        intercept : bool
            Whether the intercept has a row.
        caption : str
        """
        return grid_html(paper_grid(_frame_of(self), labels or {}, intercept=intercept, title=caption))

    def to_latex(
        self, *, labels: Mapping[str, str] | None = None, intercept: bool = False, caption: str = "", label: str = ""
    ) -> str:
        r"""Return the table as LaTeX, with the rules of booktabs (`\usepackage{booktabs}`).

        Parameters
        ----------
        labels, intercept, caption
            As `to_html`; with a caption it stands in a `table` environment.
        label : str
            For `\ref`.
        """
        return grid_latex(paper_grid(_frame_of(self), labels or {}, intercept=intercept, title=caption), label)


def _frame_of(value: object) -> pandas.DataFrame:
    frame: pandas.DataFrame = value.to_frame()  # type: ignore[attr-defined]
    return frame


# ---- what a table says ----------------------------------------------------------------------------------------------
def ratio_of(frame: pandas.DataFrame) -> str | None:
    """The column of ratios in a table of coefficients, or that of estimates that are no logarithms; None of other tables."""
    if not set(frame.columns) >= ENDS:
        return None
    ratios = [str(name) for name in frame.columns if str(name).endswith(" ratio")]
    return next(iter([*ratios, *(name for name in ESTIMATES if name in frame.columns)]), None)


def coefficient_grid(
    title: str, frame: pandas.DataFrame, labels: Mapping[str, str], aside: Sequence[str] = (), *, intercept: bool = False
) -> Grid | None:
    """Ratios, or coefficients, with intervals and p-values in words; a row for each term but those of columns that are `aside`.

    None of a table that has no coefficients.
    """
    ratio = ratio_of(frame)
    if ratio is None:
        return None
    rows = []
    for term, values in zip(_names(frame), frame[[ratio, "low", "high", "p"]].to_numpy(dtype=float), strict=True):
        if (term in INTERCEPTS and not intercept) or any(_is_of(term, name) for name in aside):
            continue
        ends = ends_of(values[1:3].tolist(), ratio)
        between = f"{as_read(ends[0], ratio)} to {as_read(ends[1], ratio)}" if all(map(math.isfinite, ends)) else DASH
        rows.append((labels.get(term, term), as_read(values[0], ratio), between, p_value(values[3])))
    heading = "Coefficient" if ratio in ESTIMATES else ratio[:1].upper() + ratio[1:]
    return Grid(title, ("", heading, "95% interval", "p"), tuple(rows))


def _is_of(term: str, name: str) -> bool:
    """Whether a term is of a column alone: itself, or one of its levels."""
    return term == name or term.startswith((f"{name}[", f"C({name})", f"C({name},"))


def _names(frame: pandas.DataFrame) -> list[str]:
    """Names of the rows; those of several indices are joined."""
    return [", ".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in frame.index]


def ends_of(ends: Sequence[float], ratio: str) -> list[float]:
    """Ends of an interval on the scale that is read."""
    return [float(end) if ratio in ESTIMATES else math.exp(min(float(end), LARGEST_LOG)) for end in ends]


def as_read(value: float, ratio: str) -> str:
    """An estimate as it is read: ratios with two decimals."""
    return show(float(value)) if ratio in ESTIMATES or not math.isfinite(value) else fixed(float(value), 2)


def p_value(value: float) -> str:
    """A p-value in words."""
    return DASH if math.isnan(value) else f"below {BELOW:g}" if value < BELOW else fixed(float(value), 3)


def paper_grid(frame: pandas.DataFrame, labels: Mapping[str, str], *, intercept: bool = False, title: str = "") -> Grid:
    """A table of coefficients in words, or any other table as it is."""
    found = coefficient_grid(title, frame, labels, intercept=intercept)
    if found is not None:
        return found
    plain = grid_of(title, frame)
    rows = tuple((labels.get(str(row[0]), row[0]), *row[1:]) for row in plain.rows)
    return Grid(title, tuple(labels.get(name, name) for name in plain.columns), rows)


# ---- how it is written ----------------------------------------------------------------------------------------------
def _cells(grid: Grid) -> tuple[list[list[str]], list[bool]]:
    """Cells as text, row by row, and which columns are numbers."""
    columns = list(zip(*grid.rows, strict=True)) or [() for _ in grid.columns]
    shown = [show_column(name, column) for name, column in zip(grid.columns, columns, strict=True)]
    numeric = [bool(i) and all_numeric(column) for i, column in enumerate(columns)]
    return [list(row) for row in zip(*shown, strict=True)], numeric


def grid_html(grid: Grid) -> str:
    """Return a table as HTML."""
    rows, numeric = _cells(grid)
    sides = ["text-align: right" if one else "text-align: left" for one in numeric]
    head = tag("tr", *(tag("th", name, scope="col", style=side) for name, side in zip(grid.columns, sides, strict=True)))
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row", style=sides[0]),
            *(tag("td", cell, style=side) for cell, side in zip(row[1:], sides[1:], strict=True)),
        )
        for row in rows
    ]
    caption = tag("caption", grid.title) if grid.title else None
    return str(tag("table", caption, tag("thead", head), tag("tbody", join(body))))


def grid_latex(grid: Grid, label: str = "") -> str:
    """Return a table as LaTeX."""
    rows, numeric = _cells(grid)
    lines = [
        rf"\begin{{tabular}}{{{''.join('r' if one else 'l' for one in numeric)}}}",
        r"\toprule",
        *(" & ".join(map(in_latex, row)) + r" \\" + rule for row, rule in [(grid.columns, "\n\\midrule")]),
        *(" & ".join(map(in_latex, row)) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if not (grid.title or label):
        return "\n".join(lines) + "\n"
    about = [rf"\caption{{{in_latex(grid.title)}}}"] if grid.title else []
    about += [rf"\label{{{label}}}"] if label else []
    return "\n".join([r"\begin{table}", r"\centering", *about, *lines, r"\end{table}"]) + "\n"


def in_latex(text: str) -> str:
    """Text with the characters that LaTeX reads otherwise written as LaTeX has them."""
    powers = re.split(r"×10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", text)
    parts = [
        rf"$\times10^{{{part.translate(_RAISED)}}}$" if i % 2 else "".join(_LATEX.get(one, one) for one in part)
        for i, part in enumerate(powers)
    ]
    return "".join(parts)
