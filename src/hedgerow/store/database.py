"""An SQLite file that outlives crashes, and that several processes of one machine write, one at a time.

There is one doctrine for every database of Hedgerow:

    durable     A transaction is on the disk when it ends: a write-ahead log with `synchronous = FULL`. One that is written
                `lightly` outlives the process, and a power cut may undo the last of these, never one in the middle.
    at once     A transaction holds the file's write lock from its beginning; others wait for it, and readers do not.
    a crash     What was not committed is undone by whoever opens the file next.
    full disk   The transaction is undone, and CannotWrite (HR-104) says so.
    damage      LedgerDamaged (HR-231). Another application's file, or one of another format, is refused and not touched.
    a fork      Connections are closed before a process forks, and opened again when they are needed.

What was committed since the log was last folded in is in FILE-wal beside the file; the last process that closes the file folds
it in. A copy of a file that is open is therefore made of both.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from hedgerow.errors import CannotWrite, LedgerDamaged

from .links import REMEDY
from .snapshot import sync_folder

FORMAT = 1
SETTINGS = ("synchronous = EXTRA", "fullfsync = ON")
"""Of a connection. With a write-ahead log EXTRA is FULL; the file is made without one."""


class TableForm(Protocol):
    """What a database is made of."""

    def make(self, connection: sqlite3.Connection) -> None:
        """Make it, within a transaction."""


class Database:
    """A database file.

    Several threads may use one, one at a time. Where a transaction begins within another, both end together.

    Parameters
    ----------
    path : Path
        On a disk of this machine: network file systems do not keep the locks that this needs.
    tables : sequence of str or TableForm
        Statements and tables that make it.
    mark : bytes
        Four bytes that tell the file from other applications'.
    what : str
        What it is, in words: "a database of a station".
    patience : float
        Seconds to wait for another process to end its transaction.
    private : bool
        Make the file readable by its owner alone, and its folder where that is missing.
    made : bool
        Make the file if it is missing; otherwise that is refused.

    Raises
    ------
    CannotWrite (HR-104)
        The folder cannot be written.
    LedgerDamaged (HR-231)
        The file is something else.
    """

    def __init__(
        self,
        path: Path,
        tables: Sequence[str | TableForm],
        mark: bytes,
        what: str,
        patience: float = 30.0,
        *,
        private: bool = True,
        made: bool = True,
    ) -> None:
        self.path = Path(path)
        self._tables, self._mark, self._what, self._patience = tables, int.from_bytes(mark, "big"), what, patience
        self._made, self._lightly, self._closed = made, False, False
        self._lock = threading.RLock()
        self._live: dict[int, sqlite3.Connection] = {}
        self._end = weakref.finalize(self, _close, self._live)
        with self._translated():
            if made and private:
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if made and not self.path.exists():
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600 if private else 0o666))
            self._connection()
        _databases.add(self)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._closed = True
            self._end()

    @contextmanager
    def transaction(self, lightly: bool = False) -> Iterator[sqlite3.Connection]:
        """Keep other writers out meanwhile; what is written is on the disk when this ends, or none of it is.

        With `lightly` it is out of this process, and a power cut may undo it.
        """
        with self._lock, self._translated():
            connection = self._connection()
            if self.writing():
                assert lightly or not self._lightly, "what must not be lost within what may be"
                yield connection
                return
            if lightly != self._lightly:
                connection.execute(f"PRAGMA synchronous = {'NORMAL' if lightly else 'EXTRA'}")
                self._lightly = lightly
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                if self.writing():
                    connection.execute("COMMIT")
            except BaseException:
                if self.writing():
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                raise

    def writing(self) -> bool:
        """Whether a transaction has begun here and has not ended."""
        connection = self._live.get(os.getpid())
        return connection is not None and connection.in_transaction

    def rows(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """Read."""
        with self._lock, self._translated():
            return self._connection().execute(query, values).fetchall()

    # ---- inside -----------------------------------------------------------------------------------------------------
    def _connection(self) -> sqlite3.Connection:
        """The connection of this process."""
        if self._closed:
            raise CannotWrite(f"{self.path} is closed.", asked=False)
        process = os.getpid()
        if process not in self._live:
            if self._live:
                raise CannotWrite(f"{self.path} was in a transaction when this process was forked from another.", asked=False)
            self._live[process], self._lightly = self._opened(), False
        return self._live[process]

    def _opened(self) -> sqlite3.Connection:
        where = f"{self.path.resolve().as_uri()}?mode=rw"
        log = self.path.with_name(f"{self.path.name}-wal")
        if not os.access(self.path.parent, os.W_OK) and not log.exists():
            where = where.removesuffix("rw") + "ro&immutable=1"  # a copy, where nobody writes
        connection = sqlite3.connect(where, self._patience, isolation_level=None, check_same_thread=False, uri=True)
        try:
            for setting in SETTINGS:
                connection.execute(f"PRAGMA {setting}")
            if not self._is_ours(connection):
                self._make(connection)
            if self._made:
                mode = self._mode(connection)
                if mode != "wal":
                    raise CannotWrite(f"{self.path} cannot keep its log in a file, but in {mode!r} only.", asked=False)
        except BaseException:
            connection.close()
            raise
        return connection

    def _mode(self, connection: sqlite3.Connection) -> str:
        """Where the log is after it was asked into a file; while another process asks that SQLite refuses without patience."""
        until = time.monotonic() + self._patience
        while True:
            try:
                return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
            time.sleep(0.01)

    def _make(self, connection: sqlite3.Connection) -> None:
        """Make the tables in an empty file."""
        if not self._made:
            raise LedgerDamaged(f"{self.path} is empty: nothing of {self._what} is in it.", remedy=REMEDY)
        connection.execute("BEGIN IMMEDIATE")
        if not self._is_ours(connection):  # another process may have made them meanwhile
            for table in self._tables:
                connection.execute(table) if isinstance(table, str) else table.make(connection)
            connection.execute(f"PRAGMA application_id = {self._mark}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
        sync_folder(self.path.parent)

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        """Whether the file holds what it should; False if it is empty, and a refusal if it holds something else."""
        with _at_one_moment(connection):  # another process may be making the tables
            [mark] = connection.execute("PRAGMA application_id").fetchone()
            [version] = connection.execute("PRAGMA user_version").fetchone()
            [n_tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if (mark, version) == (self._mark, FORMAT):
            return True
        if mark == 0 and n_tables == 0:
            return False
        remedy = "Name another file, or use the version of Hedgerow that wrote it."
        raise LedgerDamaged(f"{self.path} is not {self._what} in format {FORMAT}.", remedy=remedy)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of SQLite and of the disk in words of the catalogue."""
        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:  # locked, disk full, no permission, no such folder
            if "decode" in str(error):  # bytes that are no text
                raise LedgerDamaged(f"{self.path}: {error}.", remedy=REMEDY) from error
            raise CannotWrite(
                f"{self.path}: {error}; nothing of this step was kept.",
                remedy="Make room, choose another file, or let the other process end; what was kept goes on from there.",
                asked=False,
            ) from error
        except sqlite3.DatabaseError as error:
            raise LedgerDamaged(f"{self.path}: {error}.", remedy=REMEDY) from error


_databases: weakref.WeakSet[Database] = weakref.WeakSet()


def _close(live: dict[int, sqlite3.Connection]) -> None:
    connection = live.pop(os.getpid(), None)
    if connection is not None:
        connection.close()


def _rest() -> None:
    """Close all connections before a fork: the locks of SQLite are wrong in the child."""
    for database in list(_databases):
        with database._lock:
            if not database.writing():
                _close(database._live)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_rest)


@contextmanager
def _at_one_moment(connection: sqlite3.Connection) -> Iterator[None]:
    """Let several reads see the file as it was at the first of them."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
