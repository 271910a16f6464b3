"""Study files: read, checked, built, run, rehearsed and explained; the programs that they can name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from hedgerow.report import Outcome

    from .apart.foreseen import rules_of, will_learn
    from .catalogue import PROGRAMS, VERTICAL
    from .changes import change as parse_change
    from .checking import check_study, sentence_about
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
    "check_study",
    "load",
    "parse",
    "parse_change",
    "read_report",
    "rehearse",
    "rehearse_built",
    "rules_of",
    "run_study",
    "sentence_about",
    "will_learn",
]

lazily(__name__)
