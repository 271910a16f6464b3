"""A chain of columns, and what parties do with it: complete m copies of their records, and add up models of them.

A party keeps, for each incomplete column, the values that were drawn for its own missing ones, in each of the copies: of shape
(copies, records that lack it), never more. Numbers are kept in units of half their declared range about its middle, and held
within `ROOM` of these, or within the range itself (`squeeze`); events as 0 and 1.

A model of a column reads all others of the chain: numbers in these units, binary columns, and indicators of levels but the
first. It is fitted to the records that have the column; of the others the copies' values count as they are now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from hedgerow.core.arrays import Array
from hedgerow.core.party import Party
from hedgerow.core.question import local, minds_missing, travels
from hedgerow.data import Column
from hedgerow.errors import SchemaInvalid, SettingsInvalid, StateLost

from ..columns import range_of
from ..design import Design, design
from ..linear.losses import FamilyName, loss_of
from ..linear.sums import At, products, triangle

if TYPE_CHECKING:
    from hedgerow.data import Schema

ROOM = 2.0
"""Drawn numbers may reach so many times half the declared range from its middle."""


@travels
@dataclass(frozen=True)
class ColumnChain:
    """The columns that are imputed, and those that help.

    Attributes
    ----------
    columns : tuple of Column
    copies : int
    squeeze : bool
        Whether drawn numbers are held within declared ranges.
    """

    columns: tuple[Column, ...]
    copies: int
    squeeze: bool = False

    @classmethod
    def of(cls, schema: Schema, names: tuple[str, ...], copies: int, *, squeeze: bool) -> ColumnChain:
        """Choose and check columns; nobody is asked.

        Raises
        ------
        SchemaInvalid (HR-409), SettingsInvalid (HR-511)
        """
        columns = tuple(schema[name] for name in names)
        if copies < 2:
            raise SettingsInvalid(f"copies={copies} tell nothing of how sure a value is.", remedy="Give 10, or more.")
        for column in columns:
            if column.shape:
                raise SchemaInvalid(f"column {column.name!r} holds arrays.", remedy="Leave it out of the chain.")
            if column.optional and len(column.levels) > 2:
                raise SchemaInvalid(
                    f"category {column.name!r} has {len(column.levels)} levels and may be missing; draws are of numbers and of "
                    "two levels.",
                    remedy="Leave it out; or declare a level for what is missing, or a binary column for each level.",
                )
        chain = cls(columns, copies, squeeze)
        if not chain.incomplete:
            raise SettingsInvalid(
                f"none of {', '.join(names[:5])} may be missing.",
                remedy='Keep missing values when records are read (missing = "drop"), so that columns are declared optional.',
            )
        if len(columns) < 2:
            raise SettingsInvalid("a chain of one column has nothing to learn from.", remedy="Name columns that tell of it.")
        return chain

    @property
    def incomplete(self) -> tuple[int, ...]:
        """Places of the columns whose values may be missing."""
        return tuple(i for i, column in enumerate(self.columns) if column.optional)

    @property
    def size(self) -> int:
        """Columns of all blocks together."""
        return sum(map(_width, self.columns))

    @property
    def room(self) -> float:
        """How far a number may be from the middle of its range, in halves."""
        return 1.0 if self.squeeze else ROOM

    @property
    def declared(self) -> bool:
        """Whether all ranges are."""
        return all(range_of(column) is not None for column in self.columns if column.kind != "category")

    def is_event(self, place: int) -> bool:
        """Whether a column is drawn from a logistic model."""
        return self.columns[place].kind in ("binary", "category")

    def schema(self, schema: Schema) -> Schema:
        """The schema of completed copies: nothing of the chain is missing, and drawn numbers reach further."""
        made = []
        for column in schema:
            if column not in self.columns or not column.optional:
                made.append(column)
                continue
            whole = replace(column, optional=False)
            if column.kind in ("number", "integer"):
                centre, half = frame_of(column)
                whole = replace(whole, kind="number")
                if range_of(column) is not None:
                    whole = replace(whole, low=centre - self.room * half, high=centre + self.room * half)
            made.append(whole)
        return type(schema)(tuple(made))


def frame_of(column: Column) -> tuple[float, float]:
    """Middle and half of a declared range; 0 and 1 where there is none."""
    ends = None if column.kind in ("binary", "category") else range_of(column)
    if ends is None or not ends[1] > ends[0]:
        return (0.0, 1.0) if ends is None else (ends[0], 1.0)
    return (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2


def _width(column: Column) -> int:
    return len(column.levels) - 1 if column.kind == "category" else 1


# ---- what a party keeps ---------------------------------------------------------------------------------------------
def _key(chain: ColumnChain, place: int) -> str:
    """Where a party keeps what it draws: of this chain, since another one has other places, copies and ranges."""
    names = ", ".join(column.name for column in chain.columns)
    return f"drawn {place} of {names}; {chain.copies} copies{', squeezed' * chain.squeeze}"


def _held(chain: ColumnChain, place: int, party: Party) -> tuple[Array, Array]:
    """A column in its frame (n,), and which values are missing."""
    column = chain.columns[place]
    values = np.asarray(party[column.name])
    lost = column.lacks(values) if column.optional else np.zeros(values.shape, bool)
    if column.kind == "category":
        return values.astype(float), lost
    centre, half = frame_of(column)
    return (np.where(lost, 0.0, values) - centre) / half, lost


@travels
@minds_missing
def nothing_drawn(broadcast: Any, party: Party, *, chain: ColumnChain) -> dict[str, Array]:
    """What a party begins with: zeros for what is missing."""
    return {
        _key(chain, place): np.zeros((chain.copies, int(_held(chain, place, party)[1].sum()))) for place in chain.incomplete
    }


def _copies(chain: ColumnChain, place: int, party: Party) -> Array:
    """A column of all copies in its frame, shape (copies, n)."""
    values, lost = _held(chain, place, party)
    found = np.broadcast_to(values, (chain.copies, len(values)))
    if not lost.any():
        return found
    found = found.copy()
    found[:, lost] = _drawn(chain, place, party)
    return found


def _drawn(chain: ColumnChain, place: int, party: Party) -> Array:
    """What a party has drawn of a column, shape (copies, records that lack it)."""
    if _key(chain, place) not in party.state:
        raise StateLost(
            "this party keeps no drawn values of this chain.",
            remedy="Impute anew: a chain goes on from what parties drew.",
        )
    return np.asarray(party.state[_key(chain, place)])


def _rows(chain: ColumnChain, target: int, party: Party) -> Array:
    """The constant and all columns but one, of all copies, shape (copies, n, p)."""
    blocks = [np.ones((chain.copies, len(party.w), 1))]
    for place, column in enumerate(chain.columns):
        if place == target:
            continue
        values = _copies(chain, place, party)
        codes = np.arange(1, len(column.levels)) if column.kind == "category" else None
        blocks.append(values[..., None] if codes is None else (values[..., None] == codes).astype(float))
    return np.concatenate(blocks, axis=-1)


# ---- sums of the chain ----------------------------------------------------------------------------------------------
@minds_missing
@local
def observed(broadcast: None, party: Party, rng: Any, *, chain: ColumnChain) -> Array:
    """Add up, of each incomplete column, records that have it, their values and squares in its frame, shape (k, 3)."""
    found = []
    for place in chain.incomplete:
        values, lost = _held(chain, place, party)
        w = np.where(lost, 0.0, party.w)
        x = np.where(lost, 0.0, values)
        found.append([w.sum(), (w * x).sum(), (w * x * x).sum()])
    return np.array(found)


@minds_missing
@local
def copies_gram(broadcast: None, party: Party, rng: Any, *, chain: ColumnChain, target: int) -> Array:
    """Add up products of [1, others, target] over records that have the target, shape (copies, (p + 1)(p + 2) / 2)."""
    values, lost = _held(chain, target, party)
    Z, w = _rows(chain, target, party), np.where(lost, 0.0, party.w)
    y = np.broadcast_to(np.where(lost, 0.0, values), Z.shape[:2])
    return triangle(products(np.concatenate([Z, y[..., None]], axis=-1), np.broadcast_to(w, y.shape)))


@minds_missing
@local
def copies_logistic(beta: Array, party: Party, rng: Any, *, chain: ColumnChain, target: int) -> dict[str, Array]:
    """Add up `score` (copies, p) and `information`, upper triangles, of logistic models at `beta` (copies, p), and `n`."""
    values, lost = _held(chain, target, party)
    Z, w = _rows(chain, target, party), np.where(lost, 0.0, party.w)
    mean = expit((Z @ beta[..., None])[..., 0])
    away = w * (np.where(lost, 0.0, values) - mean)
    information = triangle(products(Z, w * mean * (1 - mean)))
    return {"score": (away[:, None, :] @ Z)[:, 0], "information": information, "n": w.sum()}


@minds_missing
@local
def begin(broadcast: Mapping[str, Array], party: Party, rng: Any, *, chain: ColumnChain, noise: bool) -> None:
    """Draw what is missing from `mean` and `sd` (k,) of the columns themselves; nothing leaves."""
    for i, place in enumerate(chain.incomplete):
        kept = np.zeros((chain.copies, int(_held(chain, place, party)[1].sum())))
        mean, sd = float(broadcast["mean"][i]), float(broadcast["sd"][i])
        party.state[_key(chain, place)] = _draw(
            chain, place, np.full(kept.shape, mean), np.full(len(kept), sd), rng, noise=noise
        )


@minds_missing
@local
def draw(broadcast: Mapping[str, Array], party: Party, rng: Any, *, chain: ColumnChain, target: int, noise: bool) -> None:
    """Draw what is missing of a column from each copy's model, `beta` (copies, p) and `sd` (copies,); nothing leaves."""
    lost = _held(chain, target, party)[1]
    _drawn(chain, target, party)
    eta = (_rows(chain, target, party)[:, lost] @ broadcast["beta"][..., None])[..., 0]
    mean = expit(eta) if chain.is_event(target) else eta
    party.state[_key(chain, target)] = _draw(chain, target, mean, broadcast["sd"], rng, noise=noise)


def _draw(chain: ColumnChain, place: int, mean: Array, sd: Array, rng: Any, *, noise: bool) -> Array:
    if chain.is_event(place):
        return (rng.random(mean.shape) < mean if noise else mean > 0.5).astype(float)
    drawn = mean + (sd[:, None] * rng.standard_normal(mean.shape) if noise else 0.0)
    return np.clip(drawn, -chain.room, chain.room) if range_of(chain.columns[place]) is not None else drawn


# ---- sums of an analysis --------------------------------------------------------------------------------------------
def _completed(chain: ColumnChain, party: Party) -> Iterator[dict[str, Array]]:
    """The columns of each copy, in their own units."""
    wholes = {}
    for place in chain.incomplete:
        column, values = chain.columns[place], _copies(chain, place, party)
        centre, half = frame_of(column)
        wholes[column.name] = values.astype(np.int16) if column.kind == "category" else centre + half * values
    for i in range(chain.copies):
        yield {name: values[i] for name, values in wholes.items()}


@minds_missing
@local
def copies_sums(
    broadcast: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    chain: ColumnChain,
    spec: Design,
    family: FamilyName,
    keys: tuple[str, ...],
) -> dict[str, Array]:
    """Add up `keys` of a regression of each copy at its own `beta` (copies, d), about its own `centre` of the target."""
    loss, found = loss_of(family), []
    read = [name for name in spec.schema.names if name in party.columns]
    for i, copy in enumerate(_completed(chain, party)):
        columns = {name: party[name] for name in read if name not in copy} | copy
        one = Party(party.id, design(columns, spec=spec), party.w)
        here = {"centre": broadcast["centre"][i]} | ({"reach": broadcast["reach"]} if "reach" in broadcast else {})
        with np.errstate(all="ignore"):  # what a formula leaves undefined is found once it has been added up
            found.append(At(loss, one, broadcast["beta"][i], here).sums(keys, upper=True))
    return {key: np.stack([sums[key] for sums in found]) for key in keys}
