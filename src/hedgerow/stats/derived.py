"""Derived columns: expressions of other columns of the same record, computed where the records are.

    column    x = as(a, b, ...)              arithmetic on one record; see `hedgerow.stats.expressions`
    range     by interval arithmetic from the declared ranges of a, b, ...; or declared, and then values outside are refused
    missing   where one of a, b, ... is: also of a comparison, which numpy would call false; but of `missing(a)` never

A derived column says its expression in its declaration, so that parties that compute it otherwise do not agree.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.data import Column, Schema, Table
from hedgerow.data.column import lacking
from hedgerow.data.faults import Fault, faults_of, refuse
from hedgerow.errors import MissingColumn, NotFinite, SchemaInvalid, suggestion

from . import expressions


@dataclass(frozen=True)
class Derivation:
    """How a column is computed.

    Attributes
    ----------
    expression : str
        Such as `log(creatinine)` or `age >= 75`.
    span : (low, high), optional
        Declared range; by interval arithmetic otherwise.
    """

    expression: str
    span: tuple[float, float] | None = None
    unit: str = ""
    clip: bool = False
    description: str = ""

    @property
    def formula(self) -> str:
        """The expression, spelt in one way; raises FormulaInvalid (HR-310)."""
        return ast.unparse(expressions.read(self.expression)).replace("np.", "")  # the only name with a dot

    @property
    def valued(self) -> tuple[str, ...]:
        """Those of which it reads more than whether a value is missing."""
        return tuple(name for name in self.sources if name not in expressions.indicated(self.expression))

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns that it reads; raises FormulaInvalid (HR-310)."""
        return expressions.variables(self.expression)


def derive(table: Table, **derived: str | Derivation) -> Table:
    """Return the table with derived columns, such as `derive(table, log_creatinine="log(creatinine)")`.

    Parameters
    ----------
    table : Table
    **derived : str or Derivation
        By name, in an order in which each reads columns that are there already.

    Raises
    ------
    FormulaInvalid (HR-310), MissingColumn (HR-403), SchemaInvalid (HR-409)
        What an expression says is not arithmetic on numbers of one record; a column is not there, or there already.
    NotFinite, OutOfRange (HR-404, 405)
        An expression is undefined for a record that has all its values; a value lies outside the declared range.
    """
    given = {name: one if isinstance(one, Derivation) else Derivation(one) for name, one in derived.items()}
    return derive_columns(table, given)


def derive_columns(table: Table, derived: Mapping[str, Derivation], *, shown: bool = True) -> Table:
    """As `derive`; `shown` says whether errors may show values."""
    if not derived:
        return table
    schema = derive_schema(table.schema, derived)
    columns, faults = dict(table.columns), []
    for name, one in derived.items():
        values, wrong = _computed(one, schema[name], columns)
        faults += wrong
        columns[name] = values
    refuse(faults, table.name, shown=shown, advice="Derived columns are declared in [data.derived.NAME].")
    columns = {name: columns[name] for name in schema.names}
    test = derive_columns(table.test, derived, shown=shown) if table.test is not None else None
    return replace(table, columns=columns, schema=schema, test=test)


def derive_schema(schema: Schema, derived: Mapping[str, Derivation]) -> Schema:
    """Return the schema with derived columns, without touching data; raises as `derive` of declarations."""
    for name, one in derived.items():
        if name in schema:
            raise SchemaInvalid(f"the derived column {name!r} is a column already.", remedy="Give it a name of its own.")
        schema = Schema((*schema.columns, _declared(name, one, schema)))
    return schema


def _declared(name: str, one: Derivation, schema: Schema) -> Column:
    for source in one.sources:
        if source not in schema:
            remedy = f"{suggestion(source, schema.names)} Columns that are derived themselves come before."
            raise MissingColumn(f"the derived column {name!r} reads {source!r}, which is not in the table.", remedy=remedy)
        if schema[source].kind == "category" or schema[source].shape:
            raise SchemaInvalid(f"the derived column {name!r} reads {source!r}, which is no number.", remedy="Read numbers.")
    known = {"unit": one.unit, "description": one.description, "formula": one.formula}
    optional = any(schema[source].optional for source in one.valued)
    if expressions.is_binary(one.expression, schema):
        return Column(name, "binary", optional=optional, **known)
    low, high = one.span or expressions.interval(one.expression, schema) or (None, None)
    return Column(name, "number", low=low, high=high, clip=one.clip, optional=optional, **known)


def _computed(one: Derivation, column: Column, columns: Mapping[str, np.ndarray]) -> tuple[np.ndarray, list[Fault]]:
    nowhere = np.zeros(len(columns[one.sources[0]]), bool)
    absent = np.logical_or.reduce([nowhere, *(lacking(columns[source]) for source in one.valued)])
    values = np.broadcast_to(expressions.evaluate(one.expression, columns), absent.shape)
    undefined = np.flatnonzero(~np.isfinite(values) & ~absent)
    values = np.where(absent, np.nan, values)
    if len(undefined):
        what = f"undefined: {one.formula} has no finite value there"
        remedy = "Mend the records, or write an expression that is defined for all of them, such as log(1 + x)."
        return values, [Fault(column.name, len(undefined), len(values), what, int(undefined[0]), (), NotFinite, remedy)]
    if one.span is None:  # what rounds over the interval's end lies in it
        return column.settle(values, np.dtype(np.float64)) if column.kind == "number" else values, []
    inside = np.clip(values, column.low, column.high) if column.clip else values
    return inside, faults_of(column, values, missing=False)
