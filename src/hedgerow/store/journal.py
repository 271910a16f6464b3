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
        self.insert(connection, 0, nothing, text, linked("", nothing, text))

    def insert(self, connection: sqlite3.Connection, number: int, columns: Sequence[object], text: str, hash: str) -> None:
        """Write one row."""
        marks = ", ".join("?" * (len(columns) + 3))
        connection.execute(f"INSERT INTO {self.name} VALUES ({marks})", (number, *columns, text, hash))


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
            asked = f"SELECT number, hash FROM {self.table.name} ORDER BY number DESC LIMIT 1"
            number, head = connection.execute(asked).fetchone() or (-1, "")
            link = ChainLink(number, (), "", head)
            for columns, text in entries:
                link = ChainLink(link.number + 1, tuple(columns), text, linked(link.hash, columns, text))
                self.table.insert(connection, *link)
        return link

    def links(
        self, where: str = "", values: tuple[object, ...] = (), *, after: int = 0, last: int | None = None
    ) -> list[ChainLink]:
        """Entries in order, unchecked: those after a number, that fulfil a condition, or of them the last so many."""
        condition = f"number > ?{f' AND ({where})' if where else ''}"
        order = "ORDER BY number" if last is None else f"ORDER BY number DESC LIMIT {int(last)}"
        found = [ChainLink(*raw) for raw in self._select(f"WHERE {condition} {order}", (after, *values))]
        return found if last is None else found[::-1]

    def checked(self, number: int = 0, hash: str = "", most: int = -1) -> list[ChainLink]:
        """Entries from one on that is known by its number and hash, or all from the first row; no more than `most`.

        Raises
        ------
        LedgerDamaged (HR-231)
            With the number of the first entry that was changed, lost or added.
        """
        return [ChainLink(*raw) for raw in self._checked(number, hash, most)]

    def verify(self) -> tuple[int, str]:
        """Recompute the chain; return how many entries it has, and its head.

        Raises
        ------
        LedgerDamaged (HR-231)
        """
        number, hash, n = 0, "", PAGE
        while n == PAGE:
            for n, (number, _, _, hash) in enumerate(self._checked(number, hash, PAGE), 1):  # noqa: B007, B020
                pass
        return number, hash

    def _checked(self, number: int, hash: str, most: int) -> Iterator[Raw]:
        path = self.database.path
        found = self._select("WHERE number >= ? ORDER BY number LIMIT ?", (number, most))
        first = next(found, None)
        if first is None:
            raise damaged(path, number, "entries that were there are lost")
        if not hash:
            yield from follow([first], path, 0, "")
        elif (first[0], first[-1]) != (number, hash):
            raise damaged(path, number, "it is not the entry that was there")
        else:
            yield first
        yield from follow(found, path, number + 1, first[-1])

    def _select(self, rest: str, values: tuple[object, ...]) -> Iterator[Raw]:
        names = ", ".join(("number", *self.table.columns, "entry", "hash"))
        rows = self.database.rows(f"SELECT {names} FROM {self.table.name} {rest}", values)
        return ((row[0], row[1:-2], row[-2], row[-1]) for row in rows)
