"""What a source hands over: raw columns by their declared names, before they are held against the declaration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.data.column import lacking
from hedgerow.data.declared import series_values
from hedgerow.data.faults import LinesOf
from hedgerow.errors import MissingColumn, suggestion

if TYPE_CHECKING:
    import pandas as pd

    from ..data_section import DataSection


@dataclass(frozen=True)
class RawColumns:
    """Raw columns, each of shape (n,), and a sentence about where they come from.

    Attributes
    ----------
    columns : mapping of str to array
        Numbers, or objects; a missing value is NaN or None.
    note : str
        Names the source, never an address with credentials in it.
    lines_of : callable, optional
        From positions of records to their lines, where the source is a text file.
    """

    columns: Mapping[str, np.ndarray]
    note: str
    lines_of: LinesOf | None = None


def origins(section: DataSection) -> dict[str, str]:
    """Return the source's name of each declared column."""
    return {name: column.origin or name for name, column in section.columns.items()}


def check_origins(section: DataSection, held: Iterable[object]) -> None:
    """Refuse a source that lacks a declared column.

    Raises
    ------
    MissingColumn (HR-403)
        The source has no column of that name.
    """
    names = [str(name) for name in held]
    for name, origin in origins(section).items():
        if origin not in names:
            raise MissingColumn(
                f"the source has no column {origin!r}, which is to be {name!r}.", remedy=suggestion(origin, names)
            )


def pick(frame: pd.DataFrame, section: DataSection) -> dict[str, np.ndarray]:
    """Return the declared columns of a data frame by their declared names; raises as `check_origins`."""
    check_origins(section, frame.columns)
    frame = frame.set_axis([str(key) for key in frame.columns], axis=1)
    return {name: _values(frame[origin]) for name, origin in origins(section).items()}


def _values(series: pd.Series) -> np.ndarray:
    values = series_values(series)
    if values.dtype.kind == "O":
        values = values.copy()
        values[lacking(values)] = None
    return values
