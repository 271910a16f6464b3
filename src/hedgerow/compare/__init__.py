"""Comparisons: a study by rows and columns, sweeps, and their tables and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .cells import Cell, cells, sweep
    from .rehearse import rehearse_cells
    from .run import Compared, compare

__all__ = [
    "Cell",
    "Compared",
    "cells",
    "compare",
    "rehearse_cells",
    "sweep",
]

lazily(__name__)
