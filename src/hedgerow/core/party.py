"""Parties: what a local function may touch, and the columns of many parties held in one process.

Every local statistic is a weighted sum over records. A weight of zero is padding, subsampling or exclusion; a weight
above zero is a sample weight. That one convention lets the same local function run on one party, on parties stacked
along a leading axis, and on the pooled records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hedgerow.errors import ColumnsDiffer, MissingColumn, suggestion

from .arrays import Array
from .randomness import Entropy, uniforms
from .state import State, States, StateStore

WEIGHTS = "record weights"
"""The column by which a preparation sets record weights; no table holds one of this name."""

MOST_PREPARED = 32
"""Preparations of which parties keep the columns."""

PLACE = 64
"""Bytes to whose multiples arrays are moved on which a party computes by itself: some products depend on where arrays lie."""


@dataclass
class Party:
    """One holder of data, or several stacked along a leading axis.

    Attributes
    ----------
    id : str
        Name of the party; of a stack, the names joined.
    columns : mapping from name to array of shape (n_records, ...), stacked (n_parties, n_records, ...)
    w : array of shape (n_records,) or (n_parties, n_records)
        Record weights; zero for padding.
    state : dict
        What the party keeps. Changes are committed once the server has counted the answer of this round.
    """

    id: str
    columns: Mapping[str, Array]
    w: Array
    state: State = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        try:
            return self.columns[name]
        except KeyError:
            raise MissingColumn(
                f"no column {name!r}.",
                remedy=suggestion(name, self.columns) + " Prepared columns count too.",
                asked=True,
            ) from None

    @property
    def n(self) -> Any:
        """Weighted number of records: a number, or shape (n_parties,) for a stack."""
        return self.w.sum(-1)


class Rows(Mapping[str, Array]):
    """Some rows of columns, each copied when it is first read."""

    def __init__(self, columns: Mapping[str, Array], rows: Array) -> None:
        self._columns, self._rows = columns, rows
        self._read: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._read:
            self._read[name] = self._columns[name][self._rows]
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class Placed(Mapping[str, Array]):
    """Columns, each moved to a place of its own when it is first read; see `placed`."""

    def __init__(self, columns: Mapping[str, Array]) -> None:
        self._columns = columns
        self._read: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._read:
            self._read[name] = placed(np.asarray(self._columns[name]))
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def placed(array: Array) -> Array:
    """The same array without gaps and at a multiple of `PLACE` bytes: as it is if it lies so, else a copy.

    Where a party's records begin among those of all depends on how many records the others have, and products of the same
    numbers at another place may have other last bits.
    """
    if array.dtype.hasobject or (array.flags.c_contiguous and array.__array_interface__["data"][0] % PLACE == 0):
        return array
    memory = np.empty(array.nbytes + PLACE, np.uint8)
    start = -memory.__array_interface__["data"][0] % PLACE
    moved: Array = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def apart(party: Party) -> Party:
    """A party whose arrays lie at places of their own, so that what it computes does not depend on the other parties."""
    state = {key: placed(value) if type(value) is np.ndarray else value for key, value in party.state.items()}
    return Party(party.id, Placed(party.columns), placed(party.w), state)


class Parties(Sequence[Party]):
    """Many parties in one process: columns with each party's records side by side, never copied per party.

    Parameters
    ----------
    ids : sequence of str
        One name for each party.
    columns : mapping from name to array of shape (n_records, ...)
        Records ordered by party.
    sizes : sequence of int
        Records of each party. One without records stays among the parties and is asked like the others, about none: which
        parties there are is public, and no record decides it.
    w : array of shape (n_records,), optional
        Record weights, ones by default.
    """

    def __init__(
        self, ids: Sequence[str], columns: Mapping[str, Array], sizes: Sequence[int] | Array, w: Array | None = None
    ) -> None:
        self.ids = tuple(ids)
        self.columns = dict(columns)
        self.sizes = np.asarray(sizes, dtype=np.int64)
        self.offsets = np.concatenate([[0], np.cumsum(self.sizes)])
        n_records = int(self.offsets[-1])
        self.w = np.ones(n_records) if w is None else np.asarray(w, dtype=np.float64)
        self.position = {name: i for i, name in enumerate(self.ids)}
        self.states: StateStore = States()
        self.correspondents: dict[Any, Any] = {}
        self._prepared: dict[Any, Parties] = {}
        if len(self.position) != len(self.sizes):
            raise ColumnsDiffer(f"{len(self.sizes)} parties have {len(self.position)} different names; each needs its own.")
        for name, column in self.columns.items():
            if len(column) != n_records:
                raise ColumnsDiffer(f"column {name!r} has {len(column)} records, the parties have {n_records}.")

    def fresh(self) -> Parties:
        """The same parties, before they keep or prepare anything."""
        found = copy(self)
        found.states, found.correspondents, found._prepared = States(), {}, {}
        return found

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, i: Any) -> Any:
        part = slice(int(self.offsets[i]), int(self.offsets[i + 1]))
        return Party(self.ids[i], {name: column[part] for name, column in self.columns.items()}, self.w[part])

    def sampled(self, i: int, rate: float, entropy: Entropy) -> Party:
        """Return a party with each of its records present by itself with probability `rate`; there may be none."""
        party: Party = self[i]
        joins = np.flatnonzero(uniforms(entropy, len(party.w)) < rate)
        return Party(party.id, Rows(party.columns, joins), party.w[joins])

    def stack(self, which: Array) -> Party:
        """Stack parties along a leading axis; shorter ones repeat their last record with weight zero, empty ones zeros."""
        sizes, width = self.sizes[which], int(self.sizes[which].max())
        name = f"{len(which)} parties"
        if (sizes == width).all() and (np.diff(which) == 1).all():
            part, shape = slice(int(self.offsets[which[0]]), int(self.offsets[which[-1] + 1])), (len(which), width)
            return Party(
                name,
                {k: c[part].reshape(shape + c.shape[1:]) for k, c in self.columns.items()},
                self.w[part].reshape(shape),
            )
        steps = np.arange(width)
        rows = self.offsets[which][:, None] + np.minimum(steps, np.maximum(sizes[:, None] - 1, 0))
        if (empty := sizes == 0).any():
            rows[empty] = 0
        columns = {k: c[rows] for k, c in self.columns.items()}
        for column in columns.values() if empty.any() else ():
            column[empty] = np.zeros(1, column.dtype)
        return Party(name, columns, np.where(steps < sizes[:, None], self.w[rows], 0.0))

    def pool(self, which: Array) -> Party:
        """Return the records of several parties as those of one."""
        if len(which) == len(self):
            return Party("all parties", self.columns, self.w)
        rows = np.concatenate([np.arange(self.offsets[i], self.offsets[i + 1]) for i in which])
        return Party(f"{len(which)} parties", {k: c[rows] for k, c in self.columns.items()}, self.w[rows])

    def prepared(self, preparations: tuple[Any, ...], *, together: bool) -> Parties:
        """Add prepared columns, once.

        Parameters
        ----------
        together : bool
            Prepare all records in one call, which is the same by contract but for last bits; not even these differ where all
            preparations are `elementwise`, which are always made in one call.
        """
        if not preparations:
            return self
        together = together or all(one.elementwise for one in preparations)
        key = (preparations, together)
        if key not in self._prepared:
            before = self.prepared(preparations[:-1], together=together)
            groups = [Party("all parties", before.columns, before.w)] if together else list(map(apart, before))
            made = [preparations[-1](group) for group in groups]
            columns = {name: _joined([np.asarray(part[name]) for part in made]) for name in made[0]}
            w = columns.pop(WEIGHTS, before.w)
            after = Parties(self.ids, before.columns | columns, self.sizes, w)
            after.states, after.correspondents = self.states, self.correspondents
            while len(self._prepared) >= MOST_PREPARED:  # the oldest; whoever asks in ever new ways must not fill the memory
                self._prepared.pop(next(iter(self._prepared)))
            self._prepared[key] = after
        return self._prepared[key]


def _joined(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


Local = Callable[..., Any]
"""A local function: `(broadcast, party, rng, **settings) -> dict of arrays` (or None for `each`)."""
