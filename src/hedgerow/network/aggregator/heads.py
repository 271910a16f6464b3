"""Whether an aggregator's journal is the one that it had: after an older one an epoch could be served twice.

As at stations (`hedgerow.network.station.heads`): a head in the key folder, and those that the coordinator gives back. An
aggregator whose journal lacks entries does not start and answers nothing until the right copy is restored, or it has a new key.
"""

from __future__ import annotations

from pathlib import Path

from hedgerow.errors import JournalLost
from hedgerow.network.station.heads import FILE, JournalHeads, read_mark
from hedgerow.wire.heads import Head


class AggregatorHeads(JournalHeads):
    """The journal of an aggregator against what is known of it elsewhere."""

    needs = frozenset({"board", "aggregate"})

    def problem(self, had: Head) -> JournalLost:
        return journal_lost(self.journal.base.path, had, f"has {self.journal.head().number} entries, or others in their place")


def refuse_missing(keys: Path, database: Path) -> None:
    """Refuse an aggregator that had a journal, and has no database, before one is made in its place.

    Raises
    ------
    JournalLost (HR-618)
    """
    mark = read_mark(keys / FILE)
    if mark is not None and not database.exists():
        raise journal_lost(database, mark, "is not there")


def journal_lost(database: Path, had: Head, what: str) -> JournalLost:
    """The refusal of a journal that lacks what it had."""
    return JournalLost(
        f"the journal of this aggregator had {had.number} entries, and {database} {what}: which epochs it served is not known.",
        remedy="Restore the newest copy of its state folder. If there is none that is whole, make a new key for shares, which "
        f"every station then pins: hedgerow aggregator rekey {database.parent.parent}",
        asked=False,
    )
