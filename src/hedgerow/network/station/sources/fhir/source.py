"""`source = "fhir"`: resources into raw columns, one row for each patient in the order in which patients come.

    for each resource:
        patient                       ->  a row: age, gender, ...
        observation, condition        ->  facts (column, patient, time, value), of those that count
    for each patient and column:
        last, first, mean, min, max, count, or present

What is entered in error never counts. A resource that comes twice counts once: the one that was updated last. Facts of
patients that are not among the rows are left out, and their number is in the station's log. A patient that another one
replaces has no row; what is said of it is said of the other.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.data import Schema
from hedgerow.errors import SourceUnreadable

from ..raw_columns import RawColumns
from .mapping import Birth, Coded, Element, Meaning, Presence, Quantity, meaning
from .resources import FhirEntry, malformed, read_files, unversioned
from .server import search
from .values import (
    Malformed,
    Resource,
    birthday,
    completed_years,
    listed,
    mapped,
    moment,
    number_of,
    status_of,
    time_of,
    tokens,
    word,
)

if TYPE_CHECKING:
    from ...data_section import DataSection

LOG = logging.getLogger("hedgerow")
LONGEST_CHAIN = 8
"""So many patients may replace one another."""


@dataclass(frozen=True)
class Fact:
    """What an observation or condition says of a patient in one column."""

    column: str
    when: float
    value: float | str


@dataclass(frozen=True)
class Said:
    """All facts of one resource, whose they are, and when it was updated."""

    facts: tuple[Fact, ...]
    subject: str | None
    base: str | None
    updated: float | None


@dataclass
class Person:
    """A patient's row."""

    values: dict[str, Any]
    base: str | None
    updated: float | None
    replaced_by: str | None
    facts: dict[str, list[Fact]] = field(default_factory=dict)


def read_fhir(section: DataSection, schema: Schema, folder: Path, transport: Any = None) -> RawColumns:
    """Read the resources that `[data]` names, from files or a server.

    Parameters
    ----------
    transport : httpx transport, optional
        Takes the place of the network in tests.

    Raises
    ------
    SourceUnreadable (HR-614)
        A file or the server cannot be read; a resource is not FHIR R4; a unit is not declared; a reference means two patients.
    MissingExtra (HR-105)
        A server, and no httpx.
    """
    columns = {name: meaning(name, column) for name, column in section.columns.items()}
    reader = PatientReader(columns)
    from_server = not section.paths
    for entry in search(section, columns.values(), transport) if from_server else read_files(folder, section.paths):
        reader.take(entry)
    found, strangers = reader.columns_found()
    if strangers:
        LOG.warning(
            "data %r: %d observations and conditions are of no patient who was read, and are left out", section.name, strangers
        )
    return RawColumns(found, f"FHIR resources from {'a server' if from_server else 'files'}.")


class PatientReader:
    """Takes resources one by one, in any order, and returns columns in the end."""

    def __init__(self, columns: Mapping[str, Meaning]) -> None:
        self.columns = dict(columns)
        self._people: dict[str, Person] = {}
        self._said: dict[str, Said] = {}
        self._by_tail: dict[str, list[str]] = {}

    def take(self, entry: FhirEntry) -> None:
        """Keep what a resource says.

        Raises
        ------
        SourceUnreadable (HR-614)
            It is not FHIR R4, has another unit, or came before and said something else, and neither says when it was updated.
        """
        try:
            updated = moment(mapped(entry.resource.get("meta")).get("lastUpdated"))
            if entry.kind == "Patient":
                self._take_patient(entry, updated)
            else:
                facts = tuple(
                    self._observed(entry.resource) if entry.kind == "Observation" else self._diagnosed(entry.resource)
                )
                said = Said(facts, _subject(entry.resource), entry.base, updated)
                key = self._key(entry, len(self._said))
                if key not in self._said or _newer(said, self._said[key], entry.kind):
                    self._said[key] = said
        except Malformed as cause:
            raise malformed(cause, entry.kind) from None

    def columns_found(self) -> tuple[dict[str, np.ndarray], int]:
        """Return raw columns, and how many resources with facts are of no patient who was read."""
        strangers = 0
        for said in self._said.values():
            person = self._whose(said) if said.facts else None
            if person is None:
                strangers += bool(said.facts)
                continue
            for fact in said.facts:
                person.facts.setdefault(fact.column, []).append(fact)
        rows = [person for person in self._people.values() if person.replaced_by is None]
        found = {name: [_value(column, name, person) for person in rows] for name, column in self.columns.items()}
        return {name: _array(values) for name, values in found.items()}, strangers

    # ---- patients ----------------------------------------------------------------------------------------------------
    def _take_patient(self, entry: FhirEntry, updated: float | None) -> None:
        links = [mapped(link) for link in listed(entry.resource.get("link"))]
        other = next((link for link in links if link.get("type") == "replaced-by"), None)
        values = {
            name: _element(column, entry.resource)
            for name, column in self.columns.items()
            if isinstance(column, Element | Birth)
        }
        person = Person(values, entry.base, updated, None if other is None else _reference(other.get("other")) or "")
        key = self._key(entry, len(self._people))
        if key not in self._people:
            self._by_tail.setdefault(entry.tail or key, []).append(key)
            self._people[key] = person
        elif _newer(person, self._people[key], entry.kind):
            self._people[key] = person

    def _key(self, entry: FhirEntry, number: int) -> str:
        return entry.url or entry.tail or f"#{number}"

    def _whose(self, said: Said) -> Person | None:
        reference, base = said.subject, said.base
        for _ in range(LONGEST_CHAIN):
            key = self._resolve(reference, base)
            if key is None:
                return None
            person = self._people[key]
            if person.replaced_by is None:
                return person
            reference, base = person.replaced_by, person.base
        return None

    def _resolve(self, reference: str | None, base: str | None) -> str | None:
        """Return the key of the patient that a reference means."""
        if not reference:
            return None
        absolute = "://" in reference or reference.startswith("urn:")
        for full in (reference,) if absolute else ((base or "") + reference, reference):
            if full in self._people:
                return full
        if reference.startswith("urn:"):
            return None
        tail = "/".join(reference.split("/")[-2:])
        known = [key for key in self._by_tail.get(tail, ()) if not (self._people[key].base and (absolute or base))]
        if len(known) > 1:
            raise SourceUnreadable(
                "a reference could mean two patients of the same id.",
                remedy="Read the patients of one server only, or give each a fullUrl.",
            )
        return known[0] if known else None

    # ---- facts -------------------------------------------------------------------------------------------------------
    def _observed(self, resource: Resource) -> Iterator[Fact]:
        """Return what an observation and its components say."""
        wanted = [(name, column) for name, column in self.columns.items() if isinstance(column, Quantity | Coded)]
        if not wanted:
            return
        parts = [resource, *(mapped(part) for part in listed(resource.get("component")))]
        coded = [(set(tokens(part.get("code"))), part) for part in parts]
        for name, column in wanted:
            measured = [part for codes, part in coded if codes & column.codes]
            if not measured or word(resource.get("status")) not in column.statuses:
                continue
            when = time_of(resource)
            for part in measured if column.window.holds(when) else ():
                value = _measured(name, column, part)
                if value is not None:
                    yield Fact(name, -math.inf if when is None else when, value)

    def _diagnosed(self, resource: Resource) -> Iterator[Fact]:
        """Return which conditions a resource states."""
        wanted = [(name, column) for name, column in self.columns.items() if isinstance(column, Presence)]
        codes = set(tokens(resource.get("code"))) if wanted else set()
        for name, column in wanted:
            clinical, verified = status_of(resource.get("clinicalStatus")), status_of(resource.get("verificationStatus"))
            counts = (column.clinical is None or clinical in column.clinical) and (
                verified is None or verified in column.verification
            )
            if codes & column.codes and counts and column.window.holds(time_of(resource)):
                yield Fact(name, 0.0, 1.0)


def _element(column: Element | Birth, resource: Resource) -> Any:
    """Return what a patient's own elements say; None where they do not."""
    if isinstance(column, Birth):
        born = resource.get("birthDate")
        if born is None:
            return None
        if column.at is not None:
            return completed_years(born, column.at, column.middle)
        day = birthday(born, True)
        return None if day is None else day.year
    if column.path == "gender":
        found = word(resource.get("gender"))
        return None if found == "unknown" and "unknown" not in column.levels else found
    dead = resource.get("deceasedBoolean")
    return float(dead is True or resource.get("deceasedDateTime") is not None)


def _measured(name: str, column: Quantity | Coded, part: Resource) -> float | str | None:
    """Return the value of an observation or component; None where it has none."""
    if isinstance(column, Coded):
        found = list(tokens(part.get("valueCodeableConcept")))
        return next((column.levels[token] for token in found if token in column.levels), found[0] if found else None)
    if column.pick == "count":
        return 1.0
    quantity = number_of(part.get("valueQuantity", {"value": part.get("valueInteger")}))
    if quantity is None:
        return None
    value, unit, comparator = quantity
    if comparator and column.comparator != "value":
        if column.comparator == "drop":
            return None
        raise SourceUnreadable(
            f"column {name!r}: an observation is only known to be {comparator} its value.",
            remedy='Say comparator = "drop" or "value" for this column.',
        )
    if unit == column.unit:
        return value
    if unit not in column.factors:
        raise SourceUnreadable(
            f"column {name!r}: an observation is in {unit[:40]!r}, declared is {column.unit!r}.",
            remedy=f'Give the factor: convert = {{ "{unit[:40]}" = 1.0 }}, or take another code.',
        )
    return value * column.factors[unit]


def _value(column: Meaning, name: str, person: Person) -> Any:
    """Return one cell."""
    if isinstance(column, Element | Birth):
        return person.values[name]
    facts = person.facts.get(name, [])
    if isinstance(column, Presence):
        return float(bool(facts))
    if column.pick == "count":
        return float(len(facts))
    if not facts:
        return None
    if column.pick == "last":
        return max(reversed(facts), key=lambda fact: fact.when).value  # of two at one time, that which came last
    if column.pick == "first":
        timed = [fact for fact in facts if fact.when > -math.inf]
        return min(timed or facts, key=lambda fact: fact.when).value
    numbers = [float(fact.value) for fact in facts]
    return {"mean": math.fsum(numbers) / len(numbers), "min": min(numbers), "max": max(numbers)}[column.pick]


def _array(values: list[Any]) -> np.ndarray:
    """Return values as numbers with NaN where they are missing, or as words with None there."""
    if any(isinstance(value, str) for value in values):
        return np.array(values, dtype=object)
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _subject(resource: Resource) -> str | None:
    return _reference(resource.get("subject"))


def _reference(value: Any) -> str | None:
    return unversioned(word(mapped(value).get("reference")))


def _newer(new: Said | Person, old: Said | Person, kind: str) -> bool:
    """Whether a resource that comes again takes the place of the one before."""
    if new.updated is not None and old.updated is not None and new.updated != old.updated:
        return new.updated > old.updated
    if replace(new, updated=old.updated) == old:
        return False
    raise SourceUnreadable(
        f"a {kind} comes twice, with different content, and meta.lastUpdated does not say which is newer.",
        remedy="Export each resource once.",
    )
