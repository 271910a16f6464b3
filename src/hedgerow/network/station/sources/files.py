"""CSV and Parquet files of a station: only declared columns are read, and words stay the words that are in the file."""

from __future__ import annotations

import csv
import lzma
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.data import Column, Schema
from hedgerow.data.faults import TRUTH
from hedgerow.data.text_files import BLANKS, lines_in, lines_of, not_utf8, other_separator
from hedgerow.errors import MissingExtra, SourceUnreadable, suggestion

from .raw_columns import RawColumns, check_origins, origins, pick

if TYPE_CHECKING:
    from ..column_section import ColumnSection
    from ..data_section import DataSection


def read_csv(section: DataSection, schema: Schema, folder: Path) -> RawColumns:
    """Read a CSV file. Numbers are the nearest to what is written; values of categories stay text.

    A line that is shorter than the header misses its last values; one that is longer is refused. Empty lines are left out.
    """
    path = existing(folder, section.paths[0])
    wanted = origins(section)
    head, lines = _attempt(path, lambda: _lines(path, section.separator))
    if other := other_separator(head, section.separator):
        raise SourceUnreadable(f"{path.name} {other[0]}", remedy=other[1])
    check_origins(section, head)
    if twice := sorted(name for name in set(wanted.values()) if head.count(name) > 1):
        raise SourceUnreadable(f"{path.name} has the columns {twice} twice.", remedy="Give each column its own name.")
    places = [head.index(wanted[column.name]) for column in schema]
    words = _attempt(path, lambda: _words(lines, len(head), places))
    blanks = {*BLANKS, *section.na_values}
    found: dict[str, np.ndarray] = {}
    for column, place in zip(schema, places, strict=True):
        if section.dictionary is not None:  # which says itself what stands for a missing value
            found[column.name] = np.array(words[place], dtype=object)
            continue
        held = _known(words[place], blanks, section.columns[column.name])
        found[column.name] = numbers(held, column) if section.decimal == "." else held
    return RawColumns(found, f"Read from {path.name}.", partial(lines_of, path, section.separator))


def _lines(path: Path, separator: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The header of a CSV file and the lines after it; the file is open until the last one is read."""
    lines = lines_in(path, separator)
    first = next(lines, None)
    if first is None:
        raise ValueError("it holds no line")
    return first[1], lines


def _words(lines: Iterable[tuple[int, list[str]]], width: int, places: Sequence[int]) -> dict[int, list[str | None]]:
    """The words at some places of all lines; None where a line has ended before."""
    words: dict[int, list[str | None]] = {place: [] for place in places}
    for number, line in lines:
        if len(line) > width:
            raise ValueError(f"line {number} holds {len(line)} values, the header {width} names")
        for place, column in words.items():
            column.append(line[place] if place < len(line) else None)
    return words


def _known(words: list[str | None], blanks: Collection[str], column: ColumnSection) -> np.ndarray:
    """The words of a column, None where one stands for a missing value."""
    levels = column.levels.values() if isinstance(column.levels, dict) else column.levels
    missing = {*blanks, *column.na_values} - {*levels}
    return np.array([None if word in missing else word for word in words], dtype=object)


def numbers(words: np.ndarray, column: Column) -> np.ndarray:
    """Return words as the numbers that they spell, true and false of a binary column as 1 and 0; or as they are."""
    if column.kind == "category":
        return words
    if column.kind == "binary":
        words = np.array([TRUTH.get(word, word) for word in words], dtype=object)
    try:
        return words.astype(np.float64)
    except ValueError:
        return words  # they are refused later, with all that does not fit


def read_parquet(section: DataSection, schema: Schema, folder: Path) -> RawColumns:
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

    return RawColumns(pick(_attempt(path, read), section), f"Read from {path.name}.")


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
    except UnicodeDecodeError as cause:
        said, remedy = not_utf8(path, cause)
        raise SourceUnreadable(f"{path.name} cannot be read: {said}", remedy=remedy) from None
    except (ValueError, OSError, EOFError, MemoryError, csv.Error, lzma.LZMAError, zlib.error) as cause:
        raise SourceUnreadable(
            f"{path.name} cannot be read: {type(cause).__name__}: {cause}.",
            remedy="Check that the file is whole and readable for this station, and that data.source and separator are right.",
        ) from None
