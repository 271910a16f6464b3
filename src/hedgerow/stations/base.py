"""A station's database: `state/station.sqlite`, written by the service, the command and the console page, one at a time.

    keep      a secret and other single values
    trains    studies that asked to board, and what was decided
    journal   everything asked and answered, with every charge; never changed

A write-ahead log with `synchronous = FULL`: a commit returns when a power cut cannot undo it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hedgerow.errors import CannotWrite, LedgerDamaged

FORMAT = 1
APPLICATION = int.from_bytes(b"hdgs", "big")
_REFUSED = "BEGIN SELECT raise(ABORT, 'a journal is never edited'); END"
TABLES = (
    "CREATE TABLE keep (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE trains (study TEXT PRIMARY KEY, status TEXT NOT NULL, came TEXT NOT NULL, toml BLOB NOT NULL, "
    "told BLOB NOT NULL, digest BLOB NOT NULL, about TEXT NOT NULL, decision TEXT NOT NULL, signature BLOB NOT NULL)",
    "CREATE TABLE journal (number INTEGER PRIMARY KEY, study TEXT NOT NULL, letter INTEGER NOT NULL, entry TEXT NOT NULL, "
    "hash TEXT NOT NULL)",
    "CREATE INDEX journal_of ON journal (study, letter)",
    f"CREATE TRIGGER journal_never_changed BEFORE UPDATE ON journal {_REFUSED}",
    f"CREATE TRIGGER journal_never_deleted BEFORE DELETE ON journal {_REFUSED}",
    "CREATE TRIGGER journal_in_turn BEFORE INSERT ON journal "
    "WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM journal) "
    "BEGIN SELECT raise(ABORT, 'an entry out of turn'); END",
)


class Base:
    """A connection to a station's database, made with its folder when missing.

    Parameters
    ----------
    path : Path
    patience : float
        Seconds to wait for another process to end its turn.

    Raises
    ------
    CannotWrite (HR-104)
        The folder cannot be written.
    LedgerDamaged (HR-231)
        The file is something else.
    """

    def __init__(self, path: Path, patience: float = 30.0) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        with self._translated():
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not self.path.exists():
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._connection = sqlite3.connect(self.path, timeout=patience, isolation_level=None, check_same_thread=False)
            try:
                for setting in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON"):
                    self._connection.execute(f"PRAGMA {setting}")
                self._make()
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def turn(self) -> Iterator[sqlite3.Connection]:
        """Keep other writers out meanwhile; what is written is on the disk when this ends, or none of it is."""
        with self._lock, self._translated():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def rows(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """Read."""
        with self._lock, self._translated():
            return self._connection.execute(query, values).fetchall()

    def kept(self, name: str, fresh: bytes) -> bytes:
        """A value that is kept under a name; `fresh` from now on, where there is none yet."""
        with self.turn() as connection:
            connection.execute("INSERT INTO keep VALUES (?, ?) ON CONFLICT DO NOTHING", (name, fresh))
            [value] = connection.execute("SELECT value FROM keep WHERE name = ?", (name,)).fetchone()
        return bytes(value)

    def keep(self, name: str, value: bytes) -> None:
        """Keep a value under a name, in place of an older one."""
        with self.turn() as connection:
            connection.execute("INSERT INTO keep VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (name, value))

    def found(self, name: str) -> bytes | None:
        """The value that is kept under a name."""
        rows = self.rows("SELECT value FROM keep WHERE name = ?", (name,))
        return bytes(rows[0][0]) if rows else None

    def _make(self) -> None:
        with self.turn() as connection:
            [application] = connection.execute("PRAGMA application_id").fetchone()
            [version] = connection.execute("PRAGMA user_version").fetchone()
            [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if (application, version) == (APPLICATION, FORMAT):
                return
            if application or tables:
                raise LedgerDamaged(
                    f"{self.path} is no database of a station in format {FORMAT}.",
                    remedy="Name another folder, or use the version of Hedgerow that wrote it.",
                )
            for statement in TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of SQLite and of the disk in words of the catalogue."""
        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:  # locked, disk full, no permission
            remedy = "Make room, or let the other process end; then ask again."
            raise CannotWrite(f"{self.path}: {error}; nothing was answered.", remedy=remedy, asked=False) from error
        except sqlite3.DatabaseError as error:
            remedy = "Restore the file from a copy; a journal is never edited."
            raise LedgerDamaged(f"{self.path}: {error}.", remedy=remedy) from error
