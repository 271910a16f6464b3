"""Sums of many columns at one null model, and what the columns are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.errors import SchemaInvalid, SettingsInvalid

from .blocks import by_blocks
from .columns import NUMERIC, range_of
from .design import Design
from .linear.losses import FamilyName, loss_of
from .linear.sums import along

if TYPE_CHECKING:
    from hedgerow.data import Schema


# ---- at the party ---------------------------------------------------------------------------------------------------
@local(additive=True, stackable=True)
@by_blocks
def column_scores(
    broadcast: Mapping[str, Array], party: Party, rng: Any, *, family: FamilyName, columns: tuple[str, ...]
) -> dict[str, Array]:
    """Add up score `u` (m,), `gg` (m,) and `gx` (m, p) of columns, which are divided by `limits`, at the null model's `beta`.

    Of all columns only those at the places `which` are asked for.
    """
    loss, w = loss_of(family), party.w
    parts = loss.parts(party["y"], party["X"] @ broadcast["beta"] + party["offset"], 0.0)
    G, v = _columns(broadcast, party, columns), w * parts["curvature"]()
    weighed = v[..., None] * party["X"]
    return {
        "u": -along(G, w * parts["slope"]()),
        "gg": along(G * G, v),
        "gx": np.swapaxes(G, -1, -2) @ weighed,
    }


@local(additive=True, stackable=True)
@by_blocks
def signed_scores(
    broadcast: Mapping[str, Array], party: Party, rng: Any, *, family: FamilyName, columns: tuple[str, ...]
) -> Array:
    """Add up scores of columns as candidates, first as they are and then negated, shape (2 m,)."""
    eta = party["X"] @ broadcast["beta"] + party["offset"]
    u = -along(_columns(broadcast, party, columns), party.w * loss_of(family).parts(party["y"], eta, 0.0)["slope"]())
    return np.concatenate([u, -u], axis=-1)


def _columns(broadcast: Mapping[str, Array], party: Party, columns: tuple[str, ...]) -> Array:
    """The columns that are asked for, side by side, shape (..., n, m)."""
    n_axes = party.w.ndim
    blocks = [np.asarray(party[name], float).reshape(*party.w.shape, -1) for name in columns]
    G = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=n_axes)
    return np.asarray(G[..., broadcast["which"]] / broadcast["limits"])


# ---- what is screened -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Screened:
    """The columns of a screen: their names, and the largest absolute value of each, or 1 where no range is declared."""

    read: tuple[str, ...]
    names: tuple[str, ...]
    limits: Array
    declared: bool

    @classmethod
    def of(cls, schema: Schema, columns: Sequence[str], null: Design) -> Screened:
        """Check columns, of numbers, or of arrays of numbers whose places are columns; nobody is asked."""
        names: list[str] = []
        limits: list[float | None] = []
        for name in columns:
            column = schema[name]
            if column.kind not in NUMERIC or len(column.shape) > 1:
                held = f"holds arrays of shape {column.shape}" if column.shape else f"is of kind {column.kind!r}"
                raise SchemaInvalid(f"column {name!r} {held}.", remedy="Screen numbers, or arrays with one axis.")
            if name in null.schema:
                raise SettingsInvalid(f"{name!r} is in the null model.", remedy="Leave it out of one of the two.")
            size = column.shape[0] if column.shape else 1
            names += [f"{name}[{i}]" for i in range(size)] if column.shape else [name]
            ends = range_of(column)
            limits += [None if ends is None else max(map(abs, ends))] * size
        if not names:
            raise SettingsInvalid("no column is screened.", remedy='Name them: columns=["a", "b"], or an array column.')
        return cls(tuple(columns), tuple(names), np.array([one or 1.0 for one in limits]), None not in limits)
