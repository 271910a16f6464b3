"""Studies on disk: a durable state machine for each, what stations said, and the journal, in one SQLite file.

Every change of state is one transaction, together with its entry in the journal; it is on the disk before the next thing
happens. Letters enter the journal in the order in which they leave and come, and survive the end of the process; a power cut
may take the last of them (never one in the middle), and what the studies asked is also in the ledgers of their runs.

The service holds the lock of the folder; commands that submit, cancel and look write beside it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from hedgerow.errors import CannotWrite, UnknownStudy, suggestion
from hedgerow.store import Database, Journal
from hedgerow.store.locks import lock_now
from hedgerow.wire.envelope import KeyMaterial

from .heads import StationHeads
from .journal import JOURNAL, CoordinatorEntry, entry_of, row
from .states import ENDS, NEXT, Boarded, Kept, State

FILE = "coordinator.sqlite"

TABLES = (
    "CREATE TABLE studies (id TEXT PRIMARY KEY, key BLOB NOT NULL UNIQUE, text TEXT NOT NULL, asked TEXT NOT NULL, "
    "state TEXT NOT NULL, reason TEXT NOT NULL, submitted REAL NOT NULL, changed REAL NOT NULL, life INTEGER NOT NULL, "
    "pauses INTEGER NOT NULL, due REAL NOT NULL, since REAL NOT NULL, round INTEGER NOT NULL, rounds INTEGER, "
    "agreed BLOB NOT NULL, cancelled INTEGER NOT NULL, untold TEXT NOT NULL)",
    "CREATE TABLE boarded (study TEXT NOT NULL REFERENCES studies (id), station TEXT NOT NULL, status TEXT NOT NULL, "
    "code TEXT NOT NULL, parties TEXT NOT NULL, submission BLOB NOT NULL, signature BLOB NOT NULL, at REAL NOT NULL, "
    "PRIMARY KEY (study, station))",
    JOURNAL,
)
COLUMNS = [item.name for item in fields(Kept) if item.name != "boarded"]
LISTS = ("asked", "untold", "parties")
LONGEST_NAME, LONGEST_REASON = 100, 4000
"""Letters of a study's name that go into its id, and of a reason that are kept: names and words of stations are in it."""


class Store:
    """What a coordinator knows of its studies.

    Parameters
    ----------
    folder : Path
        Made if missing; on a disk of this machine.
    now : callable
        Seconds since 1970.

    Raises
    ------
    CannotWrite (HR-104)
        The folder cannot be used, or the disk is full; nothing was changed.
    """

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self.folder, self.now = Path(folder), now
        self.path = self.folder / FILE
        self._held: int | None = None
        self._database = Database(self.path, TABLES, b"hdgc", "a database of a coordinator")
        self._journal = Journal(self._database, JOURNAL)
        self.verify = self._journal.verify

    def heads(self, key_material: Callable[[], KeyMaterial]) -> StationHeads:
        """The newest heads of stations' journals, which letters give back to them."""
        return StationHeads(self._database, key_material, self.now)

    def close(self) -> None:
        """Close the file, and give the lock back where it is held."""
        self._database.close()
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def lock(self) -> None:
        """Take the folder for the service of this process until `close`.

        Raises
        ------
        CannotWrite (HR-104)
            Another coordinator runs on it.
        """
        descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            lock_now(descriptor)
        except OSError as error:
            pid = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise CannotWrite(
                f"{self.folder} is the state of a coordinator that runs already, as process {pid}.",
                remedy="Let that one go on, or end it first; two would send the same numbers twice.",
                asked=False,
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._held = descriptor

    # ---- reading ----------------------------------------------------------------------------------------------------
    def study(self, id: str) -> Kept:
        """Return a study.

        Raises
        ------
        UnknownStudy (HR-102)
        """
        found = self._studies("WHERE id = ?", (id,))
        if not found:
            known = [row[0] for row in self._database.rows("SELECT id FROM studies")]
            raise UnknownStudy(f"no study {id!r} was submitted here.", remedy=suggestion(id, known))
        return found[0]

    def studies(self) -> list[Kept]:
        """Return all studies in the order in which they came."""
        return self._studies("ORDER BY submitted, rowid")

    def wants_end(self, id: str) -> bool:
        """Whether a study's researcher wants it to end."""
        return any(row[0] for row in self._database.rows("SELECT cancelled FROM studies WHERE id = ?", (id,)))

    def open(self) -> list[Kept]:
        """Return the studies that have not ended, or whose end was not told to all of its stations."""
        marks = ", ".join("?" * len(ENDS))
        return self._studies(f"WHERE state NOT IN ({marks}) OR untold != '[]' ORDER BY submitted, rowid", tuple(sorted(ENDS)))

    def history(self, id: str | None = None, last: int | None = None) -> list[CoordinatorEntry]:
        """Return the journal, of one study or of all."""
        where, values = ("study = ?", (id,)) if id is not None else ("", ())
        return [entry_of(link) for link in self._journal.links(where, values, last=last)]

    # ---- writing ----------------------------------------------------------------------------------------------------
    def submit(self, name: str, text: str, asked: Sequence[str] = ()) -> str:
        """Keep a new study; return its id."""
        at, stem = self.now(), re.sub(r"[^\w.-]+", "-", name)[:LONGEST_NAME]
        with self._database.transaction() as connection:
            taken = {row[0] for row in connection.execute("SELECT id FROM studies")}
            number = next(n for n in range(1, len(taken) + 2) if f"{stem}-{n:03d}" not in taken)
            id = f"{stem}-{number:03d}"
            kept = Kept(id, secrets.token_bytes(16), text, tuple(asked), "submitted", "", at, at, since=at)
            marks = ", ".join("?" * len(COLUMNS))
            values = [_stored(column, getattr(kept, column)) for column in COLUMNS]
            connection.execute(f"INSERT INTO studies ({', '.join(COLUMNS)}) VALUES ({marks})", values)
            self._enter(id, "submitted", f"for {', '.join(asked) or 'all stations on the roster'}")
        return id

    def move(self, id: str, state: State, reason: str = "", **changes: Any) -> Kept:
        """Bring a study into another state; one transaction.

        Raises
        ------
        CannotWrite (HR-104)
            The disk is full, or the study went elsewhere meanwhile; nothing was changed.
        """
        reason = brief(reason)
        with self._database.transaction() as connection:
            [before] = connection.execute("SELECT state FROM studies WHERE id = ?", (id,)).fetchone()
            if state not in NEXT[before]:
                raise CannotWrite(f"the study {id} is {before}; it cannot become {state}.", remedy="See hedgerow status.")
            at = self.now()
            self._change(connection, id, {"state": state, "reason": reason, "changed": at} | changes)
            self._enter(id, state, reason)
        return self.study(id)

    def change(self, id: str, *, lightly: bool = False, **changes: Any) -> None:
        """Change what is kept of a study, but not its state; `lightly`, a power cut may undo it."""
        with self._database.transaction(lightly) as connection:
            self._change(connection, id, changes)

    def pause(self, id: str, reason: str, *, due: float, pauses: int) -> None:
        """Note what a study waits for in the state that it is in; a new reason enters the journal."""
        kept, reason = self.study(id), brief(reason)
        with self._database.transaction() as connection:
            self._change(connection, id, {"reason": reason, "due": due, "pauses": pauses})
            if reason != kept.reason:
                self._enter(id, kept.state, reason)

    def new_life(self, id: str) -> int:
        """Begin another life of a study: letters of earlier ones are answered no more."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE studies SET life = life + 1 WHERE id = ?", (id,))
            [life] = connection.execute("SELECT life FROM studies WHERE id = ?", (id,)).fetchone()
        return int(life)

    def cancel(self, id: str) -> bool:
        """Note that a study is to end; False where it had ended."""
        if self.study(id).ended:
            return False
        with self._database.transaction() as connection:
            self._change(connection, id, {"cancelled": True, "due": 0.0})
        return True

    def wake(self) -> None:
        """End all pauses, at a start: what was waited for may have come. No time is later than now, whatever the clock was."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE studies SET due = 0.0, changed = min(changed, ?1), since = min(since, ?1)", (self.now(),)
            )

    def board(self, id: str, said: Iterable[Boarded]) -> None:
        """Keep what stations said of a study; a later word replaces an earlier one."""
        with self._database.transaction() as connection:
            for one in said:
                row = (id, one.station, one.status, one.code, json.dumps(one.parties), one.submission, one.signature, one.at)
                connection.execute("INSERT OR REPLACE INTO boarded VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def enter(self, id: str, event: str, about: Mapping[str, Any]) -> None:
        """Add letters to the journal."""
        self._journal.append(row(self.now(), id, event, about), lightly=True)

    # ---- inside -----------------------------------------------------------------------------------------------------
    def _enter(self, id: str, state: str, reason: str) -> None:
        self._journal.append(row(self.now(), id, "state", {"state": state, "reason": reason}))

    def _change(self, connection: sqlite3.Connection, id: str, changes: Mapping[str, Any]) -> None:
        unknown = set(changes) - set(COLUMNS)
        assert not unknown, unknown
        settings = ", ".join(f"{name} = ?" for name in changes)
        values = [_stored(name, value) for name, value in changes.items()]
        connection.execute(f"UPDATE studies SET {settings} WHERE id = ?", (*values, id))

    def _studies(self, where: str, values: tuple[Any, ...] = ()) -> list[Kept]:
        rows = self._database.rows(f"SELECT {', '.join(COLUMNS)} FROM studies {where}", values)
        return [self._kept(dict(zip(COLUMNS, row, strict=True))) for row in rows]

    def _kept(self, row: dict[str, Any]) -> Kept:
        asked = "SELECT station, status, code, parties, submission, signature, at FROM boarded WHERE study = ? ORDER BY station"
        boarded = [
            Boarded(station, status, code, tuple(json.loads(parties)), *rest)
            for station, status, code, parties, *rest in self._database.rows(asked, (row["id"],))
        ]
        lists = {name: tuple(json.loads(row[name])) for name in LISTS if name in row}
        return Kept(**row | lists | {"cancelled": bool(row["cancelled"])}, boarded=tuple(boarded))


def brief(reason: str) -> str:
    """A reason as it is kept and shown: not too long, and without what a terminal would not print."""
    shown = "".join(
        letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in reason[:LONGEST_REASON]
    )
    return shown + (" ..." if len(reason) > LONGEST_REASON else "")


def _stored(column: str, value: Any) -> Any:
    return json.dumps(value) if column in LISTS else value
