"""Parties: what a local function may touch, and the columns of many parties held in one process.

Every local statistic is a weighted sum over records. A weight of zero is padding, subsampling or exclusion; one above zero is
a sample weight. So the same local function runs on one party, on stacked parties, and on the pooled records.
"""

from __future__ import annotations

import logging
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from hedgerow.errors import ColumnsDiffer, MissingColumn, suggestion

from .arrays import Array
from .columns import Placed, Rows, placed
from .desk import Desks
from .later import Later, MadeLater, is_later, read_through
from .randomness import Entropy, uniforms
from .state import State, States, StateStore

log = logging.getLogger("hedgerow")

WEIGHTS = "record weights"
"""The column by which a preparation sets record weights; no table holds one of this name."""

PRESENT = "record present"
"""The column by which a preparation leaves records out: false where a record has weight zero from then on."""

MOST_PREPARED = 32
"""Preparations of which parties keep the columns."""


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
    received : array, optional, that others sent
    """

    id: str
    columns: Mapping[str, Array]
    w: Array
    state: State = field(default_factory=dict)
    received: Any = None

    def __getitem__(self, name: str) -> Array:
        try:
            values: Any = self.columns[name]
            return placed(np.asarray(values)) if isinstance(values, Later) else values
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
        Records of each party. One without records stays, and is asked about none: no record decides which parties there are.
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
        self.correspondents, self.desks = dict[Any, Any](), Desks()
        self._prepared, self.aligned = dict[Any, Parties](), dict[str, Parties]()
        self.watch: Callable[[Any], None] | None = None  # looks at what is made for totals over common people
        self.places: Array | None = None  # where each record was at its party, where some have been left out
        self.drawn = self.sizes  # and how many there were
        if len(self.position) != len(self.sizes):
            raise ColumnsDiffer(f"{len(self.sizes)} parties have {len(self.position)} different names; each needs its own.")
        for name, column in self.columns.items():
            if len(column) != n_records:
                raise ColumnsDiffer(f"column {name!r} has {len(column)} records, the parties have {n_records}.")

    def fresh(self) -> Parties:
        """The same parties, before they keep or prepare anything."""
        found = copy(self)
        found.states, found.correspondents, found._prepared, found.desks, found.aligned = States(), {}, {}, Desks(), {}
        return found

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, i: Any) -> Any:
        part = slice(int(self.offsets[i]), int(self.offsets[i + 1]))
        return Party(self.ids[i], {name: column[part] for name, column in self.columns.items()}, self.w[part])

    def sampled(self, i: int, rate: float, entropy: Entropy) -> Party:
        """Return a party with each of its records present by itself with probability `rate`; there may be none.

        Whether a record joins does not depend on which others could be prepared.
        """
        party: Party = self[i]
        chance = uniforms(entropy, int(self.drawn[i]))
        if self.places is not None:
            chance = chance[self.places[int(self.offsets[i]) : int(self.offsets[i + 1])]]
        joins = np.flatnonzero(chance < rate)
        return Party(party.id, Rows(party.columns, joins), party.w[joins])

    def stack(self, which: Array) -> Party:
        """Stack parties along a leading axis; shorter ones repeat their last record with weight zero, empty ones zeros."""
        sizes, width = self.sizes[which], int(self.sizes[which].max())
        name = f"{len(which)} parties"
        if (sizes == width).all() and (np.diff(which) == 1).all():
            part, shape = slice(int(self.offsets[which[0]]), int(self.offsets[which[-1] + 1])), (len(which), width)
            return Party(
                name,
                {k: np.asarray(c[part]).reshape(shape + c.shape[1:]) for k, c in self.columns.items()},
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

    def prepared(self, preparations: tuple[Any, ...], *, together: bool, singly: bool = False) -> Parties:
        """Add prepared columns, once.

        Where one fails at a party, only that party cannot be asked; for a record made `singly`, it is left out.

        Parameters
        ----------
        together : bool
            Prepare all records in one call, which is the same by contract but for last bits; otherwise each party prepares its
            own. Not even last bits differ where preparations are `elementwise`, which are made in one call if that succeeds.
        singly : bool
            Instead, prepare each record in a call of its own.
        """
        if not preparations:
            return self
        if (rearranges := getattr(getattr(preparations[0], "function", None), "rearranges", None)) is not None:
            return rearranges(self, preparations)  # type: ignore[no-any-return]
        key = (preparations, together, singly)
        if (known := self._prepared.pop(key, None)) is not None:
            return self._keep(key, known)
        if not together and all(one.elementwise for one in preparations):
            with suppress(Exception):  # of one party or record: which one is found out below
                return self._keep(key, _read_through(self.prepared(preparations, together=True)))
        before, last = self.prepared(preparations[:-1], together=together, singly=singly), preparations[-1]
        after: Parties | None = before._at_once(last) if together else None
        if after is None and singly and last.elementwise:
            with suppress(Exception):
                after = _read_through(before._at_once(last))
        if after is None:
            after = before._singly(last) if singly else OwnColumns(before, last)
        return self._keep(key, after)

    def _keep(self, key: Any, after: Parties) -> Parties:
        while len(self._prepared) >= MOST_PREPARED:  # first what was asked for longest ago: memory must not fill
            self._prepared.pop(next(iter(self._prepared)))
        self._prepared[key] = after
        return after

    @property
    def kept(self) -> Party:
        """All records as they are held, each once."""
        return Party("all parties", self.columns, self.w)

    def _at_once(self, one: Any) -> Parties:
        """Add the columns that a preparation makes of all records in one call; or later, of columns that are read later."""
        if is_later(self.columns) and len(self.w):
            return self._extended(MadeLater(partial(_made_of, one, self.kept)).columns(len(self.w)))
        return self._extended({name: np.asarray(values) for name, values in one(self.kept).items()})

    def _singly(self, one: Any) -> Parties:
        """Add the columns that a preparation makes of each record alone; records for which it fails are left out."""
        kept = self.kept
        try:
            made, failed = one_by_one(kept, one)
        except Exception as error:  # not even for no record
            return OwnColumns(self, partial(_failing, error=error.with_traceback(None)))
        extended = self._extended(made)
        return extended._without(failed) if failed.any() else extended

    def _extended(self, made: dict[str, Any]) -> Parties:
        """The same parties with more columns, one row for each record that is kept."""
        w = made.pop(WEIGHTS, self.w)
        columns = self.columns | made
        return self._same(self._like(columns, present_only(columns, w)))

    def _like(self, columns: dict[str, Array], w: Array) -> Parties:
        """Parties of the same kind with other columns."""
        return Parties(self.ids, columns, self.sizes, w)

    def _without(self, failed: Array) -> Parties:
        """The same parties without some of the records that are kept."""
        columns = {name: np.asarray(column)[~failed] for name, column in self.columns.items()}
        return self._left(Parties(self.ids, columns, self._counted(~failed), self.w[~failed]), ~failed)

    def _left(self, after: Parties, there: Array) -> Parties:
        """Those after some records have been left out, which know where the others were."""
        places = np.concatenate([np.arange(size) for size in self.sizes]) if self.places is None else self.places
        self._same(after)
        after.places = places[there]
        return after

    def _counted(self, there: Array) -> Array:
        """How many of the records that are there each party holds."""
        counted: Array = np.bincount(np.repeat(np.arange(len(self)), self.sizes)[there], minlength=len(self))
        return counted

    def _same(self, after: Parties) -> Parties:
        after.states, after.correspondents, after.desks = self.states, self.correspondents, self.desks
        after.places, after.drawn = self.places, self.drawn
        return after


class OwnColumns(Parties):
    """Parties each of which prepares columns of its own, when it is first asked: no type follows from others' records.

    Parameters
    ----------
    before : Parties
    one : callable
        A preparation. A party for which it fails cannot be asked; the others can.
    """

    def __init__(self, before: Parties, one: Callable[[Party], Mapping[str, Array]]) -> None:
        super().__init__(before.ids, {}, before.sizes, before.w)
        self.columns = before.columns
        self._before, self._one = before, one
        before._same(self)
        self._own: dict[int, dict[str, Array] | Exception] = {}

    def prepare(self, names: Iterable[str]) -> None:
        """Let these parties prepare their columns now, in the surroundings of the caller."""
        for name in names:
            self._made(self.position[name])

    def _made(self, i: int) -> dict[str, Array] | Exception:
        if i not in self._own:
            self._own[i] = _made_by(self._before, i, self._one)
        return self._own[i]

    def __getitem__(self, i: Any) -> Any:
        own = self._made(int(i))
        if isinstance(own, Exception):
            raise own.with_traceback(None)
        party = self._before[i]
        made = {name: values for name, values in own.items() if name != WEIGHTS}
        columns = ChainMap(made, party.columns)
        return Party(party.id, columns, present_only(columns, own.get(WEIGHTS, party.w)))

    def stack(self, which: Array) -> Party:
        """Stack parties along a leading axis, as `Parties` does."""
        return self._joined(which).stack(np.arange(len(which)))

    def pool(self, which: Array) -> Party:
        """Return the records of several parties as those of one."""
        return self._joined(which).pool(np.arange(len(which)))

    def _at_once(self, one: Any) -> Parties:
        return OwnColumns(self, one)

    _singly = _at_once

    def _joined(self, which: Array) -> Parties:
        chosen = [self[i] for i in which]
        columns = {name: np.concatenate([one.columns[name] for one in chosen]) for name in chosen[0].columns}
        w = np.concatenate([one.w for one in chosen])
        return Parties([one.id for one in chosen], columns, [len(one.w) for one in chosen], w)


def present_only(columns: Mapping[str, Array], w: Array) -> Array:
    """Record weights, zero for records that a preparation has left out."""
    return np.where(columns[PRESENT], w, 0.0) if PRESENT in columns else w


def _made_by(parties: Parties, i: int, one: Callable[[Party], Mapping[str, Array]]) -> dict[str, Array] | Exception:
    """What a preparation makes of a party, or why it fails."""
    try:
        party = apart(parties[i])
        made = {name: np.asarray(values) for name, values in one(party).items()}
        _check_lengths(made, len(party.w))
    except Exception as error:
        return error.with_traceback(None)
    return made


def one_by_one(kept: Party, one: Callable[[Party], Mapping[str, Array]]) -> tuple[dict[str, Array], Array]:
    """What a preparation makes of each record alone, and for which records it fails; raises where it fails for all.

    New columns have the same names, shapes and types for every record, by contract; one with other names or shapes than the
    first one counts as failed.
    """
    n = len(kept.w)
    made: dict[str, Array] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    failed, why = np.zeros(n, bool), ""
    for i in range(n):
        part = slice(i, i + 1)
        try:
            record = apart(Party("one record", Rows(kept.columns, part), kept.w[part]))
            found = {name: np.asarray(values) for name, values in one(record).items()}
            _check_lengths(found, 1)
            shapes = shapes or {name: values.shape[1:] for name, values in found.items()}
            if {name: values.shape[1:] for name, values in found.items()} != shapes:
                raise ColumnsDiffer("a preparation makes other columns of one record than of another.")
        except Exception as error:
            failed[i], why = True, why or f"{type(error).__name__}: {error}"
            continue
        if not made:
            made = {name: np.zeros((n, *values.shape[1:]), values.dtype) for name, values in found.items()}
        for name, values in found.items():
            if values.dtype != made[name].dtype:
                made[name] = made[name].astype(np.result_type(values, made[name]))
            made[name][i] = values[0]
    if not made:
        nobody = Party(kept.id, Rows(kept.columns, slice(0, 0)), kept.w[:0])
        made = {name: np.zeros((n, *np.shape(values)[1:]), np.asarray(values).dtype) for name, values in one(nobody).items()}
    if why:
        log.warning("%d records could not be prepared and are left out; the first: %s", failed.sum(), why)
    return made, failed


def _made_of(one: Any, kept: Party, rows: Any) -> Mapping[str, Array]:
    """What a preparation makes of some records."""
    made: Mapping[str, Array] = one(Party(kept.id, Rows(kept.columns, rows), kept.w[rows]))
    return made


def _read_through(parties: Parties) -> Parties:
    """The parties, once all columns that are read later were read: what fails for a record fails here, not at a question."""
    read_through(parties.columns)
    return parties


def _check_lengths(made: Mapping[str, Array], n: int) -> None:
    for name, values in made.items():
        if np.shape(values)[:1] != (n,):
            raise ColumnsDiffer(f"the prepared column {name!r} has the shape {np.shape(values)} for {n} records.")


def _failing(party: Party, *, error: Exception) -> Mapping[str, Array]:
    raise error


Local = Callable[..., Any]
"""A local function: `(broadcast, party, rng, **settings) -> dict of arrays` (or None for `each`)."""
