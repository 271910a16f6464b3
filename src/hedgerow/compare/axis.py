"""A comparison whose rows are numbers, such as epsilons: the measure against them, what a reference row loses, the noise.

Columns that are called `model, way` share a figure for each model, with a line for each way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hedgerow.report import Curve, Grid, Series
from hedgerow.study.study import Study

from .axis_sentences import allowed, bought
from .seeds import SeedMean
from .standings import Standing, Standings

Value = Callable[[Standing], float | None]

AT_MOST = "at most"
"""How the metric ends by which a run says how much of another it allows."""


def against_axis(found: Standings, first: Standings | None = None) -> tuple[Curve, ...]:
    """The measure, or what it falls short of the reference, against the rows' numbers; the axis has steps of factors.

    Where runs tell how much of a measure is allowed (`AT_MOST`), a line says it. Bands are intervals over seeds. `first` has
    the same runs by the comparison's own measure, where this is a further one.
    """
    section = found.section
    if not section.axis:
        return ()
    value, label = (_short(found), short_label(found)) if section.reference else (_value, found.measure)
    made = []
    for group, columns in _groups([column.name for column in section.columns]):
        lines = tuple(_line(found, name, column, value) for name, column in columns)
        title = f"{group}: {label}" if group and section.also else group or f"{_capital(label)} against {section.axis}"
        note = f"Bands: 95 % intervals of the mean of {found.seeds} seeds." if found.seeds > 1 else ""
        most = _allowed(found, [column for _, column in columns])
        if most:
            xs = tuple(section.places[row] for row, _ in most)
            lines += (Series(AT_MOST, xs, tuple(y for _, y in most), "reference"),)
        said = "" if first is None else _said(found, first, columns, most)
        made.append(Curve(title, section.axis, label, lines, note=" ".join(filter(None, (said, note))), log="x"))
    return tuple(curve for curve in made if any(len(line.x) > 1 for line in curve.series))


def _allowed(found: Standings, columns: Sequence[str]) -> list[tuple[str, float]]:
    """By row the most that the columns' runs say is allowed of the measure, where they do."""
    most = found.by(f"{found.measure} {AT_MOST}")
    return [
        (row, max(known))
        for row, _ in sorted(found.section.places.items(), key=lambda place: place[1])
        if (known := [value for column in columns if (value := most.at(row, column).value) is not None])
    ]


def _said(found: Standings, first: Standings, columns: Sequence[tuple[str, str]], most: Sequence[tuple[str, float]]) -> str:
    """What the figure of a further measure says, beside the comparison's own."""
    value, label = (_short(first), short_label(first)) if first.section.reference else (_value, first.measure)
    own, further = _values(first, columns, value), _values(found, columns, _value)
    axis = found.section.axis
    return f"{bought(axis, label, own, found.measure, further)} {allowed(axis, found.measure, most, further)}".strip()


def _values(found: Standings, columns: Sequence[tuple[str, str]], value: Value) -> dict[str, dict[str, float]]:
    """Means by row and by the names of columns in a figure."""
    return {
        row: {name: mean.value for name, column in columns if (mean := _mean(found, row, column, value)) is not None}
        for row in found.section.places
    }


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
    first = replace(found, runs=tuple(found.places))  # seeds do not change a plan of noise
    return (_grid(first, "Noise multiplier", lambda run: noise_of(run.cell.study), note),)


def noise_of(study: Study) -> float | None:
    """The noise multiplier of a study: of its mechanism, or of a program whose parties make the noise."""
    mechanism, own = study.protection.mechanism, (study.program.model_extra or {}).get("noise_multiplier")
    return own if mechanism is None else mechanism.noise_multiplier


def short_label(found: Standings) -> str:
    """What falls short, in words: `accuracy loss`, as of `test accuracy`."""
    return f"{found.measure.removeprefix('test ')} loss" if found.more_is_better else f"excess of {found.measure}"


def _short(found: Standings) -> Value:
    def value(run: Standing) -> float | None:
        wholes = found.seeds_at(found.section.reference, run.cell.column)
        full = next(one for one in wholes if one.cell.seed == run.cell.seed).value
        if not full or run.value is None:
            return None
        return round(1 - run.value / full if found.more_is_better else run.value / full - 1, 4)

    return value


def _mean(found: Standings, row: str, column: str, value: Value) -> SeedMean | None:
    """What the runs of a place come to, by a value of each."""
    return SeedMean.of([value(run) for run in found.seeds_at(row, column)])


def _value(run: Standing) -> float | None:
    return run.value


def _line(found: Standings, name: str, column: str, value: Value) -> Series:
    places = sorted(found.section.places.items(), key=lambda place: place[1])
    points = [(x, _mean(found, row, column, value)) for row, x in places]
    kept = [(x, y) for x, y in points if y is not None]
    low, high = (tuple(y.value + sign * y.margin for _, y in kept if y.margin is not None) for sign in (-1, 1))
    return Series(name, tuple(x for x, _ in kept), tuple(y.value for _, y in kept), low=low, high=high)


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
        (row.name, *(_rounded(_mean(found, row.name, column.name, value)) for column in section.columns))
        for row in section.rows
        if row.name != leave_out
    ]
    return Grid(title, (section.axis, *(column.name for column in section.columns)), tuple(rows), note)


def _rounded(mean: SeedMean | None) -> Any:
    return None if mean is None else float(f"{mean.value:.4g}") if mean.margin is None else mean.shown


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
