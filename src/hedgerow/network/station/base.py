"""A station's database: `state/station.sqlite`, written by the service, the command and the console page, one at a time.

keep      a secret and other single values
submissions    studies that asked to board, and what was decided
journal   everything asked and answered, with every charge; never changed
"""

from __future__ import annotations

from pathlib import Path

from hedgerow.store import Database, JournalTable

KEEP = "CREATE TABLE keep (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
TRAINS = (
    "CREATE TABLE submissions (study TEXT PRIMARY KEY, status TEXT NOT NULL, came TEXT NOT NULL, toml BLOB NOT NULL, "
    "description BLOB NOT NULL, digest BLOB NOT NULL, about TEXT NOT NULL, decision TEXT NOT NULL, signature BLOB NOT NULL)"
)
JOURNAL = JournalTable(
    "journal",
    {"study": "TEXT", "letter": "INTEGER", "code": "TEXT", "question": "INTEGER", "charges": "INTEGER"},
    indices=("study, letter",),
)


class Base:
    """A station's database, made with its folder when missing.

    Parameters
    ----------
    path : Path
    patience : float
        Seconds to wait for another process to end its transaction.
    """

    def __init__(self, path: Path, patience: float = 30.0) -> None:
        self.path = Path(path)
        self.database = Database(path, [KEEP, TRAINS, JOURNAL], b"hdgs", "a database of a station", patience)
        self.transaction, self.rows, self.close = self.database.transaction, self.database.rows, self.database.close

    def kept(self, name: str, fresh: bytes) -> bytes:
        """A value that is kept under a name; `fresh` from now on, where there is none yet."""
        with self.transaction() as connection:
            connection.execute("INSERT INTO keep VALUES (?, ?) ON CONFLICT DO NOTHING", (name, fresh))
            [value] = connection.execute("SELECT value FROM keep WHERE name = ?", (name,)).fetchone()
        return bytes(value)

    def keep(self, name: str, value: bytes) -> None:
        """Keep a value under a name, in place of an older one."""
        with self.transaction() as connection:
            connection.execute("INSERT INTO keep VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (name, value))

    def found(self, name: str) -> bytes | None:
        """The value that is kept under a name."""
        rows = self.rows("SELECT value FROM keep WHERE name = ?", (name,))
        return bytes(rows[0][0]) if rows else None
