"""One column of a dictionary, as its table `[columns.NAME]` or `[derived.NAME]` says it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from hedgerow.errors import SchemaInvalid

from ..column import Kind, Role
from ..declared import MOST_CODES, Declared, Outside
from ..inference import MOST_LEVELS

NAMELESS: tuple[Role, ...] = ("id", "cluster")
"""Roles of columns that need no kind: their words become numbers that tell records apart and mean nothing elsewhere."""


@dataclass(frozen=True)
class DictionaryColumn:
    """What a dictionary says of a column.

    Attributes
    ----------
    kind : {"number", "integer", "binary", "category"}, optional
        An `id`, a `cluster` and what is to be ignored need none.
    range : (low, high), optional
    levels, codes : tuple of str
        The words, and how files spell them; the first level is the reference, and of a binary column 0.
    outside : {"refuse", "missing", "clip"}
        What becomes of values outside the range.
    required : bool
        Whether a missing value is refused. Otherwise each model leaves out the records that lack a value that it reads.
    many : bool
        Whether more than 50 levels are meant.
    digits : int, optional
        Digits after the point, in tables.
    concept : str
        What it is elsewhere, such as OMOP:3016723.
    todo : str
        What a person must still decide; no study uses the dictionary before.
    """

    name: str
    kind: Kind | None = None
    role: Role = "feature"
    range: tuple[float, float] | None = None
    unit: str = ""
    label: str = ""
    levels: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    na_values: tuple[str, ...] = ()
    outside: Outside = "refuse"
    digits: int | None = None
    required: bool = False
    many: bool = False
    concept: str = ""
    description: str = ""
    todo: str = ""

    @property
    def coded(self) -> bool:
        """Whether its words become numbers without a meaning."""
        return self.kind is None and self.role in NAMELESS

    @property
    def kept(self) -> bool:
        """Whether a table has it."""
        return self.role != "ignore"

    def declared(self) -> Declared:
        """Return what is declared of the column, for who reads a file.

        Raises
        ------
        SchemaInvalid (HR-409)
            It contradicts itself, or has no kind.
        """
        if self.kind is None and not self.coded:
            raise SchemaInvalid(f"column {self.name!r} has no kind.", remedy="Give number, integer, binary or category.")
        if self.kind == "category" and not self.levels:
            raise SchemaInvalid(f"category {self.name!r} has no levels.", remedy='Give levels = ["a", "b"], or word = code.')
        if len(self.levels) > (most := MOST_CODES if self.many else MOST_LEVELS):
            remedy = "Say many = true if all of them are meant." if not self.many else "Leave the column out."
            raise SchemaInvalid(f"column {self.name!r} has {len(self.levels)} levels; {most} are the most.", remedy=remedy)
        low, high = self.range or (None, None)
        found = Declared(
            self.name,
            self.kind,
            self.role,
            self.unit,
            low,
            high,
            self.levels,
            description=self.description or self.label,
            optional=not self.required,
            codes=dict(zip(self.codes, self.levels, strict=True)) if self.codes != self.levels else {},
            na_values=self.na_values,
            many=self.many,
            outside=None if self.outside == "refuse" else self.outside,
            coded=self.coded,
        )
        found.column(np.zeros(0))  # contradictions are told before there are values
        return found


@dataclass(frozen=True)
class DerivedColumn:
    """What a dictionary says of a column that is computed from others, record by record.

    Attributes
    ----------
    expression : str
        As in formulas, such as `log(serum_creatinine)`.
    range : (low, high), optional
        By interval arithmetic from the ranges of the columns that it reads, where none is declared.

    The others are those of `DictionaryColumn`.
    """

    name: str
    expression: str
    range: tuple[float, float] | None = None
    unit: str = ""
    label: str = ""
    outside: Outside = "refuse"
    digits: int | None = None
    concept: str = ""
    description: str = ""
    todo: str = ""


ORDER = ("kind", "role", "levels", "range", "outside", "na_values", "required", "many", "unit", "digits", "label", "concept")
"""The order in which a file says things; what is not here comes last."""


def plain(one: DictionaryColumn | DerivedColumn) -> dict[str, Any]:
    """Return what the file says of a column, in the words of the file; what has its default is left out."""
    values = {each.name: getattr(one, each.name) for each in fields(one) if getattr(one, each.name) != each.default}
    values.pop("name")
    if isinstance(one, DerivedColumn):
        return {"as": values.pop("expression")} | values
    if one.levels:
        values.pop("codes")
        values["levels"] = dict(zip(one.levels, one.codes, strict=True)) if one.codes != one.levels else list(one.levels)
    keys = [*(key for key in ORDER if key in values), *(key for key in values if key not in ORDER)]
    return {key: list(values[key]) if isinstance(values[key], tuple) else values[key] for key in keys}
