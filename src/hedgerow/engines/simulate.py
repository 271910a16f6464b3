"""`simulate`: a federation of made-up parties over one table, in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from hedgerow.core.disclosure import Disclosure, Holdings
from hedgerow.core.federation import Federation, inside
from hedgerow.core.later import is_later
from hedgerow.core.party import Parties
from hedgerow.core.randomness import Streams
from hedgerow.data import Partition, Table, by_column, join
from hedgerow.data.cases import complete_sizes
from hedgerow.data.columns_apart import ColumnPartitioner
from hedgerow.data.frames import is_several
from hedgerow.errors import PartitionInvalid

from .apart import parties_apart
from .hosting import Hosting
from .inprocess import InProcess
from .shared import SharedParties


def simulate(
    data: Any,
    partition: Callable[[Table, int], Partition] | Partition | None = None,
    *,
    on: str | None = None,
    seed: int | Literal["system"] | None = 0,
    engine: Hosting | None = None,
    record_views: bool = False,
    disclosure: float | None = None,
) -> Federation:
    """Split a table among parties and return them as a federation.

    Parameters
    ----------
    data : table, or list of tables, or mapping from party to table
        A `Table`, or a data frame of pandas, polars, pyarrow, duckdb, Hugging Face `datasets`, or (X, y) of arrays, as
        `hedgerow.data.Table.from_frame` takes them: a frame's schema is inferred, kinds from its types, no ranges.
    partition : partitioner or Partition
        For example `hedgerow.data.iid(parties=5)`; none where each party's table is given. One of columns, such as
        `hedgerow.data.columns_by_name(...)`, makes parties with different columns, and says `on` itself. A record that it
        gives to several parties counts as one record at each of them, also for privacy.
    on : str, optional
        Parties hold different columns of the same people, who are known by this column: `federation.align` finds those that all
        have in common. There is no partition then.
    seed : int, or "system" or None
        Seed of partition, sampling, local randomness and noise. "system" draws all but the partition from the operating
        system; runs then differ, and the ledger says so.
    engine : engine, optional
        `InProcess()` by default; `Loop()` is the reference.
    record_views : bool
        Keep what server and parties see, for attacks.
    disclosure : float, optional
        Most exact numbers that may be asked for each value held, over all questions (`hedgerow.core.disclosure`); infinity
        refuses nothing. Without it a wide design is refused that asks more numbers at once than the median party holds values.

    Raises
    ------
    DisclosureExceeded (HR-216)
        By questions, before any party is asked.
    DataError (HR-4xx)
        Columns that are missing, not finite or out of their declared range; parties without records.
    """
    if isinstance(partition, ColumnPartitioner):
        whole = data if isinstance(data, Table) else Table.from_frame(data)
        data, on = partition(whole, Streams(None if seed == "system" else seed).seed or 0), partition.on
    if on is not None:
        return _simulate_apart(data, on, None if seed == "system" else seed, engine, record_views)
    if is_several(data):
        data, partition = join(data)
    if partition is None:
        raise PartitionInvalid(
            "one table and no partition.", remedy="Say how it is split, e.g. partition=hr.data.iid(parties=5)."
        )
    table = data if isinstance(data, Table) else Table.from_frame(data)
    streams = Streams(None if seed == "system" else seed)
    if hasattr(partition, "runs"):  # in the order in which they stand
        names, sizes = partition.runs(len(table))
        held, parts = in_runs(table, names, sizes), ranges(sizes)
    else:
        split = partition if isinstance(partition, Partition) else partition(table, streams.seed or 0)
        held, parts = parties_of(table, split), split.indices
    made = Federation((engine or InProcess()).hosting(held), table.schema, streams, record_views=record_views)
    inside(made).run.split_by = partition.column if isinstance(partition, by_column) else None
    rule = None if disclosure is None else Disclosure(disclosure)
    complete = complete_sizes(table, parts)
    inside(made).run.holdings = replace(Holdings.of(held.sizes.tolist(), rule), complete=complete)
    return made


def _simulate_apart(data: Any, on: str, seed: int | None, engine: Hosting | None, record_views: bool) -> Federation:
    """Parties with columns of their own, before they are aligned."""
    held, schemas = parties_apart(data, on)
    made = Federation((engine or InProcess()).hosting(held), None, Streams(seed), record_views=record_views)
    inside(made).run.schemas = schemas
    return made


def in_runs(table: Table, names: Sequence[str], sizes: Sequence[int]) -> Parties:
    """Parties whose records stand one after the other; of a table in files no record is read."""
    weight = table.schema.weight
    if weight is not None:
        w: Any = table.columns[weight]
    else:
        w = np.broadcast_to(1.0, len(table)) if is_later(table.columns) else None
    return Parties(names, table.columns, sizes, w)


def ranges(sizes: Sequence[int]) -> list[range]:
    """The records of parties of such sizes."""
    ends = np.cumsum([0, *sizes]).tolist()
    return [range(start, end) for start, end in pairwise(ends)]


def parties_of(table: Table, split: Partition) -> Parties:
    """Order a table's records by party; columns that are in that order already are shared, not copied."""
    columns: Mapping[str, Any] = table.columns if split.columns is None else {**table.columns, **split.columns}
    order, sizes, weight = np.concatenate(split.indices), [len(part) for part in split.indices], table.schema.weight
    if len(order) > len(table):  # some records are held by several parties
        return SharedParties(split.names, columns, sizes, order, columns[weight] if weight else None)
    ordered = len(order) == len(table) and np.array_equal(order, np.arange(len(order)))
    held = {name: column if ordered else column[order] for name, column in columns.items()}
    return Parties(split.names, held, sizes, held[weight] if weight else None)
