"""`PartyStates`: what the parties of a station keep for one study, in a file, so that a restart forgets nothing.

A party has two states: the settled one, of the last question that the server is known to have counted, and the one that waits
to be counted. The next question says which of them it goes on from. A question that is under way changes neither: what its
parties propose is written in one transaction when all of them have answered, before the answer leaves (`keeping`).

    killed before that      both states are what they were; the server counted no answer, and goes on from one of them
    killed after that       the waiting state is new, the settled one is the state that the question went on from; whether
                            the answer arrived or not, the server goes on from one of them

Which numbers of questions the states have is told without the states (`numbers`), also to another process. Only numbers and
arrays are read back: no code in such a file can run. With the study's end the file is deleted (`StateFiles`).
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hedgerow.core.state import State, StateStore
from hedgerow.errors import CannotWrite, ContributionInvalid, MessageRefused, NotNamed, StateLost
from hedgerow.store import Database, sync_folder
from hedgerow.wire.names import Names
from hedgerow.wire.values import pack, unpack

from .desk_files import DESK_SUFFIX, DeskFile

TABLES = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE states (number INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE parties (id TEXT PRIMARY KEY, settled INTEGER, body INTEGER, waiting INTEGER NOT NULL, "
    "next INTEGER NOT NULL) WITHOUT ROWID",
)
NO_NAMES = Names(())
"""A state names no function."""

SUFFIX = ".sqlite"
VERSION = "SELECT value FROM about WHERE name = 'version'"


class Numbers(NamedTuple):
    """Of which questions a party's states are: the settled one, None before any was counted, and the one that waits."""

    settled: int | None
    waiting: int


class _Body(NamedTuple):
    """A state, and its number in the file; 0 where it is not there."""

    number: int
    state: State


NOTHING = _Body(0, {})
"""What a party keeps that keeps nothing yet."""


@dataclass(frozen=True)
class _Kept:
    numbers: Numbers
    settled: _Body
    waiting: _Body


class PartyStates:
    """The states of one study's parties; a `StateStore` that outlives its process.

    Several threads may settle and propose for different parties at once. One process writes at a time: where another has
    written meanwhile, `keep` fails, and `numbers` reads anew.

    Parameters
    ----------
    path : Path, optional
        An SQLite file, made with its folder when missing; in memory if not given.
    begun : bool
        Whether questions of the study were answered before. Then a missing or empty file is a loss: whoever goes on from what
        was in it is refused.

    Raises
    ------
    CannotWrite (HR-104), LedgerDamaged (HR-231)
    """

    def __init__(self, path: Path | None = None, *, begun: bool = False) -> None:
        self.path, self.lost, self._version = path, False, 0
        self._kept: dict[str, _Kept] = {}
        self._from: dict[str, tuple[int | None, _Body]] = {}
        self._new: dict[str, tuple[int, State, bytes]] = {}
        self._lock = threading.Lock()
        self._database: Database | None = None
        if path is None:
            return
        missing = not path.exists() or path.stat().st_size == 0
        self._database = Database(path, TABLES, b"hdgp", "what parties keep for a study")
        with self._database.transaction() as connection:
            connection.execute("INSERT INTO about VALUES ('lost', ?) ON CONFLICT DO NOTHING", (int(begun and missing),))
            connection.execute("INSERT INTO about VALUES ('version', 0) ON CONFLICT DO NOTHING")
        self._read(self._database)

    def __bool__(self) -> bool:
        return bool(self._kept or self._new)

    # ---- one question ------------------------------------------------------------------------------------------------
    def settle(self, id: str, counted: Mapping[str, int]) -> State:
        """The state that a party goes on from; nothing is decided before `keep`.

        Raises
        ------
        StateLost (HR-615)
            The party keeps no state of the question that was counted last.
        """
        last = counted.get(id)
        with self._lock:
            kept = self._kept.get(id)
            if not holds(None if kept is None else kept.numbers, last, self.lost):
                raise state_lost(id, None if kept is None else kept.numbers, last)
            body = NOTHING
            if kept is not None:
                body = kept.settled if last == kept.numbers.settled else kept.waiting
            self._from[id] = last, body
        return _copied(body.state)

    def propose(self, id: str, state: State, asked_in: int) -> None:
        """Hold a new state until `keep`."""
        try:
            packed = pack(dict(state))
            if not all(isinstance(value, np.ndarray) for value in state.values()):
                unpack(packed, NO_NAMES, copy=False)
        except (NotNamed, MessageRefused) as error:
            raise ContributionInvalid(
                f"{id} keeps what is neither number nor array.", remedy="Keep arrays by name in party.state."
            ) from error
        with self._lock:
            self._new[id] = asked_in, _copied(state), packed

    def keep(self) -> None:
        """Write what was proposed since the last time; return when it cannot be lost.

        Raises
        ------
        CannotWrite (HR-104)
            Nothing of it was kept, and the answer must not leave.
        """
        with self._lock:
            try:
                if self._new:
                    self._kept |= self._written()
            finally:
                self._new.clear()
                self._from.clear()

    def drop(self) -> None:
        """Forget what was proposed since `keep`: the question failed."""
        with self._lock:
            self._new.clear()
            self._from.clear()

    def numbers(self) -> dict[str, Numbers]:
        """Of which questions the states are, of every party that keeps something: as it is on the disk now."""
        with self._lock:
            if self._database is not None and self._database.rows(VERSION) != [(self._version,)]:
                self._read(self._database)  # a process that was killed came to its end after this one had begun
            return {id: kept.numbers for id, kept in self._kept.items()}

    # ---- of a simulation's checkpoint --------------------------------------------------------------------------------
    def committed(self, counted: Mapping[str, int]) -> dict[str, State]:
        """Every party's state by what was counted."""
        found = {id: self.settle(id, counted) for id in list(self._kept)}
        self.drop()
        return {id: state for id, state in found.items() if state}

    def restore(self, states: Mapping[str, State]) -> None:
        """Refused: a station's parties go on from what they keep, and from nothing that they are given."""
        raise StateLost("states cannot be put in the place of those that a station's parties keep.", remedy="Submit anew.")

    def close(self) -> None:
        """Release the file."""
        if self._database is not None:
            self._database.close()

    # ---- inside ------------------------------------------------------------------------------------------------------
    def _read(self, database: Database) -> None:
        self._kept.clear()
        about = dict(database.rows("SELECT name, value FROM about"))
        self.lost, self._version = bool(about["lost"]), about["version"]
        rows = database.rows("SELECT number, body FROM states")
        bodies = {number: _Body(number, unpack(body, NO_NAMES)) for number, body in rows}
        for id, settled, body, waiting, after in database.rows("SELECT id, settled, body, waiting, next FROM parties"):
            self._kept[id] = _Kept(Numbers(settled, waiting), bodies.get(body, NOTHING), bodies[after])

    def _written(self) -> dict[str, _Kept]:
        if self._database is None:
            return {id: self._after(id, _Body(0, self._new[id][1])) for id in self._new}
        with self._database.transaction() as connection:
            turn = connection.execute(
                "UPDATE about SET value = value + 1 WHERE name = 'version' AND value = ?", (self._version,)
            )
            if turn.rowcount != 1:
                raise CannotWrite(
                    f"another process writes {self.path}.", remedy="Ask again: what that one wrote is read first.", asked=False
                )
            found = {id: self._after(id, self._stored(connection, id)) for id in self._new}
            rows = [(id, k.numbers.settled, k.settled.number, k.numbers.waiting, k.waiting.number) for id, k in found.items()]
            connection.executemany("INSERT OR REPLACE INTO parties VALUES (?, ?, ?, ?, ?)", rows)
            needed = {body.number for kept in found.values() for body in (kept.settled, kept.waiting)}
            before = [self._kept[id] for id in found if id in self._kept]
            free = {body.number for kept in before for body in (kept.settled, kept.waiting)} - needed
            connection.executemany("DELETE FROM states WHERE number = ?", [(number,) for number in free])
        self._version += 1
        return found

    def _after(self, id: str, waiting: _Body) -> _Kept:
        """What a party keeps once its question was answered: the state that it went on from, and the new one."""
        settled, body = self._from.get(id, (None, NOTHING))
        return _Kept(Numbers(settled, self._new[id][0]), body, waiting)

    def _stored(self, connection: sqlite3.Connection, id: str) -> _Body:
        """A new state in the file; one that did not change is there already."""
        _, state, packed = self._new[id]
        before = self._from.get(id, (None, NOTHING))[1]
        if before.number and _same(before.state, state):
            return before
        cursor = connection.execute("INSERT INTO states (body) VALUES (?)", (packed,))
        return _Body(int(cursor.lastrowid or 0), state)


def holds(kept: Numbers | None, counted: int | None, lost: bool) -> bool:
    """Whether a party can go on from the state of the question that was counted last.

    Where nothing was ever kept, there is nothing to go on from, whatever was counted; unless it was `lost`.
    """
    if kept is None:
        return counted is None or not lost
    return counted == kept.settled or (counted is not None and counted == kept.waiting)


def state_lost(id: str, kept: Numbers | None, counted: int | None) -> StateLost:
    """The refusal to go on from what a party does not keep."""
    what = "nothing" if kept is None else f"that of {kept.settled} and that of {kept.waiting}"
    return StateLost(
        f"{id} is to go on from what it kept in question {counted}, and it keeps {what}.",
        remedy="What it kept was lost, or the study went back by more than a question: submit the study anew.",
    )


def _copied(state: State) -> State:
    """A state that may be written to: none of its arrays is a part of another."""
    return {key: np.array(value) if isinstance(value, np.ndarray) else value for key, value in state.items()}


def _same(one: State, other: State) -> bool:
    """Whether two states have the same bits."""
    return list(one) == list(other) and all(_form(a) == _form(b) for a, b in zip(one.values(), other.values(), strict=True))


def _form(value: object) -> tuple[object, ...]:
    array = np.asarray(value)
    return type(value), array.dtype, array.shape, array.tobytes()


@contextmanager
def keeping(states: StateStore) -> Iterator[None]:
    """Keep what parties propose meanwhile, once all of them have answered; where one fails, nobody's."""
    if not isinstance(states, PartyStates):
        yield
        return
    try:
        yield
    except BaseException:
        states.drop()
        raise
    states.keep()


@dataclass(frozen=True)
class StateFiles:
    """The states of a station's parties: a file for each study.

    Parameters
    ----------
    folder : Path, optional
        States are in memory if not given.
    """

    folder: Path | None = None

    def of(self, study: str, *, begun: bool = False) -> PartyStates:
        """What parties keep for a study; see `PartyStates`."""
        return PartyStates(None if self.folder is None else self.folder / f"{study}{SUFFIX}", begun=begun)

    def desk(self, study: str) -> DeskFile:
        """What parties keep of a study's protocols with other parties."""
        return DeskFile(None if self.folder is None else self.folder / f"{study}{DESK_SUFFIX}")

    def erase(self, study: str) -> None:
        """Delete what parties kept for a study, which has ended."""
        if self.folder is None or not self.folder.exists():
            return
        for name in (f"{study}{suffix}{more}" for suffix in (SUFFIX, DESK_SUFFIX) for more in ("", "-wal", "-shm")):
            (self.folder / name).unlink(missing_ok=True)
        sync_folder(self.folder)

    def sweep(self, going_on: Collection[str]) -> None:
        """Delete the states of all studies but those that go on: a crash may have kept their end from deleting them."""
        for path in [] if self.folder is None else [*self.folder.glob(f"*{SUFFIX}"), *self.folder.glob(f"*{DESK_SUFFIX}")]:
            if path.stem not in going_on:
                self.erase(path.stem)
