"""An aggregator's database: studies that it adds up, epochs that it served, and its journal.

studies    text and description as they came, with the decision, signed
served     epochs of all studies, and the parties of exact totals; written before what they are for is given, never twice
journal    chained by hashes: what was approved, refused and given, of how many parties, in words
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hedgerow.errors import CannotWrite, MessageRefused
from hedgerow.store import Database, Journal, JournalTable
from hedgerow.store.links import damaged
from hedgerow.wire.heads import Head

STUDIES = (
    "CREATE TABLE studies (study TEXT PRIMARY KEY, status TEXT NOT NULL, title TEXT NOT NULL, toml BLOB NOT NULL, "
    "description BLOB NOT NULL, digest BLOB NOT NULL, signature BLOB NOT NULL)"
)
SERVED = "CREATE TABLE served (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
JOURNAL = JournalTable("journal", {"study": "TEXT", "letter": "INTEGER", "code": "TEXT"}, indices=("study, letter",))


@dataclass(frozen=True)
class AggregatorEntry:
    """One entry.

    Attributes
    ----------
    at : str
        Universal time, ISO 8601.
    kind : str
        Of the letter.
    study : str
        16 bytes in hexadecimal digits.
    letter : int
        Its number.
    code : str
        "epoch" where an epoch begins, "total" where a total is given next, what became of a study, or a refusal's code.
    words : str
        What it was, or why it was refused.
    parties, numbers : int
        Of a total.
    """

    at: str
    kind: str
    study: str
    letter: int
    code: str
    words: str = ""
    parties: int = 0
    numbers: int = 0
    number: int = field(default=0, compare=False)
    hash: str = field(default="", compare=False)

    def to_json(self) -> str:
        """The entry without its place in the chain; what has its default is left out."""
        return json.dumps(
            {n: value for n, value in asdict(self).items() if n not in ("number", "hash") and value not in ("", 0)}
        )


class AggregatorBase:
    """The database, made with its folder when missing."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.database = Database(self.path, [STUDIES, SERVED, JOURNAL], b"hdga", "a database of an aggregator")
        self.transaction, self.rows, self.close = self.database.transaction, self.database.rows, self.database.close


class AggregatorJournal:
    """The journal in an aggregator's database."""

    def __init__(self, base: AggregatorBase) -> None:
        self.base, self._journal = base, Journal(base.database, JOURNAL)
        self.verify = self._journal.verify

    def write(self, entry: AggregatorEntry) -> None:
        """Append an entry; return when it cannot be lost, or raise CannotWrite (HR-104)."""
        self._journal.append(((entry.study, entry.letter, entry.code), entry.to_json()))

    def entries(self, *, study: str | None = None, last: int | None = None) -> list[AggregatorEntry]:
        """Entries in order: of one study, or the last so many."""
        where, values = ("study = ?", (study,)) if study is not None else ("", ())
        found = self._journal.links(where, values, last=last)
        empty = {"study": "", "letter": 0}
        return [AggregatorEntry(**empty | json.loads(link.text), number=link.number, hash=link.hash) for link in found]

    def head(self) -> Head:
        """How far the journal went."""
        rows = self.base.rows(
            "SELECT number, hash FROM journal WHERE number = (SELECT max(number) FROM journal) OR number = 0 ORDER BY number"
        )
        if not rows or rows[0][0] != 0:
            raise damaged(self.base.path, 0, "it is not there any more")
        return Head(0, bytes.fromhex(rows[0][1]), rows[-1][0], bytes.fromhex(rows[-1][1]))

    def contains(self, head: Head) -> bool:
        """Whether the journal is the one of a head, and has its entry."""
        rows = self.base.rows("SELECT hash FROM journal WHERE number IN (0, ?) ORDER BY number", (head.number,))
        found = [bytes.fromhex(row[0]) for row in rows]
        return len(found) == 1 + (head.number > 0) and (found[0], found[-1]) == (head.journal, head.hash)

    def generation(self) -> int:
        """An aggregator never begins anew on the same key."""
        return 0


class Served:
    """What an aggregator has served, as `Aggregator` and `TotalsGiven` keep it: a key is written once, or refused."""

    def __init__(self, base: AggregatorBase, prefix: str = "") -> None:
        self._base, self._prefix = base, prefix

    def of(self, study: str) -> Served:
        """What belongs to one study."""
        return Served(self._base, f"{study}/")

    def seen(self, key: str) -> bytes | None:
        """What was written for a key."""
        found = self._base.rows("SELECT value FROM served WHERE key = ?", (self._prefix + key,))
        return bytes(found[0][0]) if found else None

    def write(self, key: str, digest: bytes) -> None:
        """Write a key, and return when it is on the disk.

        Raises
        ------
        MessageRefused (HR-242)
            It was written before, whatever for; or it cannot be written.
        """
        try:
            with self._base.transaction() as connection:
                if connection.execute("SELECT 1 FROM served WHERE key = ?", (self._prefix + key,)).fetchone():
                    raise MessageRefused(f"{key!r} was served before.", remedy="Begin a new epoch.")
                connection.execute("INSERT INTO served VALUES (?, ?)", (self._prefix + key, digest))
        except CannotWrite as error:
            raise MessageRefused(error.reason, remedy="Nothing was given. Make room, then ask again.") from error


@dataclass(frozen=True)
class AddedUpStudy:
    """A study that asked this aggregator, as it came, and what was decided."""

    study: str
    status: str
    title: str
    toml: bytes
    description: bytes
    digest: bytes
    signature: bytes

    @property
    def id(self) -> str:
        """By which a person names it."""
        return self.study[:8]


class AddedUpStudies:
    """The studies in an aggregator's database."""

    def __init__(self, base: AggregatorBase) -> None:
        self._base = base

    def get(self, study: str) -> AddedUpStudy | None:
        """One study."""
        found = self._base.rows("SELECT * FROM studies WHERE study = ?", (study,))
        return _study(found[0]) if found else None

    def all(self, status: str = "") -> list[AddedUpStudy]:
        """All of them, or those of a status, in the order in which they came."""
        found = [_study(row) for row in self._base.rows("SELECT * FROM studies ORDER BY rowid")]
        return [one for one in found if not status or one.status == status]

    def put(self, one: AddedUpStudy) -> None:
        """Keep a study, or its new status."""
        with self._base.transaction() as connection:
            connection.execute(
                "INSERT INTO studies VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (study) DO UPDATE SET "
                "status = excluded.status, signature = excluded.signature",
                tuple(asdict(one).values()),
            )

    def titles(self) -> Mapping[str, str]:
        """Titles by study."""
        return dict(self._base.rows("SELECT study, title FROM studies"))


def _study(row: tuple[object, ...]) -> AddedUpStudy:
    study, status, title, *blobs = row
    return AddedUpStudy(str(study), str(status), str(title), *(bytes(one) for one in blobs))  # type: ignore[call-overload]
