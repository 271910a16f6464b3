"""An SQLite file that outlives crashes, for what several processes of one machine write in turn.

A write-ahead log with `synchronous = FULL`: a turn returns when a power cut cannot undo it. What is another application's file,
or of another format, is refused and not touched.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hedgerow.errors import CannotWrite, LedgerDamaged

FORMAT = 1


class Database:
    """A connection to a file, made with its folder when missing, readable by its owner alone.

    Parameters
    ----------
    path : Path
    tables : sequence of str
        Statements that make it.
    application : bytes
        Four bytes that mark the file.
    what : str
        Whose it is, in words: "a station".
    patience : float
        Seconds to wait for another process to end its turn.

    Raises
    ------
    CannotWrite (HR-104)
        The folder cannot be written.
    LedgerDamaged (HR-231)
        The file is something else.
    """

    def __init__(self, path: Path, tables: Sequence[str], application: bytes, what: str, patience: float = 30.0) -> None:
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
                self._make(tables, int.from_bytes(application, "big"), what)
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def turn(self, lightly: bool = False) -> Iterator[sqlite3.Connection]:
        """Keep other writers out meanwhile; what is written is on the disk when this ends, or none of it is.

        With `lightly` it is out of this process, and a power cut may undo it.
        """
        with self._lock, self._translated():
            self._connection.execute(f"PRAGMA synchronous = {'NORMAL' if lightly else 'FULL'}")
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

    def _make(self, tables: Sequence[str], application: int, what: str) -> None:
        with self.turn() as connection:
            [found] = connection.execute("PRAGMA application_id").fetchone()
            [version] = connection.execute("PRAGMA user_version").fetchone()
            [n_tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if (found, version) == (application, FORMAT):
                return
            if found or n_tables:
                raise LedgerDamaged(
                    f"{self.path} is no database of {what} in format {FORMAT}.",
                    remedy="Name another folder, or use the version of Hedgerow that wrote it.",
                )
            for statement in tables:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {application}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of SQLite and of the disk in words of the catalogue."""
        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:  # locked, disk full, no permission
            raise CannotWrite(
                f"{self.path}: {error}; nothing of this step was kept.",
                remedy="Make room, or let the other process end; what was kept goes on from there.",
                asked=False,
            ) from error
        except sqlite3.DatabaseError as error:
            raise LedgerDamaged(f"{self.path}: {error}.", remedy="Restore the file from a copy.") from error
