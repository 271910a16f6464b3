"""Data frames as tables of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .model import Cell, Grid

if TYPE_CHECKING:
    import pandas


def grid_of(title: str, frame: pandas.DataFrame, note: str = "") -> Grid:
    """A data frame as a table; a named index is its first column."""
    numbered = type(frame.index).__name__ == "RangeIndex" and frame.index.name is None
    shown = frame if numbered else frame.reset_index(names=str(frame.index.name or ""))
    rows = tuple(tuple(_plain(cell) for cell in row) for row in shown.itertuples(index=False))
    return Grid(title, tuple(str(name) for name in shown.columns), rows, note)


def _plain(value: Any) -> Cell:
    if isinstance(value, (np.floating, float)):
        return float(value)
    if isinstance(value, (np.integer, int)):
        return int(value)
    return None if value is None else str(value)
