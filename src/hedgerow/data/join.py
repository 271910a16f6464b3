"""Tables that are already apart: one for each party, brought together for a simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from hedgerow.errors import ColumnsDiffer, EmptyParty, SchemaInvalid

from .frames import RawTable
from .partition import Draw, Partitioner, numbered
from .table import Table


@dataclass(frozen=True)
class given(Partitioner):
    """Parties as they were given: so many records each, in order."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    def runs(self, n: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Names of the parties and their sizes, each holding the records that follow those of the one before."""
        self._refuse_empty(self.names, np.array(self.sizes), n)
        return self.names, self.sizes

    def draw(self, table: Table, rng: np.random.Generator) -> Draw:
        owner = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return Draw(owner, self.names, f"{len(self.names)} parties as they were given.")


def join(parties: Mapping[str, Any] | Sequence[Any]) -> tuple[Table, given]:
    """Join one table for each party into one, with the partition that takes it apart again.

    Data frames of any library (see `Table.from_frame`) are joined before their schema is inferred, so that levels are those of
    all parties together.

    Parameters
    ----------
    parties : mapping from party to table, or list of tables
        Parties of a list are called `party 1`, ...

    Raises
    ------
    ColumnsDiffer (HR-407)
        Parties hold different columns, or declare them differently.
    EmptyParty (HR-406)
        There is no party, or one without records.
    SchemaInvalid (HR-409)
        What a party holds is no table.
    """
    if not isinstance(parties, Mapping):
        parties = dict(zip(numbered(len(parties)), parties, strict=True))
    if not parties:
        raise EmptyParty("no party was given.", remedy="Give one table for each: {'north': frame, 'south': frame}.")
    held = {str(name): table if isinstance(table, Table) else _frame_of(str(name), table) for name, table in parties.items()}
    first, model = next(iter(held.items()))
    for name, table in held.items():
        if type(table) is not type(model) or _declared(table) != _declared(model):
            raise ColumnsDiffer(
                _apart(name, table, first, model),
                remedy="Bring every party to the same schema, or select the columns that all of them have. Tables read with\n"
                "the same declarations, or by one dictionary, have one; of frames, levels are those of all parties.",
            )
    if isinstance(model, Table):
        columns = {key: np.concatenate([table.columns[key] for table in held.values()]) for key in model.columns}
        joined, sizes = Table(columns, model.schema, name=model.name, source=model.source), map(len, held.values())
    else:
        frames = {key: _joined(key, {name: frame.columns[key] for name, frame in held.items()}) for key in model.columns}
        sizes = (frame.n for frame in held.values())
        joined = Table.from_columns(RawTable(frames, sum(frame.n for frame in held.values())), target=model.target)
    return joined, given(tuple(held), tuple(sizes))


def _frame_of(name: str, table: Any) -> RawTable:
    """The columns of one party's table."""
    try:
        return RawTable.of(table)
    except SchemaInvalid as error:
        remedy = f"{error.remedy} Columns of one table for all parties are a data frame, such as pandas.DataFrame(columns)."
        raise SchemaInvalid(f"{name}: {error.reason}", remedy=remedy) from None


def _joined(name: str, columns: Mapping[str, Any]) -> Any:
    """One column of all parties together."""
    from pandas import concat

    shapes = {party: np.shape(values)[1:] for party, values in columns.items()}
    if len(set(shapes.values())) > 1:
        raise ColumnsDiffer(
            f"column {name!r} holds values of the shapes {shapes}.", remedy="Bring every party's values to one shape."
        )
    parts = list(columns.values())
    return concat(parts, ignore_index=True) if np.ndim(parts[0]) == 1 else np.concatenate(parts)


def _declared(table: Table | RawTable) -> object:
    return table.schema if isinstance(table, Table) else (sorted(table.columns), table.target)


def _apart(name: str, table: Table | RawTable, first: str, model: Table | RawTable) -> str:
    """In which columns two parties differ; levels are counted, not told."""
    if not (isinstance(table, Table) and isinstance(model, Table)) or set(table.schema.names) != set(model.schema.names):
        return f"{name} holds {_listed(table)}, {first} holds {_listed(model)}."
    said = []
    for theirs in table.schema:
        ours = model.schema[theirs.name]
        keys = [one.name for one in fields(theirs) if getattr(theirs, one.name) != getattr(ours, one.name)]
        counted = [
            f"levels ({len(theirs.levels)} at {name}, {len(ours.levels)} at {first}, not the same)" if key == "levels" else key
            for key in keys
        ]
        said += [f"column {theirs.name!r} in its {', '.join(counted)}"] if keys else []
    if not said:
        said = ["the order of their columns" if table.schema.names != model.schema.names else "what they declare"]
    return f"{name} and {first} differ: {'; '.join(said)}."


def _listed(table: Table | RawTable) -> str:
    if isinstance(table, Table):
        return ", ".join(f"{column.name} ({column.kind})" for column in table.schema)
    return ", ".join(table.columns)
