"""What stations say of themselves when a study asks them to join, and which of them it goes on without.

    data, schema, parties     the records and what is declared of them
    dictionary                name@version and digest of the dictionary that the declarations are from, where they are from one
    absent                    columns of that dictionary which the station does not have, and says so
    closed                    values that were refused, rounded up to a multiple of 5: the station answers no question until its
                              owner has mended them

A station whose table is closed waits alone, and a study that reads a column which one does not have goes on without that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hedgerow.crypto.cohort import LONGEST_NAME
from hedgerow.data import Column, Schema
from hedgerow.errors import HedgerowError, MessageRefused, SourceUnreadable
from hedgerow.study import Study
from hedgerow.study.remote import data_name
from hedgerow.wire.envelope import Letter
from hedgerow.wire.values import unpack

from .columns import used_columns

CLOSED = SourceUnreadable.code
"""With which a station refuses whose table is closed."""
MOST_WORDS = 200
"""Characters of a stranger's text that are shown."""


@dataclass(frozen=True)
class Hello:
    """What a station says of itself."""

    data: str
    schema: Schema
    parties: tuple[str, ...]
    version: str
    dictionary: tuple[str, str] = ("", "")
    absent: frozenset[str] = frozenset()
    closed: int = 0
    station: str = ""

    @property
    def waits(self) -> str:
        """Why a station whose table is closed waits."""
        return f"{self.station} waits: its table is closed, about {self.closed:,} values refused"


def read_hello(letter: Letter) -> Hello:
    """Read what a station says of itself; MessageRefused (HR-242) where it is nothing of that kind.

    Its parties have its name, or `name/...`: no station speaks in the name of another.
    """
    said = mapping_in(letter, "hello")
    parties, columns, mine = said.get("parties"), said.get("schema"), letter.sender
    if (
        not isinstance(parties, tuple)
        or not _names(parties)
        or not all(one == mine or one.startswith(f"{mine}/") for one in parties)
        or not isinstance(columns, tuple)
        or not all(isinstance(one, Column) for one in columns)
    ):
        raise MessageRefused(f"{mine} answered a hello without columns, or without parties of its own name.")
    dictionary, absent, closed = said.get("dictionary", ("", "")), said.get("absent", ()), said.get("closed", 0)
    if (
        not _are_words(dictionary, 2)
        or not _are_words(absent)
        or not isinstance(closed, int)
        or isinstance(closed, bool)
        or closed < 0
    ):
        raise MessageRefused(f"{mine} answered a hello with a dictionary, or columns that it lacks, which are none.")
    try:
        schema = Schema(columns)
    except HedgerowError as error:
        raise MessageRefused(f"{mine} declares columns that contradict each other.") from error
    about = (str(said.get("data", "")), schema, parties, str(said.get("version", "")))
    return Hello(*about, (dictionary[0], dictionary[1]), frozenset(absent), closed, mine)


def mapping_in(letter: Letter, kind: str) -> Mapping[str, Any]:
    """What a letter of a kind says, by name; MessageRefused (HR-242) where it says nothing of that kind."""
    found = unpack(letter.parts[0]) if letter.kind == kind and len(letter.parts) == 1 else None
    if not isinstance(found, dict):
        raise MessageRefused(f"{letter.sender} answered with what is no {kind!r}.")
    return found


def differs(study: Study, hello: Hello) -> str:
    """Why a station has not what a study is about, as the rest of a sentence; "" where it has."""
    if hello.data != data_name(study):
        return f"has the data {hello.data[:100]!r}, not {data_name(study)!r}"
    wanted = study.data.dictionary_named
    if wanted is None or hello.dictionary == wanted:
        return ""
    label, digest = hello.dictionary
    if not label:
        return f"declares its columns by no dictionary, and the study by {wanted[0]}"
    if label != wanted[0]:
        return f"has the dictionary {label}, not {wanted[0]}"
    return f"has another {label}: its digest is {digest[:19]}, and the study names {wanted[1][:19]}"


def columns_absent(study: Study, hellos: Mapping[str, Hello]) -> dict[str, str]:
    """Stations that have said that they lack a column which a study reads, and what they lack, in sentences.

    A column that one lacks without having said so is a mistake, of which all are told (`agreed_schema`).
    """
    absent = {name for hello in hellos.values() for name in hello.absent}
    if not absent:
        return {}
    used = used_columns(study, list(dict.fromkeys(name for hello in hellos.values() for name in hello.schema.names)))
    lacking = {name: [one for one in used if one in hello.absent] for name, hello in hellos.items()}
    return {name: f"without {name}, which has no {', '.join(columns)}" for name, columns in lacking.items() if columns}


def _names(found: tuple[Any, ...]) -> bool:
    words = all(isinstance(one, str) and one.isprintable() and len(one.encode()) <= LONGEST_NAME for one in found)
    return bool(found) and words and len(set(found)) == len(found)


def _are_words(found: Any, n: int | None = None) -> bool:
    """Whether a value is a tuple of n short words."""
    words = isinstance(found, tuple) and (n is None or len(found) == n)
    return words and all(isinstance(one, str) and one.isprintable() and len(one) <= MOST_WORDS for one in found)
