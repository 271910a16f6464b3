"""Studies: whole experiments in one TOML file, the programs they can run, and the runner."""

from .catalogue import PROGRAMS
from .listing import Listing, Outcome
from .rehearse import Rehearsal, rehearse
from .runner import Result, read_report
from .runner import run as run_study
from .study import Study, bundled, load, parse
from .study import change as parse_change

__all__ = [
    "PROGRAMS",
    "Listing",
    "Outcome",
    "Rehearsal",
    "Result",
    "Study",
    "bundled",
    "load",
    "parse",
    "parse_change",
    "read_report",
    "rehearse",
    "run_study",
]
