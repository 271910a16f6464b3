"""A coordinator's journal: every change of a study's state, and everything that stations were asked and answered.

Each entry continues the one before it by a hash, so that none can be changed, added or removed without trace, except at the
end; who notes the head elsewhere sees that too. Entries name studies, stations, sizes and codes, and hold no answers.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hedgerow.errors import LedgerDamaged, catalogue
from hedgerow.store.database import Database
from hedgerow.store.ledgerfile import hash_of

_REFUSED = "BEGIN SELECT raise(ABORT, 'a journal is never edited'); END"
TABLES = (
    "CREATE TABLE journal (number INTEGER PRIMARY KEY, study TEXT NOT NULL, entry TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE INDEX journal_of ON journal (study, number)",
    f"CREATE TRIGGER journal_never_changed BEFORE UPDATE ON journal {_REFUSED}",
    f"CREATE TRIGGER journal_never_deleted BEFORE DELETE ON journal {_REFUSED}",
)


@dataclass(frozen=True)
class Entry:
    """One entry.

    Attributes
    ----------
    at : float
        Seconds since 1970.
    event : {"state", "asked", "came", "declined"}
    about : mapping
        Of "state": `state` and `reason`. Of "asked": `kind` and `number` of the letters, `bytes` by station. Of "came": also
        `codes` of the stations that refused, and `silent`, those of which nothing came. Of "declined": `codes` by
        party, and how many `more`.
    """

    number: int
    at: float
    study: str
    event: str
    about: Mapping[str, Any]
    hash: str

    @property
    def time(self) -> str:
        """Universal time, to the second."""
        return datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M:%S")

    @property
    def sentence(self) -> str:
        """The entry in words."""
        about = self.about
        if self.event == "state":
            return f"{about['state']}: {about['reason']}" if about["reason"] else str(about["state"])
        if self.event == "declined":
            said = [refusal(party, code) for party, code in about["codes"].items()]
            return "; ".join([*said, *([f"and {about['more']} more parties"] if about["more"] else [])])
        what = f"{about['kind']} {about['number'] >> 32}.{about['number'] & 0xFFFFFFFF}"
        sizes = ", ".join(f"{station} {size:,} bytes" for station, size in about["bytes"].items())
        if self.event == "asked":
            return f"{what}: asked {sizes}"
        parts = [f"came {sizes}"] if sizes else []
        parts += [refusal(station, code) for station, code in about["codes"].items()]
        parts += [f"nothing from {', '.join(about['silent'])}"] if about["silent"] else []
        return f"{what}: {'; '.join(parts) or 'nothing'}"


def refusal(station: str, code: str) -> str:
    """A station's refusal in words, of which only the code has crossed.

    Examples
    --------
    >>> refusal("beta", "HR-603")
    'beta refused: HR-603 ColumnForbidden: its guard does not allow a column to be used'
    """
    kind = catalogue().get(code)
    if not code:
        return f"{station} refused without a code"
    if kind is None:
        return f"{station} refused: {code}, which this version does not know"
    sentence = (kind.__doc__ or "").strip().split("\n")[0].rstrip(".")
    for start, instead in (("A station's ", "its "), ("A station ", "it "), ("Whoever answers for a station ", "its owner ")):
        if sentence.startswith(start):
            sentence = instead + sentence.removeprefix(start)
    return f"{station} refused: {code} {kind.__name__}: {sentence[:1].lower()}{sentence[1:]}"


def append(connection: sqlite3.Connection, at: float, study: str, event: str, about: Mapping[str, Any]) -> None:
    """Add an entry, within a transaction of its caller."""
    last = connection.execute("SELECT number, hash FROM journal ORDER BY number DESC LIMIT 1").fetchone() or (0, "")
    text = json.dumps({"at": at, "event": event, "about": about})
    row = (last[0] + 1, study, text, _link(last[1], study, text))
    connection.execute("INSERT INTO journal VALUES (?, ?, ?, ?)", row)


def entries(database: Database, study: str | None = None, last: int | None = None) -> list[Entry]:
    """Entries in their order; of one study, and only so many of the latest, where that is asked."""
    asked = "SELECT number, study, entry, hash FROM journal WHERE (?1 IS NULL OR study = ?1) ORDER BY number DESC LIMIT ?2"
    rows = database.rows(asked, (study, -1 if last is None else last))
    return [_entry(*row) for row in reversed(rows)]


def verified(rows: Iterator[tuple[int, str, str, str]]) -> tuple[int, str]:
    """Check the chain; return how many entries it has, and its head.

    Raises
    ------
    LedgerDamaged (HR-231)
        With the number of the first damaged entry.
    """
    before, head = 0, ""
    for number, study, text, link in rows:
        if number != before + 1 or link != _link(head, study, text):
            raise LedgerDamaged(
                f"entry {before + 1} of the coordinator's journal does not continue what comes before; an entry was changed, "
                "lost or added.",
                remedy="Restore the state folder from a copy; a journal is never edited.",
            )
        before, head = number, link
    return before, head


def _entry(number: int, study: str, text: str, link: str) -> Entry:
    found = json.loads(text)
    return Entry(number, found["at"], study, found["event"], found["about"], link)


def _link(previous: str, study: str, text: str) -> str:
    return hash_of(f"{previous}\n{study}\n{text}")
