"""A station's journal: everything asked and answered, chained by hashes, on the disk before the answer leaves.

A question has two entries: what is asked with what it is charged, before anything is computed, and what came of it. So a
crash can leave a charge without an answer, never an answer without a charge. The journal is the ledger of the station's
parties: accounts are made from it when the station starts, and so is the last number that each study has used.

Entries hold sizes, names of functions and codes, and for the owner of the data the sentence of a refusal; no answers.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from hedgerow.core.ledger import Entry as Debit
from hedgerow.store import Journal
from hedgerow.store.links import damaged
from hedgerow.wire.heads import Head

from .base import JOURNAL, Base

ANEW = "anew"
"""Code of the decision to begin anew after entries were lost."""


@dataclass(frozen=True)
class PartyCharge:
    """What a question costs some of the parties.

    Attributes
    ----------
    account : {"all", "study"}
        Over everything ever answered, or of the study alone.
    debit : dict
        A ledger's entry, as JSON.
    parties : str
        Which, of all that the station had then, packed; "" for all.
    """

    account: str
    debit: dict[str, Any]
    parties: str = ""

    def entry(self) -> Debit:
        """The ledger's entry."""
        return Debit.from_json(self.debit)


@dataclass(frozen=True)
class StationEntry:
    """One entry.

    Attributes
    ----------
    at : str
        Universal time, ISO 8601.
    kind : str
        Of the letter, or "decision".
    study : str
        16 bytes in hexadecimal digits.
    letter : int
        Its number.
    code : str
        "asked" before and "answered" after; a refusal's code; of a decision its status.
    function : str
        What was asked, in words.
    question : int
        Number of a question whose answer is made from records; 0 for other letters.
    reason : str
        The sentence of a refusal, which stays here; who decided.
    digest : str
        Of the letter.
    signature, branch, broadcast, about : str
        Of a question whose answer is made from records: what it is counted by (`counts`), as digests.
    cohort : str
        Of whom an exact total behind hidden rows is: see `cohorts`.
    charges : tuple of PartyCharge
    generation : int
        Of a decision to begin anew after entries were lost: how many such decisions there were.
    exact, hidden : float
        Numbers without noise that each of some parties was asked: from itself, and in totals of many, divided by how many.
        Of a decision to begin anew: numbers for each value, of all that are held, which count as asked.
    noise : float
        How much of the noise that may cover these numbers was used up (`core.disclosure.worn`); 0 where there is none.
    whom : str
        These parties, packed; "" for all.
    people, partners : str
        Of an alignment: a digest of the list of people here, and the stations whose people it is matched with.
    epsilon : float or None
        Spent by the party that has spent most, with this question, of the budget over everything. It follows from the
        charges, so it is not written: `Inbox.entries` computes it for who looks.
    """

    at: str
    kind: str
    study: str
    letter: int
    code: str
    function: str = ""
    question: int = 0
    n_parties: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    reason: str = ""
    digest: str = ""
    signature: str = ""
    branch: str = ""
    broadcast: str = ""
    about: str = ""
    cohort: str = ""
    charges: tuple[PartyCharge, ...] = ()
    generation: int = 0
    exact: float = 0.0
    hidden: float = 0.0
    noise: float = 0.0
    whom: str = ""
    people: str = ""
    partners: str = ""
    epsilon: float | None = field(default=None, compare=False)
    number: int = field(default=0, compare=False)
    hash: str = field(default="", compare=False)

    def to_json(self) -> str:
        """The entry without its place in the chain; what has its default is left out."""
        beside = ("epsilon", "number", "hash")
        return json.dumps({n: value for n, value in asdict(self).items() if n not in beside and value not in ("", 0, ())})

    @classmethod
    def from_json(cls, text: str, number: int, hash: str) -> StationEntry:
        found = json.loads(text)
        charges = tuple(PartyCharge(**charge) for charge in found.pop("charges", ()))
        return cls(**{"letter": 0, "study": "", **found}, charges=charges, number=number, hash=hash)


class StationJournal:
    """The journal in a station's database."""

    def __init__(self, base: Base) -> None:
        self._journal = Journal(base.database, JOURNAL)
        self.base, self.verify = base, self._journal.verify
        self._generation = -1

    def write(self, *entries: StationEntry) -> None:
        """Append entries, in one transaction; return when they cannot be lost.

        Raises
        ------
        CannotWrite (HR-104)
            None of them was written.
        """
        self._journal.append(*((_columns(entry), entry.to_json()) for entry in entries))
        self._generation = max((entry.generation for entry in entries), default=0) or self._generation

    def entries(self, *, study: str | None = None, last: int | None = None, after: int = 0) -> list[StationEntry]:
        """Entries in order: of one study, or the last so many, or those after a number."""
        where, values = ("study = ?", (study,)) if study is not None else ("", ())
        found = self._journal.links(where, values, after=after, last=last)
        return [StationEntry.from_json(link.text, link.number, link.hash) for link in found]

    def last_numbers(self) -> dict[str, int]:
        """The largest number of a letter that each study has used."""
        return dict(self.base.rows("SELECT study, max(letter) FROM journal WHERE study != '' GROUP BY study"))

    def charged(self) -> Iterator[StationEntry]:
        """Every entry that charges something, in order."""
        for link in self._journal.links("charges > 0", ()):
            yield StationEntry.from_json(link.text, link.number, link.hash)

    def n_questions(self, study: str) -> int:
        """How many questions of a study were to be answered from records."""
        asked = "SELECT count(*) FROM journal WHERE study = ? AND code = 'asked' AND question != 0"
        return int(self.base.rows(asked, (study,))[0][0])

    def head(self) -> Head:
        """How far the journal went."""
        rows = self.base.rows(
            "SELECT number, hash FROM journal WHERE number = (SELECT max(number) FROM journal) OR number = 0 ORDER BY number"
        )
        if not rows or rows[0][0] != 0:
            raise damaged(self.base.path, 0, "it is not there any more")
        return Head(self.generation(), bytes.fromhex(rows[0][1]), rows[-1][0], bytes.fromhex(rows[-1][1]))

    def contains(self, head: Head) -> bool:
        """Whether the journal is the one of a head, and has its entry."""
        rows = self.base.rows("SELECT hash FROM journal WHERE number IN (0, ?) ORDER BY number", (head.number,))
        found = [bytes.fromhex(row[0]) for row in rows]
        return len(found) == 1 + (head.number > 0) and (found[0], found[-1]) == (head.journal, head.hash)

    def generation(self) -> int:
        """How often the owner of the data began anew after entries were lost."""
        if self._generation < 0:
            found = [StationEntry.from_json(link.text, 0, "") for link in self._journal.links("code = ?", (ANEW,))]
            self._generation = max((entry.generation for entry in found), default=0)
        return self._generation

    def begun(self, code: str) -> list[StationEntry]:
        """Every entry of one code, in order."""
        return [StationEntry.from_json(link.text, link.number, link.hash) for link in self._journal.links("code = ?", (code,))]

    def questions(self, study: str) -> Iterator[StationEntry]:
        """Every question of a study that was to be answered from records, in order."""
        for link in self._journal.links("study = ? AND code = 'asked' AND question != 0", (study,)):
            yield StationEntry.from_json(link.text, link.number, link.hash)

    def told(self, study: str | None = None) -> Iterator[StationEntry]:
        """Every entry about an answer made from records, and decisions to begin anew, in order; or those of one study."""
        where, values = ("question != 0 AND study = ?", study) if study is not None else ("(question != 0 OR code = ?)", ANEW)
        for link in self._journal.links(where, (values,)):
            yield StationEntry.from_json(link.text, link.number, link.hash)

    def charges(self, study: str | None = None) -> Iterator[tuple[str, PartyCharge]]:
        """Every charge in order, with its study; or those of one study."""
        where, values = ("AND study = ?", (study,)) if study is not None else ("", ())
        for link in self._journal.links(f"charges > 0 {where}", values):
            yield from ((link.columns[0], PartyCharge(**charge)) for charge in json.loads(link.text)["charges"])


def _columns(entry: StationEntry) -> tuple[str, int, str, int, int]:
    return entry.study, entry.letter, entry.code, entry.question, len(entry.charges)


def pack_parties(which: np.ndarray, tags: Sequence[str]) -> str:
    """Name parties by their tags; "" where these are all."""
    if len(which) == len(tags):
        return ""
    return base64.b85encode(zlib.compress("\n".join(tags[i] for i in which).encode(), 1)).decode()


def unpack_parties(packed: str, position: dict[str, int]) -> np.ndarray:
    """Positions of parties that are still there."""
    if not packed:
        return np.arange(len(position))
    tags = zlib.decompress(base64.b85decode(packed)).decode().split("\n")
    return np.array([position[tag] for tag in tags if tag in position], np.int64)
