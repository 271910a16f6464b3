"""Designs: a formula read against a schema into the rows of a regression, the same at every party.

    "malignant ~ mean_radius + C(site) + age:C(site) + log(area)"

The formula and the schema decide the columns; no data are looked at. Levels come from the schema, so a party that holds
one level of three has the same columns as the others. Coding is treatment coding: the first level (or the one that is
named) is the reference, and interactions keep full rank, as in R and patsy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array

from .columns import heaviest
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


Factor = Number | Levels


@dataclass(frozen=True)
class Term:
    """A product of factors; without factors the intercept. Of its columns, at most one differs from zero in a record."""

    factors: tuple[Factor, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        if not self.factors:
            return (INTERCEPT,)
        return reduce(lambda left, right: tuple(f"{a}:{b}" for a in left for b in right), [f.names for f in self.factors])

    def limit(self, schema: Schema) -> float | None:
        limits = [factor.limit(schema) for factor in self.factors]
        return None if None in limits else float(np.prod(limits))  # type: ignore[arg-type]

    def columns(self, columns: Mapping[str, Array], n: int) -> Array:
        parts = [factor.columns(columns) for factor in self.factors]
        return reduce(lambda left, right: (left[:, :, None] * right[:, None, :]).reshape(n, -1), parts, np.ones((n, 1)))


@dataclass(frozen=True)
class Design:
    """The columns of a regression; hashable, made by `hedgerow.stats.formula.read_formula`.

    Attributes
    ----------
    formula : str
    response : Number or Levels
        The target; of a two-level category the indicator of its second level.
    terms : tuple of Term
    schema : Schema
        The columns that the design reads.
    offset : str or None
        Column or expression that is added to the linear predictor.
    weights : str or None
        Column of record weights, which count as repeated records.
    weight_limit : float or None
        Largest weight by declared range.
    scales : tuple of float
        What each column is divided by; ones where empty.
    """

    formula: str
    response: Factor
    terms: tuple[Term, ...]
    schema: Schema
    offset: str | None = None
    weights: str | None = None
    weight_limit: float | None = 1.0
    scales: tuple[float, ...] = ()

    @classmethod
    def of(cls, formula: str, schema: Schema, *, offset: str | None = None, weights: str | None = None) -> Design:
        """Read a formula; see `read_formula`."""
        from .formula import read_formula  # which builds designs

        response, terms = read_formula(formula, schema)
        parts: list[Any] = [response, *(factor for term in terms for factor in term.factors)]
        parts += [Number(offset)] if offset else []
        reads = [name for part in parts for name in part.reads(schema)] + ([weights] if weights else [])
        needed = schema.select(tuple(dict.fromkeys(reads)))
        return cls(formula, response, terms, needed, offset, weights, heaviest(schema, weights))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(name for term in self.terms for name in term.names)

    @property
    def size(self) -> int:
        """How many columns."""
        return len(self.names)

    @property
    def has_constant(self) -> bool:
        """Whether the columns span the constant: by an intercept, or by all levels of one category."""
        return any(all(isinstance(f, Levels) and f.full for f in term.factors) for term in self.terms)

    @property
    def reads(self) -> tuple[str, ...]:
        """Columns of the right-hand side, offset included."""
        parts: list[Any] = [factor for term in self.terms for factor in term.factors]
        parts += [Number(self.offset)] if self.offset else []
        return tuple(dict.fromkeys(name for part in parts for name in part.reads(self.schema)))

    # ---- bounds, from declared ranges alone -------------------------------------------------------------------------
    @cached_property
    def limits(self) -> tuple[float, ...] | None:
        """Largest absolute value of each column as scaled; `None` where a range is not declared."""
        found = [limit for term in self.terms for limit in [term.limit(self.schema)] * len(term.names)]
        if None in found:
            return None
        return tuple(float(limit) / scale for limit, scale in zip(found, self._scales, strict=True))  # type: ignore[arg-type]

    def bound(self) -> float | None:
        """Largest Euclidean length of a row; `None` where a range is not declared."""
        if self.limits is None:
            return None
        starts = np.cumsum([0, *(len(term.names) for term in self.terms)])
        blocks = [max(self.limits[a:b], default=0.0) for a, b in zip(starts[:-1], starts[1:], strict=True)]
        return float(np.linalg.norm(blocks))

    @property
    def response_limit(self) -> float | None:
        """Largest absolute value of target minus offset; `None` where a range is not declared."""
        limits = [part.limit(self.schema) for part in [self.response, *([Number(self.offset)] if self.offset else [])]]
        return None if None in limits else float(sum(limits))  # type: ignore[arg-type]

    def to_unit(self) -> Design:
        """Return the design with each column divided by its limit, so that noise is in proportion to every column."""
        limits = replace(self, scales=()).limits
        return self if limits is None else replace(self, scales=tuple(limit or 1.0 for limit in limits))

    # ---- rows -------------------------------------------------------------------------------------------------------
    def matrix(self, columns: Mapping[str, Array]) -> Array:
        """Return the rows of the right-hand side, shape (n, size)."""
        n = len(next(iter(columns.values())))
        return np.concatenate([term.columns(columns, n) for term in self.terms], axis=1) / self._scales

    def offsets(self, columns: Mapping[str, Array]) -> Array:
        """Return what is added to the linear predictor, shape (n,)."""
        n = len(next(iter(columns.values())))
        return np.broadcast_to(evaluate(self.offset, columns) if self.offset else 0.0, n)

    @property
    def _scales(self) -> Array:
        return np.array(self.scales or np.ones(self.size))


def design(columns: Mapping[str, Array], *, spec: Design) -> dict[str, Array]:
    """Prepare the rows of a regression at a party: `X` (n, size), `y` (n,), `offset` (n,), and `w` where there are weights.

    Examples
    --------
    >>> federation.prepare(design, spec=Design.of("malignant ~ mean_radius", federation.schema))
    """
    prepared = {
        "X": spec.matrix(columns),
        "y": spec.response.columns(columns)[:, 0],
        "offset": spec.offsets(columns),
    }
    return prepared | ({"w": np.asarray(columns[spec.weights], dtype=np.float64)} if spec.weights else {})
