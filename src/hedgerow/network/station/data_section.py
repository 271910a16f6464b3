"""`[data]` of a station: where its records are, and what each column is declared to be.

    [data]
    name = "heart"                              # what studies call these records
    source = "csv"                              # csv, parquet, sql, fhir or omop
    path = "heart.csv"                          # from the station's folder
    [data.columns.age]
    kind = "integer"
    range = [18, 110]
    unit = "years"
    [data.columns.sex]
    levels = ["female", "male"]
    from = "gender"                             # the source's name, where it differs

Ranges and levels are declared here and never looked up: bounds, codes and noise follow from them, and they are public. A
record that does not fit its declaration stops the station from opening its data, with a sentence in its own log.
Secrets are not in the file: `url_env` and `token_env` name environment variables.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import numpy as np
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from hedgerow.data import Column, Schema, Table
from hedgerow.data.cases import lacking_in
from hedgerow.data.column import Kind
from hedgerow.data.faults import count_refused, values_refused
from hedgerow.data.fitting import fit
from hedgerow.errors import ConfigInvalid, DataError, FormulaInvalid, SchemaInvalid
from hedgerow.stats.derived import Derivation, derive_columns, derive_schema
from hedgerow.study.declared import DerivedSection, words_from
from hedgerow.study.dictionaries import UNREAD, dictionary_from, problem_of
from hedgerow.study.section import Section, problems

from .column_section import ColumnSection
from .ids_column import problems_of_ids, taken_out, with_ids
from .own_columns import held_by_dictionary, own_columns, spelling_problems
from .sources import RawColumns, read_source
from .sources.fhir.mapping import SPEAKING, meaning
from .sources.omop import mapping as omop

if TYPE_CHECKING:
    from hedgerow.data.dictionary.dictionary import Dictionary

LOG = logging.getLogger("hedgerow")
FILES, NETWORK = ("path",), ("url", "url_env")
KEYS: dict[str, tuple[str, ...]] = {
    "csv": (*FILES, "separator", "decimal"),
    "parquet": FILES,
    "sql": (*NETWORK, "query"),
    "fhir": (*FILES, *NETWORK, "token_env", "searches", "page_size", "pages", "megabytes", "seconds"),
    "omop": (*FILES, *NETWORK, "schema_name"),
}
"""What a source is told, beside name, source, missing and columns."""
MEANINGS: dict[str, Callable[[str, ColumnSection], Any]] = {"fhir": meaning, "omop": omop.meaning}
"""Sources whose columns have a meaning of their own."""
FHIR_KEYS = tuple(key for keys in SPEAKING.values() for key in keys if key not in ("codes", "convert"))
"""What only a column of a FHIR source is told."""


class DataSection(Section):
    """A station's records."""

    name: str = Field(pattern=r"^\w[\w. -]*$", description="what studies call these records: their data.name")
    source: Literal["csv", "parquet", "sql", "fhir", "omop"] = Field(description="what kind of source")
    dictionary: str | dict[str, Any] | None = Field(
        None, description="a dictionary, by path from the station's folder or as name@version there: what columns are"
    )
    without: tuple[str, ...] = Field(
        (), description="columns of the dictionary that are not here: NAME = false in data.columns"
    )
    path: str | tuple[str, ...] | None = Field(
        None, description="file, or for FHIR files and patterns, from the station's folder"
    )
    url: str | None = Field(None, description="database, or base of a FHIR server; without password")
    url_env: str | None = Field(None, description="environment variable that holds the url")
    query: str | None = Field(None, description="one SELECT statement")
    schema_name: str = Field("", alias="schema", pattern=r"^(\w+(\.\w+)*)?$", description="OMOP: the database's schema")
    separator: str = Field(",", min_length=1, max_length=1, description="between the values of a CSV file")
    decimal: Literal[".", ","] = Field(".", description="the decimal sign of a CSV file")
    na_values: tuple[str, ...] = Field((), description="what stands for a missing value in every column, e.g. ?")
    token_env: str | None = Field(None, description="environment variable that holds the FHIR server's bearer token")
    searches: tuple[str, ...] = Field((), description="FHIR searches; made from the columns by default")
    page_size: int = Field(200, ge=1, le=10_000, description="resources asked for in one page")
    pages: int = Field(1_000, ge=1, description="most pages of one search")
    megabytes: int = Field(512, ge=1, description="most that a FHIR server may send in all")
    seconds: float = Field(60.0, gt=0, description="longest wait for one page")
    missing: Literal["refuse", "drop"] = Field(
        "refuse", description="whether values may be missing: each model drops the records that lack one it reads"
    )
    ids: str | None = Field(
        None, description="the source's column that tells people apart: for alignments, and never declared to anybody"
    )
    columns: dict[str, ColumnSection] = Field(
        min_length=1, description="the columns, by name; of a dictionary's, what they are called here"
    )
    derived: dict[str, DerivedSection] = Field(default_factory=dict, description="columns that are computed, by name")

    @field_validator("na_values", mode="before")
    @classmethod
    def numbers_too(cls, given: Any) -> Any:
        return words_from(given)

    @model_validator(mode="before")
    @classmethod
    def by_its_dictionary(cls, given: Any) -> Any:
        """Put what the dictionary says of a column beside what the station calls it."""
        if isinstance(given, Mapping) and isinstance(given.get("dictionary"), str):
            raise ValueError(f"dictionary = {given['dictionary']!r} is {UNREAD}")
        if not isinstance(given, Mapping) or not isinstance(given.get("dictionary"), Mapping):
            return given
        if problem := problem_of(given["dictionary"]):
            raise ValueError(problem)
        before = dict.fromkeys(given.get("without", ()), False)
        named = dictionary_from(given["dictionary"])
        columns, without, wrong = own_columns({**given.get("columns", {}), **before}, named, str(given.get("source")))
        wrong += ["derived: the dictionary says that; leave it out"] if given.get("derived") else []
        if wrong:
            raise ValueError("; ".join(wrong))
        spelt = {"decimal": named.decimal} if named.decimal != "." and given.get("source") == "csv" else {}
        return {**spelt, **given, "columns": columns, "without": without}

    @model_validator(mode="after")
    def fits_its_source(self) -> DataSection:
        problems = [*self._source_problems(), *self._column_problems(), *problems_of_ids(self)] or self._derived_problems()
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that are named, as they are named."""
        return () if self.path is None else (self.path,) if isinstance(self.path, str) else self.path

    @property
    def held_dictionary(self) -> Dictionary | None:
        """The dictionary, where there is one."""
        return dictionary_from(self.dictionary) if isinstance(self.dictionary, Mapping) else None

    @property
    def absent(self) -> frozenset[str]:
        """Columns of the dictionary that are not here, and those that are computed from them."""
        held = self.held_dictionary
        if held is None:
            return frozenset()
        gone = {*self.without}
        return frozenset(gone | {name for name in held.derived if held.needed([name]) & gone})

    def _source_problems(self) -> list[str]:
        allowed = KEYS[self.source]
        known = {key for keys in KEYS.values() for key in keys}
        found = [f"{key} says nothing to source {self.source!r}" for key in sorted(self.model_fields_set & known - {*allowed})]
        places = [key for key in (*FILES, *NETWORK) if getattr(self, key) is not None and key in allowed]
        wanted = [key for key in (*FILES, *NETWORK) if key in allowed]
        if len(places) != 1:
            found.append(f"source {self.source!r} needs one of {', '.join(wanted)}, and has {', '.join(places) or 'none'}")
        if self.source in ("csv", "parquet", "omop") and len(self.paths) > 1:
            found.append(f"source {self.source!r} reads one {'folder' if self.source == 'omop' else 'file'}")
        if self.source == "sql" and not (self.query or "").strip():
            found.append("source 'sql' needs a query")
        if self.url is not None and _has_password(self.url):
            found.append("url holds a password: put it into an environment variable, and name that one in url_env")
        return found

    def _derived_problems(self) -> list[str]:
        try:
            schema_of(self)
        except (DataError, FormulaInvalid) as error:
            return [f"derived: {error.reason.rstrip('.')}. {error.remedy}".strip().rstrip(".")]
        return []

    def _column_problems(self) -> list[str]:
        found: list[str] = []
        for name, column in self.columns.items():
            found += self._strange_keys(name, column)
            if column.range is not None and {"low", "high"} & column.given():
                found.append(f"columns.{name}: give range, or low and high")
                continue
            if self.source in MEANINGS and isinstance(column.levels, dict):
                found.append(f"columns.{name}: levels are a list here, and codes says the level of each code")
                continue
            try:
                if self.source in MEANINGS:
                    MEANINGS[self.source](name, column)
                if self.dictionary is None:
                    declared(name, column, self)
            except (SchemaInvalid, ConfigInvalid) as error:
                found.append(f"columns.{name}: {error.reason.rstrip('.')}. {error.remedy}".strip().rstrip("."))
        return found or spelling_problems(self)

    def _strange_keys(self, name: str, column: ColumnSection) -> list[str]:
        """Keys of a column that its source does not know; FHIR and OMOP tell more by themselves."""
        elsewhere = {"fhir": {"concept"}, "omop": set[str]()}.get(self.source, {*FHIR_KEYS, "concept"})
        found = []
        if strange := sorted(_key(ColumnSection, key) for key in column.given() & elsewhere):
            of = "'omop'" if strange == ["concept"] else "'fhir'" if "concept" not in strange else "'fhir' or 'omop'"
            found.append(f"columns.{name}: {', '.join(strange)} are for source {of}")
        if self.source not in MEANINGS and self.dictionary is None and (column.codes or column.convert):
            found.append(f"columns.{name}: codes and convert are for source 'fhir', and for columns of a dictionary")
        return found


def parse_data(values: Mapping[str, Any]) -> DataSection:
    """Check a `[data]` section that is already a mapping.

    Raises
    ------
    ConfigInvalid (HR-601)
        All problems at once, unknown keys with the nearest known one.
    """
    try:
        return DataSection.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigInvalid(
            f"the section [data] has {error.error_count()} problem(s):",
            remedy="\n".join(problems(DataSection, error, "data", silent=True)),
        ) from None  # the cause would show values, which may be secret


def declared(name: str, column: ColumnSection, section: DataSection) -> Column:
    """Return the public declaration of a column.

    Raises
    ------
    SchemaInvalid (HR-409)
        It contradicts itself.
    """
    low, high = column.ends
    return Column(
        name,
        column.kind or _kind(name, column, section.source),
        column.role,
        unit=column.unit,
        low=low,
        high=high,
        levels=tuple(column.levels),
        clip=column.clip or column.outside == "clip",
        description=column.description,
        optional=(column.missing or section.missing) == "drop" or column.outside == "missing",
    )


def schema_of(section: DataSection) -> Schema:
    """Return the public declaration of a station's columns, those that are computed at the end, without touching data."""
    if (held := section.held_dictionary) is not None:
        return held.schema([name for name in (*section.columns, *held.derived) if name not in section.absent])
    schema = Schema(tuple(declared(name, column, section) for name, column in section.columns.items()))
    return derive_schema(schema, derivations(section))


def derivations(section: DataSection) -> dict[str, Derivation]:
    """How derived columns are computed, by name."""
    return {name: one.derivation() for name, one in section.derived.items()}


def open_table(section: DataSection, folder: str | Path) -> Table:
    """Read a station's records; see `open_records`."""
    return open_records(section, folder)[0]


def open_records(section: DataSection, folder: str | Path) -> tuple[Table, np.ndarray | None]:
    """Read a station's records and hold them against their declaration.

    Parameters
    ----------
    section : DataSection
    folder : path
        The station's folder, from which relative paths are taken.

    Returns
    -------
    Table
        With the declared columns only. Rows are in the order of the source; for FHIR, that of the patients. Records that miss
        a value of a column with `missing = "drop"` stay: each model leaves out those that lack one it reads.
    array of str, shape (n,), or None
        The ids of the records, where the section names their column.

    Raises
    ------
    SourceUnreadable (HR-614)
        The source is not there, or cannot be read as declared.
    MissingColumn, NotFinite, OutOfRange, SchemaInvalid (HR-403, 404, 405, 409)
        A record does not fit; a level occurs that is not declared.
    MissingExtra (HR-105)
        A package for this source is not installed.
    """
    schema = schema_of(section).select([*section.columns])
    found, ids = taken_out(section, read_source(*with_ids(section, schema, ColumnSection), Path(folder)))
    table = _by_section(section, schema, found) if section.dictionary is None else held_by_dictionary(section, found)
    lost = lacking_in(table, table.schema.names)
    n_lost = 0 if lost is None else int(lost.sum())
    LOG.info("data %r: %d records, %d columns, %d lack a value", section.name, len(table), len(table.columns), n_lost)
    told = f"{table.source} {n_lost} of {len(table)} records lack a value."
    return replace(table, source=told) if n_lost else table, ids


def _by_section(section: DataSection, schema: Schema, found: RawColumns) -> Table:
    """The records, held against what the section itself declares."""
    given = {name: replace(column.declared(name), kind=schema[name].kind) for name, column in section.columns.items()}
    held, _, _ = fit(
        found.columns,
        given,
        where=f"data {section.name!r}",
        na_values=section.na_values,
        missing={name: column.missing or section.missing for name, column in section.columns.items()},
        lines_of=found.lines_of,
        decimal=section.decimal,
        shown=False,
        advice=REMEDY,
    )
    try:
        table = Table(schema.admit(held), schema, name=section.name, source=found.note)
        return derive_columns(table, derivations(section), shown=False)
    except DataError as error:
        told = type(error)(error.reason, remedy=f"{error.remedy}\n{REMEDY}".strip())
        raise count_refused(told, values_refused(error)) from None


REMEDY = (
    'In station.toml: `na_values`, `missing = "drop"`, `clip = true`, a wider `range` or more `levels` of the column. '
    "Values are not shown here, and no study is told."
)


def _kind(name: str, column: ColumnSection, source: str) -> Kind:
    if column.levels:
        return "category"
    return MEANINGS[source](name, column).kind if source in MEANINGS else "number"


def _has_password(url: str) -> bool:
    try:
        parts = urlsplit(url)
        words = {pair.partition("=")[0].lower() for pair in parts.query.split("&")}
        return bool(parts.password) or bool(words & {"password", "passwd", "pwd", "token", "secret"})
    except ValueError:
        return True  # what cannot be read may hold one


def _key(section: type[BaseModel], field: str) -> str:
    """A field as the file spells it."""
    return section.model_fields[field].alias or field
