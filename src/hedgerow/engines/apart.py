"""Tables of parties that hold different columns of the same people, for a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hedgerow.core.apart import PartiesApart
from hedgerow.core.arrays import Array
from hedgerow.data import Schema, Table
from hedgerow.data.frames import RawTable
from hedgerow.errors import IdsInvalid, MissingColumn, SchemaInvalid, suggestion


def parties_apart(tables: Any, on: str) -> tuple[PartiesApart, dict[str, Schema]]:
    """Parties with columns of their own, and what each declares, without the column by which people are known.

    Parameters
    ----------
    tables : mapping from party to table
        Of any kind that `Table.from_frame` takes.
    on : str
        The column by which people are known, in every table: words or whole numbers.

    Raises
    ------
    SchemaInvalid (HR-409), MissingColumn (HR-403), IdsInvalid (HR-413)
    """
    if not isinstance(tables, Mapping):
        raise SchemaInvalid(
            f"on={on!r} is for parties with columns of their own, and data are a {type(tables).__name__}.",
            remedy="Give a table for each party: {'tax': frame, 'town': frame}.",
        )
    held, schemas = dict[str, dict[str, Array]](), dict[str, Schema]()
    for name, table in tables.items():
        held[str(name)], schemas[str(name)] = _apart(str(name), table, on)
    return PartiesApart(held), schemas


def _apart(name: str, table: Any, on: str) -> tuple[dict[str, Array], Schema]:
    if isinstance(table, Table):
        if on not in table.schema:
            raise _lacks(name, on, table.schema.names)
        ids, schema = np.asarray(table.columns[on]), Schema(tuple(one for one in table.schema if one.name != on))
        levels = table.schema[on].levels
        _refuse_missing(name, on, (ids < 0) if levels else None if ids.dtype.kind != "f" else np.isnan(ids))
        ids = np.array([str(levels[int(code)]) for code in ids]) if levels else ids
        return {**{column: table.columns[column] for column in schema.names}, on: ids}, schema
    raw = RawTable.of(table)
    if on not in raw.columns:
        raise _lacks(name, on, list(raw.columns))
    ids = np.asarray(raw.columns[on])
    _refuse_missing(name, on, np.array([id is None or id != id for id in ids.tolist()], bool))
    rest = RawTable({column: values for column, values in raw.columns.items() if column != on}, raw.n)
    made = Table.from_columns(rest, name=name) if rest.columns else None
    columns = {} if made is None else dict(made.columns)
    return {**columns, on: ids.astype(str) if ids.dtype == object else ids}, Schema(()) if made is None else made.schema


def _refuse_missing(name: str, on: str, missing: Array | None) -> None:
    """Refuse a row without an id: as text it would be the same word at all parties."""
    if missing is not None and missing.any():
        raise IdsInvalid(f"{int(missing.sum())} rows of {name} have no {on!r}.", remedy="Leave them out before parties align.")


def _lacks(name: str, on: str, known: Any) -> MissingColumn:
    return MissingColumn(f"{name} has no column {on!r}, by which people are known.", remedy=suggestion(on, known))
