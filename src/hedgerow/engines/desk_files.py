"""`DeskFile`: what the parties of a station keep of protocols with other parties, in a file beside their states.

An alignment is made once, so the order of rows and the secrets that came of it must outlive the station's process. An entry is
on the disk when `put` returns. The file is readable by its owner alone and is deleted with the study's end (`StateFiles`): it
holds positions of records and secrets, never an id. Only numbers, arrays, bytes and texts are read back.
"""

from __future__ import annotations

import threading
from pathlib import Path

from hedgerow.core.desk import Desk, Desks, Entry
from hedgerow.errors import ContributionInvalid, MessageRefused, NotNamed
from hedgerow.store import Database
from hedgerow.wire.names import Names
from hedgerow.wire.values import pack, unpack

DESK_SUFFIX = ".desk"
TABLES = ("CREATE TABLE entries (party TEXT, name TEXT, body BLOB NOT NULL, PRIMARY KEY (party, name)) WITHOUT ROWID",)
NO_NAMES = Names(())
"""An entry names no function."""


class DeskFile:
    """The desks of one study's parties in a file; several threads may use it.

    Parameters
    ----------
    path : Path, optional
        An SQLite file, made with its folder when missing; in memory if not given.

    Raises
    ------
    CannotWrite (HR-104), LedgerDamaged (HR-231)
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._database = None if path is None else Database(path, TABLES, b"hdgd", "what parties keep of protocols")
        self._read: dict[tuple[str, str], Entry] = {}
        self._lock = threading.Lock()

    def get(self, party: str, name: str) -> Entry | None:
        """A party's entry of a name, if there is one."""
        with self._lock:
            if (party, name) not in self._read and self._database is not None:
                rows = self._database.rows("SELECT body FROM entries WHERE party = ? AND name = ?", (party, name))
                if rows:
                    self._read[party, name] = unpack(rows[0][0], NO_NAMES)
            return self._read.get((party, name))

    def put(self, party: str, name: str, entry: Entry) -> None:
        """Keep a party's entry; return when it cannot be lost.

        Raises
        ------
        ContributionInvalid (HR-222)
            It holds what is no number, array, text or bytes.
        CannotWrite (HR-104)
            The entry before is still there.
        """
        try:
            body = pack(dict(entry))
            kept = unpack(body, NO_NAMES)
        except (NotNamed, MessageRefused) as error:
            raise ContributionInvalid(
                f"{party} keeps under {name!r} what is no number, array, text or bytes.", remedy="Keep arrays by name."
            ) from error
        with self._lock:
            if self._database is not None:
                with self._database.transaction() as connection:
                    connection.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", (party, name, body))
            self._read[party, name] = kept

    def desks(self) -> Desks:
        """The desks as an engine takes them."""
        return _FileDesks(self)

    def close(self) -> None:
        """Release the file."""
        if self._database is not None:
            self._database.close()


class _OneDesk:
    """The desk of one party."""

    def __init__(self, file: DeskFile, party: str) -> None:
        self._file, self._party = file, party

    def get(self, name: str) -> Entry | None:
        return self._file.get(self._party, name)

    def put(self, name: str, entry: Entry) -> None:
        self._file.put(self._party, name, entry)


class _FileDesks(Desks):
    """Desks by party, each in the file."""

    def __init__(self, file: DeskFile) -> None:
        super().__init__()
        self._file = file

    def __missing__(self, id: str) -> Desk:
        self[id] = desk = _OneDesk(self._file, id)
        return desk
