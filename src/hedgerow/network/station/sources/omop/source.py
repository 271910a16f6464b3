"""Rows of an OMOP common data model into columns, one record for each person of `person`, in its order.

    path = "extract"              person.csv, measurement.csv, condition_occurrence.csv, drug_exposure.csv in that folder
    url  = "postgresql://..."     the tables of these names, in `schema` where one is given

Only the tables, fields and concepts that columns name are read. A row without a date counts only where no day is given; of two
rows on one day the one that the source has last (or first) counts. Rows of nobody in `person` are left out, and the log says
how many. No condition, drug or row to be counted is 0; no measurement is missing. Visits, eras and the vocabulary are not read.
"""

from __future__ import annotations

import csv
import logging
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.data import Schema
from hedgerow.errors import SourceUnreadable

from ..raw_columns import RawColumns
from ..secrets import address
from ..sql import answer
from .mapping import BirthField, Events, Gender, Meaning, meaning

if TYPE_CHECKING:
    import pandas as pd

    from ...data_section import DataSection

LOG = logging.getLogger("hedgerow")
FIELDS = {
    "measurement": ("measurement_concept_id", "measurement_date"),
    "condition_occurrence": ("condition_concept_id", "condition_start_date"),
    "drug_exposure": ("drug_concept_id", "drug_exposure_start_date"),
}
"""Concept and date of each table."""
VALUES = ("value_as_number", "unit_concept_id", "value_as_concept_id")
PERSON = ("person_id", "gender_concept_id", "year_of_birth", "month_of_birth", "day_of_birth")

Tables = Callable[[str, tuple[str, ...], frozenset[int]], "pd.DataFrame"]
"""Returns fields of a table as text, of rows with one of these concepts."""


def read_omop(section: DataSection, schema: Schema, folder: Path) -> RawColumns:
    """Read the tables that `[data]` names.

    Raises
    ------
    SourceUnreadable (HR-614)
        A table or a field is not there; a value is no number or date; a unit is not declared; a person is there twice.
    """
    columns = {name: meaning(name, column) for name, column in section.columns.items()}
    tables = _files(folder / section.paths[0]) if section.paths else _database(section, folder)
    people = tables("person", PERSON, frozenset())
    ids = _whole(people["person_id"], "person.person_id")
    if len(np.unique(ids)) < len(ids):
        raise SourceUnreadable("person has a person_id twice.", remedy="Extract each person once.")
    position = {int(id): i for i, id in enumerate(ids)}
    rows = {table: _rows(table, columns, tables, position, section.name) for table in FIELDS}
    found = {name: _column(name, one, people, rows) for name, one in columns.items()}
    return RawColumns(found, f"OMOP tables from {'files' if section.paths else 'a database'}.")


def _files(folder: Path) -> Tables:
    import pandas as pd

    def read(table: str, fields: tuple[str, ...], concepts: frozenset[int]) -> pd.DataFrame:
        path = next((one for one in (folder / f"{table}.csv", folder / f"{table}.csv.gz") if one.is_file()), None)
        if path is None:
            raise SourceUnreadable(f"the file {table}.csv is not in {folder.name!r}.", remedy="Extract that table into it.")
        try:
            head = {name.lower(): name for name in pd.read_csv(path, nrows=0, dtype=str).columns}
            _refuse_absent(table, fields, head)
            frame = pd.read_csv(
                path, usecols=[head[name] for name in fields], dtype=str, keep_default_na=False, na_filter=False
            )
        except (ValueError, OSError, csv.Error, pd.errors.ParserError) as error:
            raise SourceUnreadable(
                f"{path.name} cannot be read: {error}.", remedy="Check that it is a CSV file, in UTF-8."
            ) from None
        frame = frame.rename(columns={head[name]: name for name in fields})[list(fields)]
        return frame[frame[fields[1]].isin(map(str, concepts))] if concepts else frame

    return read


def _database(section: DataSection, folder: Path) -> Tables:
    url, schema = address(section), f"{section.schema_name}." if section.schema_name else ""

    def read(table: str, fields: tuple[str, ...], concepts: frozenset[int]) -> pd.DataFrame:
        where = f" WHERE {fields[1]} IN ({', '.join(map(str, sorted(concepts)))})" if concepts else ""
        frame = answer(url, f"SELECT {', '.join(fields)} FROM {schema}{table}{where}", folder)
        return frame.map(_as_text)

    return read


def _as_text(value: Any) -> str:
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _refuse_absent(table: str, fields: tuple[str, ...], there: Mapping[str, str]) -> None:
    if absent := [name for name in fields if name not in there]:
        raise SourceUnreadable(
            f"{table} has no field {', '.join(absent)}.", remedy="Extract it as the model has it, version 5."
        )


def _rows(
    table: str, columns: Mapping[str, Meaning], tables: Tables, position: Mapping[int, int], data: str
) -> pd.DataFrame | None:
    """The rows of a table that columns speak of: place of the person, concept, day and values; None where none does."""
    speaking = [one for one in columns.values() if isinstance(one, Events) and one.table == table]
    if not speaking:
        return None
    concept, day = FIELDS[table]
    fields = ("person_id", concept, day, *(VALUES if table == "measurement" else ()))
    found = tables(table, fields, frozenset().union(*(one.concepts for one in speaking)))
    found = found.rename(columns={concept: "concept", day: "day"})
    place = np.array([position.get(int(id), -1) for id in _whole(found["person_id"], f"{table}.person_id")], dtype=np.int64)
    found = found.assign(place=place, concept=_whole(found["concept"], f"{table}.{concept}"))
    found["day"] = _days(found["day"], f"{table}.{day}")
    if strangers := int((place < 0).sum()):
        LOG.warning("data %r: %d rows of %s are of nobody in person, and are left out", data, strangers, table)
    return found[found["place"] >= 0]


def _column(name: str, one: Meaning, people: pd.DataFrame, rows: Mapping[str, pd.DataFrame | None]) -> np.ndarray:
    if isinstance(one, Gender):
        concepts = _whole(people["gender_concept_id"], "person.gender_concept_id")
        return np.array([one.levels.get(int(concept)) for concept in concepts], dtype=object)
    if isinstance(one, BirthField):
        return _born(one, people)
    held, n = rows[one.table], len(people)
    assert held is not None
    held = held[held["concept"].isin(one.concepts) & _within(held["day"].to_numpy(object), one)]
    if one.pick in ("any", "count"):
        counts = np.bincount(held["place"], minlength=n)
        return (counts > 0).astype(float) if one.pick == "any" else counts.astype(float)
    return _coded(one, held, n) if one.levels else _measured(name, one, held, n)


def _born(one: BirthField, people: pd.DataFrame) -> np.ndarray:
    """Years of birth, or ages; an age is missing where month or day are."""
    year, month, day = (_whole(people[field], f"person.{field}", blank=True) for field in PERSON[2:])
    if one.at is None:
        return np.where(year > 0, year, np.nan)
    before = (month > one.at.month) | ((month == one.at.month) & (day > one.at.day))
    return np.where((year > 0) & (month > 0) & (day > 0), one.at.year - year - before, np.nan)


def _coded(one: Events, held: pd.DataFrame, n: int) -> np.ndarray:
    concepts = _whole(held["value_as_concept_id"], "measurement.value_as_concept_id", blank=True)
    held = held.assign(level=[one.levels.get(int(concept), f"concept {concept}") for concept in concepts])
    chosen = _chosen(one, held[concepts > 0])
    found = np.full(n, None, dtype=object)
    found[chosen["place"].to_numpy()] = chosen["level"].to_numpy()
    return found


def _measured(name: str, one: Events, held: pd.DataFrame, n: int) -> np.ndarray:
    held = held[held["value_as_number"].str.strip() != ""]
    units = _whole(held["unit_concept_id"], "measurement.unit_concept_id", blank=True)
    if strange := sorted({int(unit) for unit in units} - one.factors.keys()):
        told = ", ".join(map(str, strange[:5]))
        raise SourceUnreadable(
            f"column {name!r}: measurements have the units {told}, which nobody declared.",
            remedy='Give each a factor in convert; "0" is that of rows without a unit.',
        )
    try:
        numbers = held["value_as_number"].astype(float).to_numpy() * np.array([one.factors[int(unit)] for unit in units])
    except ValueError:
        raise SourceUnreadable(f"column {name!r}: a value_as_number is no number.", remedy="Mend the extract.") from None
    held = held.assign(number=numbers)
    found = np.full(n, np.nan)
    if one.pick in ("mean", "min", "max"):
        made = held.groupby("place")["number"].agg(one.pick)
        found[made.index.to_numpy(dtype=np.int64)] = made.to_numpy()
    else:
        chosen = _chosen(one, held)
        found[chosen["place"].to_numpy()] = chosen["number"].to_numpy()
    return found


def _chosen(one: Events, held: pd.DataFrame) -> pd.DataFrame:
    """The last or the first row of each person; one without a date comes before all."""
    order = held.assign(when=[day or date.min for day in held["day"]]).sort_values("when", kind="stable")
    return order.drop_duplicates("place", keep="last" if one.pick == "last" else "first")


def _within(days: np.ndarray, one: Events) -> np.ndarray:
    if one.since is None and one.until is None:
        return np.ones(len(days), bool)
    since, until = one.since or date.min, one.until or date.max
    return np.array([day is not None and since <= day < until for day in days], bool)


def _whole(values: pd.Series, field: str, *, blank: bool = False) -> np.ndarray:
    """Text as whole numbers; 0 where there is none, if that may be."""
    try:
        return np.array([int(text) if text.strip() or not blank else 0 for text in values], dtype=np.int64)
    except ValueError:
        raise SourceUnreadable(f"{field} holds what is no whole number.", remedy="Mend the extract.") from None


def _days(values: pd.Series, field: str) -> list[date | None]:
    try:
        known = {text: date.fromisoformat(text.strip()[:10]) if text.strip() else None for text in values.unique()}
    except ValueError:
        raise SourceUnreadable(f"{field} holds what is no day.", remedy="Write days as 2026-01-31.") from None
    return [known[text] for text in values]
