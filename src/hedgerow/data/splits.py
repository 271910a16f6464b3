"""Partitions without skew of our making: natural parties, records dealt at random, given sizes, one party for each record."""

from __future__ import annotations

import random
import warnings
from dataclasses import dataclass

import numpy as np

from hedgerow.errors import HedgerowWarning, PartitionInvalid

from .partition import NO_PARTY, Draw, Partitioner, deal, numbered, require, require_whole
from .table import Table

MANY, VERY_MANY = 100, 1_000
"""Parties of a column's values: so many with a single record each are refused, and so many are warned of."""


@dataclass(frozen=True)
class by_column(Partitioner):
    """Natural parties: the records with one value of `column` are one party, named after the value.

    Parameters
    ----------
    column : str
        A column with one value for each record; its role does not matter, and stays: a feature is an input of a network too,
        unless it is declared with `role="ignore"` or `features=[...]` leaves it out.

    Raises
    ------
    PartitionInvalid (HR-408)
        Most of more than 100 parties would have a single record: the column is a measurement or names records.

    Warns
    -----
    HedgerowWarning
        There are more than 1000 parties. Models warn that read the column as a feature because no features were named.
    """

    column: str

    def draw(self, table: Table, rng: np.random.Generator) -> Draw:
        column = table.schema[self.column]
        if column.shape:
            raise PartitionInvalid(
                f"{self}: the column holds arrays of shape {column.shape}.", remedy="Choose a column of single values."
            )
        if column.lacks(table[self.column]).any():
            raise PartitionInvalid(
                f"{self}: {column.lacks(table[self.column]).sum()} of {len(table)} records lack {self.column!r}, "
                "and belong to no party.",
                remedy="Take them out before, or give them a value of their own.",
            )
        values, owner, sizes = np.unique(table[self.column], return_inverse=True, return_counts=True)
        self._refuse_single(sizes, len(table))
        if column.kind == "category":
            names = [column.levels[code] for code in values]
        else:
            names = [repr(int(value)) if value.is_integer() else repr(float(value)) for value in values]
        sentence = f"{len(names)} natural parties, one for each value of {self.column} that occurs."
        return Draw(owner, names, sentence)

    def _refuse_single(self, sizes: np.ndarray, n_records: int) -> None:
        single = int((sizes == 1).sum())
        if len(sizes) > MANY and 2 * single > len(sizes):
            raise PartitionInvalid(
                f"{self} makes {len(sizes)} parties of {n_records} records, {single} of them with a single record.",
                remedy="Name a column of groups, such as a hospital; deal records at random by iid(parties=...); or say\n"
                "stores() if each record is a party of its own.",
            )
        if len(sizes) > VERY_MANY:
            warnings.warn(
                f"{self} makes {len(sizes)} parties of {n_records} records, {single} of them with a single record. Name a "
                "column of fewer groups, or iid(parties=...), unless all of them are meant.",
                HedgerowWarning,
                stacklevel=4,
            )


@dataclass(frozen=True)
class iid(Partitioner):
    """Records dealt at random, in equal numbers (differing by at most one).

    Parameters
    ----------
    parties : int
    """

    parties: int

    def __post_init__(self) -> None:
        require_whole(self, "parties")

    def draw(self, table: Table, rng: np.random.Generator) -> Draw:
        sentence = f"{len(table)} records dealt at random to {self.parties} parties."
        return Draw(deal(len(table), self.parties, rng), numbered(self.parties), sentence)


@dataclass(frozen=True)
class in_order(Partitioner):
    """Records in the order in which they stand, in runs of equal length (differing by at most one).

    Nothing is drawn and nothing copied: of a table in files (`Table.from_files`) no record is read before it is asked.

    Parameters
    ----------
    parties : int
    """

    parties: int

    def __post_init__(self) -> None:
        require_whole(self, "parties")

    def runs(self, n: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Names of the parties and their sizes, each holding the records that follow those of the one before."""
        sizes = tuple(n // self.parties + (i < n % self.parties) for i in range(self.parties))
        self._refuse_empty(numbered(self.parties), np.array(sizes), n)
        return tuple(numbered(self.parties)), sizes

    def draw(self, table: Table, rng: np.random.Generator) -> Draw:
        names, sizes = self.runs(len(table))
        return Draw(np.repeat(np.arange(self.parties), sizes), names, f"{self.parties} parties of records in their order.")


@dataclass(frozen=True)
class of_sizes(Partitioner):
    """Parties of given sizes; the records that remain are left out.

    Parameters
    ----------
    sizes : list of int
        Records of each party.
    shuffled : bool
        Whether records are dealt at random; otherwise each party holds those that follow the one before's, as they stand.
    """

    sizes: list[int]
    shuffled: bool = True

    def __post_init__(self) -> None:
        whole = all(isinstance(size, int) and not isinstance(size, bool) and size >= 1 for size in self.sizes)
        require(self, "sizes", bool(self.sizes) and whole, "Choose whole numbers of at least 1.")

    def draw(self, table: Table, rng: np.random.Generator) -> Draw:
        total = sum(self.sizes)
        require(self, "sizes", total <= len(table), f"Choose sizes that add up to {len(table)} at most.")
        owner = np.full(len(table), NO_PARTY)
        kept = rng.permutation(len(table))[:total] if self.shuffled else slice(total)
        owner[kept] = np.repeat(np.arange(len(self.sizes)), self.sizes)
        how = "dealt at random" if self.shuffled else "in their order"
        sentence = f"{total} records {how} to {len(self.sizes)} parties; {len(table) - total} are left out."
        return Draw(owner, numbered(len(self.sizes)), sentence)


@dataclass(frozen=True)
class stores(Partitioner):
    """One party for each record: personal data stores.

    Parameters
    ----------
    rows : int, optional
        The first so many records; the others are left out.
    shuffled : int, optional
        Of which order they are the first: that of `random.Random(shuffled).shuffle` over the row numbers. A number of its
        own, so that a study can name the rows of a publication; by default the table's order.
    """

    rows: int | None = None
    shuffled: int | None = None

    def __post_init__(self) -> None:
        if self.rows is not None:
            require_whole(self, "rows")

    def draw(self, table: Table, rng: np.random.Generator) -> Draw:
        n = len(table) if self.rows is None else min(self.rows, len(table))
        order = list(range(len(table)))
        if self.shuffled is not None:
            random.Random(self.shuffled).shuffle(order)
        owner = np.full(len(table), NO_PARTY)
        owner[order[:n]] = np.arange(n)
        sentence = f"{n} personal data stores, one for each record."
        if n < len(table):
            which = "of the table" if self.shuffled is None else f"in the order of shuffle {self.shuffled}"
            sentence = f"{n} personal data stores, one for each of the first records {which}; {len(table) - n} are left out."
        return Draw(owner, numbered(n), sentence)
