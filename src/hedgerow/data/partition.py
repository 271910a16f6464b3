"""Partitions: which party holds which record, and what a partitioner is.

    partitioner(table, seed) -> Partition        deterministic in the seed, disjoint, no party empty

Every record goes to exactly one party, except where a scheme must leave records out, or was asked to repeat them; its
sentence then says how many, or how often.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from hedgerow.core.randomness import Streams
from hedgerow.errors import EmptyParty, PartitionInvalid

from .table import Table

NO_PARTY = -1
N_BINS = 10
"""Quantile bins that stand for the labels of a numeric target."""


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """How many records of each label each party holds.

    Parameters
    ----------
    rows : tuple of str
        Parties.
    columns : tuple of str
        Labels, or quantile bins of a numeric target.
    counts : array of int, shape (parties, labels)
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: np.ndarray


@dataclass(frozen=True, eq=False)
class Partition:
    """Which party holds which record.

    Parameters
    ----------
    indices : tuple of int arrays
        Positions of each party's records, ascending; disjoint, unless a scheme gives records to several parties.
    names : tuple of str
        One for each party.
    heat : LabelCounts
        Records by party and label.
    sentence : str
        What was done, with numbers.
    columns : dict of str to array, optional
        Full-length columns that replace the table's, where the scheme alters data.
    """

    indices: tuple[np.ndarray, ...]
    names: tuple[str, ...]
    heat: LabelCounts
    sentence: str
    columns: dict[str, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.indices)

    def tables(self, table: Table) -> tuple[Table, ...]:
        """Return the records of each party as a table without test part."""
        altered = replace(table, columns=table.columns | (self.columns or {}), test=None)
        return tuple(replace(altered.take(records), name=name) for name, records in zip(self.names, self.indices, strict=True))


@dataclass(frozen=True)
class Draw:
    """What a scheme decides.

    Parameters
    ----------
    owner : int array of shape (n,), or (n, copies)
        Party of each record, or of each of its copies, from 0; `NO_PARTY` for a record that is left out.
    names : sequence of str
        Names of the parties.
    sentence : str
        What was done.
    columns : dict of str to array, optional
        Altered columns.
    """

    owner: np.ndarray
    names: Sequence[str]
    sentence: str
    columns: dict[str, np.ndarray] | None = None


class Partitioner(ABC):
    """A scheme with its settings: called with a table and a seed, it returns a `Partition`.

    Schemes are frozen data classes in lower case, used like functions: `iid(parties=5)` prints as it was written, and a
    study file can name it.
    """

    def __call__(self, table: Table, seed: int) -> Partition:
        """Return the partition of `table` that `seed` gives.

        Raises
        ------
        EmptyParty (HR-406)
            A party would have no record.
        PartitionInvalid (HR-408)
            The scheme does not fit the table.
        """
        rng = Streams(seed).stream(0, "server", f"partition {type(self).__name__}").generator
        draw = self.draw(table, rng)
        names = tuple(draw.names)
        owner = draw.owner.ravel()
        left_out = np.count_nonzero(owner == NO_PARTY)
        sizes = np.bincount(owner + 1, minlength=len(names) + 1)[1:]
        self._refuse_empty(names, sizes, len(table))
        order = np.argsort(owner, kind="stable")[left_out:] // (draw.owner.size // max(len(draw.owner), 1))
        altered = replace(table, columns=table.columns | draw.columns) if draw.columns else table
        return Partition(
            indices=tuple(np.split(order, np.cumsum(sizes)[:-1])),
            names=names,
            heat=_heat(Labels.of(altered), draw.owner, names),
            sentence=f"{draw.sentence} Parties hold {_span(sizes)} records.",
            columns=draw.columns,
        )

    @abstractmethod
    def draw(self, table: Table, rng: np.random.Generator) -> Draw:
        """Decide which party holds which record."""

    def _refuse_empty(self, names: Sequence[str], sizes: np.ndarray, n_records: int) -> None:
        empty = [name for name, size in zip(names, sizes, strict=True) if size == 0]
        if empty or not names:
            raise EmptyParty(
                f"{self} leaves {len(empty)} of {len(names)} parties without any of the {n_records} records"
                f"{': ' if empty else ''}{', '.join(empty[:3])}{', ...' if len(empty) > 3 else ''}.",
                remedy="Ask for fewer parties or a milder skew, or give more records.",
            )


def require(scheme: Partitioner, setting: str, allowed: bool, remedy: str) -> None:
    """Refuse a setting of a scheme that is not allowed."""
    if not allowed:
        value = getattr(scheme, setting)
        raise PartitionInvalid(f"{type(scheme).__name__} was given {setting}={value!r}.", remedy=remedy)


def require_whole(scheme: Partitioner, *settings: str) -> None:
    """Refuse settings that are not whole numbers of at least 1."""
    for setting in settings:
        value = getattr(scheme, setting)
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        require(scheme, setting, whole, "Choose a whole number of at least 1.")


def require_number(scheme: Partitioner, setting: str, least: float = 0, most: float = math.inf) -> None:
    """Refuse a setting that is not a finite number from `least` to `most`."""
    value = getattr(scheme, setting)
    allowed = isinstance(value, int | float) and math.isfinite(value) and least <= value <= most
    require(scheme, setting, allowed, f"Choose a finite number from {least:g} to {most:g}.")


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels by which records are told apart: levels of the target, or quantile bins of a numeric one; `missing` besides.

    Parameters
    ----------
    codes : int array of shape (n,)
    names : tuple of str
    """

    codes: np.ndarray
    names: tuple[str, ...]

    @classmethod
    def of(cls, table: Table) -> Labels:
        """Return the labels of a table; one label, `records`, where it has no target."""
        target = table.schema.target
        if target is None or table.schema[target].shape:
            return cls(np.zeros(len(table), int), ("records",))
        values = table[target]
        column = table.schema[target]
        if column.optional and (lost := column.lacks(values)).any():
            known = cls.of(replace(table.take(~lost), schema=table.schema.allowing(missing=False)))
            codes = np.full(len(table), len(known.names))
            codes[~lost] = known.codes
            return cls(codes, (*known.names, "missing"))
        if column.kind == "category":
            return cls(values.astype(int), column.levels)
        if column.kind == "binary":
            return cls(values.astype(int), ("0", "1"))
        ends = np.unique(np.quantile(values, np.linspace(0, 1, N_BINS + 1))) if len(values) else np.zeros(1)
        inner = ends[1:-1]
        names = tuple(f"{low:.4g} to {high:.4g}" for low, high in pairwise(ends))
        return cls(np.searchsorted(inner, values, side="right"), names or (f"{ends[0]:.4g}",))

    @cached_property
    def present(self) -> np.ndarray:
        """Codes that some record has, ascending."""
        return np.unique(self.codes)

    def records(self, code: int, rng: np.random.Generator) -> np.ndarray:
        """Return the positions of the records with one label, shuffled."""
        return rng.permutation(np.flatnonzero(self.codes == code))


def deal(n_records: int, parties: int, rng: np.random.Generator) -> np.ndarray:
    """Return the owner of each record when records are dealt at random, sizes differing by at most one."""
    return rng.permutation(np.arange(n_records) % parties)


def numbered(parties: int) -> list[str]:
    """Return `party 1`, ..., the names of parties that have none of their own."""
    return [f"party {i}" for i in range(1, parties + 1)]


def target_of(scheme: Partitioner, table: Table) -> str:
    """Return the name of the target, for a scheme that needs one with a single value for each record."""
    target = table.schema.target
    if target is None or table.schema[target].shape:
        raise PartitionInvalid(
            f"{scheme} needs labels, and table {table.name!r} has no target of single values.",
            remedy="Name one: table.with_roles(target=...).",
        )
    return target


def _heat(labels: Labels, owner: np.ndarray, names: tuple[str, ...]) -> LabelCounts:
    shape = (len(names), len(labels.names))
    kept = owner != NO_PARTY
    codes = labels.codes if owner.ndim == 1 else np.broadcast_to(labels.codes[:, None], owner.shape)
    cells = owner[kept] * shape[1] + codes[kept]
    return LabelCounts(names, labels.names, np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape))


def _span(sizes: np.ndarray) -> str:
    return f"{sizes.min()} to {sizes.max()}" if sizes.min() != sizes.max() else f"{sizes[0]}"
