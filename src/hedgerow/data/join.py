"""Tables that are already apart: one for each party, brought together for a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.errors import ColumnsDiffer, EmptyParty

from .partition import Draw, Partitioner
from .table import Table

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class given(Partitioner):
    """Parties as they were given: so many records each, in order."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    def draw(self, table: Table, rng: np.random.Generator) -> Draw:
        owner = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return Draw(owner, self.names, f"{len(self.names)} parties as they were given.")


def join(parties: Mapping[str, Table | pandas.DataFrame]) -> tuple[Table, given]:
    """Join one table for each party into one, with the partition that takes it apart again.

    Data frames are joined before their schema is inferred, so that levels are those of all parties together.

    Raises
    ------
    ColumnsDiffer (HR-407)
        Parties hold different columns, or declare them differently.
    EmptyParty (HR-406)
        There is no party, or one without records.
    """
    if not parties:
        raise EmptyParty("no party was given.", remedy="Give one table for each: {'north': frame, 'south': frame}.")
    first, model = next(iter(parties.items()))
    for name, table in parties.items():
        if type(table) is not type(model) or _declared(table) != _declared(model):
            raise ColumnsDiffer(
                f"{name} holds {_listed(table)}, {first} holds {_listed(model)}.",
                remedy="Bring every party to the same schema, or select the columns that all of them have.",
            )
    if isinstance(model, Table):
        columns = {key: np.concatenate([table.columns[key] for table in parties.values()]) for key in model.columns}
        joined = Table(columns, model.schema, name=model.name, source=model.source)
    else:
        from pandas import concat

        joined = Table.from_pandas(concat(list(parties.values()), ignore_index=True))
    return joined, given(tuple(parties), tuple(len(table) for table in parties.values()))


def _declared(table: Table | pandas.DataFrame) -> object:
    return table.schema if isinstance(table, Table) else sorted(map(str, table.columns))


def _listed(table: Table | pandas.DataFrame) -> str:
    if isinstance(table, Table):
        return ", ".join(f"{column.name} ({column.kind})" for column in table.schema)
    return ", ".join(map(str, table.columns))
