"""What a station calls the columns of a dictionary, and how its source spells them.

    [data.columns]
    age = "ALTER"                                                       the source's name; by default the dictionary's
    sex = { from = "GESCHL", codes = { w = "female", m = "male" } }     its codes, in place of the dictionary's
    creatinine = { from = "KREA_UMOL", convert = "x / 88.42" }          arithmetic on one value, as in formulas
    smoking = false                                                     not here: studies that read it go on without it

Values are held against the dictionary as `hedgerow.data.dictionary.admitting` has it; a source hands over words and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hedgerow.data.declared import words_of
from hedgerow.data.dictionary.admitting import hold_table
from hedgerow.data.dictionary.local_columns import LocalColumn, LocalColumns
from hedgerow.data.faults import count_refused, values_refused
from hedgerow.errors import DataError

if TYPE_CHECKING:
    from hedgerow.data import Table
    from hedgerow.data.dictionary.dictionary import Dictionary

    from .data_section import DataSection
    from .sources import RawColumns

SAID = ("kind", "unit", "role")
"""What a dictionary says of a column that sources look at, beside levels."""


def own_columns(
    given: Mapping[str, Any], dictionary: Dictionary, source: str
) -> tuple[dict[str, Any], tuple[str, ...], list[str]]:
    """Return a section for each column of a dictionary that is here, those that are not, and what is wrong. Ids are not read.

    Parameters
    ----------
    given : mapping
        `[data.columns]`, where a name stands for `from`, and false for a column that is not here.
    """
    known = {name: one for name, one in dictionary.columns.items() if one.kept}
    wrong = [f"columns.{name}: {dictionary.label} has no such column" for name in given if name not in known]
    found, without = {}, []
    for name, one in known.items():
        said = given.get(name, {})
        if said is False:
            without.append(name)
            continue
        if one.role == "id":  # which no statistic reads
            continue
        own = {"from": said} if isinstance(said, str) else said
        if not isinstance(own, Mapping):
            wrong.append(f'columns.{name}: give a name, a table such as {{ from = "NAME" }}, or false')
            continue
        declared: dict[str, Any] = {key: value for key in SAID if (value := getattr(one, key))}
        declared |= {"levels": list(one.levels)} if one.kind == "category" else {}
        other = [key for key in DECLARING if key in own and not _same(own[key], declared.get(key))]
        wrong += [f"columns.{name}: {', '.join(other)}: {dictionary.label} says that; leave it out"] if other else []
        found[name] = {key: value for key, value in own.items() if key not in DECLARING} | declared
        if source == "omop" and "concept" not in own and own.get("from") in EVENTS and (concept := OMOP.fullmatch(one.concept)):
            found[name]["concept"] = int(concept[1])
    if not found and not wrong:
        wrong.append(f"columns: no column of {dictionary.label} is here")
    return found, tuple(without), wrong


OMOP, EVENTS = re.compile(r"OMOP:(\d+)"), ("measurement", "condition_occurrence", "drug_exposure")
"""How a dictionary says a concept, and the tables of which a column takes it where it names none."""
DECLARING = ("kind", "role", "low", "high", "range", "levels", "unit", "clip", "outside", "description", "missing")
"""Keys of a column that declare it."""


def _same(one: Any, other: Any) -> bool:
    return bool((list(one) if isinstance(one, tuple) else one) == other)


def local_columns(section: DataSection) -> LocalColumns:
    """How a station's source spells the columns of its dictionary, by their names there.

    FHIR and OMOP give the words of levels, and zeros and ones, whatever files have for them.
    """
    held = section.held_dictionary
    assert held is not None
    found: dict[str, LocalColumn | None] = dict.fromkeys(section.without)
    for name, column in section.columns.items():
        if name not in held.columns:
            continue  # the ids
        if section.source in TABLES:
            convert = column.convert if isinstance(column.convert, str) else ""
            codes, blank = column.codes or {}, words_of(column.na_values)
            found[name] = LocalColumn(codes=codes, convert=convert, na_values=blank)
        else:
            levels = held.columns[name].levels
            binary = held.columns[name].kind == "binary"
            found[name] = LocalColumn(codes=dict(zip(("0", "1") if binary and levels else levels, levels, strict=True)))
    return LocalColumns(found, path=f"data {section.name!r}", decimal=section.decimal, na_values=words_of(section.na_values))


def spelling_problems(section: DataSection) -> list[str]:
    """What is wrong with codes and expressions of columns, a sentence for each."""
    if (held := section.held_dictionary) is None:
        return []
    said = {
        name: {key: value for key, value in (("codes", one.codes), ("convert", one.convert)) if value}
        for name, one in section.columns.items()
    }
    try:
        if section.source in TABLES:
            LocalColumns.of({"columns": said})
        local_columns(section).fitting(held)
    except DataError as error:
        return error.remedy.splitlines()
    return []


def held_by_dictionary(section: DataSection, found: RawColumns) -> Table:
    """Return the records of a station by its dictionary, whose columns a source has read by their names there.

    Raises
    ------
    NotFinite, OutOfRange, SchemaInvalid (HR-404, 405, 409)
        One error for all that does not fit.
    """
    held = section.held_dictionary
    assert held is not None
    names = [name for name in (*section.columns, *held.derived) if name in held.derived or name in held.columns]
    table = hold_table(
        held,
        found.columns,
        local_columns(section),
        names=[name for name in names if name not in section.absent],
        decimal=section.decimal,
    )
    try:
        return table.table(
            name=section.name, source=found.note, where=f"data {section.name!r}", lines_of=found.lines_of, shown=False
        )
    except DataError as error:
        told = type(error)(error.reason, remedy=f"{error.remedy}\n{ADVICE}")
        raise count_refused(told, values_refused(error)) from None


ADVICE = (
    "In station.toml: `na_values`, `codes` or `convert` of the column. Values are not shown here, and studies learn only about "
    "how many were refused."
)
TABLES = ("csv", "parquet", "sql")
"""Sources that are tables, whose values may have other codes and units."""
