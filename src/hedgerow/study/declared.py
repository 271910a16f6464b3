"""Columns as files declare them: `[data.columns.NAME]` and `[data.derived.NAME]`, alike in studies and at stations.

    [data.columns.age]
    kind = "integer"
    range = [18, 110]
    unit = "a"
    [data.columns.sex]
    levels = { female = "0", male = "1" }       # word = code in the file
    [data.columns.ejection_fraction]
    range = [5, 90]
    na_values = ["999"]
    [data.derived.log_creatinine]
    as = "log(serum_creatinine)"

A study that is submitted is held against what stations declare: what it says of a column must be what they say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer

from hedgerow.data.column import Kind, Role, spelling
from hedgerow.data.declared import KEYS, Declared, Outside
from hedgerow.errors import DataError, StudyInvalid
from hedgerow.stats.derived import Derivation

from .section import Section

if TYPE_CHECKING:
    from hedgerow.data import Column, Schema
    from hedgerow.data.dictionary.dictionary import Dictionary


class DeclaredColumn(Section):
    """What a file declares of one column."""

    kind: Kind | None = Field(None, description="number, integer, binary or category; category where levels are given")
    role: Role = Field("feature", description="what a program may use it for; a study's target and features come after")
    low: float | None = Field(None, description="smallest value, declared")
    high: float | None = Field(None, description="largest value, declared")
    range: tuple[float, float] | None = Field(None, description="low and high together")
    levels: tuple[str, ...] | dict[str, str] = Field(
        (), description="the words of a category, or word = code in the file; others are refused"
    )
    na_values: tuple[str, ...] = Field((), description="what stands for a missing value, beside data.na_values")
    unit: str = Field("", description="physical unit")
    clip: bool = Field(False, description="clip values to the range instead of refusing them")
    outside: Outside | None = Field(None, description="refuse, missing or clip: what becomes of values outside the range")
    description: str = Field("", description="one sentence for people")

    @field_validator("levels", mode="before")
    @classmethod
    def words_or_codes(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and all(isinstance(code, str | int | float) for code in given.values()):
            return {str(word): spelling(code) for word, code in given.items()}
        if isinstance(given, list | tuple) and all(isinstance(word, str | int | float) for word in given):
            return tuple(map(spelling, given))
        raise ValueError('give a list of words, or a table of word = code, such as { female = "0", male = "1" }')

    @field_validator("na_values", mode="before")
    @classmethod
    def numbers_too(cls, given: Any) -> Any:
        return words_from(given)

    def declared(self, name: str) -> Declared:
        """What it says, for who reads a file.

        Raises
        ------
        SchemaInvalid (HR-409)
            It contradicts itself.
        """
        values = {key: getattr(self, key) for key in KEYS if hasattr(self, key)}
        if values["range"] is not None and self.low is None and self.high is None:
            values.pop("low"), values.pop("high")
        return Declared.of(name, values)


class StudyColumn(DeclaredColumn):
    """What a study declares of one column. In a submitted study, stations must declare the same."""

    many: bool = Field(False, description="a category whose levels are read off the file, more than 50 of them included")


class DerivedSection(Section):
    """A column that is computed from others, record by record."""

    as_: str = Field(alias="as", description="an expression, as in formulas: e.g. log(creatinine), age >= 75")
    range: tuple[float, float] | None = Field(None, description="declared range, where the columns' own ranges give none")
    unit: str = Field("", description="physical unit")
    clip: bool = Field(False, description="clip values to the range instead of refusing them")
    description: str = Field("", description="one sentence for people")

    @model_serializer(mode="wrap")
    def as_in_the_file(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {{"as_": "as"}.get(key, key): value for key, value in write(self).items()}

    def derivation(self) -> Derivation:
        """What it says, for who computes it."""
        return Derivation(self.as_, self.range, self.unit, self.clip, self.description)


def words_from(given: Any) -> Any:
    """Words and numbers that stand for missing values, as words."""
    if isinstance(given, list | tuple) and all(isinstance(word, str | int | float) for word in given):
        return tuple(map(spelling, given))
    raise ValueError('give a list of words or numbers, such as ["?", -9]')


def problems_of(columns: Mapping[str, DeclaredColumn]) -> list[str]:
    """What contradicts itself in declarations, a sentence for each column."""
    found = []
    for name, column in columns.items():
        try:
            column.declared(name)
        except DataError as error:
            found.append(f"columns.{name}: {error.reason.rstrip('.')}. {error.remedy}".strip().rstrip("."))
    return found


def derivations_of(dictionary: Dictionary) -> dict[str, Derivation]:
    """How the derived columns of a dictionary are computed, each after those that it reads."""
    return {
        column.name: Derivation(one.expression, one.range, one.unit, one.outside == "clip", one.description or one.label)
        for column in dictionary.schema()
        if column.name in dictionary.derived
        for one in [dictionary.derived[column.name]]
    }


def agree(columns: Mapping[str, Declared], derived: Mapping[str, Derivation], schema: Schema, whose: str) -> None:
    """Refuse a study that declares a column otherwise than those who hold the records.

    Parameters
    ----------
    whose : str
        Who they are, as the subject of a sentence.

    Raises
    ------
    StudyInvalid (HR-101)
        Says every difference. Missing codes and codes of levels are each file's own, and are not compared.
    """
    found = []
    for name in (name for name in columns if name in schema):
        found += _differences(columns[name], schema[name], whose)
    for name in (name for name in derived if name in schema):
        formula = derived[name].formula
        if schema[name].formula != formula:
            held = f"computed as {schema[name].formula}" if schema[name].formula else "not computed"
            found.append(f"data.derived.{name} is {formula}, and at {whose} it is {held}.")
    if found:
        raise StudyInvalid(
            f"the study declares columns otherwise than {whose} in {len(found)} places:",
            remedy="\n".join([*found, "Change the study, or have the declarations changed there: bounds follow from them."]),
        )


def _differences(one: Declared, held: Column, whose: str) -> list[str]:
    pairs = [
        ("kind", one.told_kind, held.kind),
        ("low", one.low, held.low),
        ("high", one.high, held.high),
        ("levels", list(one.levels) or None if one.told_kind != "binary" else None, list(held.levels)),
        ("unit", one.unit or None, held.unit),
    ]
    return [
        f"data.columns.{one.name}: {key} is {mine!r}, and {whose} declare {theirs!r}."
        for key, mine, theirs in pairs
        if mine is not None and mine != theirs
    ]
