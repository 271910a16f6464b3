"""CSV and Parquet files of a station: only declared columns are read, and words stay the words that are in the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hedgerow.data import Column, Schema
from hedgerow.errors import MissingExtra, SourceUnreadable, suggestion

from .found import Found, check_origins, origins, pick

if TYPE_CHECKING:
    from ..data_section import DataSection

BLANKS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "#N/A", "<NA>")
"""How a missing value is spelt in a CSV file. A declared level of one of these names is a level."""


TRUTH = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}


def read_csv(section: DataSection, schema: Schema, folder: Path) -> Found:
    """Read a CSV file. Numbers are the nearest to what is written; values of categories stay text.

    The header is read as a line like others: then pandas refuses lines that are longer than it, instead of shifting columns.
    """
    path = existing(folder, section.paths[0])
    wanted = origins(section)

    def read(**how: Any) -> pd.DataFrame:
        found: pd.DataFrame = pd.read_csv(
            path, sep=section.separator, header=None, dtype=str, keep_default_na=False, encoding="utf-8-sig", **how
        )
        return found

    head = [str(name) for name in _attempt(path, lambda: read(nrows=1)).iloc[0]]
    check_origins(section, head)
    if twice := sorted(name for name in set(wanted.values()) if head.count(name) > 1):
        raise SourceUnreadable(f"{path.name} has the columns {twice} twice.", remedy="Give each column its own name.")
    blank = {head.index(wanted[column.name]): [word for word in BLANKS if word not in column.levels] for column in schema}
    whole = _attempt(path, lambda: read(na_values=blank)).iloc[1:].set_axis(head, axis=1)
    found = pick(whole[list(dict.fromkeys(wanted.values()))], section)
    return Found({column.name: numbers(found[column.name], column) for column in schema}, f"Read from {path.name}.")


def numbers(words: np.ndarray, column: Column) -> np.ndarray:
    """Return words as the numbers that they spell, true and false of a binary column as 1 and 0; or as they are."""
    if column.kind == "category":
        return words
    if column.kind == "binary":
        words = np.array([TRUTH.get(word, word) for word in words], dtype=object)
    try:
        return words.astype(np.float64)
    except ValueError:
        return words  # the schema refuses them, with the first one that is no number


def read_parquet(section: DataSection, schema: Schema, folder: Path) -> Found:
    """Read the declared columns of a Parquet file."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("a Parquet file needs pyarrow.", remedy="pip install 'hedgerow[data]'") from None
    path = existing(folder, section.paths[0])

    def read() -> Any:
        with parquet.ParquetFile(path) as file:
            check_origins(section, file.schema_arrow.names)
            return file.read(columns=list(dict.fromkeys(origins(section).values()))).to_pandas()

    return Found(pick(_attempt(path, read), section), f"Read from {path.name}.")


def existing(folder: Path, name: str) -> Path:
    """Return a file of the station's folder.

    Raises
    ------
    SourceUnreadable (HR-614)
        There is none of that name.
    """
    path = folder / name
    if path.is_file():
        return path
    near = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    raise SourceUnreadable(
        f"the file {name!r} is not there.", remedy=suggestion(path.name, near) if near else "Check data.path in station.toml."
    )


def _attempt(path: Path, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (ValueError, OSError, EOFError, MemoryError) as cause:
        raise SourceUnreadable(
            f"{path.name} cannot be read: {type(cause).__name__}: {cause}.",
            remedy="Check that the file is whole and readable for this station, and that data.source and separator are right.",
        ) from None
