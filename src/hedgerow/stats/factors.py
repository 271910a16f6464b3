"""Factors and terms: what the columns of a design are made of.

A term is a product of factors, a factor a number of the record or the indicators of a category's levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.arrays import Array

from .expressions import evaluate, interval, variables

if TYPE_CHECKING:
    from hedgerow.data import Schema

INTERCEPT = "Intercept"


@dataclass(frozen=True)
class Number:
    """A factor that is one number: a column or an expression."""

    text: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.text,)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return (self.text,) if self.text in schema else variables(self.text)

    def limit(self, schema: Schema) -> float | None:
        """Largest absolute value by declared ranges."""
        found = interval(self.text, schema)
        return None if found is None else max(abs(found[0]), abs(found[1]))

    def columns(self, columns: Mapping[str, Array]) -> Array:
        return evaluate(self.text, columns)[:, None]


@dataclass(frozen=True)
class Levels:
    """A factor of indicators: one column for each code that is kept, at most one of which is 1."""

    text: str
    column: str
    codes: tuple[int, ...]
    labels: tuple[str, ...]
    full: bool

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.text}[{'' if self.full else 'T.'}{label}]" for label in self.labels)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return (self.column,)

    def limit(self, schema: Schema) -> float:
        return 1.0

    def columns(self, columns: Mapping[str, Array]) -> Array:
        return (columns[self.column][:, None] == np.array(self.codes)).astype(np.float64)

    def without_reference(self) -> Levels:
        """Return the factor without its first level, which other columns span."""
        return replace(self, codes=self.codes[1:], labels=self.labels[1:], full=False)


Factor = Number | Levels


@dataclass(frozen=True)
class Term:
    """A product of factors; without factors the intercept. Of its columns, at most one differs from zero in a record."""

    factors: tuple[Factor, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        if not self.factors:
            return (INTERCEPT,)
        names = [factor.names for factor in self.factors]
        return reduce(lambda left, right: tuple(f"{a}:{b}" for a in left for b in right), names)

    def limit(self, schema: Schema) -> float | None:
        limits = [factor.limit(schema) for factor in self.factors]
        return None if None in limits else float(np.prod([limit for limit in limits if limit is not None]))

    def columns(self, columns: Mapping[str, Array], n: int) -> Array:
        if not self.factors:
            return np.ones((n, 1))
        parts = [factor.columns(columns) for factor in self.factors]
        return reduce(lambda left, right: (left[:, :, None] * right[:, None, :]).reshape(n, -1), parts)
