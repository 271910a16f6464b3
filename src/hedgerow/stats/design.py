"""Designs: a formula read against a schema into the rows of a regression, the same at every party.

    "malignant ~ mean_radius + C(site) + age:C(site) + log(area)"

The formula and the schema decide the columns; no data are looked at. Levels come from the schema, so a party that holds
one level of three has the same columns as the others. Coding is treatment coding: the first level (or the one that is
named) is the reference, and interactions keep full rank, as in R and patsy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.party import PRESENT, WEIGHTS
from hedgerow.core.question import elementwise_where, travels
from hedgerow.data import Schema, Table
from hedgerow.data.declared import series_values, uncoded
from hedgerow.data.frames import RawTable
from hedgerow.errors import FormulaInvalid, NotBinary, OutOfRange, SettingsInvalid

from .columns import heaviest, warn_of_fractions
from .expressions import Interval, evaluate, indicator, interval, is_arithmetic, is_binary, missing_in
from .factors import Factor, Levels, Number, Term
from .formula import read_formula, read_number
from .linear.losses import FamilyName, loss_of


@dataclass(frozen=True)
class Design:
    """The columns of a regression, hashable; made by `Design.of`.

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
        Column of record weights, which count as repeated records, or are of probability.
    probability : bool
        Whether weights make a sample stand for others, instead of repeating records.
    cluster : str or None
        Column of records that belong together, for robust errors.
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
    probability: bool = False
    cluster: str | None = None

    @classmethod
    def of(
        cls,
        formula: str,
        schema: Schema,
        *,
        offset: str | None = None,
        weights: str | None = None,
        classes: bool = False,
        probability: str | None = None,
        cluster: str | None = None,
    ) -> Design:
        """Read a formula against a schema; see `hedgerow.stats.formula.read_formula`.

        Parameters
        ----------
        offset : str, optional
            Column or expression; by default the schema's offset column.
        weights : str, optional
            Column; by default the parties' own record weights.
        classes : bool
            Whether the target is a category of any number of levels.
        probability : str, optional
            Column of probability weights, in the place of `weights`.
        cluster : str, optional
            Column of records that belong together; it may be an id, and is read for robust errors alone.

        Raises
        ------
        SettingsInvalid (HR-511)
            Two kinds of weights at once.
        """
        if probability and (weights or schema.weight):
            raise SettingsInvalid(
                f"weights {(weights or schema.weight)!r} repeat records, and {probability!r} are weights of probability.",
                remedy="Give one of the two; a schema's weight column loses its role by table.with_roles(...).",
            )
        weights = weights or probability
        offset = offset or schema.offset
        aside = [name for text in (offset, weights) if text for name in read_number(text, schema).reads(schema)]
        response, terms = read_formula(formula, schema, aside, classes=classes)
        spec = cls(
            formula, response, terms, schema, offset, weights, heaviest(schema, weights), (), probability is not None, cluster
        )
        valued = [*aside, *([cluster] if cluster else [])]
        read = schema.select(tuple(dict.fromkeys([*response.reads(schema), *spec.reads, *valued])))
        asked = {name for name in spec.asked_missing if name not in valued}
        return replace(spec, schema=Schema(tuple(replace(one, optional=one.name in asked) for one in read)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(name for term in self.terms for name in term.names)

    @property
    def asked_missing(self) -> tuple[str, ...]:
        """Columns of which the formula asks `missing(x)`."""
        factors = (self.response, *(factor for term in self.terms for factor in term.factors))
        texts = [one.text for one in factors if isinstance(one, Number) and one.text not in self.schema]
        return tuple(dict.fromkeys(name for text in texts for name in missing_in(text)))

    @property
    def indicated(self) -> tuple[str, ...]:
        """Columns of which nothing is read but whether a value is missing."""
        return tuple(column.name for column in self.schema if column.optional)

    @property
    def valued(self) -> tuple[str, ...]:
        """Columns whose values are read: records that lack one are left out."""
        return tuple(column.name for column in self.schema if not column.optional)

    @property
    def size(self) -> int:
        """How many columns."""
        return len(self.names)

    @property
    def has_constant(self) -> bool:
        """Whether the columns span the constant: by an intercept, or by all levels of one category."""
        return any(all(isinstance(f, Levels) and f.full for f in term.factors) for term in self.terms)

    @property
    def is_arithmetic(self) -> bool:
        """Whether nothing but arithmetic is in it, so that a row's bits follow from its record alone, for a reason."""
        factors = (self.response, *(factor for term in self.terms for factor in term.factors), *self._offset)
        return all(is_arithmetic(one.text, self.schema) for one in factors if isinstance(one, Number))

    @property
    def reads(self) -> tuple[str, ...]:
        """Columns of the right-hand side, offset included."""
        parts = [*(factor for term in self.terms for factor in term.factors), *self._offset]
        return tuple(dict.fromkeys(name for part in parts for name in part.reads(self.schema)))

    # ---- bounds, from declared ranges alone -------------------------------------------------------------------------
    @cached_property
    def limits(self) -> tuple[float, ...] | None:
        """Largest absolute value of each column as scaled; `None` where a range is not declared."""
        limits = [(term.limit(self.schema), len(term.names)) for term in self.terms]
        found = [limit for limit, n_columns in limits if limit is not None for _ in range(n_columns)]
        return None if len(found) < self.size else tuple(map(float, np.array(found) / self._scales))

    @property
    def row_limit(self) -> float | None:
        """Largest Euclidean length of a row; `None` where a range is not declared."""
        if self.limits is None:
            return None
        starts = np.cumsum([0, *(len(term.names) for term in self.terms)])
        blocks = [max(self.limits[a:b], default=0.0) for a, b in pairwise(starts)]
        return float(np.linalg.norm(blocks))

    @property
    def response_limit(self) -> float | None:
        """Largest absolute value of target minus offset; `None` where a range is not declared."""
        limits = [part.limit(self.schema) for part in (self.response, *self._offset)]
        return None if None in limits else float(sum(limit for limit in limits if limit is not None))

    @property
    def response_range(self) -> Interval | None:
        """Declared range of the target."""
        return self.factor_range(self.response)

    @property
    def offset_range(self) -> Interval | None:
        """Declared range of the offset, which is zero where there is none."""
        return interval(self.offset, self.schema) if self.offset else (0.0, 0.0)

    def factor_range(self, factor: Factor) -> Interval | None:
        """Declared range of a factor; of levels that of their indicators."""
        return (0.0, 1.0) if isinstance(factor, Levels) else interval(factor.text, self.schema)

    def to_unit(self) -> Design:
        """Return the design with each column divided by its limit, so that noise is in proportion to every column."""
        limits = replace(self, scales=()).limits
        return self if limits is None else replace(self, scales=tuple(limit or 1.0 for limit in limits))

    # ---- rows -------------------------------------------------------------------------------------------------------
    def matrix(self, columns: Mapping[str, Array], n: int) -> Array:
        """Return the right-hand side of `n` records, shape (n, size)."""
        columns = self.noting(columns)
        found, start = np.empty((n, self.size)), 0
        for term in self.terms:
            end = start + len(term.names)
            found[:, start:end] = term.columns(columns, n)
            start = end
        if self.scales:
            found /= self._scales
        return found

    def noting(self, columns: Mapping[str, Array]) -> Mapping[str, Array]:
        """Columns, and with them those of `missing(x)`, as parties have noted them or from admitted values."""
        absent = [name for name in self.indicated if indicator(name) not in columns and name in columns]
        noted = {indicator(name): self.schema[name].lacks(np.asarray(columns[name])).astype(np.float64) for name in absent}
        return {**columns, **noted} if noted else columns

    def offsets(self, columns: Mapping[str, Array], n: int) -> Array:
        """Return what is added to the linear predictor, shape (n,)."""
        return np.broadcast_to(evaluate(self.offset, columns) if self.offset else 0.0, n)

    def predictor(self, coef: Array, frame: Any) -> Array:
        """Return the linear predictor of new records, whose columns are checked; `coef` is (d,), or (K, d) for (n, K).

        `frame` is a table of any kind, as `hedgerow.data.Table.from_frame` takes them.

        Raises
        ------
        MissingColumn, NotFinite, OutOfRange (HR-403, 404, 405)
        """
        columns, n = self.admitted(frame)
        eta = self.matrix(columns, n) @ coef.T
        return eta + (self.offsets(columns, n) if coef.ndim == 1 else 0.0)

    def admitted(self, frame: Any, names: Sequence[str] | None = None) -> tuple[Mapping[str, Array], int]:
        """Return columns of new records, checked, and how many records there are; by default those of the right-hand side.

        Raises
        ------
        MissingColumn, NotFinite, OutOfRange (HR-403, 404, 405)
        """
        names = self.reads if names is None else names
        found = RawTable.of(frame.to_pandas() if isinstance(frame, Table) else frame, needed=names)
        given = {name: series_values(values) if _lacks(values) else uncoded(values) for name, values in found.columns.items()}
        return self.schema.select(names).admit(given), found.n

    @property
    def _offset(self) -> tuple[Number, ...]:
        return (Number(self.offset),) if self.offset else ()

    @property
    def _scales(self) -> Array:
        return np.array(self.scales or np.ones(self.size))


def _lacks(values: Any) -> bool:
    return bool(getattr(values, "hasnans", False))


def design_of(
    schema: Schema,
    formula: str,
    family: FamilyName,
    *,
    offset: str | None = None,
    weights: str | None = None,
    probability: str | None = None,
    cluster: str | None = None,
) -> Design:
    """Read a formula and check that its target fits the family; nobody is asked."""
    spec = Design.of(formula, schema, offset=offset, weights=weights, probability=probability, cluster=cluster)
    if not spec.probability:
        warn_of_fractions(schema, weights)
    law = loss_of(family)
    if not law.binary and isinstance(spec.response, Levels):
        raise FormulaInvalid(f"target {spec.response.column!r} is a category.", remedy="Use logistic_regression.")
    target = spec.response_range
    if target is not None and ((law.counts and target[0] < 0) or (law.positive and target[1] <= 0)):
        raise FormulaInvalid(
            f"target {spec.response.text!r} of a {family} regression is declared to reach from {target[0]:g} to {target[1]:g}.",
            remedy="Counts are zero or more, and a gamma target is above zero; use linear_regression otherwise.",
        )
    if law.binary and isinstance(spec.response, Number) and not is_binary(spec.response.text, spec.schema):
        raise NotBinary(
            f"target {spec.response.text!r} is not declared binary.",
            remedy="Use linear_regression; or compare it, e.g. I(visits > 0); or declare its kind binary in the schema.",
        )
    return spec


@travels
@elementwise_where(lambda spec: spec.is_arithmetic)
def design(columns: Mapping[str, Array], *, spec: Design) -> dict[str, Array]:
    """Prepare the rows of a regression at a party: `X` (n, size), `y` (n,), `offset` (n,), and record weights if any.

    Behind noise, expressions with functions or powers other than sqrt and abs are prepared record by record, which is slow for
    many records (`is_arithmetic`).

    Of records that were left out before (`hedgerow.data.complete_cases`) rows are zeros and targets 1, whatever the formula
    makes of the values that stand in.
    """
    columns = spec.noting(columns)
    y = spec.response.columns(columns)[:, 0]
    prepared = {"X": spec.matrix(columns, len(y)), "y": y, "offset": spec.offsets(columns, len(y))}
    if PRESENT in columns and not (there := np.asarray(columns[PRESENT])).all():
        prepared = {
            "X": np.where(there[:, None], prepared["X"], 0.0),
            "y": np.where(there, y, 1.0),
            "offset": np.where(there, prepared["offset"], 0.0),
        }
    if spec.cluster is not None:
        prepared["cluster"] = np.asarray(columns[spec.cluster])
    if spec.weights is None:
        return prepared
    w = np.asarray(columns[spec.weights], dtype=np.float64)
    if (w < 0).any():
        raise OutOfRange(f"weights {spec.weights!r} are below zero in {(w < 0).sum()} records.", asked=True)
    return prepared | {WEIGHTS: w}
