"""Comparisons: a study by rows and columns, sweeps, and their tables and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .attack_matrix.matrix_cells import MatrixCell, matrix_cells
    from .attack_matrix.matrix_run import MatrixResult, check_matrix, run_matrix
    from .cells import Cell, cells, sweep
    from .rehearse import rehearse_cells
    from .run import Compared, compare

__all__ = [
    "Cell",
    "Compared",
    "MatrixCell",
    "MatrixResult",
    "cells",
    "check_matrix",
    "compare",
    "matrix_cells",
    "rehearse_cells",
    "run_matrix",
    "sweep",
]

lazily(__name__)
