"""Counts that readers of a report do not see: those of a few records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hedgerow.core.declaration import Key

if TYPE_CHECKING:
    import pandas

LEAST = Key(
    int,
    0,
    "counts below this number are printed as '< least'. That is for readers: it changes neither what the "
    "server learns nor what it costs, and others may be computed from totals. It is no privacy",
    {"ge": 0},
)
"""The key `least`, which programs of counts share."""


def sparse(table: pandas.DataFrame, least: int, columns: Sequence[str], *, beside: Sequence[str] = ()) -> pandas.DataFrame:
    """Print counts of `columns` above zero and below `least` as such, and nothing of them in the columns `beside`."""
    import pandas

    if least <= 0:
        return table
    found = table.astype(dict.fromkeys([*columns, *beside], object))
    for name in columns:
        number = pandas.to_numeric(table[name], errors="coerce")
        few = (number > 0) & (number < least)
        found.loc[few, name] = f"< {least}"
        found.loc[few, list(beside)] = None
    return found
