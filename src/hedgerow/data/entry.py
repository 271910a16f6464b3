"""What the catalogue knows of one data set, and the words in which its columns are declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .column import Column
from .declared import series_values
from .download import Published
from .loaders import Columns, read_csv
from .schema import Schema

if TYPE_CHECKING:
    import pandas as pd

Parts = tuple[Columns, Columns | None]
"""Raw columns of the training part and, where one is published, of the test part."""


@dataclass(frozen=True)
class Form:
    """Another form of a data set, read where the files of its first one are not there.

    Parameters
    ----------
    sentence : str
        What is other about it: it ends the sentence of a table's source.
    reader : callable
        As of `CatalogueEntry`.
    files : tuple of str
        Paths inside the data folder.
    """

    sentence: str
    reader: Callable[..., Parts]
    files: tuple[str, ...]


@dataclass(frozen=True)
class CatalogueEntry:
    """One catalogued data set.

    Parameters
    ----------
    sentence : str
        What it is, records, publisher, licence.
    schema : Schema
        Declared from the meaning of the columns.
    reader : callable
        `reader(*paths)` returns the raw columns.
    files : tuple of str
        Paths inside the data folder; none for a set that comes with a Python package.
    published : tuple of Published
        Where each of `files` can be downloaded; none where no stable address with a known checksum exists.
    missing : {"refuse", "drop"}
        What happens to records with missing values.
    also : tuple of Form
        Other forms, tried in this order.
    selection : tuple of (label, records, why others went no further, how many)
        How its records were chosen from the published ones; the last step has no others.
    """

    sentence: str
    schema: Schema
    reader: Callable[..., Parts]
    files: tuple[str, ...] = ()
    published: tuple[Published, ...] = ()
    missing: Literal["refuse", "drop"] = "refuse"
    also: tuple[Form, ...] = ()
    selection: tuple[tuple[str, int, str, int], ...] = ()


def number(name: str, low: float, high: float, unit: str = "", **more: Any) -> Column:
    """Declare a real-valued column."""
    return Column(name, "number", low=low, high=high, unit=unit, **more)


def integer(name: str, low: float, high: float, unit: str = "", **more: Any) -> Column:
    """Declare a whole-numbered column."""
    return Column(name, "integer", low=low, high=high, unit=unit, **more)


def binary(name: str, **more: Any) -> Column:
    """Declare a column of zeros and ones."""
    return Column(name, "binary", **more)


def category(name: str, levels: str | Sequence[str], **more: Any) -> Column:
    """Declare a category; `levels` may be words separated by spaces."""
    return Column(name, "category", levels=tuple(levels.split() if isinstance(levels, str) else levels), **more)


def declare(*columns: Column) -> Schema:
    """Return the schema of `columns`."""
    return Schema(columns)


def csv(prepare: Callable[[pd.DataFrame], pd.DataFrame] | None = None, **options: Any) -> Callable[..., Parts]:
    """Return a reader of one csv file, or of a training and a test file.

    Parameters
    ----------
    prepare : callable, optional
        Renames and recodes the published columns.
    **options : Any
        For `pandas.read_csv`.
    """

    def part(path: Path) -> Columns:
        frame = read_csv(path, **options)
        return columns_of(prepare(frame) if prepare else frame)

    def reader(train: Path, test: Path | None = None) -> Parts:
        return part(train), part(test) if test else None

    return reader


def columns_of(frame: pd.DataFrame) -> Columns:
    """Return the columns of a data frame by name, in lower case with underscores."""
    return {_plain_name(str(name)): series_values(series) for name, series in frame.items()}


def renamed(names: Mapping[str, str]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return a preparation that only renames columns."""
    return lambda frame: frame.rename(columns=names)


def _plain_name(name: str) -> str:
    return name.lower().replace(" ", "_").replace("-", "_").replace(".", "_")
