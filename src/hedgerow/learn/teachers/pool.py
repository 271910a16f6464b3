"""The public pool: which inputs teachers vote on, and which records of a server's table a student is measured on.

    inputs given            the pool is these
    a server's table        its complete records: the first part, without labels, is the pool; a student is measured on the rest
    neither                 inputs are made up from the schema, as when a study is only tried

An input without a value would cost as much as any other, and no teacher could vote on it: a pool with such inputs is refused
before anybody is asked.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import Schema, Table
from hedgerow.data.cases import lacking_in, whole_cases
from hedgerow.errors import SettingsInvalid

from ..tensors import columns_of, made_of, width

log = logging.getLogger("hedgerow")


def table_of(given: Any, schema: Schema) -> Any:
    """A data frame of any library, with or without the target, held against the schema; a table or an array as it is."""
    if isinstance(given, Table) or not hasattr(given, "columns"):
        return given
    if schema.target in given.columns:
        return Table.like(given, schema)
    return Table.like(given, Schema(tuple(column for column in schema if column.name in schema.features)))


def inputs_of(given: Any, schema: Schema) -> Array:
    """Features of a table or a data frame, with or without its target, as a model reads them; an array of them as it is.

    Raises
    ------
    SettingsInvalid (HR-511)
        An array has another shape than the schema's features; there is no row; or a value is missing or not finite.
    """
    given = table_of(given, schema)
    lost = np.zeros(len(given), bool)
    if isinstance(given, Table):
        lacking = lacking_in(given, [name for name in schema.features if name in given.schema])
        lost = lost if lacking is None else lacking
        columns = dict(given.columns)
        columns.setdefault(str(schema.target), np.zeros(len(given)))
        found: Array = made_of(columns, schema, None, "ranges")["model_input"]
    else:
        found = np.asarray(given)
    if found.shape[1:] != width(schema) or not len(found) or found.dtype.kind not in "fiub":
        raise SettingsInvalid(
            f"inputs of shape {found.shape} and of {found.dtype}.",
            remedy=f"Rows of numbers of shape {width(schema)}, at least one; or a table of the features.",
        )
    lost = lost | ~np.isfinite(found).all(axis=tuple(range(1, found.ndim)))
    if lost.any():
        raise SettingsInvalid(
            f"{int(lost.sum())} of {len(found)} inputs lack a value, or have one that is not finite.",
            remedy="No model reads them, and a vote on them would be paid for. Leave them out: table.take(rows).",
        )
    return found


def pool_of(
    federation: Federation, schema: Schema, inputs: Any, test: Table | None, public: float, asked: int
) -> tuple[Array, Array]:
    """All public inputs (N, ...), and which of them are asked (q,), in order.

    Raises
    ------
    SettingsInvalid (HR-511)
        Fewer than two inputs, or fewer than are asked; or no record of the server's table is left to measure a student on.
    """
    if not 0 < public < 1 or isinstance(asked, bool) or asked < 1:
        raise SettingsInvalid(f"{public=}, {asked=}.", remedy="public is between 0 and 1, and at least one input is asked.")
    if inputs is not None:
        pool = inputs_of(inputs, schema)
    elif test is not None:
        pool = inputs_of(_parted(test, schema, public), schema)
    else:
        rng = np.random.default_rng(federation.stream(1, "made-up inputs").integers(2**62))
        complete = Schema(tuple(replace(column, optional=False) for column in schema))
        pool = inputs_of(Table(schema=complete, columns=complete.synthetic(max(asked, 2), rng)), schema)
    if len(pool) < 2:
        raise SettingsInvalid("a pool of one public input.", remedy="A student learns from two at least. Bring more.")
    if asked > len(pool):
        raise SettingsInvalid(f"asked={asked} of {len(pool)} public inputs.", remedy="Ask about fewer, or bring more.")
    drawn = federation.stream(1, "which public inputs are asked").random(len(pool))
    return pool, np.sort(np.argsort(drawn, kind="stable")[:asked])


def _parted(test: Table, schema: Schema, public: float) -> Table:
    whole = complete(test, schema)
    if len(whole) < len(test):
        log.warning("%d of the server's %d records lack a value and are left out.", len(test) - len(whole), len(test))
    if not 0 < _first(whole, public) < len(whole):
        raise SettingsInvalid(
            f"public={public} of {len(whole)} complete records leaves none for the pool, or none to measure a student on.",
            remedy="Take another part, or a larger table of the server.",
        )
    return public_part(whole, schema, public)


def complete(table: Table, schema: Schema) -> Table:
    """The records that lack no value of the features and the target."""
    return whole_cases(table, [name for name in columns_of(schema) if name in table.schema])


def public_part(test: Table, schema: Schema, public: float) -> Table:
    """The first part of the complete records of the server's table: their features are the pool."""
    whole = complete(test, schema)
    return whole.take(range(_first(whole, public)))


def held_out(table: Table, settings: Mapping[str, Any], schema: Schema) -> Table:
    """The complete records that are not public, on which a student is measured; of a single one, that."""
    whole = complete(table, schema)
    rest = whole.take(range(_first(whole, settings["public"]), len(whole)))
    return rest if len(rest) else whole


def _first(table: Table, public: float) -> int:
    return max(1, round(public * len(table)))
