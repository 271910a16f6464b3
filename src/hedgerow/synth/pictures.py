"""Pictures of quality: columns side by side, how alike pairs are, and by how much correlations differ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.report import BarChart, Heat

from .metrics import correlation_similarity, shares

if TYPE_CHECKING:
    import pandas

    from .assessed import Quality

LEVELS = 12
"""Levels that a figure shows: the most frequent made-up ones."""
BINS = 32
"""Bars of one colour that a figure shows."""
COLUMNS = 24
"""Columns of which figures are drawn, those that are least alike."""


def histograms_of(found: Quality) -> list[BarChart]:
    """Shares of the bins and levels of each column, real beside made-up; the least alike columns first."""
    frame = found.to_frame()
    alike = dict(zip(map(str, frame["column"]), map(float, frame["similarity"]), strict=True))
    return [bars_of(found, found.fine.place(name)) for name in sorted(alike, key=lambda name: alike[name])[:COLUMNS]]


def bars_of(found: Quality, j: int) -> BarChart:
    """One column. Of bins beyond `BINS` neighbours are drawn together; of levels the most frequent made-up ones are drawn."""
    column, ends = found.fine.columns[j], found.fine.ends(j)
    real, made = (shares(side.estimates[j,]) for side in (found.real, found.made))
    noisy = found.real.sigma((j,)) > 0
    notes, said = [noise_note(found)] * noisy, "real, from noisy tables" if noisy else "real"
    if column.kind in ("number", "integer"):
        bins = len(ends) - 1
        if column.optional:
            notes.insert(0, f"Missing: {_percent(real[bins])} of real and {_percent(made[bins])} of made-up records.")
        starts = np.arange(0, bins, -(-bins // BINS))
        if column.kind == "integer":
            ends = np.append(found.fine.whole_ends(j)[0], ends[-1])  # the first whole number of each bin
        drawn = tuple(
            (name, tuple(np.add.reduceat(part[:bins], starts).tolist())) for name, part in ((said, real), ("made-up", made))
        )
        label = f"{column.name} ({column.unit})" if column.unit else column.name
        return BarChart(column.name, label, drawn, ends=(*ends[starts].tolist(), float(ends[-1])), note=" ".join(notes))
    levels = [*(("0", "1") if column.kind == "binary" else column.levels), *(("missing",) if column.optional else ())]
    order = np.argsort(-made, kind="stable")[:LEVELS]
    if len(levels) > LEVELS:
        notes.insert(0, f"The {LEVELS} levels that are made most often, of {len(levels)}.")
    drawn = tuple((name, tuple(part[order].tolist())) for name, part in ((said, real), ("made-up", made)))
    return BarChart(column.name, column.name, drawn, tuple(str(levels[place]) for place in order), note=" ".join(notes))


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
        ) + (f" Noise alone costs about {found.noise_cost:.3f} of the mean." if found.noise_cost else "")
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
    i, j = divmod(int(np.nanargmin(values)), values.shape[1])
    return f"{pairs.index[i]} and {pairs.columns[j]} ({values[i, j]:.3f})"


def _percent(share: float) -> str:
    return f"{100 * max(share, 0.0):.1f} %"
