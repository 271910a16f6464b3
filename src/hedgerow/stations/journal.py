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
from hedgerow.errors import LedgerDamaged
from hedgerow.store.ledgerfile import hash_of

from .base import Base


@dataclass(frozen=True)
class Charge:
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
class Entry:
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
    charges : tuple of Charge
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
    charges: tuple[Charge, ...] = ()
    epsilon: float | None = field(default=None, compare=False)
    number: int = field(default=0, compare=False)
    hash: str = field(default="", compare=False)

    def to_json(self) -> str:
        """The entry without its place in the chain; what has its default is left out."""
        beside = ("epsilon", "number", "hash")
        return json.dumps({n: value for n, value in asdict(self).items() if n not in beside and value not in ("", 0, ())})

    @classmethod
    def from_json(cls, text: str, number: int, hash: str) -> Entry:
        found = json.loads(text)
        charges = tuple(Charge(**charge) for charge in found.pop("charges", ()))
        return cls(**{"letter": 0, "study": "", **found}, charges=charges, number=number, hash=hash)


class Journal:
    """The journal in a station's database."""

    def __init__(self, base: Base) -> None:
        self.base = base

    def write(self, *entries: Entry) -> None:
        """Append entries, in one transaction; return when they cannot be lost.

        Raises
        ------
        CannotWrite (HR-104)
            None of them was written.
        """
        with self.base.turn() as connection:
            last = connection.execute("SELECT number, hash FROM journal ORDER BY number DESC LIMIT 1").fetchone()
            number, link = last or (0, "")
            for entry in entries:
                text = entry.to_json()
                number, link = number + 1, hash_of(f"{link}\n{text}")
                connection.execute(
                    "INSERT INTO journal VALUES (?, ?, ?, ?, ?)", (number, entry.study, entry.letter, text, link)
                )

    def entries(self, *, study: str | None = None, last: int | None = None, after: int = 0) -> list[Entry]:
        """Entries in order: of one study, or the last so many, or those after a number."""
        query = "SELECT number, entry, hash FROM journal WHERE number > ?"
        values: tuple[object, ...] = (after,)
        if study is not None:
            query, values = f"{query} AND study = ?", (*values, study)
        query += " ORDER BY number DESC" + ("" if last is None else f" LIMIT {int(last)}")
        return [Entry.from_json(str(text), int(str(n)), str(link)) for n, text, link in reversed(self.base.rows(query, values))]

    def verify(self) -> tuple[int, str]:
        """Recompute the chain; return how many entries it has and its head.

        Raises
        ------
        LedgerDamaged (HR-231)
            With the number of the first entry that was changed, lost or added.
        """
        link, count = "", 0
        for number, study, letter, text, found in self.base.rows(
            "SELECT number, study, letter, entry, hash FROM journal ORDER BY number"
        ):
            link, count = hash_of(f"{link}\n{text}"), count + 1
            entry = json.loads(str(text))
            same = (study, letter) == (entry.get("study", ""), entry.get("letter", 0))
            if found != link or number != count or not same:
                remedy = "Restore the file from a copy; a journal is never edited."
                raise LedgerDamaged(f"entry {count} of {self.base.path} does not continue what comes before.", remedy=remedy)
        return count, link

    def last_numbers(self) -> dict[str, int]:
        """The largest number of a letter that each study has used."""
        found = self.base.rows("SELECT study, max(letter) FROM journal WHERE study != '' GROUP BY study")
        return {str(study): int(str(number)) for study, number in found}

    def charged(self) -> Iterator[Entry]:
        """Every entry that charges something, in order."""
        for [text] in self.base.rows("SELECT entry FROM journal WHERE instr(entry, '\"charges\"') ORDER BY number"):
            yield Entry.from_json(str(text), 0, "")

    def charges(self) -> Iterator[tuple[str, Charge]]:
        """Every charge in order, with its study."""
        for entry in self.charged():
            yield from ((entry.study, charge) for charge in entry.charges)


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
