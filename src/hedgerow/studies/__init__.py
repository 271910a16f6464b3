"""Studies: whole experiments in one TOML file, the programs they can run, and the runner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from hedgerow.report import Outcome

    from .abroad import build_abroad
    from .catalogue import PROGRAMS
    from .cells import Cell, cells, sweep
    from .changes import change as parse_change
    from .compare import Compared, compare
    from .rehearse import Rehearsal, rehearse, rehearse_built, rehearse_cells
    from .runner import Result, read_report
    from .runner import run as run_study
    from .study import Study, bundled, load, parse

__all__ = [
    "PROGRAMS",
    "Cell",
    "Compared",
    "Outcome",
    "Rehearsal",
    "Result",
    "Study",
    "build_abroad",
    "bundled",
    "cells",
    "compare",
    "load",
    "parse",
    "parse_change",
    "read_report",
    "rehearse",
    "rehearse_built",
    "rehearse_cells",
    "run_study",
    "sweep",
]

lazily(__name__)
