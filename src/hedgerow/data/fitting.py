"""Raw columns held against their declarations: all faults together, kinds and levels of undeclared columns read off them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .column import Column, Kind, lacking
from .declared import APART, Declared, declared_in, series_values, uncoded, words_of
from .faults import WHERE, Fault, LinesOf, Text, faults_of, level_of, numbers_of, refuse, without_outside
from .inference import plain
from .missing_codes import warn_of_codes, warn_of_levels
from .schema import Schema


def fit(
    columns: Mapping[str, Any],
    declared: Mapping[str, Declared],
    *,
    where: str,
    na_values: Iterable[str] = (),
    missing: str | Mapping[str, str] = "refuse",
    lines_of: LinesOf | None = None,
    others: Collection[str] = (),
    decimal: str = ".",
    shown: bool = True,
    advice: str = WHERE,
    needed: Callable[[str], bool] | None = None,
) -> tuple[dict[str, np.ndarray], Schema, str]:
    """Hold raw columns against their declarations, and read kinds and levels of others off them.

    Parameters
    ----------
    columns : mapping of str to pandas.Series or array of shape (n, ...)
    declared : mapping of str to Declared
    where : str
        What holds the values, such as a file's name.
    na_values : iterable of str
        What stands for a missing value in every column.
    missing : str, or mapping from column to str
        Unless "refuse", missing values are left to others.
    others : collection of str
        Columns that may be declared and not be there.
    decimal : str
        The decimal sign of numbers that are text.
    shown, advice
        As of `refuse`.
    needed : callable, optional
        By name, whether a column must be readable; another one is left out where nobody declares it and its kind would have
        to be guessed.

    Returns
    -------
    tuple
        Values as `Schema.admit` takes them; the schema; and a sentence about levels that were read off the
        records, and one about columns that were left out.

    Raises
    ------
    MissingColumn, NotFinite, OutOfRange, SchemaInvalid, ColumnUndeclared (HR-403, 404, 405, 409, 410)
        One error for all columns.
    """
    for name in declared:
        if name not in others:
            declared_in(columns, name, where)
    every, found, schema = words_of(na_values), {}, []
    faults: list[Fault] = []
    inferred, aside, lost = [], [], []
    for name, values in columns.items():
        one = declared.get(name, Declared(name))
        policy = missing if isinstance(missing, str) else missing.get(name, "refuse")
        held = hold(one, values, na_values=every, decimal=decimal, missing=policy == "refuse")
        if held.column is None:
            is_spare = needed is not None and name not in declared and not needed(name)
            aside.append(name) if is_spare else faults.extend(held.faults)
            continue
        column = held.column
        faults += held.faults
        schema.append(column)
        if column.kind == "category" and not one.levels:
            inferred.append(f"{name} ({len(column.levels)})")
        if held.outside and one.outside == "missing":
            lost.append(f"{name} ({held.outside})")
        if not held.faults:
            found[name] = held.values
            if shown and np.ndim(held.values) == 1 and one.role not in (*APART, "cluster") and not one.coded:
                if column.kind in ("number", "integer"):
                    warn_of_codes(name, held.values, where, one.low, one.high)
                elif column.kind == "category" and not one.levels:
                    warn_of_levels(name, column.levels, where)
    refuse(faults, where, lines_of=lines_of, shown=shown, advice=advice)
    note = f" Levels of {', '.join(inferred)} were read off the records, and are not declared." if inferred else ""
    note += f" Outside the declared range, and so missing: {', '.join(lost)}." if lost else ""
    note += f" Left out, since nothing reads them and nobody declares them: {', '.join(aside)}." if aside else ""
    return found, Schema(tuple(schema)), note


@dataclass(frozen=True)
class HeldColumn:
    """Raw values that were held against a declaration.

    Attributes
    ----------
    column : Column or None
        None where the values do not tell what is not declared.
    faults : tuple of Fault
    values : array
        As `Schema.admit` takes them; empty where there are faults.
    absent : array of bool, shape (n,)
        Which values are missing, in the file or by `outside`; of columns of arrays nothing.
    outside : int
        Values outside the range that are missing for it, or clipped.
    """

    column: Column | None
    faults: tuple[Fault, ...]
    values: np.ndarray
    absent: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    outside: int = 0


def hold(one: Declared, values: Any, *, na_values: Iterable[str] = (), decimal: str = ".", missing: bool = True) -> HeldColumn:
    """Hold the raw values of a column against its declaration.

    Parameters
    ----------
    values : pandas.Series, array of shape (n, ...), or Text
    na_values : iterable of str
        What stands for a missing value in every column, as words.
    missing : bool
        Whether missing values are faults.
    """
    blank = {*one.na_values, *(word for word in na_values if level_of(word, one.in_file) is None)}
    held = taken(values, blank, decimal)
    if isinstance(held, np.ndarray) and held.ndim > 1:
        column = _shaped(one, held)
        return HeldColumn(column, (), uncoded(held) if column.kind == "category" else held)
    asked = held if isinstance(held, Text) and not _is_categorical(values) else values
    found = one.column(asked)
    if isinstance(found, Fault):
        return HeldColumn(None, (found,), np.zeros(0))
    if one.codes_words(asked):
        codes = (held if isinstance(held, Text) else Text.of(held)).bare().codes
        held = np.where(codes < 0, np.nan, codes)
    outside = 0
    if one.outside in ("missing", "clip"):
        inside, outside = without_outside(found, held)
        held = inside if one.outside == "missing" else held
    absent = held.absent if isinstance(held, Text) else lacking(held)
    faults = tuple(faults_of(one.spelt(found), held, missing=missing))
    return HeldColumn(found, faults, np.zeros(0) if faults else one.read(held, found), absent, outside)


def taken(values: Any, blank: Collection[str] = (), decimal: str = ".") -> np.ndarray | Text:
    """Return a column as numbers, NaN where one is missing, or as text; `blank` says what else stands for a missing value."""
    import pandas as pd

    if isinstance(values, Text):
        return values.without(blank)
    if np.ndim(values) != 1:
        return np.asarray(values)
    if not isinstance(values, pd.Series) and (array := np.asarray(values)).dtype.kind in "biuf" and not blank:
        return uncoded(array)
    series = plain(values)
    if not pd.api.types.is_numeric_dtype(series.dtype):
        return Text.of(series, decimal).without(blank)
    numbers = uncoded(series_values(series))
    gone = numbers_of(np.array(list(blank), dtype=object))
    return np.where(np.isin(numbers, gone), np.nan, numbers) if len(gone) and np.isin(numbers, gone).any() else numbers


def _is_categorical(values: Any) -> bool:
    import pandas as pd

    return isinstance(values, pd.Series) and isinstance(values.dtype, pd.CategoricalDtype)


def _shaped(one: Declared, values: np.ndarray) -> Column:
    if one.shape:
        return one.column(np.zeros(0))  # type: ignore[return-value]
    kind: Kind = one.kind or ("integer" if values.dtype.kind in "iu" else "number")
    return Column(one.name, kind, one.role, one.unit, one.low, one.high, shape=values.shape[1:], clip=one.clip)
