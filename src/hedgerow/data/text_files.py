"""Text files of values between separators: what their header says, where their records lie, and their columns."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hedgerow.errors import SchemaInvalid

from .declared import Declared, declared_in, words_of
from .faults import level_of

BLANKS = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "null", "NULL", "None", "<NA>", "#N/A", "#N/A N/A", "#NA"),
    *("1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""How missing values are spelt in text files, beside `na_values`. A declared level of one of these names is a level."""
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}


def lines_in(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Each record of a file, and the header before them, with the line in which it begins. Empty lines are left out."""
    opener = OPENERS.get(path.suffix.lower(), open)
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        reader, line = csv.reader(file, delimiter=separator, strict=True), 1
        for words in reader:
            if words and not (len(words) == 1 and words[0] != "" and not words[0].strip(" \t")):
                yield line, words
            line = reader.line_num + 1


def not_utf8(path: Path, error: UnicodeDecodeError) -> tuple[str, str]:
    """What is wrong with a file that is not UTF-8, with the first line that is not, and what to do."""
    opener = OPENERS.get(path.suffix.lower(), open)
    with opener(path, "rb") as file:
        start = file.read(2)
        if start in (b"\xff\xfe", b"\xfe\xff"):
            return "its text is UTF-16, and UTF-8 is read.", CONVERT.format(known="UTF-16", name=path.name)
        file.seek(0)
        try:
            line = next((number for number, words in enumerate(file, start=1) if _is_other(words)), None)
        except (OSError, EOFError, lzma.LZMAError, zlib.error):  # a damaged archive has such bytes as well
            line = None
    where = f", first in line {line}" if line else ""
    known = "its text is not UTF-8: byte 0x{:02x} is none of its letters{}; ISO-8859-1 and Windows-1252 files have such bytes."
    return known.format(error.object[error.start], where), CONVERT.format(known="WINDOWS-1252", name=path.name)


def _is_other(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


CONVERT = "Save it as UTF-8 (a spreadsheet: CSV UTF-8), or convert it: iconv -f {known} -t UTF-8 {name} > NEW.csv"
OPENERS: Mapping[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def lines_of(path: Path, separator: str, positions: Collection[int]) -> Mapping[int, int]:
    """The lines of records, by their positions from 0 after the header."""
    found: dict[int, int] = {}
    for position, (line, _) in enumerate(lines_in(path, separator), start=-1):
        if position in positions:
            found[position] = line
            if len(found) == len(positions):
                break
    return found


def read_columns(
    path: Path,
    separator: str,
    decimal: str,
    declared: Mapping[str, Declared],
    na_values: Iterable[str | float],
    kept: Collection[str] | None,
) -> dict[str, Any]:
    """Return the columns of a text file as series: numbers where all values are numbers, words otherwise.

    Parameters
    ----------
    kept : collection of str, optional
        The columns to read.

    Raises
    ------
    SchemaInvalid (HR-409)
        The file has another separator, a name twice, or lines that do not fit its header.
    MissingColumn (HR-403)
        A declared column is not there.
    ValueError
        Whatever else keeps the file from being read.
    """
    import pandas as pd

    if separator == decimal or len(separator) != 1 or decimal not in (".", ","):
        raise SchemaInvalid(
            f"separator {separator!r} and decimal {decimal!r} cannot be told apart or are not known.",
            remedy='Decimals are "." or ","; a separator is one character, and another one.',
        )
    head, first = beginning(path, separator)
    names = [name for name in head if kept is None or name in kept]
    refuse_header(path.name, head, names, separator, first)
    for name in declared if head else ():
        declared_in(head, name, path.name)
    every = (*BLANKS, *words_of(na_values))
    given = {name: declared.get(name, Declared(name)) for name in names}
    blank = {
        name: [word for word in (*every, *one.na_values) if level_of(word, one.in_file) is None] for name, one in given.items()
    }
    kinds = {name: str for name, one in given.items() if one.told_kind == "category"}
    try:
        frame = pd.read_csv(
            path,
            sep=separator,
            decimal=decimal,
            usecols=names if kept is not None else None,
            dtype=kinds,
            na_values=blank,
            keep_default_na=False,
            low_memory=False,
        )
    except pd.errors.ParserError as error:
        raise _unlike(path, error, decimal) from error
    return {str(key): series for key, series in frame.items()}


def read_text(path: Path, separator: str, kept: Collection[str] | None = None) -> dict[str, Any]:
    """Return the columns of a text file as series of the words that stand there: nothing is taken for a number or for missing.

    Parameters
    ----------
    kept : collection of str, optional
        The columns to read; those that are not there are left out.

    Raises
    ------
    SchemaInvalid (HR-409), ValueError
        As `read_columns`.
    """
    import pandas as pd

    head, first = beginning(path, separator)
    names = [name for name in head if kept is None or name in kept]
    refuse_header(path.name, head, names, separator, first)
    try:
        frame = pd.read_csv(path, sep=separator, usecols=names, dtype=str, na_filter=False, low_memory=False)
    except pd.errors.ParserError as error:
        raise _unlike(path, error, ".") from error
    return {name: frame[name] for name in names}


def beginning(path: Path, separator: str) -> tuple[list[str], list[str]]:
    """The names in the header and the values of the first record; none where they are not there."""
    try:
        lines = lines_in(path, separator)
        found = [words for _, (_, words) in zip(range(2), lines, strict=False)]
    except csv.Error as error:
        raise ValueError(str(error)) from error
    return found[0] if found else [], found[1] if len(found) > 1 else []


def refuse_header(what: str, head: Sequence[str], names: Sequence[str], separator: str, first: Sequence[str]) -> None:
    """Refuse a header with another separator, with a name twice, or that is shorter than the first record.

    Raises
    ------
    SchemaInvalid (HR-409)
    """
    if other := other_separator(head, separator):
        raise SchemaInvalid(f"{what} {other[0]}", remedy=f"{other[1]} In Python: read(..., separator=..., decimal=...).")
    if len(first) > len(head) > 0:
        raise SchemaInvalid(
            f"{what} cannot be read: its first record holds {len(first)} values, and the header {len(head)} names.",
            remedy="Name every column in the header" + _COMMAS,
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        places = "; ".join(f"{name!r} in columns {_and(_places(head, name))}" for name in twice)
        raise SchemaInvalid(f"{what} has names twice: {places}.", remedy="Give each column of the header its own name.")


def other_separator(head: Sequence[str], separator: str) -> tuple[str, str] | None:
    """What is wrong with a header that is one column by this separator and several by another, and what to do; or None."""
    other = next((one for one in SEPARATORS if one != separator and len(head) == 1 and one in head[0]), None)
    if other is None:
        return None
    said = f"has one column, {head[0][:60]!r}: its values are separated by {SEPARATORS[other]}."
    spelt = "\\t" if other == "\t" else other
    return said, f'Say separator = "{spelt}"; and decimal = "," where numbers are spelt 27,5.'


def _places(head: Sequence[str], name: str) -> list[int]:
    return [place for place, word in enumerate(head, start=1) if word == name]


def _and(places: Sequence[int]) -> str:
    return f"{', '.join(map(str, places[:-1]))} and {places[-1]}"


def _unlike(path: Path, error: Exception, decimal: str) -> SchemaInvalid:
    """What pandas says of a line that is too long, in our words."""
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
    said = f"line {found[2]} holds {found[3]} values, and {found[1]} were expected" if found else str(error).strip()
    return SchemaInvalid(
        f"{path.name} cannot be read: {said}.", remedy="A value that holds the separator needs quotes" + _COMMAS
    )


_COMMAS = '. Where numbers are spelt 27,5: put them in quotes, or use separator = ";" and decimal = ",".'
