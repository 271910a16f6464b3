"""Ledgers on disk: what `Ledger.attach` writes to, and how commands and reports read it.

FOLDER/ledger.jsonl   a run's own ledger, a line for each entry (`LedgerFile`)
*.sqlite              a ledger that runs share (`LedgerBase`): two processes cannot spend a budget twice, since a transaction
                      takes the file's write lock, reads what other runs wrote, and only then is the next entry admitted and
                      written

An entry is on the disk before its question leaves. So a crash can leave a debit without a release, but never a release without
a debit.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from hedgerow.core.ledger import Entry, Ledger
from hedgerow.core.limits import Limit, Record
from hedgerow.errors import CannotWrite, LedgerDamaged, StudyInvalid, UnknownStudy

from .database import Database
from .journal import Journal, JournalTable
from .lines import Lines, read_lines
from .links import ChainLink, damaged
from .snapshot import write_bytes

FILE = "ledger.jsonl"
"""Name of the ledger in a run folder."""

ENTRIES = JournalTable("entries", {"run": "TEXT"})


class LedgerFile:
    """A run's own ledger: a file of lines, for `Ledger.attach`; an existing file is read, checked and continued.

    The file belongs to one run: a process that finds lines of another one refuses to go on. Runs that share a budget keep a
    `LedgerBase`.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._lines = Lines(self.path)

    def __repr__(self) -> str:
        return f"LedgerFile({str(self.path)!r})"

    @property
    def head(self) -> str:
        """Hash of the last line, as far as this object has read or written; "" before the first."""
        return self._lines.head

    def read(self) -> list[Entry]:
        """Read the entries, check their chain, and drop a last line that a crash cut short: its question was never asked.

        Raises
        ------
        LedgerDamaged (HR-231)
            A line was changed, lost or added.
        """
        return entries_of(self._lines.read(), self.path)

    @contextmanager
    def transaction(self) -> Iterator[list[Entry]]:
        """No other run writes here, so there is nothing to wait for; `write` refuses if one did."""
        yield []

    def write(self, entry: Entry) -> None:
        """Append an entry and wait until it is on the disk.

        Raises
        ------
        CannotWrite (HR-104)
            The file is as it was before; or another process wrote to it.
        """
        self._lines.append(json.dumps(entry.to_json()))


@dataclass
class LedgerBase:
    """A database of entries of many runs, for `Ledger.attach`; made if missing, else read, checked and continued.

    Parameters
    ----------
    path : Path
        On a disk of this machine, in a folder that is there.
    run : str
        Name of this run, another for every run, and the same again when it is resumed. Random by default.
    patience : float
        Seconds to wait for another process to end its transaction.
    """

    path: Path
    run: str = field(default_factory=lambda: secrets.token_hex(8))
    patience: float = 60.0
    head: str = field(default="", init=False)
    """Hash of the last entry, as far as this object has read or written."""

    _seen: int = field(default=0, init=False, repr=False)
    _waiting: list[Entry] = field(default_factory=list, init=False, repr=False)
    _connection: sqlite3.Connection | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.path = Path(self.path)
        if not self.run or "\n" in self.run:
            raise StudyInvalid(f"{self.run!r} is no name of a run.", remedy="Leave `run` out for a random one.")

    @cached_property
    def _journal(self) -> Journal:
        return Journal(_database(self.path, self.patience), ENTRIES)

    def read(self) -> list[Entry]:
        """Read all entries, check their chain, and return those of this run.

        Raises
        ------
        LedgerDamaged (HR-231)
            An entry was changed, lost or added, or the file is no ledger.
        """
        genesis, *links = self._journal.checked()
        self._seen, self.head = (links or [genesis])[-1].number, (links or [genesis])[-1].hash
        self._waiting = entries_of((link for link in links if link.columns != (self.run,)), self.path)
        return entries_of((link._replace(columns=()) for link in links if link.columns == (self.run,)), self.path)

    @contextmanager
    def transaction(self) -> Iterator[list[Entry]]:
        """Keep other writers out meanwhile; gives what other runs wrote and no transaction gave before.

        Raises
        ------
        CannotWrite (HR-104)
            Other processes did not end their transactions in time, or this run is continued by another process as well.
        """
        with self._journal.database.transaction() as connection:
            newer = self._journal.checked(self._seen, self.head)[1:]
            if any(link.columns == (self.run,) for link in newer):
                raise CannotWrite(
                    f"{self.path} holds entries of run {self.run} that this process did not write; nothing was asked.",
                    remedy="Let one process continue a run. After a debit that was cut short, resume the run.",
                    asked=False,
                )
            if newer:
                self._seen, self.head = newer[-1].number, newer[-1].hash
            given = [*self._waiting, *entries_of(newer, self.path)]
            self._waiting, self._connection = [], connection
            try:
                yield given
            finally:
                self._connection = None

    def write(self, entry: Entry) -> None:
        """Append an entry within a transaction, and wait until it is on the disk; then the transaction is over.

        Raises
        ------
        CannotWrite (HR-104)
            The file is as it was before.
        """
        if self._connection is None or not self._connection.in_transaction:
            remedy = "with record.transaction(): record.write(entry)"
            raise CannotWrite(f"{self.path}: an entry was to be written outside a transaction.", remedy=remedy, asked=False)
        link = self._journal.append(((self.run,), json.dumps(entry.to_json())))
        self._connection.execute("COMMIT")
        self._seen, self.head = link.number, link.hash

    def charge(self, entry: Entry) -> None:
        """Charge an entry that was written, but whose question will not be asked, like one of another run."""
        self._waiting.append(marked(entry, self.run))


@dataclass
class LedgerPair:
    """A shared ledger and a run's own file with a copy of its entries: first the debit is in the one, then in the other."""

    base: LedgerBase
    copy: LedgerFile

    @property
    def head(self) -> str:
        """Hash of the last entry of the shared ledger."""
        return self.base.head

    def read(self) -> list[Entry]:
        """Read both; entries that a crash kept out of the copy are added to it."""
        own, kept = self.base.read(), self.copy.read()
        if own[: len(kept)] != kept:
            remedy = "Restore both files from copies that were made together."
            raise LedgerDamaged(f"{self.copy.path} has entries that {self.base.path} has not.", remedy=remedy)
        for entry in own[len(kept) :]:
            self.copy.write(entry)
        return own

    def transaction(self) -> AbstractContextManager[list[Entry]]:
        return self.base.transaction()

    def write(self, entry: Entry) -> None:
        self.base.write(entry)
        try:
            self.copy.write(entry)
        except CannotWrite:
            self.base.charge(entry)
            raise


def record_of(folder: str | Path, shared: str | Path | None = None) -> Record:
    """Return the record of a run folder: its own file, and where runs share a budget their common ledger before it.

    The folder keeps the random name under which the run is known to the shared ledger.
    """
    folder = Path(folder)
    copy = LedgerFile(folder / FILE)
    if shared is None:
        return copy
    name = folder / "run"
    if not name.exists():
        write_bytes(name, secrets.token_hex(8).encode())
    return LedgerPair(LedgerBase(Path(shared), name.read_text()), copy)


# ---- reading ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Chain:
    """A ledger whose chain holds.

    Attributes
    ----------
    path : Path
        The file.
    entries : tuple of Entry
        In the order in which they were written; those of a shared ledger are marked with their run.
    hashes : tuple of str
        The chain before the first entry, and after each.
    torn : bool
        Whether a crash, or a process that is writing now, left half a line at the end. Its question was not asked.
    """

    path: Path
    entries: tuple[Entry, ...]
    hashes: tuple[str, ...]
    torn: bool = False

    @property
    def head(self) -> str:
        """Hash of the last entry. Who keeps it elsewhere can tell later that no entry was removed from the end."""
        return self.hashes[-1]

    def since(self, head: str) -> int:
        """Return how many entries were written since the ledger had this head.

        Raises
        ------
        LedgerDamaged (HR-231)
            It never had: entries were removed from the end, or all of it was written anew.
        """
        if head not in self.hashes[1:]:
            raise LedgerDamaged(
                f"{self.path} never had the head {head}: entries at its end were removed, or all of it was written anew.",
                remedy="Restore the file from a copy; a ledger is never edited.",
            )
        return len(self.hashes) - 1 - self.hashes.index(head, 1)

    def ledger(self, limit: Limit | None = None) -> Ledger:
        """Return the entries as a ledger in memory, for an accountant."""
        ledger = Ledger(limit)
        ledger.others = list(self.entries)
        return ledger


def read_chain(path: str | Path) -> Chain:
    """Read and check the ledger of a run folder, or a ledger file of either form, and change nothing.

    Raises
    ------
    UnknownStudy (HR-102)
        There is none.
    LedgerDamaged (HR-231)
        With the number of the first damaged entry.
    """
    path = Path(path)
    found = path / FILE if path.is_dir() else path
    if not found.is_file():
        raise UnknownStudy(
            f"{path} holds no ledger.", remedy=f"Give a run folder, its {FILE}, or a ledger that runs share (*.sqlite)."
        )
    if found.suffix == ".jsonl":
        (links, torn), root = read_lines(found), ""
    else:
        with closing(_database(found, made=False)) as database:
            [genesis, *links], torn = Journal(database, ENTRIES).checked(), False
            root = genesis.hash
    return Chain(found, tuple(entries_of(links, found)), (root, *(link.hash for link in links)), torn)


def entries_of(links: Iterable[ChainLink], path: Path) -> list[Entry]:
    """The entries of a ledger; those of a shared one are marked with their run.

    Raises
    ------
    LedgerDamaged (HR-231)
    """
    found = []
    for link in links:
        try:
            entry = Entry.from_json(json.loads(link.text))
            found.append(marked(entry, *link.columns) if link.columns else entry)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise damaged(path, link.number, str(error)) from error
    return found


def marked(entry: Entry, run: str) -> Entry:
    """An entry as other runs see it: with its run, and with the federation inside it where it names one."""
    return replace(entry, run=f"{run}/{entry.run}" if entry.run else run)


def _database(path: Path, patience: float = 60.0, *, made: bool = True) -> Database:
    return Database(path, [ENTRIES], b"hdgr", "a ledger of Hedgerow", patience, private=False, made=made)
