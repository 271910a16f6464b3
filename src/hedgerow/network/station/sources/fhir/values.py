"""Dates, quantities and codes, as FHIR writes them.

A date may end after the year or the month; it then stands for all of that year or month. What is ordered by time is ordered by
the first moment that is meant. A day without a zone is taken as one in UTC.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?")
UCUM = "http://unitsofmeasure.org"
MOST = sys.float_info.max
TIMES = ("effectiveDateTime", "effectiveInstant", "onsetDateTime", "recordedDate")
PERIODS = ("effectivePeriod", "onsetPeriod")

Resource = Mapping[str, Any]


class Malformed(ValueError):
    """An element that the specification does not allow. Says which, never what it holds."""


@dataclass(frozen=True)
class Window:
    """From `since` on, and before `until`; None where that side is open."""

    since: float | None = None
    until: float | None = None

    def holds(self, when: float | None) -> bool:
        """Whether a moment lies within. What has no time lies only in a window without ends."""
        if when is None:
            return self.since is None and self.until is None
        return (self.since is None or when >= self.since) and (self.until is None or when < self.until)


def moment(text: Any) -> float | None:
    """Return the first moment that a FHIR date, dateTime or instant means, in seconds since 1970; None where there is none.

    Raises
    ------
    Malformed
        It is none of them.
    """
    if text is None:
        return None
    try:
        whole = DATE.fullmatch(text)
        if whole:
            year, month, day = (int(part or 1) for part in whole.groups())
            return datetime(year, month, day, tzinfo=UTC).timestamp()
        found = datetime.fromisoformat(text)
        if "T" not in text:
            raise ValueError
    except (ValueError, TypeError):
        raise Malformed("a date") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def time_of(resource: Resource) -> float | None:
    """Return when an observation was true of the patient, or a condition began or was first written down."""
    for key in (*TIMES[:2], *PERIODS, *TIMES[2:]):
        value = resource.get(key)
        if value is not None:
            found = moment(mapped(value).get("start") or mapped(value).get("end")) if key in PERIODS else moment(value)
            if found is not None:
                return found
    return None


def completed_years(born: str, at: date, middle: bool) -> int | None:
    """Return the age on the day `at`; of a partial date None, or with `middle` that from July 1 or the 15th of the month.

    Raises
    ------
    Malformed
        `born` is no date.
    """
    day = birthday(born, middle)
    return None if day is None else at.year - day.year - ((at.month, at.day) < (day.month, day.day))


def birthday(born: str, middle: bool) -> date | None:
    """Return a date of birth as a day."""
    whole = DATE.fullmatch(born) if isinstance(born, str) else None
    if whole is None:
        raise Malformed("Patient.birthDate")
    year, month, day = whole.groups()
    if day is None and not middle:
        return None
    try:
        return date(int(year), int(month or 7), int(day or (15 if month else 1)))
    except ValueError:
        raise Malformed("Patient.birthDate") from None


def tokens(concept: Any) -> Iterator[str]:
    """Return the codes of a CodeableConcept as system|code."""
    for coding in listed(mapped(concept).get("coding")):
        found = mapped(coding)
        system, code = word(found.get("system")), word(found.get("code"))
        if code:
            yield f"{system or ''}|{code}"


def status_of(concept: Any) -> str | None:
    """Return the code of a status that is a CodeableConcept, whatever system it names; None where there is none."""
    return next((token.rpartition("|")[2] for token in tokens(concept)), None)


def number_of(quantity: Any) -> tuple[float, str, str] | None:
    """Return value, unit and comparator of a Quantity; None where it has no value.

    The unit is the UCUM code. Where there is none it is the unit as people read it, which equals the code for many; and "1"
    where that is absent too.

    Raises
    ------
    Malformed
        Its value is no finite number.
    """
    found = mapped(quantity)
    value = found.get("value")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MOST:
        raise Malformed("Quantity.value")
    coded = word(found.get("code")) if found.get("system", UCUM) == UCUM else None
    return float(value), coded or word(found.get("unit")) or "1", word(found.get("comparator")) or ""


def mapped(value: Any) -> Resource:
    """Return an element that is an object; an empty one where it is absent."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Malformed("an element that is to be an object")
    return value


def listed(value: Any) -> list[Any]:
    """Return an element that is a list; an empty one where it is absent."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise Malformed("an element that is to be a list")
    return value


def word(value: Any) -> str | None:
    """Return an element that is a code or another text; None where it is absent."""
    if value is None or isinstance(value, str):
        return value
    raise Malformed("an element that is to be a text")
