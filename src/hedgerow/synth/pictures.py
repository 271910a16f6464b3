"""Pictures of quality: columns side by side, how alike pairs are, and by how much correlations differ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.report import Curve, Dots, Heat, Series

from .codes import Codes
from .metrics import correlation_similarity, shares

if TYPE_CHECKING:
    import pandas

    from .assessed import Quality

LEVELS = 12
"""Levels that a figure shows: the most frequent made-up ones."""
COLUMNS = 24
"""Columns of which figures are drawn, those that are least alike."""


def histograms_of(found: Quality) -> tuple[list[Curve], list[Dots]]:
    """Histograms of numbers as steps, and shares of levels as marks, real beside made-up; the least alike first."""
    curves, dots = [], []
    alike = {row.column: row.similarity for row in found.to_frame().itertuples()}
    for name in sorted(alike, key=lambda name: alike[name])[:COLUMNS]:
        j = found.fine.place(name)
        real, made = (shares(side.estimates[j,]) for side in (found.real, found.made))
        column = found.fine.columns[j]
        note = noise_note(found) if found.real.sigma((j,)) else ""
        real_name = "real, from noisy tables" if found.real.sigma((j,)) else "real"
        if column.kind in ("number", "integer"):
            curves.append(steps_of(found.fine, j, real, made, real_name, note))
        else:
            dots.append(marks_of(found.fine, j, real, made, real_name, note))
    return curves, dots


def steps_of(codes: Codes, j: int, real: Array, made: Array, real_name: str, note: str) -> Curve:
    """One column of numbers: shares of bins, drawn over their ends; a missing value is said below."""
    column, ends = codes.columns[j], codes.ends(j)
    bins = len(ends) - 1
    if column.optional:
        note = f"Missing: {_percent(real[bins])} of real and {_percent(made[bins])} of made-up records. {note}".strip()
    x = tuple(np.repeat(ends, 2)[1:-1].tolist())
    lines = [
        Series(name, x, tuple(np.repeat(np.maximum(part[:bins], 0.0), 2).tolist()), style)
        for name, part, style in ((real_name, real, "reference"), ("made-up", made, "main"))
    ]
    return Curve(
        column.name, f"{column.name} ({column.unit})" if column.unit else column.name, "share", tuple(lines), note=note
    )


def marks_of(codes: Codes, j: int, real: Array, made: Array, real_name: str, note: str) -> Dots:
    """One column of levels: a row for each, with the share of real and of made-up records."""
    column = codes.columns[j]
    levels = [*(("0", "1") if column.kind == "binary" else column.levels), *(("missing",) if column.optional else ())]
    order = np.argsort(-made, kind="stable")[:LEVELS]
    if len(levels) > LEVELS:
        note = f"The {LEVELS} levels that are made most often, of {len(levels)}. {note}".strip()
    marks = tuple((name, tuple(np.maximum(part[order], 0.0).tolist())) for name, part in ((real_name, real), ("made-up", made)))
    return Dots(column.name, "share", tuple(str(levels[place]) for place in order), marks, note=note)


def heats_of(found: Quality) -> list[Heat]:
    """Matrices: how alike pairs of columns are, and by how much correlations of numbers differ."""
    noise = noise_note(found) if found.real.noisy else ""
    made = []
    pairs = found.pairs
    if pairs.notna().to_numpy().any():
        low = float(np.nanmin(pairs.to_numpy()))
        floor = min(0.9, math.floor(10 * low) / 10)  # so that colours of one page are those of another
        sentence = (
            "One less half of the summed differences of each two columns' table of shares: 1 is equal. "
            f"The least alike: {_least(pairs)}."
        )
        note = f"The stronger the colour, the less alike: none at 1, full at {floor:g}. {noise}".strip()
        made.append(_heat("How alike pairs of columns are", pairs, (1 - pairs) / (1 - floor), sentence, note))
    r, s = found.correlations
    difference = s - r
    if difference.notna().to_numpy().any():
        mean = float(np.nanmean(correlation_similarity(r, s)))
        sentence = f"Made-up less real, of the middles of bins; mean similarity {mean:.4f}."
        note = f"The stronger the colour, the larger the difference: full at 0.2. {noise}".strip()
        made.append(_heat("By how much correlations differ", difference, difference.abs() / 0.2, sentence, note))
    return made


def noise_note(found: Quality) -> str:
    """What the real side of a private run is."""
    return "The real side is estimated from noisy tables."


def _heat(title: str, frame: pandas.DataFrame, shade: pandas.DataFrame, sentence: str, note: str) -> Heat:
    rows, columns = (tuple(str(name) for name in axis) for axis in (frame.index, frame.columns))
    counts = tuple(tuple(round(value, 3) for value in row) for row in frame.to_numpy().tolist())
    shades = np.clip(np.nan_to_num(shade.to_numpy()), 0.0, 1.0)
    return Heat(title, rows, columns, counts, sentence, tuple(tuple(row) for row in shades.tolist()), note)


def _least(pairs: pandas.DataFrame) -> str:
    values = pairs.to_numpy()
    i, j = np.unravel_index(np.nanargmin(values), values.shape)
    return f"{pairs.index[i]} and {pairs.columns[j]} ({values[i, j]:.3f})"


def _percent(share: float) -> str:
    return f"{100 * max(share, 0.0):.1f} %"
