"""The chain of a journal: each entry has the hash of itself and of everything before it.

    hash of an entry    128 bits of the SHA-256 of the previous entry's hash, the columns and the text, a line for each

An entry that was changed, removed, added or moved breaks the chain. Entries removed from the end, and a journal written anew
from its first entry, leave a whole chain behind: only a head that was noted elsewhere shows those.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hedgerow.errors import LedgerDamaged

REMEDY = "Restore the file from a copy; a journal is never edited."


Raw = tuple[int, tuple[Any, ...], str, str]
"""What a `ChainLink` is made of."""


class ChainLink(NamedTuple):
    """One entry of a journal.

    Attributes
    ----------
    number : int
        Its place: without a gap, from 0 in a table (where 0 is the random name of the journal) and from 1 in a file of lines.
    columns : tuple of str and int
        What is told of it for counting and finding; none in a file of lines.
    text : str
        The entry: a JSON object, without a line break.
    hash : str
        32 hexadecimal digits.
    """

    number: int
    columns: tuple[Any, ...]
    text: str
    hash: str


def linked(previous: str, columns: Sequence[Any], text: str) -> str:
    """Return the hash of an entry that follows one with the hash `previous`, which is "" for the first.

    Raises
    ------
    ValueError
        A column has a line break, so that two entries could have one hash.
    """
    told = "\n".join(map(str, columns))
    if told.count("\n") > len(columns) - bool(columns):
        raise ValueError("a column of an entry has a line break")
    body = f"{previous}\n{told}\n{text}" if columns else f"{previous}\n{text}"
    return hashlib.sha256(body.encode()).hexdigest()[:32]


def follow(found: Iterable[Raw], path: Path, number: int, previous: str) -> Iterator[Raw]:
    """Give entries as long as they continue each other, from the entry `number` on, which follows the hash `previous`.

    Raises
    ------
    LedgerDamaged (HR-231)
        With the number of the first entry that was changed, lost or added.
    """
    for place, columns, text, hash in found:
        try:
            fits = place == number and hash == linked(previous, columns, text)
        except ValueError:
            fits = False
        if not fits:
            raise damaged(path, number, "it does not continue what comes before; an entry was changed, lost or added")
        yield place, columns, text, hash
        number, previous = number + 1, hash


def damaged(path: Path, number: int, reason: str) -> LedgerDamaged:
    """The refusal of a journal, with the entry at which its chain breaks."""
    return LedgerDamaged(f"entry {number} of {path}: {reason}.", remedy=REMEDY)
