"""Columns and parts of columns of arrays, by name.

"age"               a column
"signals[0:3]"      the first three of the first axis of a column of arrays
"image[:, 14:28]"   the right half of an image: a column of that name, with a shape of its own
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hedgerow.errors import MissingColumn, PartitionInvalid

from .column import Column
from .schema import Schema
from .table import Table

PART = re.compile(r"^(?P<column>.+?)\[(?P<slices>[\d:, ]+)\]$")


def part_of(schema: Schema, name: str) -> tuple[Column, str, tuple[slice, ...]]:
    """Return a column or a part of one as declared, the column that it comes from, and the positions along its axes.

    Raises
    ------
    MissingColumn (HR-403)
        No such column.
    ValueError
        A part with more axes than the column has, or an empty one.
    """
    part = None if name in schema else PART.match(name)
    if part is None:
        return schema[name], name, ()
    column = schema[part["column"].strip()]
    slices = tuple(_slice(text) for text in part["slices"].split(","))
    if len(slices) > len(column.shape):
        raise ValueError(f"it has {len(column.shape)} axes, and {len(slices)} are named")
    shape = np.empty(column.shape, dtype=bool)[slices].shape
    if 0 in shape:
        raise ValueError("nothing is in it")
    return replace(column, name=name, shape=shape), column.name, slices


def parts(table: Table, names: Sequence[str], records: np.ndarray) -> Table:
    """Return some columns and parts of columns of some records, without test records.

    Raises
    ------
    MissingColumn (HR-403), PartitionInvalid (HR-408)
        No such column; no such part of it.
    """
    columns, declared = {}, []
    for name in names:
        try:
            column, source, slices = part_of(table.schema, name)
        except MissingColumn:
            raise
        except ValueError as error:
            raise PartitionInvalid(
                f"{name!r} is no part of that column: {error}.", remedy='Write "signals[0:3]", one range for each axis.'
            ) from None
        values = np.asarray(table.columns[source])
        columns[name] = np.ascontiguousarray(values[(slice(None), *slices)][records]) if slices else values[records]
        declared.append(column)
    return Table(columns, Schema(tuple(declared)), name=table.name, source=table.source)


def _slice(text: str) -> slice:
    ends = [int(end) if end.strip() else None for end in text.split(":")]
    return slice(*ends) if len(ends) > 1 else slice(ends[0], None if ends[0] is None else ends[0] + 1)
