"""A comparison whose rows are numbers, such as epsilons: the measure against them, what a reference row loses, the noise.

Columns that are called `model, way` share a figure for each model, with a line for each way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hedgerow.report import Curve, Grid, Series
from hedgerow.study.study import Study

from .standings import Standing, Standings

Value = Callable[[Standing], float | None]


def against_axis(found: Standings) -> tuple[Curve, ...]:
    """The measure, or what it falls short of the reference, against the rows' numbers; the axis has steps of factors."""
    section = found.section
    if not section.axis:
        return ()
    value, label = (_short(found), short_label(found)) if section.reference else (_value, found.measure)
    made = []
    for group, columns in _groups([column.name for column in section.columns]):
        lines = tuple(_line(found, name, column, value) for name, column in columns)
        made.append(Curve(group or f"{_capital(label)} against {section.axis}", section.axis, label, lines, log="x"))
    return tuple(curve for curve in made if any(len(line.x) > 1 for line in curve.series))


def short_table(found: Standings) -> tuple[Grid, ...]:
    """By what share of the reference's value each run falls short of it."""
    section = found.section
    if not section.reference:
        return ()
    note = f"1 less the run's value over that of {section.reference!r} in the same column; below zero where it is better."
    if not found.more_is_better:
        note = f"The run's value over that of {section.reference!r} in the same column, less 1."
    return (_grid(found, _capital(short_label(found)), _short(found), note, leave_out=section.reference),)


def noise_table(found: Standings) -> tuple[Grid, ...]:
    """The noise multiplier of each run, where runs differ in it."""
    known = {noise_of(run.cell.study) for run in found.runs}
    if len(known - {None}) < 2:
        return ()
    note = "Standard deviation (Laplace: scale) of the noise on a sum over how far one unit can move it; a dash: no noise."
    return (_grid(found, "Noise multiplier", lambda run: noise_of(run.cell.study), note),)


def noise_of(study: Study) -> float | None:
    """The noise multiplier of a study: of its mechanism, or of a program whose parties make the noise."""
    mechanism, own = study.protection.mechanism, (study.program.model_extra or {}).get("noise_multiplier")
    return own if mechanism is None else mechanism.noise_multiplier


def short_label(found: Standings) -> str:
    """What falls short, in words: `accuracy loss`, as of `test accuracy`."""
    return f"{found.measure.removeprefix('test ')} loss" if found.more_is_better else f"excess of {found.measure}"


def _short(found: Standings) -> Value:
    def value(run: Standing) -> float | None:
        full = found.at(found.section.reference, run.cell.column).value
        if not full or run.value is None:
            return None
        return round(1 - run.value / full if found.more_is_better else run.value / full - 1, 4)

    return value


def _value(run: Standing) -> float | None:
    return run.value


def _line(found: Standings, name: str, column: str, value: Value) -> Series:
    places = sorted(found.section.places.items(), key=lambda place: place[1])
    points = [(x, value(found.at(row, column))) for row, x in places]
    kept = [(x, y) for x, y in points if y is not None]
    return Series(name, tuple(x for x, _ in kept), tuple(y for _, y in kept))


def _groups(columns: Sequence[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """(group, [(name in the figure, column), ...]): by what stands before a comma, where it does in every column."""
    if not all(", " in column for column in columns):
        return [("", [(column, column) for column in columns])]
    groups: dict[str, list[tuple[str, str]]] = {}
    for column in columns:
        group, _, name = column.partition(", ")
        groups.setdefault(_capital(group), []).append((name, column))
    return list(groups.items())


def _grid(found: Standings, title: str, value: Value, note: str, leave_out: str = "") -> Grid:
    section = found.section
    rows: list[tuple[Any, ...]] = [
        (row.name, *(_rounded(value(found.at(row.name, column.name))) for column in section.columns))
        for row in section.rows
        if row.name != leave_out
    ]
    return Grid(title, (section.axis, *(column.name for column in section.columns)), tuple(rows), note)


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
