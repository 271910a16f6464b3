"""Whether a station's journal is the one that it had, and all of it.

The station knows from two places outside its database how far its journal went:

    journal.json     in the key folder: the newest head that the coordinator has seen and signed, and the name of the journal.
                     Written with the first journal, at every start, and as heads come back
    the coordinator  gives back the newest head of this station with every letter (`hedgerow.wire.heads`)

A head of either that is not in the journal means that entries were lost: the database was deleted, emptied, replaced or
restored from an older copy, and what was spent since is not in the budgets. The station then does not start, and one that
runs lets no study board and answers no question, until its owner restores the right copy or begins anew (`begin_anew`).

Who restores both folders from one backup is told by the coordinator; who restores one of them, also by the other. Where both
folders are old and the coordinator lost its state as well, nobody knows.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from hedgerow.errors import CannotWrite, HedgerowError, JournalLost, KeyInvalid
from hedgerow.store import write_bytes
from hedgerow.wire.envelope import Letter
from hedgerow.wire.heads import Head, attached, detached, read_seen

from .journal import StationJournal

log = logging.getLogger("hedgerow")

FILE, FORMAT = "journal.json", 1
OFTEN = 32
"""Entries after which the file is written anew while questions are answered; it is written at any other letter as well."""

NEEDS = frozenset({"board", "ask"})
"""Letters that are refused once entries were lost."""

Parts = Callable[[Sequence[bytes]], Sequence[bytes]]


class KnowsItsHead(Protocol):
    """A journal in a database."""

    base: Any

    def head(self) -> Head:
        """How far the journal went."""

    def contains(self, head: Head) -> bool:
        """Whether the journal is the one of a head, and has its entry."""

    def generation(self) -> int:
        """How often its owner began anew after entries were lost."""


class JournalHeads:
    """The journal of a station, or of an aggregator, against what is known of it elsewhere.

    Parameters
    ----------
    journal : KnowsItsHead
    keys : Keys
        With a folder, where `path` names it; without one the file is kept in memory.
    coordinator : str
        Its name.
    """

    needs = NEEDS

    def __init__(self, journal: KnowsItsHead, keys: Any, coordinator: str) -> None:
        self.journal, self.keys, self.coordinator = journal, keys, coordinator
        folder = getattr(keys, "path", None)
        self.path = None if folder is None else Path(folder) / FILE
        self._mark = read_mark(self.path)
        self._lost: Head | None = None
        self._lock = threading.Lock()

    # ---- at a start --------------------------------------------------------------------------------------------------
    def check(self) -> None:
        """Compare the journal with the file, which is written where it is missing or older.

        Raises
        ------
        JournalLost (HR-618)
            The journal lacks what it had.
        """
        if self._mark is not None and not self.contains(self._mark):
            raise self.problem(self._mark)
        now = self.journal.head()
        if self._mark is None or self._mark.place < now.place:
            self._write(now)

    def contains(self, head: Head) -> bool:
        """Whether a head is one of this journal, or of one that is settled."""
        return head.generation < self.journal.generation() or self.journal.contains(head)

    # ---- with each letter --------------------------------------------------------------------------------------------
    def opened(self, letter: Letter) -> tuple[Letter, Parts]:
        """A letter without the head that came with it, which is compared; and what closes the parts of its answer."""
        parts, raw = detached(letter.parts)
        if raw is None:
            return letter, lambda parts: parts
        self._compare(raw, often=letter.kind not in ("ask", "aggregate"))
        return replace(letter, parts=parts), self._closed

    def admit(self, kind: str) -> None:
        """Refuse letters of some kinds where entries were lost.

        Raises
        ------
        JournalLost (HR-618)
        """
        if self._lost is not None and kind in self.needs:
            raise self.problem(self._lost)

    def problem(self, had: Head) -> JournalLost:
        """The refusal of a journal that lacks a head."""
        return lost(self.journal.base.path, had, self.journal.head())

    def note(self) -> None:
        """Keep how far the journal goes now, outside its database."""
        self._write(self.journal.head())

    def _closed(self, parts: Sequence[bytes]) -> Sequence[bytes]:
        return attached(parts, self.journal.head().signed(self.keys.key_material))

    def _compare(self, raw: bytes, *, often: bool) -> None:
        me, other = self.keys.key_material.public_identity, self.keys.public_identities[self.coordinator]
        try:
            head, at = read_seen(raw, other, me)
        except KeyInvalid:
            log.info("a head of this journal came back that was not signed with today's keys: it is not looked at")
            return
        except HedgerowError as error:
            log.warning("what came with a letter is no head of a journal: %s", error.reason)
            return
        with self._lock:
            self._judge(head, at, raw, often=often)

    def _judge(self, head: Head | None, at: str, raw: bytes, *, often: bool) -> None:
        if head is None:
            return
        if not self.contains(head):
            self._notice(head, at, raw)
        elif self._mark is None or (self._mark.place < head.place and (often or head.number >= self._mark.number + OFTEN)):
            self._write(head, at, raw)

    def _notice(self, head: Head, at: str, raw: bytes) -> None:
        if self._lost is None or self._lost.place < head.place:
            problem = self.problem(head)
            log.error("%s saw the journal on %s, and: %s %s", self.coordinator, at[:16], problem.reason, problem.remedy)
            self._lost = head
            self._write(head, at, raw)

    def _write(self, head: Head, at: str = "", raw: bytes = b"") -> None:
        self._mark = head
        try:
            write_mark(self.path, head, self.coordinator if raw else "", at, raw)
        except CannotWrite as error:
            log.warning("%s", error.reason)


def trouble(keys: Any, journal: StationJournal) -> str:
    """Why a station answers nothing, in a sentence for its owner; "" where its journal is whole, as far as is known."""
    folder = getattr(keys, "path", None)
    mark = read_mark(None if folder is None else Path(folder) / FILE)
    if mark is None or mark.generation < journal.generation() or journal.contains(mark):
        return ""
    problem = lost(journal.base.path, mark, journal.head())
    return f"{problem.reason} {problem.remedy}"


def read_mark(path: Path | None) -> Head | None:
    """The head in a key folder; None where no journal was ever made.

    Raises
    ------
    KeyInvalid (HR-244)
        The file is damaged.
    """
    if path is None or not path.exists():
        return None
    try:
        found = json.loads(path.read_bytes())
        if found["hedgerow"] != FORMAT:
            raise ValueError("another format")
        return Head(
            int(found["generation"]), bytes.fromhex(found["journal"]), int(found["number"]), bytes.fromhex(found["hash"])
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KeyInvalid(
            f"{path} cannot be read: {error}.", remedy="Restore the key folder from a backup.", asked=False
        ) from error


def write_mark(path: Path | None, head: Head, by: str = "", at: str = "", seen: bytes = b"") -> None:
    """Keep a head in a key folder, with what the coordinator signed of it.

    Raises
    ------
    CannotWrite (HR-104)
    """
    if path is None:
        return
    about = {"generation": head.generation, "journal": head.journal.hex(), "number": head.number, "hash": head.hash.hex()}
    signed = {"by": by, "at": at, "signed": seen.hex()} if seen else {}
    write_bytes(path, json.dumps({"hedgerow": FORMAT, **about, **signed}, indent=1).encode(), private=True)


def refuse_missing(keys: Path, database: Path) -> None:
    """Refuse a station that had a journal, and has no database, before one is made in its place.

    Raises
    ------
    JournalLost (HR-618)
    """
    mark = read_mark(keys / FILE)
    if mark is not None and not database.exists():
        raise lost(database, mark, None)


def lost(database: Path, had: Head, has: Head | None) -> JournalLost:
    """The refusal of a journal that lacks what it had."""
    if has is None:
        what = "is not there"
    elif has.journal != had.journal:
        what = f"holds another journal, of {has.number} entries"
    else:
        what = f"has {has.number} entries, and lacks the latest or holds others in their place"
    folder = database.parent.parent
    return JournalLost(
        f"the journal of this station had {had.number} entries, and {database} {what}: what was spent is not known here.",
        remedy="Stop the station, and restore the newest copy of its state folder. If there is none that is whole, its owner "
        f"decides: hedgerow station begin-anew {folder} --because REASON, which counts the budget as spent.",
        asked=False,
    )
