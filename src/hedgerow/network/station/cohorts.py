"""Of whom an exact total behind hidden rows is, in words that a journal keeps and its owner can compare.

<number of parties> <digest> <names>     names where the parties know them: behind a roster
"""

from __future__ import annotations

from itertools import compress

from hedgerow.crypto.schemes import Credentials
from hedgerow.crypto.standing import PartySet, names_digest

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


def shrunk(cohorts: list[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Of each cohort in a row of them what changed to the one before: "" for nothing, or in words, and who is missing since."""
    said: list[tuple[str, tuple[str, ...]]] = []
    before: list[str] = []
    for text in cohorts:
        parts = text.split(" ")
        fewer = bool(before) and parts[:2] != before[:2]
        gone = tuple(sorted(set(before[2:]) - set(parts[2:]))) if fewer else ()
        said.append((f"of {parts[0]} parties, before of {before[0]}" if fewer else "", gone))
        before = parts
    return said
