"""A ledger as a data frame: one row for each question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

    from .ledger import Entry

COLUMNS = (
    "question",
    "branch",
    "verb",
    "query",
    "parties",
    "sampling",
    "numbers",
    "contribution",
    "bytes up",
    "bytes down",
    "bound",
    "noise",
    "aggregation",
    "compression",
    "unit",
    "charge",
    "randomness",
)


def frame_of(entries: Iterable[Entry], judged: Mapping[tuple[str, int], str] | None = None) -> pandas.DataFrame:
    """One row for each entry, in the order in which they were written; `numbers` is missing where nobody knew it before.

    Where rows are proved, a last column says how many were refused.
    """
    import pandas

    entries = list(entries)
    rows = [
        (
            entry.round,
            entry.branch,
            entry.verb,
            entry.query,
            entry.parties,
            str(entry.sampling),
            entry.numbers,
            entry.contribution,
            entry.bytes_up,
            entry.bytes_down,
            *entry.protection,
            entry.aggregation,
            entry.compression,
            entry.unit,
            entry.cost,
            entry.randomness,
        )
        for entry in entries
    ]
    found = pandas.DataFrame(rows, columns=list(COLUMNS)).astype({"numbers": "Int64"})
    if judged:
        found["rows"] = [judged.get((entry.branch, entry.round), "") for entry in entries]
    return found
