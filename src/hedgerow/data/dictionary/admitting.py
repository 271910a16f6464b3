"""A file or a frame held against a dictionary: nothing is guessed, and all that does not fit is found at once.

blanks around a word         do not count
missing                      what the dictionary, the column or the party says stands for it, and nothing else
neither missing nor a value  a fault, never a level
converted                    x in the file's unit  ->  the dictionary's unit, before the range is looked at
outside the range            a fault; or missing, or clipped, as the column says
derived                      computed at the end; missing where a column that it reads is
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.errors import MissingColumn, NotFinite, suggestion

from ..column import Column
from ..declared import Declared
from ..faults import Fault, LinesOf, Text, faults_of, level_of, refuse
from ..fitting import HeldColumn, hold, taken
from ..schema import Schema
from ..table import Table
from . import computing
from .dictionary import Dictionary
from .local_columns import LocalColumn, LocalColumns

ADVICE = "Columns are declared in {}; a party's own names, codes and units in its own file."
"""The last line of an error."""


@dataclass(frozen=True)
class HeldTable:
    """The columns of one party that were held against a dictionary.

    Attributes
    ----------
    columns : mapping from name to HeldColumn
        Those of the dictionary that are there.
    none : tuple of str
        Those that the party says it has not, and derived ones that read them.
    faults : tuple of Fault
        While there are some, the table stays closed.
    n : int
        Records.
    """

    dictionary: Dictionary
    columns: Mapping[str, HeldColumn]
    none: tuple[str, ...]
    faults: tuple[Fault, ...]
    n: int

    @property
    def derived(self) -> frozenset[str]:
        """Derived columns that can be computed from those that are there."""
        known = {*self.columns, *self.dictionary.derived}
        return frozenset(name for name in self.dictionary.derived if self.dictionary.needed([name]) <= known)

    @property
    def lacking(self) -> np.ndarray:
        """Which records lack a value of some column, shape (n,)."""
        gone = [held.absent for held in self.columns.values() if len(held.absent)]
        found: np.ndarray = np.logical_or.reduce([np.zeros(self.n, bool), *gone])
        return found

    def table(
        self,
        *,
        name: str = "table",
        source: str = "",
        where: str = "the table",
        lines_of: LinesOf | None = None,
        shown: bool = True,
    ) -> Table:
        """Return the table, derived columns at its end.

        Parameters
        ----------
        where, lines_of, shown
            As of `hedgerow.data.faults.refuse`.

        Raises
        ------
        MissingColumn, NotFinite, OutOfRange, SchemaInvalid (HR-403, 404, 405, 409)
            One error for all that does not fit.
        """
        refuse(self.faults, where, lines_of=lines_of, shown=shown, advice=ADVICE.format(self.dictionary.label))
        schema = Schema(tuple(held.column for held in self.columns.values() if held.column is not None))
        lost = [
            f"{name} ({held.outside})"
            for name, held in self.columns.items()
            if held.outside and held.column and not held.column.clip
        ]
        note = f"{source} By {self.dictionary.label}.".strip()
        note += f" Outside the declared range, and so missing: {', '.join(lost)}." if lost else ""
        table = Table(schema.admit({name: held.values for name, held in self.columns.items()}), schema, name=name, source=note)
        return computing.derived_table(table, self.dictionary, self.derived, shown=shown)


def hold_table(
    dictionary: Dictionary,
    raw: Mapping[str, Any],
    local: LocalColumns | None = None,
    *,
    names: Sequence[str] | None = None,
    decimal: str = "",
) -> HeldTable:
    """Hold raw columns against a dictionary.

    Parameters
    ----------
    raw : mapping from name to pandas.Series, or array of shape (n,)
        By their names in the file.
    local : LocalColumns, optional
        How the file spells them, where it differs from the dictionary.
    names : sequence of str, optional
        Columns of the dictionary that are wanted, with those that derived ones read; all by default.
    decimal : str
        The decimal sign of numbers that are text; else that of `local`, else the dictionary's.

    Raises
    ------
    SchemaInvalid (HR-409), MissingColumn (HR-403)
        The dictionary has a todo; `local` does not fit it; it has no such column. What is wrong with values is in `faults`.
    """
    dictionary.completed()
    local = (local or LocalColumns()).fitting(dictionary)
    sign = decimal or local.decimal or dictionary.decimal
    wanted = dictionary.needed(names)
    columns: dict[str, HeldColumn] = {}
    faults: list[Fault] = []
    none = []
    for name in (name for name in dictionary.columns if name in wanted):
        one = local.of_column(name)
        if one is None:
            none.append(name)
            continue
        origin = local.origin(name)
        if origin not in raw:
            faults.append(_absent(name, origin, raw))
            continue
        blank = (*dictionary.na_values, *local.na_values, *one.na_values)
        held = hold_column(dictionary.declared(name), raw[origin], one, blank, sign, dictionary.columns[name].required)
        faults += held.faults
        columns[name] = held
    n = len(next(iter(raw.values()))) if raw else 0
    found = HeldTable(dictionary, columns, tuple(none), tuple(faults), n)
    unmade = [name for name in dictionary.derived if name in wanted and name not in found.derived] if none else []
    return replace(found, none=(*none, *unmade))


def table_of(raw: Mapping[str, Any], dictionary: Dictionary | str | Path, *, name: str, source: str) -> Table:
    """Return the table of raw columns by a dictionary; raises as `HeldTable.table`."""
    known = dictionary if isinstance(dictionary, Dictionary) else Dictionary.read(dictionary)
    return hold_table(known, raw).table(name=name, source=source, where=name)


def hold_column(
    declared: Declared, values: Any, local: LocalColumn, na_values: Sequence[str], decimal: str, required: bool
) -> HeldColumn:
    """Hold the raw values of one column against what a dictionary declares, as a party spells it."""
    if local.codes:
        declared = replace(declared, codes=dict(local.codes))
    if not local.convert:
        return hold(declared, values, na_values=na_values, decimal=decimal, missing=required)
    blank = {*declared.na_values, *(word for word in na_values if level_of(word, declared.in_file) is None)}
    held = taken(values, blank, decimal)
    number = Column(declared.name, "number")
    if wrong := faults_of(number, held, missing=False):
        column = declared.column(np.zeros(0))
        return HeldColumn(column if isinstance(column, Column) else None, tuple(wrong), np.zeros(0))
    numbers = np.append(held.numbers(number), np.nan)[held.codes] if isinstance(held, Text) else np.asarray(held, np.float64)
    made = computing.convert(local.convert, numbers)
    found = hold(replace(declared, na_values=()), np.where(np.isfinite(made), made, np.nan), missing=required)
    if len(undefined := np.flatnonzero(~np.isfinite(made) & np.isfinite(numbers))):
        what = f"undefined: {local.convert} has no finite value there"
        remedy = "Mend the values, or the conversion."
        fault = Fault(declared.name, len(undefined), len(made), what, int(undefined[0]), (), NotFinite, remedy)
        return replace(found, faults=(fault, *found.faults))
    return found


def _absent(name: str, origin: str, raw: Mapping[str, Any]) -> Fault:
    called = f"column {origin!r}, which is to be {name!r}," if origin != name else f"column {name!r}"
    remedy = f"{suggestion(origin, raw)} Say what it is called here, or that there is none: {name} = false."
    return Fault(name, 0, 0, f"{called} is not there", None, (), MissingColumn, remedy)
