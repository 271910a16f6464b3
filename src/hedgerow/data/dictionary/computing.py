"""Derived columns of a dictionary: checked, declared and computed by the room of statistics, which reads expressions.

That room lies above this one, so it is imported by its name, when a dictionary has derived columns.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hedgerow.errors import DataError, FormulaInvalid

from ..schema import Schema

if TYPE_CHECKING:
    from ..table import Table
    from .dictionary import Dictionary

EXPRESSIONS = "hedgerow.stats.expressions"
DERIVED = "hedgerow.stats.derived"


def sources(expression: str) -> tuple[str, ...]:
    """Return the columns that an expression reads; raises FormulaInvalid (HR-310)."""
    found: tuple[str, ...] = import_module(EXPRESSIONS).variables(expression)
    return found


def spelt(expression: str) -> str:
    """Return an expression, spelt in one way."""
    found: str = import_module(DERIVED).Derivation(expression).formula
    return found


def convert(expression: str, numbers: Any) -> Any:
    """Return what an expression of x makes of numbers, NaN or infinite where it is undefined."""
    return import_module(EXPRESSIONS).evaluate(expression, {"x": numbers})


def in_order(dictionary: Dictionary, wanted: Collection[str] | None = None) -> list[str]:
    """Return derived columns in an order in which each reads columns that are there, whatever their order in the file.

    Those that read one another in a circle come last.
    """
    rest = [name for name in dictionary.derived if wanted is None or name in wanted]
    found: list[str] = []
    while rest:
        ready = [name for name in rest if not {*sources(dictionary.derived[name].expression)} & {*rest}]
        found += sorted(ready) if ready else rest
        rest = [name for name in rest if name not in found]
    return found


def problems_of(dictionary: Dictionary) -> list[str]:
    """What is wrong with derived columns: an expression that is not arithmetic on declared columns, a name given twice."""
    found = []
    for name, one in dictionary.derived.items():
        if name in dictionary.columns:
            found.append(f"derived.{name}: {name!r} is a column already. Give it a name of its own.")
            continue
        try:
            for source in sources(one.expression):
                _refuse_source(dictionary, source)
        except (FormulaInvalid, DataError) as error:
            found.append(f"derived.{name}: {error.reason} {error.remedy}".strip())
    if found or not dictionary.derived or any(column.todo for column in dictionary.columns.values()):
        return found
    try:
        with_derived(Schema(tuple(dictionary.column(name) for name, one in dictionary.columns.items() if one.kept)), dictionary)
    except (FormulaInvalid, DataError) as error:
        return [f"derived: {error.reason} {error.remedy}".strip()]
    return []


def with_derived(schema: Schema, dictionary: Dictionary, wanted: Collection[str] | None = None) -> Schema:
    """Return the schema with derived columns at the end."""
    if not dictionary.derived:
        return schema
    found: Schema = import_module(DERIVED).derive_schema(schema, _derivations(dictionary, wanted))
    return found


def derived_table(table: Table, dictionary: Dictionary, wanted: Collection[str] | None = None, *, shown: bool = True) -> Table:
    """Return the table with derived columns; raises as `hedgerow.stats.derive`."""
    if not dictionary.derived:
        return table
    found: Table = import_module(DERIVED).derive_columns(table, _derivations(dictionary, wanted), shown=shown)
    return found


def _derivations(dictionary: Dictionary, wanted: Collection[str] | None) -> dict[str, Any]:
    make = import_module(DERIVED).Derivation
    return {
        name: make(one.expression, one.range, one.unit, one.outside == "clip", one.description or one.label)
        for name in in_order(dictionary, wanted)
        for one in [dictionary.derived[name]]
    }


def _refuse_source(dictionary: Dictionary, source: str) -> None:
    from hedgerow.errors import MissingColumn, SchemaInvalid, suggestion

    known = {**{name: one for name, one in dictionary.columns.items() if one.kept}, **dictionary.derived}
    if source not in known:
        raise MissingColumn(f"it reads {source!r}, which is not declared.", remedy=suggestion(source, known))
    if source in dictionary.columns and dictionary.columns[source].role == "id":
        raise SchemaInvalid(f"it reads {source!r}, whose role is id.", remedy="Leave it out.")
