"""Steps: a column made from the features, at each party and at the server alike, which a model then reads instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hedgerow.core.federation import Federation
from hedgerow.data import Column, Schema, Table, complete_cases
from hedgerow.errors import SchemaInvalid, SettingsInvalid

from ..tensors import columns_of


@dataclass(frozen=True)
class FeatureStep:
    """One column made from others, record by record.

    Parameters
    ----------
    function : callable
        Top-level, `(columns, **settings) -> {made.name: array of shape (n, *made.shape)}`; row i of its result depends on
        row i of the columns alone, so that it may be applied to parties, to pooled records, and to the server's table.
    settings : tuple of (name, value)
        Hashable, as in every preparation.
    made : Column
        The declaration of the new column, which becomes the only feature.
    """

    function: Callable[..., Mapping[str, np.ndarray]]
    settings: tuple[tuple[str, Any], ...]
    made: Column

    def schema(self, schema: Schema) -> Schema:
        """The schema with the new column as its only feature."""
        if self.made.name in schema:
            raise SchemaInvalid(f"the features {self.made.name!r} are made twice.", remedy="Apply a step once.")
        return Schema((*schema, self.made)).with_roles(features=[self.made.name])

    def at_parties(self, federation: Federation) -> Federation:
        """The federation whose parties make the column when they are first asked; nothing leaves."""
        federation = complete_cases(federation, columns_of(federation.schema), count=False)
        before = federation.schema
        declared = [column for column in self.schema(before) if column not in before.columns]
        return federation.prepare(self.function, declares=declared, **dict(self.settings))

    def of(self, table: Table) -> Table:
        """A table with the column, such as the server's test records."""
        made = {name: np.asarray(values) for name, values in self.function(table.columns, **dict(self.settings)).items()}
        test = None if table.test is None else self.of(table.test)
        return replace(table, columns=dict(table.columns) | made, schema=self.schema(table.schema), test=test)


@dataclass(frozen=True)
class Matrix:
    """A matrix of float32 as a setting: hashable, and compared by its numbers."""

    shape: tuple[int, int]
    numbers: bytes

    @classmethod
    def of(cls, values: np.ndarray) -> Matrix:
        return cls((values.shape[0], values.shape[1]), np.ascontiguousarray(values, "<f4").tobytes())

    @property
    def values(self) -> np.ndarray:
        return np.frombuffer(self.numbers, "<f4").reshape(self.shape)

    def __repr__(self) -> str:  # it names a query's settings
        return f"Matrix{self.shape}"


def images_of(schema: Schema, what: str) -> Column:
    """The only feature of a schema, a column of images."""
    found = [schema[name] for name in schema.features]
    if len(found) != 1 or len(found[0].shape) < 2:
        raise SettingsInvalid(
            f"{what} of the features {list(schema.features)}.", remedy="It reads one column of images, such as (28, 28)."
        )
    return found[0]
