"""The newest heads of stations' journals, each as its station signed it: they go back with every letter.

A station that lost its journal, or was restored from a backup, learns so from the head that comes back. The coordinator keeps
the newest one of each station and cannot make one up, for the station has signed it (`hedgerow.wire.heads`). A power cut may
take the last heads; older ones do the same, a little later. Heads that were signed with keys that the station no longer has
are not given back.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime

from hedgerow.errors import CannotWrite, HedgerowError
from hedgerow.store import Database
from hedgerow.wire.envelope import KeyMaterial, PublicIdentity
from hedgerow.wire.heads import Head, seen

log = logging.getLogger("hedgerow")

TABLE = "CREATE TABLE IF NOT EXISTS heads (station TEXT PRIMARY KEY, signed BLOB NOT NULL) WITHOUT ROWID"


class StationHeads:
    """Heads in a coordinator's database; what `MessageQueue` takes as `heads`.

    Parameters
    ----------
    database : Database
    key_material : callable
        Returns the coordinator's own keys, as they are now.
    now : callable
        Seconds since 1970.
    """

    def __init__(self, database: Database, key_material: Callable[[], KeyMaterial], now: Callable[[], float]) -> None:
        self._database, self._key_material, self._now = database, key_material, now
        self._known: dict[PublicIdentity, tuple[Head, bytes]] = {}
        self._given: dict[PublicIdentity, tuple[bytes, bytes, bytes]] = {}
        self._told: set[tuple[str, int, bytes]] = set()
        self._lock = threading.Lock()
        with database.transaction() as connection:
            connection.execute(TABLE)

    def knows(self, station: PublicIdentity) -> bool:
        """Whether a head of this station has come, in this life of the coordinator or an earlier one."""
        with self._lock:
            return self._newest(station) is not None

    def given(self, station: PublicIdentity) -> bytes:
        """The newest head of a station, countersigned; or that none is known."""
        with self._lock:
            known = self._newest(station)
            signed, mine = b"" if known is None else known[1], self._key_material()
            before = self._given.get(station)
            if before is None or before[:2] != (signed, mine.public_identity.identity):
                at = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="seconds")
                before = signed, mine.public_identity.identity, seen(signed, at, mine, station)
                self._given[station] = before
            return before[2]

    def came(self, station: PublicIdentity, raw: bytes) -> None:
        """Take note of a head: the newest one of a station is kept."""
        try:
            head = Head.read(raw, station)
        except HedgerowError as error:
            log.warning("what came with a letter of %s is no head of its journal: %s", station.name, error.code)
            return
        with self._lock:
            known = self._newest(station)
            if known is not None:
                self._compare(station, known[0], head)
                another = head.generation == known[0].generation and head.journal != known[0].journal
                if another or head.place <= known[0].place:
                    return
            self._known[station] = head, raw
            try:
                with self._database.transaction(lightly=True) as connection:
                    connection.execute("INSERT OR REPLACE INTO heads VALUES (?, ?)", (station.name, raw))
            except CannotWrite as error:
                log.warning("%s", error.reason)

    def _newest(self, station: PublicIdentity) -> tuple[Head, bytes] | None:
        if station not in self._known:
            rows = self._database.rows("SELECT signed FROM heads WHERE station = ?", (station.name,))
            try:
                if rows:
                    self._known[station] = Head.read(bytes(rows[0][0]), station), bytes(rows[0][0])
            except HedgerowError:
                log.info("%s has new keys: heads that it signed with others are not given back", station.name)
        return self._known.get(station)

    def _compare(self, station: PublicIdentity, known: Head, head: Head) -> None:
        """Say once what a head tells of its journal."""
        if head.generation > known.generation:
            what = "its owner began the journal anew after a loss"
        elif head.generation == known.generation and head.journal != known.journal:
            what = "it has another journal than before: its database was lost or replaced, and its owner has not decided"
        else:
            return
        if (told := (station.name, head.generation, head.journal)) not in self._told:
            self._told.add(told)
            log.warning("%s: %s", station.name, what)
