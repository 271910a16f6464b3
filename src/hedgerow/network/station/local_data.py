"""What a station holds: its records by party, in order, and which policy is whose."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hedgerow.core.party import Parties
from hedgerow.data import Schema, Table
from hedgerow.data.cases import whole_cases
from hedgerow.errors import ConfigInvalid, EmptyParty
from hedgerow.wire.values import pack, unpack

from .config import StationConfig, StorePolicy


@dataclass(frozen=True)
class Roll:
    """The parties of a station and their policies, without records.

    Attributes
    ----------
    epsilons : tuple of float or None
        Of each policy: its own epsilon, or None for the station's.
    policies : array of int, shape (n_parties,), optional
        Which of them is a party's.
    """

    ids: tuple[str, ...]
    epsilons: tuple[float | None, ...] = (None,)
    policies: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def policy(self) -> np.ndarray:
        """Policy of each party, shape (n_parties,)."""
        return np.zeros(len(self.ids), np.int64) if self.policies is None else self.policies

    def pack(self) -> bytes:
        """As bytes, to be kept."""
        return pack((self.ids, self.epsilons, self.policy))

    @classmethod
    def unpack(cls, raw: bytes) -> Roll:
        return cls(*unpack(raw))


class Held(Protocol):
    """What a station tells of its records: columns, parties and sizes, without the records."""

    @property
    def schema(self) -> Schema: ...

    @property
    def roll(self) -> Roll: ...

    @property
    def sizes(self) -> np.ndarray: ...

    @property
    def ids(self) -> tuple[str, ...]: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class HeldElsewhere:
    """Columns, parties and sizes of records that another process holds."""

    schema: Schema
    roll: Roll
    sizes: np.ndarray

    def __len__(self) -> int:
        return len(self.roll.ids)

    @property
    def ids(self) -> tuple[str, ...]:
        """Names of the parties."""
        return self.roll.ids


@dataclass(frozen=True)
class LocalData:
    """Records of one station, by party.

    Attributes
    ----------
    schema : Schema
        Of all columns but the one that tells stores apart.
    columns : mapping from name to array
        Records ordered by party; and their ids, by the name of their column, which the schema does not have.
    sizes : array of int, shape (n_parties,)
    """

    schema: Schema
    roll: Roll
    columns: Mapping[str, np.ndarray]
    sizes: np.ndarray

    def __len__(self) -> int:
        return len(self.roll.ids)

    @property
    def ids(self) -> tuple[str, ...]:
        """Names of the parties."""
        return self.roll.ids

    def parties(self, names: Sequence[str], weight: str | None = None) -> Parties:
        """All parties with these columns alone: what is not here cannot be touched."""
        held = {name: self.columns[name] for name in names}
        return Parties(self.ids, held, self.sizes, self.columns[weight] if weight else None)


def local_data(
    config: StationConfig,
    table: Table,
    secret: bytes,
    policies: Mapping[str, StorePolicy] | None = None,
    ids: np.ndarray | None = None,
) -> LocalData:
    """Order a station's records by party.

    Parameters
    ----------
    table : Table
        As `open_table` returns it.
    secret : bytes
        By which stores are named: who knows a store's value cannot tell from a name which one it is.
    policies : mapping, optional
        What differs for single stores, by the value that tells them apart.
    ids : array of str, optional
        Of the records, as `open_records` returns them.

    Raises
    ------
    EmptyParty (HR-406)
        No store takes part.
    ConfigInvalid (HR-601)
        A policy is about a store that does not exist.
    """
    schema = config.declared
    columns = {name: table.columns[name] for name in schema.names}
    if config.stores is None:
        if ids is not None and config.data.ids is not None:
            columns[config.data.ids] = ids
        return LocalData(schema, Roll((config.name,)), columns, np.array([len(table)]))
    table = whole_cases(table, [config.stores.by])  # a record of no store is nobody's
    columns = {name: table.columns[name] for name in schema.names}
    values, owner = np.unique(table[config.stores.by], return_inverse=True)
    words = [_word(value, table.schema[config.stores.by].levels) for value in values]
    policies = policies or {}
    if unknown := sorted(set(policies) - set(words)):
        raise ConfigInvalid(f"policies name {unknown[0]!r}, and no record belongs to it.", remedy="Take it out, or correct it.")
    chosen = [policies.get(word, StorePolicy()) for word in words]
    kept = np.array([policy.allow for policy in chosen])
    if not kept.any():
        why = "all of them have allow = no" if len(kept) else "there are no records"
        raise EmptyParty(f"no store takes part: {why}.", remedy="Look at stores.policies, and at [data] of station.toml.")
    rows = np.flatnonzero(kept[owner])
    rows = rows[np.argsort(owner[rows], kind="stable")]
    sizes = np.bincount(owner[rows], minlength=len(words))[kept]
    ids = tuple(f"{config.name}/{_tag(word, secret)}" for word, takes in zip(words, kept, strict=True) if takes)
    epsilons = tuple(dict.fromkeys((None, *(policy.epsilon for policy in chosen))))
    which = np.array([epsilons.index(policy.epsilon) for policy, takes in zip(chosen, kept, strict=True) if takes])
    return LocalData(schema, Roll(ids, epsilons, which), {name: column[rows] for name, column in columns.items()}, sizes)


def _tag(word: str, secret: bytes) -> str:
    return hashlib.blake2b(word.encode(), key=secret[:64], digest_size=10, person=b"hedgerow store").hexdigest()


def _word(value: Any, levels: Sequence[str]) -> str:
    """A store's value as the policies spell it."""
    if levels:
        return levels[int(value)]
    return str(int(value)) if float(value).is_integer() else str(value)
