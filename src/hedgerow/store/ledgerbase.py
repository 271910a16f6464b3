"""A ledger that runs share: an append-only table of entries in one SQLite file, chained by hashes.

Two processes cannot spend a budget twice: a turn takes the file's write lock, reads what other runs wrote, and only then is
the next entry admitted and written, in the same transaction. Nothing is asked before that transaction is on the disk.

    number   0 is the genesis, which holds a random name of this ledger; then 1, 2, 3 without a gap
    run      whose entry it is: numbers of questions and cohorts are a run's own
    entry    JSON
    hash     128 bits of the SHA-256 of the previous hash, the run and the entry

Triggers refuse to change or delete a row. The journal is a rollback journal, not a write-ahead log: entries are then in one
file, which can be copied, and no shared memory is needed. It is deleted, and its folder is synced (`synchronous = EXTRA`),
before a question leaves; with less, a journal that comes back after a power cut would undo the debit of a release.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from hedgerow.core.ledger import Entry
from hedgerow.errors import CannotWrite, LedgerDamaged, StudyInvalid

from .checkpoint import sync_folder
from .ledgerfile import LedgerFile, hash_of

FORMAT = 1
APPLICATION = int.from_bytes(b"hdgr", "big")

_REFUSED = "BEGIN SELECT raise(ABORT, 'a ledger is never edited'); END"
TABLES = (
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, run TEXT NOT NULL, entry TEXT NOT NULL, hash TEXT NOT NULL)",
    f"CREATE TRIGGER never_changed BEFORE UPDATE ON entries {_REFUSED}",
    f"CREATE TRIGGER never_deleted BEFORE DELETE ON entries {_REFUSED}",
    "CREATE TRIGGER in_turn BEFORE INSERT ON entries "
    "WHEN NEW.number IS NOT (SELECT coalesce(max(number), -1) + 1 FROM entries) "
    "BEGIN SELECT raise(ABORT, 'an entry out of turn'); END",
)


class Row(NamedTuple):
    """One row of the table."""

    number: int
    run: str
    text: str
    hash: str

    def entry(self) -> Entry:
        """The entry, marked with its run, and with the federation inside it where it names one."""
        return marked(self.own(), self.run)

    def own(self) -> Entry:
        """The entry as its run wrote it."""
        return Entry.from_json(json.loads(self.text))


@dataclass
class LedgerBase:
    """A file of entries of many runs, for `Ledger.attach`; made if missing, else read, checked and continued.

    Parameters
    ----------
    path : Path
        On a disk of this machine: network file systems do not keep the locks that this needs.
    run : str
        Name of this run, another for every run, and the same again when it is resumed. Random by default.
    patience : float
        Seconds to wait for another process to end its turn.
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

    def read(self) -> list[Entry]:
        """Read all entries, check their chain, and return those of this run.

        Raises
        ------
        LedgerDamaged (HR-231)
            An entry was changed, lost or added, or the file is no ledger.
        """
        with self._open() as connection:
            rows = checked(_rows(connection, 0, self.path), self.path)
        self._seen, self.head = rows[-1].number, rows[-1].hash
        self._waiting = [row.entry() for row in rows[1:] if row.run != self.run]
        return [row.own() for row in rows[1:] if row.run == self.run]

    @contextmanager
    def transaction(self) -> Iterator[list[Entry]]:
        """Keep other writers out meanwhile; gives what other runs wrote and no turn gave before.

        Raises
        ------
        CannotWrite (HR-104)
            Other processes did not end their turns in time, or this run is continued by another process as well.
        """
        with self._open() as connection:
            newer = checked(_rows(connection, self._seen, self.path), self.path, self.head)[1:]
            if any(row.run == self.run for row in newer):
                raise CannotWrite(
                    f"{self.path} holds entries of run {self.run} that this process did not write; nothing was asked.",
                    remedy="Let one process continue a run. After a debit that was cut short, resume the run.",
                    asked=False,
                )
            if newer:
                self._seen, self.head = newer[-1].number, newer[-1].hash
            given = [*self._waiting, *(row.entry() for row in newer)]
            self._waiting, self._connection = [], connection
            try:
                yield given
            finally:
                self._connection = None

    def write(self, entry: Entry) -> None:
        """Append an entry within a turn, and wait until it is on the disk; then the turn is over.

        Raises
        ------
        CannotWrite (HR-104)
            The file is as it was before.
        """
        if self._connection is None or not self._connection.in_transaction:
            remedy = "with record.transaction(): record.write(entry)"
            raise CannotWrite(f"{self.path}: an entry was to be written out of turn.", remedy=remedy, asked=False)
        row = _next_row(Row(self._seen, "", "", self.head), self.run, entry)
        with _translated(self.path):
            self._connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", row)
            self._connection.execute("COMMIT")
        self._seen, self.head = row.number, row.hash

    def charge(self, entry: Entry) -> None:
        """Charge an entry that was written, but whose question will not be asked, like one of another run."""
        self._waiting.append(marked(entry, self.run))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection that holds the write lock. A connection for each turn outlives neither a fork nor a thread."""
        with _translated(self.path):
            connection = sqlite3.connect(self.path, timeout=self.patience, isolation_level=None)
            connection.text_factory = _text
        with closing(connection):
            with _translated(self.path):
                durable(connection, self.path)
                connection.execute("BEGIN IMMEDIATE")
                if not _is_ledger(connection, self.path):
                    _make(connection)
                    sync_folder(self.path.parent)
                    connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")


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

    @contextmanager
    def transaction(self) -> Iterator[list[Entry]]:
        with self.base.transaction() as newer:
            yield newer

    def write(self, entry: Entry) -> None:
        self.base.write(entry)
        try:
            self.copy.write(entry)
        except CannotWrite:
            self.base.charge(entry)
            raise


def marked(entry: Entry, run: str) -> Entry:
    """An entry as other runs see it."""
    return replace(entry, run=f"{run}/{entry.run}" if entry.run else run)


def durable(connection: sqlite3.Connection, path: Path) -> None:
    """Let a commit return only when a power cut cannot undo it."""
    for setting in ("synchronous = EXTRA", "fullfsync = ON"):
        connection.execute(f"PRAGMA {setting}")
    [mode] = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    if mode != "delete":
        raise CannotWrite(f"{path}: its journal cannot be kept in a file, but in {mode!r} only.", asked=False)


def read_rows(path: Path, patience: float = 60.0) -> list[Row]:
    """Read and check a ledger that exists, the genesis first, and change nothing."""
    with _translated(path):
        where = f"{path.resolve().as_uri()}?mode=rw"
        connection = sqlite3.connect(where, uri=True, timeout=patience, isolation_level=None)
        connection.text_factory = _text
    with closing(connection), _translated(path):
        if not _is_ledger(connection, path):
            raise LedgerDamaged(f"{path} is empty: not even the first row of a ledger is in it.")
        return checked(_rows(connection, 0, path), path)


def checked(rows: Sequence[Row], path: Path, head: str | None = None) -> list[Row]:
    """Check that rows continue each other: from the genesis, or from a row with the hash `head`."""
    previous: Row | None = None
    for row in rows:
        if previous is None:
            fits = row.hash == hash_of(str(row.text)) if head is None else row.hash == head
        else:
            fits = row.number == previous.number + 1 and row.hash == _link(previous.hash, row.run, row.text)
        if not fits:
            raise _damaged(path, row.number, "it does not continue what comes before; an entry was changed, lost or added")
        previous = row
    if previous is None:
        raise _damaged(path, 0, "entries that were there are lost")
    if head is None and rows[0].number != 0:
        raise _damaged(path, 0, "the first row is lost")
    for row in rows[1:] if head is None else rows:
        if row.number:
            _readable(row, path)
    return list(rows)


def _readable(row: Row, path: Path) -> None:
    try:
        row.entry()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path, row.number, str(error)) from error


def _damaged(path: Path, number: int, reason: str) -> LedgerDamaged:
    remedy = "Restore the file from a copy; a ledger is never edited."
    return LedgerDamaged(f"entry {number} of {path}: {reason}.", remedy=remedy)


def _rows(connection: sqlite3.Connection, since: int, path: Path) -> list[Row]:
    asked = "SELECT number, run, entry, hash FROM entries WHERE number >= ? ORDER BY number"
    with _translated(path):
        return [Row(*row) for row in connection.execute(asked, (since,))]


def _link(previous: str, run: str, text: str) -> str:
    return hash_of(f"{previous}\n{run}\n{text}")


def _next_row(last: Row, run: str, entry: Entry) -> Row:
    text = json.dumps(entry.to_json())
    return Row(last.number + 1, run, text, _link(last.hash, run, text))


def _is_ledger(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file holds a ledger; False if it is empty, and an error if it holds something else."""
    [application] = connection.execute("PRAGMA application_id").fetchone()
    [version] = connection.execute("PRAGMA user_version").fetchone()
    [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application == APPLICATION and version == FORMAT:
        return True
    if application == 0 and tables == 0:
        return False
    remedy = "Name another file, or use the version of Hedgerow that wrote it."
    raise LedgerDamaged(f"{path} is no ledger of Hedgerow in format {FORMAT}.", remedy=remedy)


def _make(connection: sqlite3.Connection) -> None:
    """Make the table with its genesis, and commit."""
    for statement in TABLES:
        connection.execute(statement)
    genesis = json.dumps({"ledger of hedgerow": secrets.token_hex(16), "format": FORMAT})
    connection.execute("INSERT INTO entries VALUES (0, '', ?, ?)", (genesis, hash_of(genesis)))
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")


def _text(found: bytes) -> str:
    return found.decode(errors="replace")  # bytes that are no text break the chain, not the reader


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Errors of SQLite in words of the catalogue."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):  # locked, disk full, no permission, no such folder
            remedy = "Make room, choose another file, or let the other process end; then resume."
            raise CannotWrite(f"{path}: {error}; nothing was asked.", remedy=remedy, asked=False) from error
        remedy = "Restore the file from a copy; a ledger is never edited."
        raise LedgerDamaged(f"{path}: {error}.", remedy=remedy) from error
