"""A station's database: `state/station.sqlite`, written by the service, the command and the console page, one at a time.

    keep      a secret and other single values
    trains    studies that asked to board, and what was decided
    journal   everything asked and answered, with every charge; never changed

A write-ahead log with `synchronous = FULL`: a commit returns when a power cut cannot undo it.
"""

from __future__ import annotations

from pathlib import Path

from hedgerow.store.database import Database

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
    """A connection to a station's database, made with its folder when missing; see `hedgerow.store.database`.

    Parameters
    ----------
    path : Path
    patience : float
        Seconds to wait for another process to end its turn.
    """

    def __init__(self, path: Path, patience: float = 30.0) -> None:
        self.path = Path(path)
        self._database = Database(path, TABLES, b"hdgs", "a station", patience)
        self.turn, self.rows, self.close = self._database.turn, self._database.rows, self._database.close

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
