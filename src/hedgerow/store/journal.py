"""A journal in a table of a database: append-only, chained by hashes, with columns by which entries are counted and found.

    number    0 holds a random name of this journal; then 1, 2, 3 without a gap
    ...       columns of the user: which study, which run
    entry     JSON
    hash      see `hedgerow.store.links`

Triggers refuse to change or delete a row, or to add one in another place than the end.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from .database import Database
from .links import ChainLink, Raw, damaged, follow, linked

PAGE = 10_000
"""Entries that are read at once while a chain is verified."""


@dataclass(frozen=True)
class JournalTable:
    """The form of a journal.

    Attributes
    ----------
    name : str
        Of the table.
    columns : mapping from name to "TEXT" or "INTEGER"
    indices : tuple of str
        Columns of each index.
    """

    name: str
    columns: Mapping[str, str]
    indices: tuple[str, ...] = ()

    def make(self, connection: sqlite3.Connection) -> None:
        """Make the table with its first row."""
        name, refused = self.name, "BEGIN SELECT raise(ABORT, 'a journal is never edited'); END"
        columns = "".join(f"{column} {kind} NOT NULL, " for column, kind in self.columns.items())
        connection.execute(
            f"CREATE TABLE {name} (number INTEGER PRIMARY KEY, {columns}entry TEXT NOT NULL, hash TEXT NOT NULL)"
        )
        connection.execute(f"CREATE TRIGGER {name}_never_changed BEFORE UPDATE ON {name} {refused}")
        connection.execute(f"CREATE TRIGGER {name}_never_deleted BEFORE DELETE ON {name} {refused}")
        connection.execute(
            f"CREATE TRIGGER {name}_in_order BEFORE INSERT ON {name} "
            f"WHEN NEW.number IS NOT (SELECT coalesce(max(number), -1) + 1 FROM {name}) "
            "BEGIN SELECT raise(ABORT, 'an entry out of order'); END"
        )
        for number, index in enumerate(self.indices):
            connection.execute(f"CREATE INDEX {name}_{number} ON {name} ({index})")
        nothing = ["" if kind == "TEXT" else 0 for kind in self.columns.values()]
        text = json.dumps({"journal of hedgerow": secrets.token_hex(16)})
        connection.execute(self.insert, (0, *nothing, text, linked("", nothing, text)))

    @cached_property
    def insert(self) -> str:
        """What writes one row: its number, its columns, its text and its hash."""
        return f"INSERT INTO {self.name} VALUES ({', '.join('?' * (len(self.columns) + 3))})"

    @cached_property
    def select(self) -> str:
        """What reads rows."""
        return f"SELECT {', '.join(('number', *self.columns, 'entry', 'hash'))} FROM {self.name}"

    @cached_property
    def last(self) -> str:
        """What reads number and hash of the last row."""
        return f"SELECT number, hash FROM {self.name} ORDER BY number DESC LIMIT 1"


class Journal:
    """A journal.

    Parameters
    ----------
    database : Database
        Made with `table` among its tables.
    table : JournalTable
    """

    def __init__(self, database: Database, table: JournalTable) -> None:
        self.database, self.table = database, table

    def append(self, *entries: tuple[Sequence[object], str], lightly: bool = False) -> ChainLink:
        """Append entries, each with its columns, in one transaction or in that of the caller; return the last one.

        Raises
        ------
        CannotWrite (HR-104)
            None of them was written.
        """
        with self.database.transaction(lightly) as connection:
            number, head = connection.execute(self.table.last).fetchone() or (-1, "")
            columns: Sequence[object] = ()
            text = ""
            for columns, text in entries:
                number, head = number + 1, linked(head, columns, text)
                connection.execute(self.table.insert, (number, *columns, text, head))
        return ChainLink(number, tuple(columns), text, head)

    def links(
        self, where: str = "", values: tuple[object, ...] = (), *, after: int = 0, last: int | None = None
    ) -> list[ChainLink]:
        """Entries in order, unchecked: those after a number, that fulfil a condition, or of them the last so many."""
        condition = f"number > ?{f' AND ({where})' if where else ''}"
        order = "ORDER BY number" if last is None else f"ORDER BY number DESC LIMIT {int(last)}"
        rows = self.database.rows(f"{self.table.select} WHERE {condition} {order}", (after, *values))
        return [ChainLink(row[0], row[1:-2], row[-2], row[-1]) for row in (rows if last is None else reversed(rows))]

    def checked(self, number: int = 0, hash: str = "") -> list[ChainLink]:
        """Entries from one on that is known by its number and hash, or all from the first row.

        Raises
        ------
        LedgerDamaged (HR-231)
            With the number of the first entry that was changed, lost or added.
        """
        return [ChainLink(*raw) for raw in self._followed(number, hash, -1)]

    def verify(self) -> tuple[int, str]:
        """Recompute the chain; return how many entries it has, and its head.

        Raises
        ------
        LedgerDamaged (HR-231)
        """
        number, hash, n = 0, "", PAGE
        while n == PAGE:
            page = self._followed(number, hash, PAGE)
            for n, (number, _, _, hash) in enumerate(page, 1):  # noqa: B007
                pass
        return number, hash

    def _followed(self, number: int, hash: str, most: int) -> Iterator[Raw]:
        rows = self.database.rows(f"{self.table.select} WHERE number >= ? ORDER BY number LIMIT ?", (number, most))
        found = ((row[0], row[1:-2], row[-2], row[-1]) for row in rows)
        if not rows or (hash and (rows[0][0], rows[0][-1]) != (number, hash)):
            raise damaged(self.database.path, number, "it is not there any more, or not as it was")
        if not hash:
            return follow(found, self.database.path, 0, "")
        return chain([next(found)], follow(found, self.database.path, number + 1, hash))
