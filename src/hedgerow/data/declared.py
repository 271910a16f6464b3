"""Declared columns of a file or a data frame: what they mean, and how the file spells it.

    declared = {"age": {"kind": "integer", "range": [18, 110], "unit": "a"},
                "sex": {"levels": {"female": "0", "male": "1"}},        word = code in the file
                "bmi": {"kind": "number", "na_values": ["?"]}}

A `Column` is what parties and server agree on. How a file spells missing values and levels is the file's own, and stays here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from hedgerow.errors import ColumnUndeclared, MissingColumn, SchemaInvalid, suggestion

from .column import Column, Kind, Role, spelling
from .faults import WHERE, Fault, LinesOf, Text, faults_of, level_of, numbers_of, refuse
from .inference import MOST_LEVELS, infer_column, levels_in, marks_in, plain
from .missing_codes import warn_of_codes, warn_of_levels
from .schema import Schema

APART: tuple[Role, ...] = ("id", "ignore")
"""Roles of columns that no model reads."""
MOST_CODES = 32_767
"""Most levels that a category can have."""


@dataclass(frozen=True)
class Declared:
    """What is declared of one column of a file.

    Attributes
    ----------
    name : str
    kind : {"number", "integer", "binary", "category"}, optional
        Category where levels are given or many; a number where a range is; otherwise that of the values.
    codes : mapping of str to str
        Level of each code in the file, where they differ.
    na_values : tuple of str
        What stands for a missing value.
    many : bool
        Whether levels may be read off the records however many there are.

    The others are those of `Column`.
    """

    name: str
    kind: Kind | None = None
    role: Role = "feature"
    unit: str = ""
    low: float | None = None
    high: float | None = None
    levels: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    clip: bool = False
    description: str = ""
    formula: str = ""
    optional: bool = False
    codes: Mapping[str, str] = field(default_factory=dict)
    na_values: tuple[str, ...] = ()
    many: bool = False

    def __post_init__(self) -> None:
        for word in self.na_values:
            if (level := level_of(word, self.in_file)) is not None:
                what = f"{level!r} as {'the code of ' if self.codes else ''}a level, and {word!r} as missing"
                raise SchemaInvalid(
                    f"column {self.name!r} declares {what}.",
                    remedy="A value is a level, or it is missing: leave it out of `levels` or of `na_values`.",
                )

    @property
    def in_file(self) -> Collection[str]:
        """How the file spells the declared levels."""
        return self.codes or self.levels

    @classmethod
    def of(cls, name: str, given: Declared | Column | Mapping[str, Any]) -> Declared:
        """Return a declaration that is written as a mapping, as in a study file, or as a `Column`.

        Raises
        ------
        SchemaInvalid (HR-409)
            A key is unknown; said with the nearest known one.
        """
        if isinstance(given, cls):
            return given
        if isinstance(given, Column):
            return cls(**{one.name: getattr(given, one.name) for one in fields(given)})
        for key in given:
            if key not in KEYS:
                raise SchemaInvalid(f"column {name!r} declares {key!r}, which is unknown.", remedy=suggestion(key, KEYS))
        values = {key: value for key, value in given.items() if value is not None}
        if (span := values.pop("range", None)) is not None:
            values["low"], values["high"] = span
        levels = values.get("levels", ())
        if isinstance(levels, Mapping):
            values["codes"] = {spelling(code): str(word) for word, code in levels.items()}
            if len(values["codes"]) != len(levels):
                raise SchemaInvalid(f"levels of {name!r} share a code.", remedy="Give each word a code of its own.")
        values["levels"] = tuple(map(str, levels))
        values["na_values"] = words_of(values.get("na_values", ()))
        if span is not None and {"low", "high"} & {key for key in given if given[key] is not None}:
            raise SchemaInvalid(f"column {name!r} declares a range, and low or high.", remedy="Give range, or low and high.")
        found = cls(name, **values)
        if found.told_kind not in (None, "category") or found.levels:
            found.column(np.zeros(0))  # contradictions are told before there are values
        return found

    @property
    def told_kind(self) -> Kind | None:
        """The kind, where the declaration tells it."""
        if self.kind or not (self.levels or self.many):
            return self.kind or ("number" if self.low is not None or self.high is not None or self.clip else None)
        return "category"

    def column(self, values: Any) -> Column | Fault:
        """Return the declared column of these values, or why they do not tell what is not declared.

        Parameters
        ----------
        values : pandas.Series, array of numbers of shape (n,), or Text
        """
        kind, levels, apart = self.told_kind, self.levels, self.role in APART
        if kind is None and apart and isinstance(values, Text):
            kind = "category"
        if kind is None:
            found = infer_column(self.name, values)
            more = {"role": self.role, "unit": self.unit, "description": self.description, "optional": self.optional}
            return replace(found, **more) if isinstance(found, Column) else found
        if kind == "category" and not levels:
            text = values if isinstance(values, Text) else Text.of(values)
            if not (self.many or apart) and (marks := marks_in(self.name, text)):
                return marks
            levels = levels_in(text)
            most = MOST_CODES if self.many or apart else MOST_LEVELS
            if len(levels) > most:
                return _too_many(self.name, len(levels), most)
        known = {one.name: getattr(self, one.name) for one in fields(Column)}
        return Column(**known | {"kind": kind, "levels": levels})

    def read(self, values: np.ndarray | Text, column: Column) -> np.ndarray:
        """Return values of a file as the column spells them: words of its levels, and numbers."""
        if column.kind == "category":
            text = values if isinstance(values, Text) else Text.of(values)
            known = [level_of(word, self.codes or column.levels) for word in text.words]
            levels = [self.codes.get(word, word) if word is not None else None for word in known]
            return np.array([*levels, None], dtype=object)[text.codes]
        return np.append(values.numbers(column), np.nan)[values.codes] if isinstance(values, Text) else values

    def spelt(self, column: Column) -> Column:
        """Return the column as the file spells its levels."""
        if not self.codes:
            return column
        code_of = {word: code for code, word in self.codes.items()}
        return replace(column, levels=tuple(code_of[level] for level in column.levels))


KEYS = (*("kind", "role", "low", "high", "range", "levels", "na_values", "unit", "clip", "many", "description"),)
"""What a mapping may declare."""


def words_of(values: Any) -> tuple[str, ...]:
    """What stands for a missing value, as words: -9, -9.0 and '-9' are one."""
    return tuple(map(spelling, [values] if isinstance(values, str | int | float) else values))


def all_declared(declared: Mapping[str, Declared | Column | Mapping[str, Any]] | None) -> dict[str, Declared]:
    """Read the declarations of several columns; raises as `Declared.of`."""
    return {name: Declared.of(name, given) for name, given in (declared or {}).items()}


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
    every, found, schema, faults = words_of(na_values), {}, [], []
    inferred, aside = [], []
    for name, values in columns.items():
        one = declared.get(name, Declared(name))
        held = taken(values, {*one.na_values, *(word for word in every if level_of(word, one.in_file) is None)}, decimal)
        policy = missing if isinstance(missing, str) else missing.get(name, "refuse")
        is_flat = isinstance(held, Text) or held.ndim == 1
        asked = held if isinstance(held, Text) and not _is_categorical(values) else values
        column = one.column(asked) if is_flat else _shaped(one, held)
        if isinstance(column, Fault):
            is_spare = needed is not None and name not in declared and not needed(name)
            aside.append(name) if is_spare else faults.append(column)
            continue
        faults += (wrong := faults_of(one.spelt(column), held, missing=policy == "refuse") if is_flat else [])
        if column.kind == "category" and not one.levels:
            inferred.append(f"{name} ({len(column.levels)})")
        schema.append(column)
        if not wrong:
            if shown and is_flat and one.role not in APART:
                if column.kind in ("number", "integer"):
                    warn_of_codes(name, one.read(held, column), where, one.low, one.high)
                elif column.kind == "category" and not one.levels:
                    warn_of_levels(name, column.levels, where)
            found[name] = one.read(held, column) if is_flat else uncoded(held) if column.kind == "category" else held
    refuse(faults, where, lines_of=lines_of, shown=shown, advice=advice)
    note = f" Levels of {', '.join(inferred)} were read off the records, and are not declared." if inferred else ""
    note += f" Left out, since nothing reads them and nobody declares them: {', '.join(aside)}." if aside else ""
    return found, Schema(tuple(schema)), note


def taken(values: Any, blank: Collection[str] = (), decimal: str = ".") -> np.ndarray | Text:
    """Return a column as numbers, NaN where one is missing, or as text; `blank` says what else stands for a missing value."""
    import pandas as pd

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


def declared_in(columns: Collection[str], name: str, where: str) -> bool:
    """Whether a declared column is there; MissingColumn (HR-403) where it is not."""
    if name not in columns:
        raise MissingColumn(f"{where} has no column {name!r}, which is declared.", remedy=suggestion(name, columns))
    return True


def series_values(values: Any) -> np.ndarray:
    """Return a series as a numpy array, a missing value of a nullable dtype as NaN; an array as it is."""
    import pandas as pd

    if not isinstance(values, pd.Series):
        return np.asarray(values)
    if pd.api.types.is_numeric_dtype(values.dtype):
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    return values.to_numpy(dtype=object)


def uncoded(values: Any) -> np.ndarray:
    """Return values that nobody admitted as an array whose integers are no codes of levels: int16 as int64."""
    array = np.asarray(values)
    return array.astype(np.int64) if array.dtype == np.int16 else array


def numbers_or_words(values: Any) -> Any:
    """Return a series of numbers as float64, whose whole numbers are no declaration; words and arrays as they are."""
    import pandas as pd

    is_number = isinstance(values, pd.Series) and pd.api.types.is_numeric_dtype(values.dtype)
    return series_values(values) if is_number else values


def _shaped(one: Declared, values: np.ndarray) -> Column:
    if one.shape:
        return one.column(np.zeros(0))  # type: ignore[return-value]
    kind: Kind = one.kind or ("integer" if values.dtype.kind in "iu" else "number")
    return Column(one.name, kind, one.role, one.unit, one.low, one.high, shape=values.shape[1:], clip=one.clip)


def _too_many(name: str, n: int, most: int) -> Fault:
    what = f"column {name!r} holds {n} different values, and at most {most} are taken for levels"
    remedy = "Declare its levels, or many = true if all of them are meant." if most == MOST_LEVELS else "Leave it out."
    return Fault(name, 0, 0, what, None, (), ColumnUndeclared, remedy)
