"""A station whose table is closed: its records do not fit what is declared of them, and until they do it answers no question.

    hello        who is here, and about how many values were refused: a multiple of 5, rounded up
    board, ask   HR-614
    end          noted

Lines, columns and what is wrong with them stay in the station's own log. Nothing of a value leaves, and no column is named.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hedgerow.core.disclosure import LEAST, rounded
from hedgerow.errors import SourceUnreadable

from .base import Base
from .children.runner import Done, StudyChild, ToOpen, ToRehearse
from .code import installed_version
from .config import StationConfig
from .local_data import Held, HeldElsewhere, Roll

NEEDS = frozenset({"board", "ask"})
"""Letters that are about records."""
ROLL = "roll"
"""Under which a station that starts keeps who its parties are."""


def rounded_up(count: int) -> int:
    """A count above zero as others see it: the next multiple of 5."""
    return -(-count // LEAST) * LEAST


def greeting(config: StationConfig, held: Held, closed: int = 0) -> dict[str, Any]:
    """What a station says of itself."""
    held_by = config.data.held_dictionary
    return {
        "version": installed_version(),
        "data": config.data.name,
        "schema": tuple(held.schema.columns),
        "parties": held.ids,
        "records": rounded(int(held.sizes.sum())) if config.guard.tell_records and not closed else None,
        "dictionary": ("", "") if held_by is None else (held_by.label, held_by.digest),
        "absent": tuple(sorted(config.data.absent)),
        "closed": rounded_up(closed),
    }


def admit_open(kind: str, closed: int) -> None:
    """Refuse letters about records that are not there.

    Raises
    ------
    SourceUnreadable (HR-614)
    """
    if closed and kind in NEEDS:
        raise SourceUnreadable(
            f"the table is closed: {closed} values were refused when the station started.",
            remedy="Mend them, or what is declared of them (hedgerow station check says where), and start the station again.",
        )


def held_closed(config: StationConfig, base: Base) -> Held:
    """What is known of a station without its records: its columns, and its parties as they were when it was last open."""
    raw = base.found(ROLL)
    roll = Roll((config.name,)) if raw is None else Roll.unpack(raw)
    return HeldElsewhere(config.declared, roll, np.zeros(len(roll), np.int64))


class Nothing:
    """The runner of a closed station, which is never asked."""

    def rehearse(self, task: ToRehearse, done: Done, off: Callable[[], bool]) -> None:
        """Refuse."""
        admit_open("board", 1)

    def open(self, task: ToOpen, off: Callable[[], bool]) -> StudyChild:
        """Refuse."""
        raise SourceUnreadable("the table is closed.")

    def stop(self, study: str) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """Nothing runs."""
