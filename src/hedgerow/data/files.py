"""Columns that are files: a folder that holds one array for each column, of which records are read when they are asked for.

    folder/table.json      schema, records, and how each column is stored
    folder/0.npy, 1.npy    the columns in the order of the schema, mapped into memory and never read as a whole

A number that is read is in double precision, whatever it takes on the disk, so that sums, bounds and formulas are those of a
table in memory. Nothing is unpickled. A folder is written once; `table.json` comes last, so half a folder is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np

from hedgerow.core.later import Later
from hedgerow.errors import CannotWrite, MissingData, MissingExtra, SchemaInvalid

from .column import Column
from .frames import RawTable
from .schema import Schema

ABOUT = "table.json"
FORM = "hedgerow columns 1"
BLOCK = 1 << 16
"""Records that are checked or written at once."""


# ---- reading --------------------------------------------------------------------------------------------------------
def read_files(folder: str | Path, *, check: bool = True) -> tuple[dict[str, Any], Schema, dict[str, Any]]:
    """Return the columns in a folder, read later, their schema, and what else the folder says; see `Table.from_files`."""
    folder = Path(folder)
    if not (folder / ABOUT).is_file():
        raise MissingData(f"{folder} holds no {ABOUT}.", remedy="Name a folder that Table.to_files or hr.data.convert wrote.")
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        if about["form"] != FORM:
            raise ValueError(f"its form is {about['form']!r}")
        schema, n = Schema.from_json(about["schema"]), int(about["records"])
        maps = [np.load(folder / f"{i}.npy", mmap_mode="r", allow_pickle=False) for i in range(len(schema))]
    except (ValueError, KeyError, TypeError, OSError) as cause:
        raise SchemaInvalid(f"{folder} cannot be read: {cause}.", remedy="Write it again with Table.to_files.") from cause
    for column, held in zip(schema, maps, strict=True):
        if held.shape != (n, *column.shape) or not _lawful(column, held.dtype):
            raise SchemaInvalid(
                f"{folder} holds {held.dtype} of shape {held.shape} for column {column.name!r} of {n} records.",
                remedy="Write it again with Table.to_files.",
            )
    columns = {column.name: _later(column, held) for column, held in zip(schema, maps, strict=True)}
    return (admitted(schema, columns) if check else columns), schema, about


def _later(column: Column, held: np.ndarray) -> Later:
    """A column of a file, in the type that programs expect."""
    dtype = held.dtype if column.shape or column.kind == "category" else np.dtype(np.float64)
    return Later(lambda rows: np.asarray(held[rows], dtype), len(held), held.shape[1:], dtype)


def admitted(schema: Schema, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns as `Schema.admit` returns them; those that are read later are checked in blocks, and stay where they are."""
    later = [column for column in schema if isinstance(columns.get(column.name), Later)]
    found: dict[str, Any] = {column.name: _checked(column, columns[column.name]) for column in later}
    others = schema.select([name for name in schema.names if name not in found])
    found |= others.admit(columns)
    return {name: found[name] for name in schema.names}


def _checked(column: Column, values: Later) -> Later:
    for start in range(0, max(len(values), 1), BLOCK):
        column.admit(np.asarray(values[start : start + BLOCK]))
    if not column.clip:
        return values
    return Later(lambda rows: column.admit(values[_positions(rows)]), len(values), values.shape[1:], values.dtype)


def _positions(rows: Any) -> Any:
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


# ---- writing --------------------------------------------------------------------------------------------------------
def write_files(
    folder: str | Path,
    parts: Iterable[Mapping[str, Any]],
    schema: Schema,
    *,
    name: str = "table",
    source: str = "",
    single: bool = False,
) -> None:
    """Write parts of a table, one after the other, as the files of a folder; each value is admitted as it is stored."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise CannotWrite(f"{folder} is not empty.", remedy="Name a new folder.", says=False)
        n, types = 0, [_stored(column, single, None) for column in schema]
        with ExitStack() as stack:
            files = [stack.enter_context((folder / f"{i}.npy").open("wb+")) for i in range(len(schema))]
            for i, part in enumerate(parts, start=1):
                if n == 0:
                    types = [_stored(column, single, part[column.name].dtype) for column in schema]
                    _headers(files, schema, types, 0)
                _refuse_wider(part, schema, types, i)
                n += _write(files, part, schema, types)
            _headers(files, schema, types, n)
        about = {"form": FORM, "records": n, "name": name, "source": source, "schema": schema.to_json()}
        (folder / ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
    except OSError as cause:
        raise CannotWrite(
            f"{folder} cannot be written: {cause}.", remedy="Free space, or name another folder.", says=False
        ) from cause


def convert(source: Any, folder: str | Path, schema: Schema, *, name: str = "table", single: bool = False) -> None:
    """Write a table that may be larger than the memory as the files of a folder, part by part.

    Parameters
    ----------
    source : str or Path of a Parquet file, or iterable of tables
        Tables as `Table.from_frame` takes them, such as batches that a reader gives: their records follow one another.
    folder : str or Path
        New, or empty; `Table.from_files(folder)` opens it.
    schema : Schema
        All columns to keep, declared: kinds and levels cannot be read off a part.
    single : bool
        As of `Table.to_files`.

    Raises
    ------
    CannotWrite, MissingData, MissingExtra (HR-104, 402, 105)
        There is something in the folder; no such file; a Parquet file and no pyarrow.
    MissingColumn, NotFinite, OutOfRange, SchemaInvalid (HR-403, 404, 405, 409)
        A part does not fit what is declared, or has arrays of a type that the first part's cannot hold; its number is told.
    """
    parts = _batches(Path(source), schema) if isinstance(source, str | Path) else source
    told = source if isinstance(source, str | Path) else "parts"
    write_files(folder, _fitting(parts, schema), schema, name=name, source=f"Converted from {told}.", single=single)


def _batches(path: Path, schema: Schema) -> Iterable[Any]:
    """The record batches of a Parquet file, with the declared columns."""
    if not path.is_file():
        raise MissingData(f"{path} does not exist.", remedy="Name a Parquet file, or give the tables themselves.")
    try:
        from pyarrow import ArrowException, Table, parquet
    except ImportError:
        raise MissingExtra(f"{path.name} needs pyarrow.", remedy="pip install 'hedgerow[data]'") from None
    try:
        with parquet.ParquetFile(path) as file:
            there = [name for name in schema.names if name in file.schema_arrow.names]
            for batch in file.iter_batches(batch_size=BLOCK, columns=there):
                yield Table.from_batches([batch])
    except ArrowException as cause:
        raise SchemaInvalid(f"{path.name} cannot be read: {cause}.", remedy="Check that the file is whole.") from cause


def _fitting(parts: Iterable[Any], schema: Schema) -> Iterable[Mapping[str, Any]]:
    from .declared import all_declared
    from .fitting import fit

    given = all_declared({column.name: column for column in schema})
    policy = {column.name: "drop" if column.optional else "refuse" for column in schema}
    for i, part in enumerate(parts, start=1):
        found = RawTable.of(part, needed=schema.names)
        yield schema.admit(fit(found.columns, given, where=f"part {i}", missing=policy)[0])


def _refuse_wider(part: Mapping[str, Any], schema: Schema, types: list[np.dtype[Any]], number: int) -> None:
    """Refuse arrays that the type of the first part cannot hold: they would wrap around, lose digits or overflow."""
    for column, stored in zip(schema, types, strict=True):
        given = part[column.name].dtype
        if column.shape and not np.can_cast(given, stored, "safe"):
            raise SchemaInvalid(
                f"part {number} has arrays of {given} in column {column.name!r}; the first part's are stored as {stored}.",
                remedy=f"Give every part the widest type, for example values.astype({str(np.result_type(given, stored))!r}).",
            )


def _write(files: list[IO[bytes]], part: Mapping[str, Any], schema: Schema, types: list[np.dtype[Any]]) -> int:
    """Append records to the files, in blocks."""
    n = len(part[schema.names[0]])
    for start in range(0, n, BLOCK):
        for file, column, dtype in zip(files, schema, types, strict=True):
            values = np.asarray(part[column.name][start : start + BLOCK])
            stored = _rounded(column, values) if dtype == np.float32 and not column.shape else values.astype(dtype, copy=False)
            file.write(np.ascontiguousarray(stored).data)
    return n


def _rounded(column: Column, values: np.ndarray) -> np.ndarray:
    """Numbers in 32 bits, within their declared range still; refused where they are too large for that."""
    with np.errstate(over="ignore"):
        found = values.astype(np.float32)
    for end, inward, within in ((column.low, np.inf, np.maximum), (column.high, -np.inf, np.minimum)):
        if end is not None:
            nearest = np.float32(end)
            outside = float(nearest) < end if inward > 0 else float(nearest) > end
            found = within(found, np.nextafter(nearest, np.float32(inward)) if outside else nearest)
    column.admit(found.astype(np.float64))
    return found


def _headers(files: list[IO[bytes]], schema: Schema, types: list[np.dtype[Any]], n: int) -> None:
    """Headers of npy files, which have room for the number of rows to grow."""
    for file, column, dtype in zip(files, schema, types, strict=True):
        file.seek(0)
        fields = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (n, *column.shape)}
        np.lib.format.write_array_header_1_0(file, fields)


def _stored(column: Column, single: bool, dtype: np.dtype[Any] | None) -> np.dtype[Any]:
    """The type in which a column is stored: as few bytes as hold whole numbers of its declaration, else that of its values."""
    if column.shape:
        return np.dtype(np.float64) if dtype is None else dtype
    if column.kind == "category":
        return np.dtype(np.int16)
    most = column.absolute if column.kind in ("binary", "integer") and not column.optional else None
    if most is not None and most < np.iinfo(np.int32).max:
        return np.dtype(next(one for one in ("i1", "i2", "i4") if most <= np.iinfo(one).max))
    return np.dtype(np.float32 if single and column.kind == "number" else np.float64)


def _lawful(column: Column, dtype: np.dtype[Any]) -> bool:
    """Whether a column may be stored in this type."""
    if column.shape:
        return dtype.kind in ("iu" if column.kind in ("integer", "category") else "iuf")
    return dtype in {_stored(column, single, None) for single in (False, True)}
