"""What a column of an OMOP source is: of the person, a choice among measurements, or what a person was diagnosed or given.

    from = "person.birth"           as = "age", at = day  |  as = "year"
    from = "person.gender"          codes        concept = level
    from = "measurement"            concept, value, convert, since, until            a number, or how many there are
    from = "measurement"            concept, value, codes, since, until              a coded value
    from = "condition_occurrence"   concept, value, since, until                     0 or 1, or how many there are
    from = "drug_exposure"          concept, value, since, until                     0 or 1, or how many there are

Concepts are numbers of the vocabulary. There is none here: name every concept that you mean, descendants included. Anything
else is refused before a row is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Literal

from hedgerow.data.column import Kind
from hedgerow.errors import ConfigInvalid, suggestion

if TYPE_CHECKING:
    from ...column_section import ColumnSection

Pick = Literal["last", "first", "mean", "min", "max", "count"]
TIMED = ("since", "until")
SPEAKING: dict[str, tuple[str, ...]] = {
    "person.birth": ("form", "at"),
    "person.gender": ("codes",),
    "measurement": ("concept", "value", "convert", "codes", *TIMED),
    "condition_occurrence": ("concept", "value", *TIMED),
    "drug_exposure": ("concept", "value", *TIMED),
}
"""The keys that each `from` understands."""
KEYS = (
    "form",
    "at",
    "partial",
    "code",
    "codes",
    "value",
    "convert",
    "comparator",
    "status",
    "clinical",
    "verification",
    *TIMED,
)
"""Keys of FHIR and OMOP columns."""
NAMES = {"form": "as"}


@dataclass(frozen=True)
class BirthField:
    """Age in completed years on the day `at`, or the year of birth where `at` is None."""

    at: date | None
    kind: Kind = "integer"


@dataclass(frozen=True)
class Gender:
    """The level of a person's gender concept."""

    levels: dict[int, str]
    kind: Kind = "category"


@dataclass(frozen=True)
class Events:
    """What is made of a person's rows of one table with these concepts, from one day on and before another.

    Attributes
    ----------
    pick : str
        Which rows; "any" for whether there is one.
    factors : mapping from unit concept to float
        Of numbers; other units are refused. Unit 0 is that of a row without one.
    levels : mapping from concept to level
        Of coded values.
    """

    table: str
    concepts: frozenset[int]
    pick: Literal["last", "first", "mean", "min", "max", "count", "any"]
    since: date | None
    until: date | None
    factors: dict[int, float]
    levels: dict[int, str]
    kind: Kind


Meaning = BirthField | Gender | Events


def meaning(name: str, column: ColumnSection) -> Meaning:
    """Return what a column of an OMOP source is.

    Raises
    ------
    ConfigInvalid (HR-601)
        It is none of those above, a key does not belong to it, or a value is no concept, unit or day.
    """
    table = column.origin or ""
    if table not in SPEAKING:
        raise ConfigInvalid(f"from = {table!r} is nothing that is read.", remedy=suggestion(table, SPEAKING))
    strange = sorted(NAMES.get(key, key) for key in column.given() & {*KEYS, "concept"} - {*SPEAKING[table]})
    if strange:
        known = ", ".join(NAMES.get(key, key) for key in SPEAKING[table])
        raise ConfigInvalid(f"from = {table!r} does not understand {', '.join(strange)}.", remedy=f"It understands {known}.")
    found: Meaning
    if table == "person.birth":
        found = _birth(column)
    elif table == "person.gender":
        found = Gender(_levels(column))
    else:
        found = _events(table, column)
    allowed = {"number": ("number", "integer"), "integer": ("integer", "number")}.get(found.kind, (found.kind,))
    if column.kind is not None and column.kind not in allowed:
        raise ConfigInvalid(f"kind = {column.kind!r}, and {table} gives {found.kind}.", remedy="Choose another value or kind.")
    return found


def _birth(column: ColumnSection) -> BirthField:
    if column.form is None or (column.form == "age") != (column.at is not None):
        raise ConfigInvalid(
            "a date of birth identifies people.", remedy='Give as = "age" with at = "2026-01-01", or as = "year".'
        )
    return BirthField(None if column.at is None else _day(column.at, "at"))


def _events(table: str, column: ColumnSection) -> Events:
    concepts = frozenset((column.concept,) if isinstance(column.concept, int) else column.concept or ())
    if not concepts or any(concept < 1 for concept in concepts):
        raise ConfigInvalid("no concept.", remedy="Give its number, or several: concept = 3016723.")
    since, until = (None if day is None else _day(day, key) for key, day in (("since", column.since), ("until", column.until)))
    if since is not None and until is not None and since >= until:
        raise ConfigInvalid(f"since = {column.since!r}, until = {column.until!r}.", remedy="Give a day and a later one.")
    window = (since, until)
    if table != "measurement":
        if column.value not in (None, "count"):
            raise ConfigInvalid(f"value = {column.value!r}.", remedy='Give value = "count", or leave it out for 0 and 1.')
        counted = column.value == "count"
        return Events(table, concepts, "count" if counted else "any", *window, {}, {}, "integer" if counted else "binary")
    if column.value is None:
        raise ConfigInvalid("a person may have many measurements.", remedy="Give value: last, first, mean, min, max or count.")
    if column.value == "count":
        if idle := sorted({"convert", "codes"} & column.given()):
            raise ConfigInvalid(f"a count has no {', '.join(idle)}.", remedy="Leave it out.")
        return Events(table, concepts, "count", *window, {}, {}, "integer")
    if column.codes is not None or column.levels:
        if column.value not in ("last", "first") or column.convert:
            raise ConfigInvalid("a coded value is neither measured nor averaged.", remedy='Give value = "last" or "first".')
        return Events(table, concepts, column.value, *window, {}, _levels(column), "category")
    return Events(table, concepts, column.value, *window, _factors(column), {}, "number")


def _factors(column: ColumnSection) -> dict[int, float]:
    given = column.convert if not isinstance(column.convert, str) else {}
    wrong = [unit for unit, factor in given.items() if not unit.isdecimal() or not (math.isfinite(factor) and factor > 0)]
    if wrong or not given:
        raise ConfigInvalid(
            f"convert = {column.convert!r}.",
            remedy="Give a factor above zero for each unit concept that occurs, such as "
            'convert = { "8840" = 1, "8749" = 0.01131 }; "0" is that of rows without a unit.',
        )
    return {int(unit): factor for unit, factor in given.items()}


def _levels(column: ColumnSection) -> dict[int, str]:
    given = column.codes or {}
    if not given or set(given.values()) != set(column.levels) or not all(code.isdecimal() for code in given):
        raise ConfigInvalid(
            f"codes give {sorted(set(given.values()))}, levels are {list(column.levels)}.",
            remedy='Give each level a concept: codes = { "8532" = "female", "8507" = "male" }.',
        )
    return {int(code): level for code, level in given.items()}


def _day(text: str, key: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ConfigInvalid(f"{key} = {text!r} is no day.", remedy='Write it as "2026-01-31".') from None
