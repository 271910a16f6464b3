"""How one party spells a dictionary's columns: its own names, codes, units and marks for missing values.

    dictionary = "heart-failure@1.2.0"
    path = "local.csv"
    separator = ";"
    decimal = ","
    [columns]
    age = "ALTER"                                                               # its own name
    sex = { from = "GESCHL", codes = { w = "female", m = "male" } }             # code in the file = level
    serum_creatinine = { from = "KREA_UMOL", convert = "x / 88.42" }            # an expression of x alone
    ejection_fraction = { from = "EF", na_values = ["unbekannt"] }
    smoking = false                                                             # it has none

A column that is not named is called as in the dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.core.toml import read_toml
from hedgerow.errors import FormulaInvalid, MissingData, SchemaInvalid, StudyInvalid, suggestion

from ..column import spelling
from ..declared import words_of
from . import computing
from .parsing import refuse_all

if TYPE_CHECKING:
    from .dictionary import Dictionary

KEYS = ("from", "codes", "convert", "na_values")
"""What is said of a column."""
TOP = ("dictionary", "path", "separator", "decimal", "na_values", "columns")


@dataclass(frozen=True)
class LocalColumn:
    """How one party spells a column.

    Attributes
    ----------
    origin : str
        Its name there; that of the dictionary where it is empty.
    codes : mapping of str to str
        Level of each code; those of the dictionary where it is empty.
    convert : str
        An expression of x, such as `x / 88.42`, that makes the dictionary's unit of its numbers.
    na_values : tuple of str
        What else stands for a missing value there.
    """

    origin: str = ""
    codes: Mapping[str, str] = field(default_factory=dict)
    convert: str = ""
    na_values: tuple[str, ...] = ()


@dataclass(frozen=True)
class LocalColumns:
    """How one party spells the columns of a dictionary, and its file its values.

    Attributes
    ----------
    columns : mapping from name to LocalColumn, or None where the party has no such column
    dictionary : str
        Name and version, such as heart-failure@1.2.0. A file's name, or nothing, fits any.
    path : str
        Its file; where it is empty somebody else names it.
    separator, decimal : str
        Those of the file; a comma or tab, and the dictionary's, where they are empty.
    na_values : tuple of str
        What else stands for a missing value in each of its columns.
    """

    columns: Mapping[str, LocalColumn | None] = field(default_factory=dict)
    dictionary: str = ""
    path: str = ""
    separator: str = ""
    decimal: str = ""
    na_values: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: str | Path) -> LocalColumns:
        """Return what a file says: of its own, or in the section `[data]` of a station's.

        Raises
        ------
        MissingData (HR-402), SchemaInvalid (HR-409)
            No such file; all that is wrong in it.
        """
        path = Path(path)
        try:
            values = read_toml(path.read_bytes(), path.name)
        except OSError as cause:
            raise MissingData(f"{path} cannot be read: {cause}.", remedy="Name the file of a station's columns.") from None
        except StudyInvalid as error:
            raise SchemaInvalid(error.reason, remedy=error.remedy) from None
        section = values.get("data", values)
        if section is not values and isinstance(section, Mapping):  # a station says more there, which is not ours to read
            section = {key: value for key, value in section.items() if key in TOP}
        return cls.of({key: value for key, value in section.items() if key != "source"}, where=path.name)

    @classmethod
    def of(cls, values: Mapping[str, Any], *, where: str = "the local columns") -> LocalColumns:
        """As `read`, of a mapping."""
        wrong = [f"{key}: unknown. {suggestion(key, TOP)}" for key in values if key not in TOP]
        texts = {key: values.get(key, "") for key in ("dictionary", "path", "separator", "decimal")}
        wrong += [f"{key}: give a text in quotes." for key, text in texts.items() if not isinstance(text, str)]
        if texts["decimal"] not in ("", ".", ","):
            wrong.append('decimal: give "." or ",".')
        given = values.get("columns", {})
        if not isinstance(given, Mapping):
            wrong.append("columns: it is a table, [columns].")
            given = {}
        columns = {name: _local(name, one, wrong) for name, one in given.items()}
        blank = _words("na_values", values.get("na_values", ()), wrong)
        refuse_all(wrong, where)
        return cls(columns, **texts, na_values=blank)

    def fitting(self, dictionary: Dictionary) -> LocalColumns:
        """Return them; SchemaInvalid (HR-409) where they are of another dictionary, or do not fit it."""
        wrong = []
        if "@" in self.dictionary and self.dictionary != dictionary.label:
            wrong.append(f"dictionary: they are of {self.dictionary}, and this is {dictionary.label}.")
        for name, one in self.columns.items():
            if name not in dictionary.columns:
                what = "is derived, and computed alike everywhere" if name in dictionary.derived else "is not in the dictionary"
                wrong.append(f"columns.{name}: it {what}. {suggestion(name, dictionary.columns)}")
                continue
            column = dictionary.columns[name]
            strange = [word for word in (one.codes.values() if one else ()) if word not in column.levels]
            if strange:
                wrong.append(f"columns.{name}: {strange[0]!r} is no level. {suggestion(strange[0], column.levels)}")
            if one and one.convert and column.kind not in ("number", "integer"):
                wrong.append(f"columns.{name}: convert is for numbers, and it is a {column.kind or column.role}. Give codes.")
        refuse_all(wrong, f"the columns of {self.path or 'this party'}")
        return self

    def of_column(self, name: str) -> LocalColumn | None:
        """How a column is spelt; None where there is none."""
        return self.columns.get(name, LocalColumn())

    def origins(self, names: Iterable[str]) -> frozenset[str]:
        """What columns are called here, those left out that are not here."""
        return frozenset(self.origin(name) for name in names if self.of_column(name) is not None)

    def origin(self, name: str) -> str:
        """What a column is called here."""
        one = self.of_column(name)
        return (one.origin if one else "") or name


def _local(name: str, given: Any, wrong: list[str]) -> LocalColumn | None:
    """One column: its name here, false, or a table."""
    where = f"columns.{name}"
    if given is False:
        return None
    if isinstance(given, str):
        return LocalColumn(given)
    if not isinstance(given, Mapping):
        wrong.append(f'{where}: give its name here, false, or a table such as {{ from = "ALTER" }}.')
        return None
    wrong += [f"{where}: {key} is unknown. {suggestion(key, KEYS)}" for key in given if key not in KEYS]
    origin, convert, codes = given.get("from", ""), given.get("convert", ""), given.get("codes", {})
    if not isinstance(origin, str) or not isinstance(convert, str):
        wrong.append(f"{where}: give texts in quotes for from and convert.")
        return None
    if not isinstance(codes, Mapping) or not all(isinstance(word, str) for word in codes.values()):
        wrong.append(f'{where}: give code = "level", such as codes = {{ w = "female", m = "male" }}.')
        codes = {}
    if convert:
        try:
            read = computing.sources(convert)
            if read != ("x",):
                wrong.append(f"{where}: {convert!r} reads {', '.join(read) or 'no column'}; it reads x alone.")
        except FormulaInvalid as error:
            wrong.append(f"{where}: {error.reason} {error.remedy}")
    blank = _words(f"{where}: na_values", given.get("na_values", ()), wrong)
    return LocalColumn(origin, {spelling(code): word for code, word in codes.items()}, convert, blank)


def _words(where: str, given: Any, wrong: list[str]) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not all(isinstance(word, str | int | float) for word in given):
        wrong.append(f'{where}: give a list of words or numbers, such as ["?", -9].')
        return ()
    return words_of(given)
