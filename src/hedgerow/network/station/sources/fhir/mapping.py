"""What a column of a FHIR source is: an element of the patient, a choice among observations, or the presence of a condition.

    from = "Patient.birthDate"   as = "age", at = day  |  as = "year";  partial
    from = "Patient.gender"      levels
    from = "Patient.deceased"    0 or 1
    from = "Observation"         code, value, unit, convert, comparator, status, since, until     a quantity, or a count
    from = "Observation"         code, value, codes, levels, status, since, until                 a coded value
    from = "Condition"           code, clinical, verification, since, until                       0 or 1

Anything else is refused before a resource is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Literal

from hedgerow.data.column import Kind
from hedgerow.errors import ConfigInvalid, suggestion

from .values import Window, moment

if TYPE_CHECKING:
    from ...column_section import ColumnSection

Pick = Literal["last", "first", "mean", "min", "max", "count"]
STATUSES = ("registered", "preliminary", "final", "amended", "corrected", "cancelled", "unknown")
CLINICAL = ("active", "recurrence", "relapse", "inactive", "remission", "resolved")
VERIFICATION = ("unconfirmed", "provisional", "differential", "confirmed")
TIMED = ("since", "until")
SPEAKING: dict[str, tuple[str, ...]] = {
    "Patient.birthDate": ("form", "at", "partial"),
    "Patient.gender": (),
    "Patient.deceased": (),
    "Observation": ("code", "codes", "value", "convert", "comparator", "status", *TIMED),
    "Condition": ("code", "clinical", "verification", *TIMED),
}
"""The FHIR keys that each element understands."""
NAMES = {"form": "as"}


@dataclass(frozen=True)
class Element:
    """An element of the patient: gender or deceased."""

    path: str
    kind: Kind
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Birth:
    """Age in completed years on the day `at`, or the year of birth where `at` is None."""

    at: date | None
    middle: bool
    kind: Kind = "integer"


@dataclass(frozen=True)
class Quantity:
    """One number out of a patient's observations of these codes, in one unit; of a count, how many there are."""

    codes: frozenset[str]
    pick: Pick
    unit: str
    factors: dict[str, float]
    comparator: Literal["refuse", "drop", "value"]
    statuses: frozenset[str]
    window: Window
    kind: Kind = "number"


@dataclass(frozen=True)
class Coded:
    """The level of a patient's first or last observation of these codes, whose value is a code."""

    codes: frozenset[str]
    pick: Pick
    levels: dict[str, str]
    statuses: frozenset[str]
    window: Window
    kind: Kind = "category"


@dataclass(frozen=True)
class Presence:
    """Whether a patient has a condition of these codes. `clinical` None takes any status, and none at all."""

    codes: frozenset[str]
    clinical: frozenset[str] | None
    verification: frozenset[str]
    window: Window
    kind: Kind = "binary"


Meaning = Element | Birth | Quantity | Coded | Presence


def meaning(name: str, column: ColumnSection) -> Meaning:
    """Return what a column of a FHIR source is.

    Raises
    ------
    ConfigInvalid (HR-601)
        The element is none of those above, a key does not belong to it, or a value is no code, unit, status or day.
    """
    element = column.origin or ""
    if element not in SPEAKING:
        raise ConfigInvalid(f"from = {element!r} is no element that is read.", remedy=suggestion(element, SPEAKING))
    fhir_keys = {key for keys in SPEAKING.values() for key in keys}
    strange = sorted(NAMES.get(key, key) for key in column.given() & fhir_keys - set(SPEAKING[element]))
    if strange:
        known = ", ".join(NAMES.get(key, key) for key in SPEAKING[element]) or "no key of its own"
        raise ConfigInvalid(f"from = {element!r} does not understand {', '.join(strange)}.", remedy=f"It understands {known}.")
    if element == "Patient.birthDate":
        found: Meaning = _birth(column)
    elif element == "Patient.gender":
        found = Element("gender", "category", column.levels)
    elif element == "Patient.deceased":
        found = Element("deceased", "binary")
    elif element == "Condition":
        found = _presence(column)
    else:
        found = _coded(column) if column.codes is not None or column.levels else _quantity(column)
    allowed = {"number": ("number", "integer"), "integer": ("integer", "number")}.get(found.kind, (found.kind,))
    if column.kind is not None and column.kind not in allowed:
        raise ConfigInvalid(f"kind = {column.kind!r}, and {element} gives {found.kind}.", remedy="Leave kind out.")
    return found


def _birth(column: ColumnSection) -> Birth:
    if column.form is None or (column.form == "age") != (column.at is not None):
        raise ConfigInvalid(
            "a date of birth identifies people.", remedy='Give as = "age" with at = "2026-01-01", or as = "year".'
        )
    return Birth(None if column.at is None else _day(column.at, "at"), column.partial == "middle")


def _quantity(column: ColumnSection) -> Quantity:
    pick = _pick(column)
    if pick == "count":
        if idle := sorted({"convert", "comparator", "unit"} & column.given()):
            raise ConfigInvalid(f"a count has no {', '.join(idle)}.", remedy="Leave it out.")
    elif not column.unit:
        raise ConfigInvalid("an observation's quantity needs a unit.", remedy='Give its UCUM code, such as unit = "mm[Hg]".')
    wrong = {unit: factor for unit, factor in column.convert.items() if not (math.isfinite(factor) and factor > 0)}
    if wrong or column.unit in column.convert:
        raise ConfigInvalid(
            f"convert = {column.convert}.", remedy="Give a factor above zero for each unit but the declared one."
        )
    return Quantity(
        _codes(column),
        pick,
        column.unit,
        dict(column.convert),
        column.comparator,
        _statuses(column),
        _window(column),
        "integer" if pick == "count" else "number",
    )


def _coded(column: ColumnSection) -> Coded:
    pick, levels = _pick(column), column.codes or {}
    if pick not in ("last", "first") or {"convert", "comparator", "unit"} & column.given():
        raise ConfigInvalid("a coded value is neither measured nor averaged.", remedy='Give value = "last" or "first".')
    if not levels or set(levels.values()) != set(column.levels):
        raise ConfigInvalid(
            f"codes give {sorted(set(levels.values()))}, levels are {list(column.levels)}.",
            remedy='Give each level a code: codes = { "system|code" = "level" }.',
        )
    for token in levels:
        _token(token)
    return Coded(_codes(column), pick, dict(levels), _statuses(column), _window(column))


def _presence(column: ColumnSection) -> Presence:
    clinical = None if column.clinical is None else _among("clinical", column.clinical, CLINICAL)
    verification = _among("verification", column.verification or ("confirmed",), VERIFICATION)
    return Presence(_codes(column), clinical, verification, _window(column))


def _pick(column: ColumnSection) -> Pick:
    if column.value is None:
        raise ConfigInvalid("a patient may have many observations.", remedy="Give value: last, first, mean, min, max or count.")
    return column.value


def _statuses(column: ColumnSection) -> frozenset[str]:
    return _among("status", column.status or ("final", "amended", "corrected"), STATUSES)


def _among(key: str, words: tuple[str, ...], known: tuple[str, ...]) -> frozenset[str]:
    for word in words:
        if word not in known:
            raise ConfigInvalid(f"{key} has {word!r}, which never counts.", remedy=suggestion(word, known))
    return frozenset(words)


def _codes(column: ColumnSection) -> frozenset[str]:
    given = (column.code,) if isinstance(column.code, str) else column.code or ()
    if not given:
        raise ConfigInvalid("no code.", remedy='Give one or several: code = "http://loinc.org|8480-6".')
    return frozenset(_token(code) for code in given)


def _token(text: str) -> str:
    system, bar, code = text.partition("|")
    if not (bar and system and code) or code != code.strip():
        raise ConfigInvalid(f"{text!r} is no code.", remedy='Write system|code, such as "http://loinc.org|8480-6".')
    return text


def _window(column: ColumnSection) -> Window:
    since, until = (
        None if day is None else moment(_day(day, key).isoformat())
        for key, day in zip(TIMED, (column.since, column.until), strict=True)
    )
    if since is not None and until is not None and since >= until:
        raise ConfigInvalid(f"since = {column.since!r}, until = {column.until!r}.", remedy="Give a day and a later one.")
    return Window(since, until)


def _day(text: str, key: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ConfigInvalid(f"{key} = {text!r} is no day.", remedy='Write it as "2026-01-31".') from None
