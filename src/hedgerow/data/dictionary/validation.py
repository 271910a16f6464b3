"""Two reports of one file held against a dictionary: line by line for who holds it, rounded counts for a study.

    its owner    column, fault, how many, first line; nothing of it leaves
    a study      whether the table is open, which columns do not fit, and counts as multiples of `least`

A total beside an exact part gives the other part away, and so do two models of which one reads more columns: hence every count
that a study is told is rounded, by the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..faults import Fault, LinesOf
from ..loaders import raw_columns
from .admitting import HeldTable, hold_table
from .dictionary import Dictionary
from .entries import DictionaryColumn
from .local_columns import LocalColumns

ANOTHER_UNIT = 0.2
"""Share of values outside the range from which on another unit is suspected."""


@dataclass(frozen=True)
class Finding:
    """Something that was found in a column.

    Attributes
    ----------
    what : str
        Such as "not a number".
    count : int
        Of how many records; 0 where it is the column's as a whole.
    line : int or None
        The first line of the file, or record from 1 where there are no lines.
    closes : bool
        Whether the table stays closed for it.
    hint : str
        What to do, without a value of the records.
    """

    column: str
    what: str
    count: int
    line: int | None = None
    closes: bool = False
    hint: str = ""


@dataclass(frozen=True)
class Validation:
    """What was found in a file.

    Attributes
    ----------
    label : str
        The dictionary's name and version.
    n, complete : int
        Records, and those that lack no value.
    least : int
        Counts that a study is told are multiples of it.
    none : tuple of str
        Columns that the party says it has not.
    by_line : bool
        Whether `Finding.line` counts lines of a file, its header included.
    """

    label: str
    n: int
    complete: int
    least: int
    findings: tuple[Finding, ...]
    none: tuple[str, ...] = ()
    by_line: bool = True

    @property
    def closed(self) -> bool:
        """Whether the table stays closed."""
        return any(one.closes for one in self.findings)

    @property
    def refused(self) -> int:
        """How many values are refused."""
        return sum(one.count for one in self.findings if one.closes)

    def about(self, count: int) -> int:
        """A count as a study is told it: the nearest multiple of `least`."""
        return (2 * count + self.least) // (2 * self.least) * self.least

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """The owner's report: column, what, how many, first line, what to do."""
        where = "line" if self.by_line else "record"
        return [
            (one.column, one.what, str(one.count or ""), f"{where} {one.line}" if one.line else "", one.hint)
            for one in self.findings
        ]

    def verdict(self) -> str:
        """The last sentence of the owner's report."""
        if not self.closed:
            return f"The table is open: {self.n} records, {self.complete} of them complete."
        what = (
            f"{self.refused} value{'s are' if self.refused != 1 else ' is'} refused"
            if self.refused
            else "columns are not there"
        )
        return f"{what[0].upper()}{what[1:]}: the table stays closed until they are mended."

    def public(self) -> list[str]:
        """What a study is told, sentence by sentence."""
        told = self.told()
        wrong = ", ".join(told["do_not_fit"])
        said = [f"Closed, by {self.label}: what does not fit is in {wrong}." if wrong else f"Open, by {self.label}."]
        if self.none:
            said.append(f"It has no {', no '.join(self.none)}.")
        said += [f"{column}: missing about {count}." for column, count in told["missing"].items()]
        return [*said, f"Complete about {told['complete']} of about {told['records']}, left out about {told['left_out']}."]

    def told(self) -> dict[str, Any]:
        """The same as plain values: no count that is not a multiple of `least`."""
        wrong = list(dict.fromkeys(one.column for one in self.findings if one.closes))
        return {
            "dictionary": self.label,
            "closed": self.closed,
            "do_not_fit": wrong,
            "none": list(self.none),
            "missing": {one.column: self.about(one.count) for one in self.findings if one.what == MISSING},
            "records": self.about(self.n),
            "complete": self.about(self.complete),
            "left_out": self.about(self.n - self.complete),
        }


MISSING = "missing"


def check_file(dictionary: Dictionary, path: str | Path, local: LocalColumns | None = None) -> Validation:
    """Hold a file against a dictionary, and return what was found.

    Parameters
    ----------
    local : LocalColumns, optional
        How its owner spells the columns.

    Raises
    ------
    MissingData (HR-402), SchemaInvalid (HR-409)
        No such file; it cannot be read as a table; the dictionary has a todo; `local` does not fit it.
    """
    dictionary.completed()
    local = (local or LocalColumns()).fitting(dictionary)
    raw, lines_of = raw_columns(Path(path), separator=local.separator)
    return validate(hold_table(dictionary, raw, local), lines_of)


def validate(held: HeldTable, lines_of: LinesOf | None = None) -> Validation:
    """Return what was found in a table that was held against a dictionary."""
    dictionary = held.dictionary
    first = {fault.first for fault in held.faults if fault.first is not None}
    lines = lines_of(first) if lines_of is not None and first else {}
    findings: list[Finding] = []
    for name, entry in dictionary.columns.items():
        for fault in (fault for fault in held.faults if fault.column == name):
            place = None if fault.first is None else lines.get(fault.first, fault.first + 1)
            findings.append(Finding(name, _in_short(fault), fault.count, place, True, _hint(fault, entry)))
        if (one := held.columns.get(name)) is None:
            continue
        if one.outside and entry.range is not None:
            findings.append(Finding(name, f"outside {_span(entry)}: {entry.outside}", one.outside))
        if (count := int(one.absent.sum())) and not entry.required:
            findings.append(Finding(name, MISSING, count))
    complete = held.n - int(held.lacking.sum())
    return Validation(dictionary.label, held.n, complete, dictionary.least, tuple(findings), held.none, lines_of is not None)


def _in_short(fault: Fault) -> str:
    """A fault in few words."""
    if fault.what.startswith("that are not numbers"):
        return "not a number"
    if fault.what.startswith("not among"):
        return "unknown level"
    if fault.what.startswith("missing"):
        return "missing, and required"
    if fault.what.startswith("outside its declared range"):
        return fault.what.replace("its declared range ", "") + ": refuse"
    return fault.what


def _hint(fault: Fault, entry: DictionaryColumn) -> str:
    """What to do, without a value of the records."""
    if fault.what.startswith("outside"):
        many = fault.count > ANOTHER_UNIT * fault.of
        return 'another unit? convert = "x / ..."' if many else 'mend the records, or outside = "missing"'
    if fault.what.startswith("missing"):
        return "mend the records: the dictionary requires it"
    if fault.what.startswith("that are not numbers"):
        return "mend the records, or name the mark in na_values"
    if fault.what.startswith("not among"):
        return fault.remedy.partition(". ")[0] + "; or codes of your own"
    return fault.remedy


def _span(entry: DictionaryColumn) -> str:
    low, high = entry.range or (None, None)
    return f"[{low:g}, {high:g}]"
