"""Parties whose records overlap: each record is kept once, however many parties hold it.

A simulation of 10 000 parties that share 60 000 records by turns would otherwise hold a hundred copies of them. Parties
see no difference: a party's columns are its own records, in its own order.

A copy is a record like any other: the unit `record` is one party's copy, and a sample of records draws for each copy by
itself. Who stands behind several copies is protected for each of them, not for all together (`warn_of_copies`).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.columns import Rows
from hedgerow.core.party import PRESENT, WEIGHTS, Parties, Party
from hedgerow.data import Partition
from hedgerow.errors import HedgerowWarning


class SharedParties(Parties):
    """Many parties in one process, over one set of records.

    Parameters
    ----------
    ids, sizes : sequence
        Names of the parties, and how many records each holds.
    columns : mapping from name to array of shape (n_kept, ...)
        The records that are kept, each once.
    rows : array of int, shape (n_records,)
        Ordered by party: which of the kept records each record is.
    w : array of shape (n_kept,), optional
        Weights of the kept records.
    """

    def __init__(
        self,
        ids: Sequence[str],
        columns: Mapping[str, Array],
        sizes: Sequence[int] | Array,
        rows: Array,
        w: Array | None = None,
    ) -> None:
        super().__init__(ids, {}, sizes, None if w is None else np.asarray(w)[rows])
        self.columns, self.rows = dict(columns), np.asarray(rows)

    def __getitem__(self, i: Any) -> Any:
        part = slice(int(self.offsets[i]), int(self.offsets[i + 1]))
        return Party(self.ids[i], Rows(self.columns, self.rows[part]), self.w[part])

    def stack(self, which: Array) -> Party:
        """Stack parties along a leading axis; shorter ones repeat their last record with weight zero."""
        sizes, steps = self.sizes[which], np.arange(int(self.sizes[which].max()))
        at = self.offsets[which][:, None] + np.minimum(steps, sizes[:, None] - 1)
        w = np.where(steps < sizes[:, None], self.w[at], 0.0)
        return Party(f"{len(which)} parties", self._taken(at), w)

    def pool(self, which: Array) -> Party:
        """Return the records of several parties as those of one."""
        if len(which) == len(self):
            return Party("all parties", self._taken(slice(None)), self.w)
        at = np.concatenate([np.arange(self.offsets[i], self.offsets[i + 1]) for i in which])
        return Party(f"{len(which)} parties", self._taken(at), self.w[at])

    @property
    def kept(self) -> Party:
        """The records that are kept, each once: a preparation sees records one by one, by contract."""
        return Party("all parties", self.columns, np.ones(len(next(iter(self.columns.values())))))

    def _extended(self, made: dict[str, Array]) -> Parties:
        w = made.pop(WEIGHTS, None)
        after = SharedParties(self.ids, self.columns | made, self.sizes, self.rows, w)
        after.w = self.w if w is None else after.w
        if PRESENT in after.columns:
            after.w = np.where(after.columns[PRESENT][self.rows], after.w, 0.0)
        return self._same(after)

    def _without(self, failed: Array) -> Parties:
        there = ~failed[self.rows]
        after = SharedParties(self.ids, self.columns, self._counted(there), self.rows[there])
        after.w = self.w[there]
        return self._left(after, there)

    def _taken(self, at: Any) -> dict[str, Array]:
        rows = self.rows[at]
        return {name: column[rows] for name, column in self.columns.items()}


def warn_of_copies(partition: Partition) -> None:
    """Warn where records are the unit of a budget, and some of them are held by several parties.

    Warns
    -----
    HedgerowWarning
        What a record of the table loses is then more than the budget says.
    """
    held = np.concatenate(partition.indices)
    copies = np.unique(held, return_counts=True)[1]
    if copies.max(initial=1) > 1:
        warnings.warn(
            f"the budget is per record, and {(copies > 1).sum()} of {len(copies)} records are held by up to {copies.max()} "
            "parties each: every party's copy counts as a record of its own, and whoever stands behind several is protected "
            "only as a group of so many records is. State the budget per party, or give each record to one party.",
            HedgerowWarning,
            stacklevel=2,
        )
