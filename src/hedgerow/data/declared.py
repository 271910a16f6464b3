"""Declared columns of a file or a data frame: what they mean, and how the file spells it.

    declared = {"age": {"kind": "integer", "range": [18, 110], "unit": "a"},
                "sex": {"levels": {"female": "0", "male": "1"}},        word = code in the file
                "bmi": {"kind": "number", "na_values": ["?"]}}

A `Column` is what parties and server agree on. How a file spells missing values and levels is the file's own, and stays here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

import numpy as np

from hedgerow.errors import ColumnUndeclared, MissingColumn, SchemaInvalid, suggestion

from .column import Column, Kind, Role, spelling
from .faults import Fault, Text, level_of
from .inference import MOST_LEVELS, infer_column, levels_in, marks_in

Outside = Literal["refuse", "missing", "clip"]
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
    outside : {"refuse", "missing", "clip"}, optional
        What becomes of values outside the range; "clip" is `clip = true`.
    coded : bool
        Whether words become whole numbers that tell the records of one from those of another within this table, and nothing
        else: of ids and clusters. The same word has other numbers elsewhere, so nobody need declare the words.

    The others are those of `Column`. A binary column may have two levels as well: the first is 0, the second 1.
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
    inferred: bool = False
    codes: Mapping[str, str] = field(default_factory=dict)
    na_values: tuple[str, ...] = ()
    many: bool = False
    outside: Outside | None = None
    coded: bool = False

    def __post_init__(self) -> None:
        if self.outside is not None:
            self._settle_outside(self.outside)
        if self.kind == "binary" and self.levels and len(self.levels) != 2:
            raise SchemaInvalid(
                f"binary column {self.name!r} declares {len(self.levels)} levels.",
                remedy="Give two, the first for 0 and the second for 1, or declare a category.",
            )
        for word in self.na_values:
            if (level := level_of(word, self.in_file)) is not None:
                what = f"{level!r} as {'the code of ' if self.codes else ''}a level, and {word!r} as missing"
                raise SchemaInvalid(
                    f"column {self.name!r} declares {what}.",
                    remedy="A value is a level, or it is missing: leave it out of `levels` or of `na_values`.",
                )

    def _settle_outside(self, outside: Outside) -> None:
        """Say in `clip` and `optional` what follows from `outside`."""
        if outside not in get_args(Outside):
            raise SchemaInvalid(
                f"column {self.name!r} has outside = {outside!r}.", remedy=suggestion(str(outside), get_args(Outside))
            )
        if self.clip and outside != "clip":
            raise SchemaInvalid(
                f"column {self.name!r} declares clip = true and outside = {outside!r}.", remedy="Declare one of them."
            )
        if outside == "missing" and self.low is None and self.high is None:
            raise SchemaInvalid(f"column {self.name!r} declares outside = 'missing' and no range.", remedy="Declare a range.")
        object.__setattr__(self, "clip", outside == "clip")
        object.__setattr__(self, "optional", self.optional or outside == "missing")

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
        if self.codes_words(values):
            return Column(self.name, "integer", self.role, description=self.description, optional=self.optional)
        kind, levels, apart = self.told_kind, self.levels, self.role in APART
        if kind == "binary":
            levels = ()
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
        read_off = self.inferred or (kind == "category" and not self.levels)
        return Column(**known | {"kind": kind, "levels": levels, "inferred": read_off})

    def codes_words(self, values: Any) -> bool:
        """Whether words become whole numbers: of a coded column, and of a cluster of words of which nothing else is said."""
        unsaid = self.kind is None and not (self.levels or self.many)
        return self.coded or (self.role == "cluster" and unsaid and isinstance(values, Text))

    def read(self, values: np.ndarray | Text, column: Column) -> np.ndarray:
        """Return values of a file as the column spells them: words of its levels, and numbers."""
        if column.kind == "binary" and self.levels:
            text = values if isinstance(values, Text) else Text.of(values)
            known = [level_of(word, self.in_file, text.decimal) for word in text.words]
            place = {word: float(place) for place, word in enumerate(self.levels)}
            numbers = [place[self.codes.get(word, word)] if word is not None else np.nan for word in known]
            return np.array([*numbers, np.nan])[text.codes]
        if column.kind == "category":
            text = values if isinstance(values, Text) else Text.of(values)
            known = [level_of(word, self.codes or column.levels, text.decimal) for word in text.words]
            levels = [self.codes.get(word, word) if word is not None else None for word in known]
            return np.array([*levels, None], dtype=object)[text.codes]
        return np.append(values.numbers(column), np.nan)[values.codes] if isinstance(values, Text) else values

    def spelt(self, column: Column) -> Column:
        """Return the column as the file spells its levels, also of a binary column that has some."""
        if column.kind == "binary" and self.levels:
            return Column(self.name, "category", levels=tuple(self.in_file))
        if not self.codes:
            return column
        return replace(column, levels=tuple(self.codes))


KEYS = ("kind", "role", "low", "high", "range", "levels", "na_values", "unit", "clip", "outside", "many", "description")
"""What a mapping may declare."""


def words_of(values: Any) -> tuple[str, ...]:
    """What stands for a missing value, as words: -9, -9.0 and '-9' are one."""
    return tuple(map(spelling, [values] if isinstance(values, str | int | float) else values))


def all_declared(declared: Mapping[str, Declared | Column | Mapping[str, Any]] | None) -> dict[str, Declared]:
    """Read the declarations of several columns; raises as `Declared.of`."""
    return {name: Declared.of(name, given) for name, given in (declared or {}).items()}


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


def _too_many(name: str, n: int, most: int) -> Fault:
    what = f"column {name!r} holds {n} different values, and at most {most} are taken for levels"
    remedy = "Declare its levels, or many = true if all of them are meant." if most == MOST_LEVELS else "Leave it out."
    return Fault(name, 0, 0, what, None, (), ColumnUndeclared, remedy)
