"""The columns of a design as a penalty sees them: which are penalised, and in units of what."""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.party import Party
from hedgerow.core.question import local

from ..blocks import by_blocks
from ..design import Design
from ..factors import INTERCEPT
from ..linear.asking import Asked


@local(additive=True, stackable=True, rowwise=True)
@by_blocks
def column_sums(broadcast: None, party: Party, rng: Any) -> dict[str, Array]:
    """Add up records, and the columns of a design and their squares (d,)."""
    X = party["X"]
    weighted = party.w[..., None] * X
    return {"n": party.n, "sum": weighted.sum(-2), "squares": (weighted * X).sum(-2)}


def penalised_columns(spec: Design) -> Array:
    """Return 1 for each column that is penalised, 0 for an intercept; shape (d,)."""
    return np.array([float(name != INTERCEPT) for name in spec.names])


def scales_of(asked: Asked, spec: Design, standardised: bool) -> Array:
    """Ask for the standard deviations of the columns (d,), with n in the denominator; ones where they are not wanted."""
    if not standardised:
        return np.ones(spec.size)

    def limits() -> dict[str, float]:
        x = max(asked.spec.limits or (1.0,))
        return {"n": 1.0, "sum": x, "squares": x * x}

    found = asked.total(column_sums, None, asked.bounds(limits))
    mean = found["sum"] / found["n"]
    sd = np.sqrt(np.maximum(found["squares"] / found["n"] - mean**2, 0.0))
    sd = np.where(sd > 1e-7 * np.abs(mean), sd, 0.0) * asked.factors
    return np.where(sd > 0, sd, 1.0)
