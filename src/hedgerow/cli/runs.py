"""Where `hedgerow run` writes by itself, and which of the runs there is that of a study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hedgerow.study import Study

RUNS = Path("runs")


def fresh_folder(folder: Path, name: str, *, resume: bool = False) -> Path:
    """The latest run of this name where it is resumed, else the next free number."""
    taken = sorted(folder.glob(f"{name}-[0-9][0-9][0-9]"))
    if resume and taken:
        return taken[-1]
    number = int(taken[-1].name[-3:]) + 1 if taken else 1
    return folder / f"{name}-{number:03d}"


def newest_run(study: Study, folder: Path = RUNS) -> Path | None:
    """The newest finished run of this study as it is now; None where there is none. A study that changed has none."""
    from hedgerow.errors import HedgerowError
    from hedgerow.study import load

    for path in sorted(folder.glob(f"{study.name}-[0-9][0-9][0-9]"), reverse=True):
        try:
            if (path / "result.json").exists() and _asked(load(path / "study.toml")) == _asked(study):
                return path
        except HedgerowError:  # of another version, or damaged
            continue
    return None


def _asked(study: Study) -> str:
    """The digest of a study before noise was planned for its budget, which a run's folder has as planned."""
    mechanism, budget = study.protection.mechanism, study.budget
    if mechanism is None or budget is None:
        return study.digest
    unplanned = mechanism.model_copy(update={"noise_multiplier": None})
    return study.model_copy(update={"protection": study.protection.model_copy(update={"mechanism": unplanned})}).digest
