"""Of whom a total behind hidden rows is, in words that a journal keeps and its owner can compare.

<number of parties> <digest> <names>     names where the parties know them: behind a roster
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from typing import TYPE_CHECKING

from hedgerow.crypto.schemes import Credentials
from hedgerow.crypto.standing import PartySet, names_digest

if TYPE_CHECKING:
    from .journal import StationEntry

NAMED = 100
"""Parties whose names are kept; of more the digest alone."""


def told_cohort(own: Credentials) -> str:
    """The set that was settled since this was asked last; "" where none was."""
    found = None if own.standing is None else own.standing.taken()
    if found is None:
        return ""
    return " ".join([str(len(found)), found.digest.hex()[:16], *_names(found, own)])


def _names(found: PartySet, own: Credentials) -> list[str]:
    names = sorted(own.roster or ())
    if len(found) > NAMED or found.order != names_digest(tuple(names)):
        return []
    return list(compress(names, found.flags.tolist()))


def cohort_notes(entries: Iterable[StationEntry]) -> dict[int, str]:
    """By the number of an entry, of whom a total is: in words, with who is missing since the one before."""
    said, before = dict[int, str](), dict[str, list[str]]()
    for entry in entries:
        if not entry.cohort:
            continue
        now, last = entry.cohort.split(" "), before.get(entry.study)
        words = f"total over {now[0]} parties"
        if last is not None and last[:2] != now[:2] and (last[2:] != now[2:] or not now[2:]):
            gone = sorted(set(last[2:]) - set(now[2:])) if now[2:] else []
            what = "fewer" if int(now[0]) < int(last[0]) else "others"
            words += f", {what} than before ({last[0]})" + (f": without {', '.join(gone)}" if gone else "")
        said[entry.number], before[entry.study] = words, now
    return said
