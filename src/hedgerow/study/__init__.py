"""Study files: read, checked, built, run, rehearsed and explained; the programs that they can name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from hedgerow.report import Outcome

    from .catalogue import PROGRAMS, VERTICAL
    from .changes import change as parse_change
    from .rehearse import Rehearsal, rehearse, rehearse_built
    from .remote import build_remote
    from .runner import Result, read_report
    from .runner import run as run_study
    from .study import Study, bundled, load, parse

__all__ = [
    "PROGRAMS",
    "VERTICAL",
    "Outcome",
    "Rehearsal",
    "Result",
    "Study",
    "build_remote",
    "bundled",
    "load",
    "parse",
    "parse_change",
    "read_report",
    "rehearse",
    "rehearse_built",
    "run_study",
]

lazily(__name__)
