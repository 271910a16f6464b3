"""What statistics ask of a schema: which columns to read, and how far one record can reach in them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.apart import columns_apart
from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.data.column import READABLE
from hedgerow.errors import HedgerowWarning, SchemaInvalid, SettingsInvalid

if TYPE_CHECKING:
    from hedgerow.data import Column, Schema

NUMERIC = ("number", "integer", "binary")
COUNTED = ("category", "binary")
BINARY_LEVELS = ("0", "1")


def schema_of(federation: Federation) -> Schema:
    """Return the declared columns, without which no statistic can be asked for."""
    if federation.schema is None and columns_apart(federation):
        raise SchemaInvalid(
            "parties of this federation hold columns of their own, of people whom nobody has matched yet.",
            remedy="Let them align first, and take a function of hr.vertical:\n"
            "both = federation.align(on=..., by=hr.vertical.X25519()).",
        )
    if federation.schema is None:
        raise SchemaInvalid(
            "this federation declares no schema, so its columns are unknown to the server.",
            remedy="Give one: Federation(engine, schema=...), or make it with simulate(table, partition).",
        )
    schema: Schema = federation.schema
    return schema


def chosen(schema: Schema, names: Sequence[str] | None, kinds: Sequence[str]) -> tuple[Column, ...]:
    """Return the named columns, or every feature and target of these kinds.

    Raises
    ------
    MissingColumn (HR-403), SchemaInvalid (HR-409)
        A name is unknown; a named column is of another kind, or holds arrays. No party was asked.
    """
    if names is None:
        found = [c for c in schema if c.role in READABLE and c.kind in kinds and not c.shape]
    else:
        found = [schema[name] for name in ([names] if isinstance(names, str) else names)]
    if not found:
        raise SchemaInvalid(f"no column is {' or '.join(kinds)}.", remedy="Name the columns to read.")
    for column in found:
        if column.role == "id":
            raise SchemaInvalid(f"column {column.name!r} has role 'id', which no statistic reads.", remedy="Leave it out.")
        if column.kind not in kinds or column.shape:
            held = f"holds arrays of shape {column.shape}" if column.shape else f"is of kind {column.kind!r}"
            raise SchemaInvalid(
                f"column {column.name!r} {held}; this statistic reads {' or '.join(kinds)} columns.",
                remedy="Leave it out. Counts are for categories, moments and quantiles for numbers.",
            )
    return tuple(found)


def upper_end(level: float) -> float:
    """Return the quantile at which a two-sided interval of this level ends.

    Raises
    ------
    SettingsInvalid (HR-511)
        The level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise SettingsInvalid(f"level={level} is no level of an interval.", remedy="Give one between 0 and 1, such as 0.95.")
    return (1 + level) / 2


def names_of(columns: Sequence[Column]) -> tuple[str, ...]:
    """Return the names of columns."""
    return tuple(column.name for column in columns)


def levels_of(column: Column) -> tuple[str, ...]:
    """Return the words that a counted column's codes stand for."""
    return column.levels if column.kind == "category" else BINARY_LEVELS


def range_of(column: Column) -> tuple[float, float] | None:
    """Return the declared range of a column, where both ends are declared."""
    if column.kind == "binary":
        return 0.0, 1.0
    return None if column.low is None or column.high is None else (column.low, column.high)


def heaviest(schema: Schema, weights: str | None = None) -> float | None:
    """Return the largest weight that a record may have: 1 without weights, `None` where their range is not declared."""
    return schema.heaviest if weights is None else schema.absolute(weights)


def warn_of_fractions(schema: Schema, weights: str | None = None) -> None:
    """Warn where weights, which count repeated records, may be fractions by their declaration.

    Warns
    -----
    HedgerowWarning
        With all weights 0.5 a fit would be of half as many records, and standard errors 1.41 times as large.
    """
    name = weights or schema.weight
    if name is None or (name in schema and schema[name].kind in ("integer", "binary")):
        return
    warnings.warn(
        f"weights {name!r} are not declared whole numbers, and they count repeated records: of fractions, such as survey or "
        f'probability weights, standard errors are wrong. Declare {name!r} with kind = "integer", and fractions are refused '
        "when records are read; or fit without weights.",
        HedgerowWarning,
        stacklevel=4,
    )


def matrix(party: Party, names: Sequence[str]) -> Array:
    """Return columns side by side, shape (..., n_records, n_columns)."""
    return np.stack([party[name] for name in names], axis=-1)


def is_exact(federation: Federation) -> bool:
    """Whether totals arrive as they are, neither clipped nor with noise."""
    return federation.protection.exact
