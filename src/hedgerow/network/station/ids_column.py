"""The column by which people are told apart: `[data] ids`. It is read as text, declared to nobody and no part of the schema.

A study reaches it by an alignment alone, which the guard must allow; no model, formula or total can name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.data import Column, Schema
from hedgerow.errors import SchemaInvalid

from .sources import RawColumns

if TYPE_CHECKING:
    from .data_section import DataSection

SOURCES = ("csv", "parquet", "sql")
"""Sources whose records have a column of ids."""


def problems_of_ids(section: DataSection) -> list[str]:
    """What is wrong with a section's `ids`."""
    if section.ids is None:
        return []
    found = [] if section.source in SOURCES else [f"ids says nothing to source {section.source!r}"]
    named = {*section.columns, *section.derived, *(column.origin for column in section.columns.values())}
    if section.ids in named:
        found.append(f"ids names {section.ids!r}, which is a declared column too: studies could read it")
    return found


def with_ids(section: DataSection, schema: Schema, column: type[Any]) -> tuple[DataSection, Schema]:
    """What a source is to read beside the declared columns: the ids, as the words that are in it."""
    if section.ids is None:
        return section, schema
    read = section.model_copy(update={"columns": {**section.columns, section.ids: column(kind="category")}})
    return read, Schema((*schema.columns, Column(section.ids, "category", levels=("words",))))


def taken_out(section: DataSection, found: RawColumns) -> tuple[RawColumns, np.ndarray | None]:
    """Raw columns without the ids, and the ids as text of one width, shape (n,).

    Raises
    ------
    SchemaInvalid (HR-409)
        A record has no id, or one that is no text and no whole number. Which one is not said.
    """
    if section.ids is None:
        return found, None
    columns: Mapping[str, np.ndarray] = {name: values for name, values in found.columns.items() if name != section.ids}
    words = [_word(value) for value in found.columns[section.ids].tolist()]
    if lost := sum(word is None for word in words):
        raise SchemaInvalid(
            f"data {section.name!r}: {lost} of {len(words)} records have no id in {section.ids!r}.",
            remedy="Each record needs an id, as text or as a whole number: take such records out of the source.",
        )
    return replace(found, columns=columns), np.array(words, dtype=np.str_)


def _word(value: Any) -> str | None:
    """An id as text; None where it is missing or a fraction."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else None
    return None if value is None or not str(value).strip() else str(value)
