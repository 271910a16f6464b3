"""The dictionary of a consortium: columns with kinds, levels, units, ranges, missing codes and roles, and derived columns.

    [dictionary]
    name = "heart-failure"
    version = "1.2.0"
    na_values = ["", "NA", "-9"]            # of every column; a column may add its own
    least = 5                               # smallest count that any table shows
    [columns.age]
    kind = "integer"
    range = [18, 110]
    unit = "a"                              # UCUM
    [columns.sex]
    levels = { female = "0", male = "1" }   # word = code; the first is the reference
    [derived.elderly]
    as = "age >= 75"

The digest is of what the file means: order, blanks and comments do not count. Two parties with one digest declare the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from hedgerow.core.toml import read_toml, toml_key, toml_line
from hedgerow.errors import MissingColumn, MissingData, SchemaInvalid, StudyInvalid, suggestion

from ..column import Column
from ..declared import Declared
from ..schema import Schema
from . import computing
from .entries import DerivedColumn, DictionaryColumn, plain
from .parsing import parse, problems_of, refuse_all
from .units import warn_of_units


@dataclass(frozen=True)
class Dictionary:
    """What columns mean, agreed by everybody who holds records and everybody who asks.

    Parameters
    ----------
    name, version : str
        The version as semver has it.
    columns : mapping from name to DictionaryColumn
    derived : mapping from name to DerivedColumn
        Expressions of other columns of the same record.
    na_values : tuple of str
        What stands for a missing value in every column, an empty place by default. Whatever else is not of the declared
        kind is an error.
    least : int
        Counts in reports are multiples of it.
    decimal : {".", ","}
        The decimal sign of files that say none.

    Raises
    ------
    SchemaInvalid (HR-409), FormulaInvalid (HR-310)
        A column contradicts itself; all of them are told. An expression is not arithmetic on declared columns.
    """

    name: str
    version: str
    columns: Mapping[str, DictionaryColumn] = field(repr=False)
    derived: Mapping[str, DerivedColumn] = field(default_factory=dict, repr=False)
    na_values: tuple[str, ...] = ("",)
    least: int = 5
    decimal: str = "."
    description: str = ""

    def __post_init__(self) -> None:
        refuse_all([*problems_of(self.columns), *computing.problems_of(self)], f"dictionary {self.name!r}")

    # ---- files ------------------------------------------------------------------------------------------------------
    @classmethod
    def read(cls, path: str | Path, *, complete: bool = False) -> Self:
        """Return the dictionary in a file.

        Parameters
        ----------
        complete : bool
            Whether to refuse one in which something is still to be decided (`todo`).

        Raises
        ------
        MissingData (HR-402), SchemaInvalid (HR-409), FormulaInvalid (HR-310)
            No such file; all that is wrong in it.
        """
        path = Path(path)
        try:
            raw = path.read_bytes()
        except OSError as cause:
            raise MissingData(
                f"{path} cannot be read: {cause}.", remedy="Name a dictionary, such as dictionary.toml."
            ) from None
        found = cls.from_toml(raw, where=path.name)
        return found.completed() if complete else found

    @classmethod
    def from_toml(cls, text: str | bytes, *, where: str = "the dictionary") -> Self:
        """Return the dictionary that a text says; raises as `read`.

        Warns
        -----
        HedgerowWarning
            A unit is none of the usual ones of UCUM.
        """
        try:
            values = read_toml(text, where)
        except StudyInvalid as error:
            raise SchemaInvalid(error.reason, remedy=error.remedy) from None
        return cls.from_values(values, where=where)

    @classmethod
    def from_values(cls, values: Mapping[str, Any], *, where: str = "the dictionary") -> Self:
        """As `from_toml`, of the tables `dictionary`, `columns` and `derived` as mappings."""
        found = cls(**parse(values, where))
        warn_of_units({name: one.unit for name, one in found.entries.items()}, where)
        return found

    def to_values(self) -> dict[str, Any]:
        """Return the dictionary as mappings of plain values; what has its default is left out."""
        top = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("columns", "derived")}
        shown = {key: list(value) if isinstance(value, tuple) else value for key, value in top.items() if value != ""}
        if self.decimal == ".":
            shown.pop("decimal")
        parts: dict[str, Mapping[str, DictionaryColumn | DerivedColumn]]
        parts = {"columns": dict(self.columns), "derived": dict(self.derived)}
        return {"dictionary": shown} | {key: {n: plain(c) for n, c in part.items()} for key, part in parts.items() if part}

    def to_toml(self) -> str:
        """Return the dictionary as the text of a file."""
        values = self.to_values()
        sections = [("dictionary", values["dictionary"])]
        sections += [
            (f"{part}.{toml_key(n)}", one) for part in ("columns", "derived") for n, one in values.get(part, {}).items()
        ]
        written = ["\n".join([f"[{name}]", *(toml_line(key, value) for key, value in said.items())]) for name, said in sections]
        return "\n\n".join(written) + "\n"

    # ---- what it is -------------------------------------------------------------------------------------------------
    @property
    def label(self) -> str:
        """Name and version, such as heart-failure@1.2.0."""
        return f"{self.name}@{self.version}"

    @property
    def digest(self) -> str:
        """SHA-256 of what the dictionary means, in 64 hexadecimal digits."""
        values = self.to_values()
        values["dictionary"]["na_values"] = sorted(self.na_values)
        for name, one in values["columns"].items():
            if self.columns[name].levels:  # their order is a meaning, and JSON's sorting would lose it
                one["levels"] = list(zip(self.columns[name].levels, self.columns[name].codes, strict=True))
            if "na_values" in one:
                one["na_values"] = sorted(one["na_values"])
        for name in self.derived:
            values["derived"][name]["as"] = computing.spelt(self.derived[name].expression)
        text = json.dumps(_same_numbers(values), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def entries(self) -> dict[str, DictionaryColumn | DerivedColumn]:
        """All columns by name, derived ones at the end."""
        return {**self.columns, **self.derived}

    @property
    def todo(self) -> dict[str, str]:
        """What a person must still decide, by column."""
        return {name: one.todo for name, one in self.entries.items() if one.todo}

    def completed(self) -> Self:
        """Return the dictionary; SchemaInvalid (HR-409) while something is still to be decided."""
        if self.todo:
            raise SchemaInvalid(
                f"dictionary {self.label} is not finished: {len(self.todo)} columns have a todo.",
                remedy="\n".join(
                    [f"{name}: {said}" for name, said in self.todo.items()] + ["Decide, and take the line `todo` out."]
                ),
            )
        return self

    # ---- what follows from it ---------------------------------------------------------------------------------------
    def schema(self, names: Sequence[str] | None = None) -> Schema:
        """Return the declared columns, derived ones at the end.

        Parameters
        ----------
        names : sequence of str, optional
            The columns that are wanted; all but those with role `ignore` by default. Of a derived column, also those that it
            reads.

        Raises
        ------
        MissingColumn (HR-403), SchemaInvalid (HR-409)
            No such column; something is still to be decided.
        """
        self.completed()
        wanted = self.needed(names)
        plain_ones = [self.column(name) for name in self.columns if name in wanted]
        return computing.with_derived(Schema(tuple(plain_ones)), self, wanted)

    def needed(self, names: Sequence[str] | None = None) -> frozenset[str]:
        """Return these columns and those that they are computed from; raises MissingColumn (HR-403)."""
        known = [*(name for name, one in self.columns.items() if one.kept), *self.derived]
        found, rest = set(), [*known] if names is None else [*names]
        while rest:
            name = rest.pop()
            if name not in known:
                what = "is to be ignored" if name in self.columns else f"is not in dictionary {self.label}"
                raise MissingColumn(f"column {name!r} {what}.", remedy=suggestion(name, known))
            if name not in found:
                found.add(name)
                rest += computing.sources(self.derived[name].expression) if name in self.derived else ()
        return frozenset(found)

    def declared(self, name: str) -> Declared:
        """Return what is declared of a column, for who reads a file; raises MissingColumn (HR-403)."""
        if name not in self.columns:
            remedy = suggestion(name, self.columns)
            raise MissingColumn(f"dictionary {self.label} has no column {name!r} that is read.", remedy=remedy)
        return self.columns[name].declared()

    def column(self, name: str) -> Column:
        """Return a column as parties and server agree on it; raises MissingColumn (HR-403)."""
        import numpy as np

        found = self.declared(name).column(np.zeros(0))
        assert isinstance(found, Column)  # nothing is left to be told by values
        return found


def _same_numbers(value: Any) -> Any:
    """Values in which 18 and 18.0 are one."""
    if isinstance(value, Mapping):
        return {key: _same_numbers(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_same_numbers(one) for one in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
