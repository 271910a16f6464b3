"""What a station's parties have answered within protocols, a file for each study, held against the station's journal.

The standing set of a study, its open rounds and its contexts are in that file and nowhere else. A party without it would begin
anew, and answer of other parties what it has answered of all; so a study whose file is gone, or lacks the latest, is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.errors import JournalLost

if TYPE_CHECKING:
    from .journal import StationEntry
    from .signatures import Announced


def refuse_forgotten(path: Path, announced: Announced, entries: Iterable[StationEntry]) -> None:
    """Refuse to go on with a study whose parties have forgotten what they answered.

    Parameters
    ----------
    path : Path
        The file.
    announced : Announced
        What the study may ask.
    entries : iterable of StationEntry
        Its journal, in order.

    Raises
    ------
    JournalLost (HR-618)
    """
    hidden = {kind.mark for kind in announced.signatures if kind.aggregation}
    letters, answered, cohort = set[int](), False, ""
    for entry in entries:
        if entry.code == "asked" and entry.signature in hidden:
            letters.add(entry.letter)
        elif entry.code == "answered":
            answered |= entry.letter in letters
            cohort = entry.cohort or cohort
    kept = path.read_bytes() if path.exists() else b""
    known = not cohort or f'"/set/{cohort.split(" ")[1]}'.encode() in kept
    if (kept or not answered) and known:
        return
    what = "lacks the parties of its last total" if kept else "is empty" if path.exists() else "is not there"
    raise JournalLost(
        f"parties have answered this study behind hidden rows, and {path} {what}: of whom totals were is not known here.",
        remedy="Restore the newest copy of the station's state folder, or submit the study anew under a guard that allows it.",
        asked=False,
    )
