"""Files into tables: csv, tsv, parquet, npz and idx, gzipped or not, told apart by suffix.

No file is ever unpickled: an npz file that would need it is refused.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from tarfile import TarError
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from zipfile import BadZipFile

import numpy as np

from hedgerow.errors import MissingColumn, MissingData, MissingExtra, SchemaInvalid, suggestion

from .cases import lacking_in
from .column import Column, lacking
from .declared import Declared, all_declared, declared_in, numbers_or_words
from .faults import LinesOf
from .fitting import fit
from .schema import Schema
from .synthetic_files import declared_by
from .synthetic_table import as_told
from .table import Table
from .text_files import beginning, lines_of, not_utf8, read_columns, read_text

if TYPE_CHECKING:
    import pandas as pd

    from .dictionary.dictionary import Dictionary
    from .dictionary.local_columns import LocalColumns

T = TypeVar("T")

Columns = Mapping[str, Any]
"""Raw columns by name, before they are admitted."""

IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


TEXT = (".csv", ".tsv")
"""Suffixes of text files."""
OTHERS = (".parquet", ".npz")
"""Suffixes of other files, beside pairs of idx files."""


def read(
    path: str | Path,
    *,
    schema: Schema | None = None,
    target: str | None = None,
    columns: Collection[str] | None = None,
    missing: Literal["refuse", "drop"] = "refuse",
    declared: Mapping[str, Declared | Column | Mapping[str, Any]] | None = None,
    na_values: Iterable[str | float] = (),
    separator: str | None = None,
    decimal: Literal[".", ","] = ".",
    needed: Callable[[str], bool] | None = None,
    dictionary: Dictionary | str | Path | None = None,
    local: LocalColumns | None = None,
) -> Table:
    """Return the table in a file.

    Parameters
    ----------
    path : str or Path
        A csv, tsv, parquet or npz file, or the images of an idx pair (`train-images-idx3-ubyte`); csv, tsv and idx files
        may be gzipped.
    schema : Schema, optional
        All columns to keep, declared; inferred without ranges otherwise (see `infer`). Made-up records that
        `SyntheticTable.write` wrote declare their columns themselves, and come back as a `SyntheticTable`, with what they
        promise.
    target : str, optional
        Column that a model predicts.
    columns : collection of str, optional
        The columns to keep; what others lack does not matter.
    missing : {"refuse", "drop"}
        Whether missing and infinite values are refused; or kept in the table, so that each model drops the records that
        lack a value it reads (`hedgerow.data.complete_cases`). Columns are then declared optional.
    declared : mapping of str to Column or mapping, optional
        Single columns, with the keys of `[data.columns.NAME]` of a study file: kind, range (or low and high), levels (a list,
        or a mapping from word to code in the file), na_values, unit, clip, many, role, description. The others are inferred.
    na_values : iterable of str or float
        What stands for a missing value in every column, beside an empty place, NA and their like.
    separator : str, optional
        Between the values of a csv or tsv file: a comma, or a tab, by default.
    decimal : {".", ","}
        The decimal sign of a csv or tsv file.
    needed : callable, optional
        By name, whether a column must be readable, all by default. Another one is left out where nobody declares it and its
        kind would have to be guessed; `source` says so.
    dictionary : Dictionary, str or Path, optional
        What all columns are, in place of `schema`, `declared`, `na_values` and `missing`: a text file is read as words, and
        nothing is guessed. Derived columns come at the end. With `columns` only those are read.
    local : LocalColumns, optional
        How this file spells the columns of the dictionary.

    Raises
    ------
    MissingData (HR-402)
        No such file.
    MissingExtra (HR-105)
        A parquet file, and no pyarrow.
    MissingColumn, NotFinite, OutOfRange, SchemaInvalid, ColumnUndeclared (HR-403, 404, 405, 409, 410)
        The file cannot be read, or does not fit what is declared; a column's kind would have to be guessed. One error tells
        all columns, with the line of the first value.
    """
    path = _existing(Path(path))
    if dictionary is not None:
        if schema is not None or declared or [*na_values]:
            raise SchemaInvalid("a dictionary and other declarations are given.", remedy="Give the dictionary alone.")
        return _read_by(dictionary, path, local, columns, separator, decimal).with_roles(target=target)
    given = all_declared((_by_itself(path, separator) | dict(declared or {})) if schema is None else _by_name(schema))
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    between = separator or ("\t" if kind == ".tsv" else ",")
    found = _read_columns(path, lambda: read_columns(path, between, decimal, given, na_values, columns))
    if kind not in TEXT:
        given = {name: one for name, one in given.items() if declared_in(found, name, path.name)}
    kept = columns if schema is None else list(given)
    if kept is not None:
        found = {name: values for name, values in found.items() if name in kept}
    fitted, inferred, note = fit(
        found,
        given,
        where=path.name,
        na_values=na_values,
        missing={name: "drop" if missing == "drop" or (name in given and given[name].optional) else missing for name in found},
        lines_of=partial(lines_of, path, between) if kind in TEXT else None,
        others=given if columns is not None else (),
        decimal=decimal,
        needed=needed,
    )
    schema = (inferred if schema is None else schema).with_roles(target=target)
    if missing == "drop":
        schema = schema.allowing(missing=True)
    table = admit(fitted, schema, name=_stem(path), source=f"Read from {path.name}.{note}")
    lost = lacking_in(table, schema.names)
    return as_told(table if lost is None or not lost.any() else replace(table, source=f"{table.source} {_lacking(lost)}"), path)


def _read_by(
    dictionary: Dictionary | str | Path,
    path: Path,
    local: LocalColumns | None,
    columns: Collection[str] | None,
    separator: str | None,
    decimal: str,
) -> Table:
    """The table in a file, by a dictionary."""
    from .dictionary.admitting import hold_table
    from .dictionary.dictionary import Dictionary
    from .dictionary.local_columns import LocalColumns

    known = dictionary if isinstance(dictionary, Dictionary) else Dictionary.read(dictionary)
    names = None if columns is None else [*columns]
    spelt = (local or LocalColumns()).fitting(known)
    raw, lines = raw_columns(path, spelt.origins(known.needed(names)), separator or spelt.separator)
    held = hold_table(known, raw, spelt, names=names, decimal="" if decimal == "." else decimal)
    return held.table(name=_stem(path), source=f"Read from {path.name}.", where=path.name, lines_of=lines)


def raw_columns(path: Path, kept: Collection[str] | None = None, separator: str = "") -> tuple[dict[str, Any], LinesOf | None]:
    """Return the columns of a file, a text file's as the words that stand there, and what finds their lines, if it has some."""
    path = _existing(path)
    if not _is_text(path):
        found = _read_columns(path, dict)
        return {name: values for name, values in found.items() if kept is None or name in kept}, None
    between = separator or _separator(path)
    return refuse_unreadable(path, lambda: read_text(path, between, kept)), partial(lines_of, path, between)


def admit(columns: Columns, schema: Schema, *, name: str, source: str, missing: Literal["refuse", "drop"] = "refuse") -> Table:
    """Return the table of raw columns; with `missing="drop"`, without the records that lack a declared value."""
    if missing == "drop":
        columns, dropped = _drop_missing({key: columns[key] for key in schema.names if key in columns})
        source += f" {dropped} records with missing values were dropped." if dropped else ""
    return Table(schema.admit(columns), schema, name=name, source=source)


def read_csv(path: Path, **options: Any) -> pd.DataFrame:
    """Return the data frame in a csv file; `options` go to `pandas.read_csv`."""
    import pandas as pd

    return refuse_unreadable(path, lambda: pd.read_csv(path, low_memory=False, **options))


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays in an npz file by name; never unpickles."""

    def arrays() -> dict[str, np.ndarray]:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}

    return refuse_unreadable(path, arrays)


def read_idx(path: str | Path) -> np.ndarray:
    """Return the array in an idx file, the format of MNIST, gzipped or not.

    Source: Y. LeCun, C. Cortes, C. Burges, The MNIST database, "the idx file format".
    """
    path = _existing(Path(path))
    return refuse_unreadable(path, lambda: _parse_idx(path))


def read_idx_pair(images: Path) -> dict[str, np.ndarray]:
    """Return `image` and `label` of the idx pair whose images are in `images`; labels lie beside them."""
    labels = images.with_name(images.name.replace("images-idx3", "labels-idx1"))
    return {"image": read_idx(images), "label": read_idx(labels)}


def _read_columns(path: Path, text: Callable[[], Any]) -> Columns:
    name = path.name.removesuffix(".gz")
    if "images-idx3" in name:
        return read_idx_pair(path)
    readers: dict[str, Callable[[], Any]] = {
        ".csv": lambda: refuse_unreadable(path, text),
        ".tsv": lambda: refuse_unreadable(path, text),
        ".parquet": lambda: dict(_read_parquet(path).items()),
        ".npz": lambda: read_npz(path),
    }
    suffix = Path(name).suffix.lower()
    if suffix not in readers:
        raise MissingData(f"{path.name} has the suffix {suffix!r}.", remedy=suggestion(suffix, readers))
    return {str(key): numbers_or_words(values) for key, values in readers[suffix]().items()}


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtra(f"{path.name} needs pyarrow.", remedy="pip install 'hedgerow[data]'") from None
    import pandas as pd

    return refuse_unreadable(path, lambda: pd.read_parquet(path, engine="pyarrow"))


def _parse_idx(path: Path) -> np.ndarray:
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    if content[:2] != b"\0\0" or len(content) < 4 or content[2] not in IDX_TYPES:
        raise ValueError(f"starts with {content[:4].hex(' ')}, which is no idx header")
    dtype, n_axes = np.dtype(IDX_TYPES[content[2]]), content[3]
    shape = np.frombuffer(content, ">i4", n_axes, offset=4)
    values = np.frombuffer(content, dtype, offset=4 + 4 * n_axes)
    return values.reshape(shape).astype(dtype.newbyteorder("="))


def columns_in(path: str | Path, separator: str | None = None) -> list[str]:
    """Return the names of a file's columns, in its order; errors are those of `read`."""
    path = _existing(Path(path))
    if _is_text(path):
        return refuse_unreadable(path, lambda: beginning(path, separator or _separator(path))[0])
    return list(_read_columns(path, dict))


def read_words(path: str | Path, name: str, separator: str | None = None) -> np.ndarray:
    """Return one column of a file as it is written, such as ids: the words of a text file, the values of another one.

    Raises
    ------
    MissingColumn (HR-403)
        The file has no such column.
    MissingData, MissingExtra, SchemaInvalid (HR-402, 105, 409)
        As `read`.
    """
    path = _existing(Path(path))
    words = Declared(name, kind="category", many=True)
    found = _read_columns(path, lambda: read_columns(path, separator or _separator(path), ".", {name: words}, (), [name]))
    if name not in found:
        raise MissingColumn(f"{path.name} has no column {name!r}.", remedy=suggestion(name, found))
    return np.asarray(found[name])


def _by_name(schema: Schema) -> dict[str, Column]:
    return {column.name: column for column in schema}


def _by_itself(path: Path, separator: str | None) -> dict[str, Column]:
    """What a file of made-up records declares of the columns that it still has."""
    told = declared_by(path)
    return {} if told is None else {name: told[name] for name in columns_in(path, separator) if name in told}


def _is_text(path: Path) -> bool:
    return Path(path.name.removesuffix(".gz")).suffix.lower() in TEXT


def _separator(path: Path) -> str:
    return "\t" if Path(path.name.removesuffix(".gz")).suffix.lower() == ".tsv" else ","


def _drop_missing(columns: Columns) -> tuple[Columns, int]:
    if len({len(values) for values in columns.values()}) != 1:
        return columns, 0  # `Schema.admit` refuses them with a better message
    dropped = np.logical_or.reduce([lacking(values).reshape(len(values), -1).any(axis=1) for values in columns.values()])
    return {name: values[~dropped] for name, values in columns.items()}, int(dropped.sum())


def _lacking(lost: np.ndarray) -> str:
    return f"{lost.sum()} of {len(lost)} records lack a value; each model leaves out those that lack one it reads."


def _existing(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.parent.is_dir():
        raise MissingData(f"{path} does not exist, nor does its folder.", remedy="Check the path.")
    raise MissingData(f"{path} does not exist.", remedy=suggestion(path.name, _files_in(path.parent)))


def _files_in(folder: Path) -> list[str]:
    """The names of files in a folder that `read` reads."""
    names = [path.name for path in folder.iterdir() if path.is_file()]
    return [name for name in names if name.removesuffix(".gz").endswith((*TEXT, *OTHERS)) or "images-idx3" in name]


def refuse_unreadable(path: Path, reader: Callable[[], T]) -> T:
    """Return what a reader returns; SchemaInvalid (HR-409) where the file is damaged, or none of its kind."""
    try:
        return reader()
    except UnicodeDecodeError as cause:
        said, remedy = not_utf8(path, cause)
        raise SchemaInvalid(f"{path.name} cannot be read: {said}", remedy=remedy) from cause
    except (ValueError, OSError, EOFError, BadZipFile, TarError, zlib.error) as cause:
        raise SchemaInvalid(
            f"{path.name} cannot be read: {cause}.",
            remedy="Check that the file is whole, that its suffix is right, and that npz files hold no Python objects.",
        ) from cause


def _stem(path: Path) -> str:
    return path.name.split(".")[0]
