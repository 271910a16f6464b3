"""Partitions of columns, for simulations: each party holds columns of its own of the same people, and an id.

    scheme(table, seed) -> {party: Table}      deterministic in the seed

    columns_by_name           as they are named
    columns_by_importance     so that what the columns say of the target is unequal between parties, as a Dirichlet law has it
    columns_by_correlation    so that related columns lie at one party, or apart

Every party's records stand in an order of their own. All parties hold a share of the people, and each other one is at one party
alone. The column `on` says who a record is; where the table has no such column, ids are made up.

Source: Z. Wu, J. Hou and B. He, VertiBench: Advancing Feature Distribution Diversity in Vertical Federated Learning
Benchmarks, ICLR 2024, for the two axes. We differ in these: importance is a column's association with the target, not a share
of a model's Shapley values, and columns are dealt by it; correlation between parties is the mean association of their
columns, and exchanges search for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.core.randomness import Streams
from hedgerow.errors import PartitionInvalid

from .association import associations
from .column import Column
from .column_parts import parts
from .partition import numbered, target_of
from .schema import Schema
from .table import Table

ID_BITS = 52
"""Of an id that is made up: whole numbers that a table holds exactly."""

SAMPLE = 5_000
"""Records from which associations of columns are computed."""

EXCHANGES = 400
"""Tries to exchange two columns, of `columns_by_correlation`."""


class ColumnPartitioner(ABC):
    """A scheme with its settings: called with a table and a seed, it returns each party's table.

    Schemes are frozen data classes in lower case, used like functions, as those that partition records.
    """

    on: str
    overlap: float

    def __call__(self, table: Table, seed: int) -> dict[str, Table]:
        """Return each party's table: the column `on`, and the party's own.

        Raises
        ------
        MissingColumn (HR-403)
            A column that the table does not have.
        PartitionInvalid (HR-408)
            The scheme does not fit the table.
        """
        if not 0 < self.overlap <= 1:
            raise PartitionInvalid(f"overlap={self.overlap!r}.", remedy="Choose a share above 0 and at most 1.")
        rng = Streams(seed).stream(0, "server", "columns apart").generator
        columns = self.columns_of(table, rng)
        empty = [party for party, names in columns.items() if not set(names) - {self.on}]
        if empty or len(columns) < 2:
            raise PartitionInvalid(
                f"{self} gives {', '.join(map(repr, empty)) or 'one party alone'} no column."
                if empty
                else f"{self} makes {len(columns)} party.",
                remedy="Every one of two or more parties needs a column, beside the ids.",
            )
        ids, declared = ids_of(table, self.on, rng)
        held = {}
        for party, records in people_apart(rng.permutation(len(table)), tuple(columns), self.overlap, rng).items():
            own = parts(table, [name for name in columns[party] if name != self.on], records)
            schema = Schema((declared, *own.schema))
            held[party] = replace(own, columns={self.on: ids[records], **own.columns}, schema=schema, name=party)
        return held

    @abstractmethod
    def columns_of(self, table: Table, rng: np.random.Generator) -> dict[str, tuple[str, ...]]:
        """Decide which party holds which columns."""


@dataclass(frozen=True)
class columns_by_name(ColumnPartitioner):
    """Columns as they are named.

    Parameters
    ----------
    columns : mapping from party to names
        Each of them a column, or a part of a column of arrays, such as "signals[0:3]" or "image[:, 14:28]". A column may be
        at several parties.
    on : str
        The column by which people are known; made up where the table has none of that name.
    overlap : float
        Share of the people whom all parties hold; each other one is at one party alone.

    Examples
    --------
    >>> heart = hr.data.load("heart_failure")
    >>> scheme = hr.data.columns_by_name(
    ...     {"clinic": ["age", "sex"], "laboratory": ["serum_sodium", "death_event"]}, overlap=0.9
    ... )
    >>> held = scheme(heart, seed=0)
    >>> held["clinic"].schema.names, len(held["clinic"]), len(held["laboratory"])
    (('id', 'age', 'sex'), 284, 284)
    """

    columns: Mapping[str, Sequence[str]]
    on: str = "id"
    overlap: float = 1.0

    def columns_of(self, table: Table, rng: np.random.Generator) -> dict[str, tuple[str, ...]]:
        return {party: tuple(names) for party, names in self.columns.items()}


@dataclass(frozen=True)
class columns_by_importance(ColumnPartitioner):
    """Features dealt so that parties' shares of what they say of the target follow a Dirichlet law; the target is at one.

    A feature's importance is its association with the target (`hedgerow.data.association`). Shares are drawn, and features, the
    most important first, go to the party that lacks most of its share; each party has one at least.

    Parameters
    ----------
    parties : int, or sequence of str
        How many, or their names.
    alpha : float
        Of the Dirichlet law: large for equal shares, below one for a party that holds nearly everything.
    label : str, optional
        The party that holds the target; the first by default.
    on, overlap
        As of `columns_by_name`.
    """

    parties: int | Sequence[str]
    alpha: float
    label: str | None = None
    on: str = "id"
    overlap: float = 1.0

    def columns_of(self, table: Table, rng: np.random.Generator) -> dict[str, tuple[str, ...]]:
        if not 0 < self.alpha < np.inf:
            raise PartitionInvalid(f"columns_by_importance was given alpha={self.alpha!r}.", remedy="Choose a number above 0.")
        names, features, target = _given(self, table)
        found = associations(_sample(table, rng).select([*features, target]))[:-1, -1]
        shares = rng.dirichlet([self.alpha] * len(names))
        lacks = shares * found.sum()
        held: list[list[int]] = [[] for _ in names]
        for rank, feature in enumerate(np.argsort(-found, kind="stable")):
            bare = [i for i, own in enumerate(held) if not own]
            among = bare if len(bare) == len(features) - rank else list(range(len(names)))
            party = max(among, key=lambda i: lacks[i])
            held[party].append(int(feature))
            lacks[party] -= found[feature]
        return _named(self, names, held, features, target)


@dataclass(frozen=True)
class columns_by_correlation(ColumnPartitioner):
    """Features dealt in equal numbers so that those of different parties are as related as they can be, or as little.

    How related two columns are is their association (`hedgerow.data.association`), and how related parties are its mean over
    pairs of columns at different parties. The scheme exchanges columns until this is nearest to
    `(1 - correlated) least + correlated most`, where least and most are what exchanges find.

    Parameters
    ----------
    parties : int, or sequence of str
        How many, or their names.
    correlated : float
        From 0, related columns at one party, to 1, related columns at different parties.
    label, on, overlap
        As of `columns_by_importance`.
    """

    parties: int | Sequence[str]
    correlated: float
    label: str | None = None
    on: str = "id"
    overlap: float = 1.0

    def columns_of(self, table: Table, rng: np.random.Generator) -> dict[str, tuple[str, ...]]:
        if not 0 <= self.correlated <= 1:
            raise PartitionInvalid(
                f"columns_by_correlation was given correlated={self.correlated!r}.", remedy="Choose a number from 0 to 1."
            )
        names, features, target = _given(self, table)
        related = associations(_sample(table, rng).select(features))
        start = rng.permutation(np.arange(len(features)) % len(names))
        least, most = (_exchanged(start, related, goal, rng) for goal in (0.0, 1.0))
        goal = (1 - self.correlated) * between(least, related) + self.correlated * between(most, related)
        owner = min(
            (_exchanged(one, related, goal, rng) for one in (least, most)), key=lambda o: abs(between(o, related) - goal)
        )
        held = [np.flatnonzero(owner == i).tolist() for i in range(len(names))]
        return _named(self, names, held, features, target)


def between(owner: np.ndarray, related: np.ndarray) -> float:
    """Return the mean association of columns at different parties.

    Parameters
    ----------
    owner : int array of shape (k,)
    related : array of shape (k, k)
    """
    apart = owner[:, None] != owner
    return float(related[apart].mean())


def people_apart(people: np.ndarray, parties: Sequence[str], overlap: float, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return which people are at each party, in an order of its own; the first of them, a share, are at all parties."""
    common = round(overlap * len(people))
    held = {}
    for party, more in zip(parties, np.array_split(people[common:], len(parties)), strict=True):
        records = np.concatenate([people[:common], more])
        held[party] = records[rng.permutation(len(records))]
    return held


def made_ids(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n different whole numbers for the ids of people who have none, int64."""
    made = np.sort((rng.random(n + 64) * 2.0**ID_BITS).astype(np.int64))
    made = made[np.diff(made, prepend=-1) > 0]
    return made[rng.permutation(len(made))[:n]]


def ids_of(table: Table, on: str, rng: np.random.Generator) -> tuple[np.ndarray, Column]:
    """Return a table's ids and their declaration; different whole numbers where it has none."""
    if on in table.schema:
        column = table.schema[on]
        if column.shape:
            raise PartitionInvalid(f"ids in {on!r} are arrays.", remedy="Name a column with one value for each person.")
        return np.asarray(table[on]), replace(column, role="id")
    made = made_ids(len(table), rng).astype(np.float64)
    return made, Column(on, "integer", role="id", low=0, high=2**ID_BITS - 1, description="made up")


def _given(scheme: columns_by_importance | columns_by_correlation, table: Table) -> tuple[list[str], list[str], str]:
    """The parties' names, the features and the target."""
    given = scheme.parties
    names = numbered(given) if isinstance(given, int) else list(given)
    features = [name for name in table.schema.features if name != scheme.on]
    target = target_of(scheme, table)  # type: ignore[arg-type]
    if not 2 <= len(names) <= len(features) or len(set(names)) < len(names):
        raise PartitionInvalid(
            f"{len(features)} features for the parties {names}.", remedy="Choose two parties or more, and a feature for each."
        )
    if scheme.label is not None and scheme.label not in names:
        raise PartitionInvalid(f"label={scheme.label!r} is none of the parties {names}.", remedy="Name one of them.")
    return names, features, target


def _named(
    scheme: columns_by_importance | columns_by_correlation,
    names: Sequence[str],
    held: Sequence[Sequence[int]],
    features: Sequence[str],
    target: str,
) -> dict[str, tuple[str, ...]]:
    seat = scheme.label or names[0]
    own = {party: tuple(features[i] for i in sorted(which)) for party, which in zip(names, held, strict=True)}
    return {party: (*columns, target) if party == seat else columns for party, columns in own.items()}


def _sample(table: Table, rng: np.random.Generator) -> Table:
    return table if len(table) <= SAMPLE else table.take(np.sort(rng.permutation(len(table))[:SAMPLE]))


def _exchanged(owner: np.ndarray, related: np.ndarray, goal: float, rng: np.random.Generator) -> np.ndarray:
    """Exchange pairs of columns of different parties as long as this brings the mean association nearer to the goal."""
    owner = owner.copy()
    off = abs(between(owner, related) - goal)
    for i, j in rng.integers(0, len(owner), (EXCHANGES, 2)):
        if owner[i] == owner[j]:
            continue
        owner[[i, j]] = owner[[j, i]]
        if (now := abs(between(owner, related) - goal)) < off:
            off = now
        else:
            owner[[i, j]] = owner[[j, i]]
    return owner
