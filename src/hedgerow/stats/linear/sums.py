"""Sums over records at given coefficients, for any loss; one local function asks for all of them.

    score, gradient          slopes times rows (d,); the score is minus them, as of a log-likelihood
    information, curvature   curvatures times products of rows (d, d); the curvature always as its upper triangle
    deviance, loss           twice the values; the values as a gradient descent counts them
    smooth, saturated, ...   other parts of the loss
    gap                      what a rounded corner hides: value - slope * z
    pull, inside             squared slopes, curvatures
    n, y, yy                 records, deviations of the target from a centre, and their squares
    beyond                   records whose linear predictor was cut off

Releases : of the keys that are asked.
Unit     : record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.records import record_by_record
from hedgerow.core.whole import BITS, bound_in, linear

from ..blocks import by_blocks
from ..expressions import Interval
from .loss import Loss
from .losses import LossName, loss_of


@local(additive=True, stackable=True, holds=BITS, rowwise=True)
@by_blocks
def linear_sums(
    broadcast: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    loss: LossName,
    keys: tuple[str, ...],
    shape: float | None = None,
    upper: bool = False,
    bounds: Bounds | None = None,
) -> dict[str, Array]:
    """Add up `keys` at `beta` (d,), or at several points (k, d): then every key has a leading axis of k.

    Reads `X` (..., n, d), `y` and `offset` (..., n), as `design` prepares them, and of the broadcast `beta`, `width` of a
    corner, `centre` of the target, and `reach` (2,), beyond which linear predictors are cut off. `shape` is that of the loss.
    """
    one, beta = loss_of(loss, shape), broadcast["beta"]
    if bounds is not None:
        return _held(one, broadcast, party, rng, bounds, {"loss": loss, "keys": keys, "shape": shape, "upper": upper})
    with np.errstate(all="ignore"):  # what a formula leaves undefined is found once it has been added up
        if beta.ndim == 1:
            return At(one, party, beta, broadcast).sums(keys, upper=upper)
        found = [At(one, party, point, broadcast).sums(keys, upper=upper) for point in beta]
    return {key: np.stack([sums[key] for sums in found], axis=party.w.ndim - 1) for key in keys}


def _held(
    loss: Loss, broadcast: Mapping[str, Array], party: Party, rng: Any, bounds: Bounds, settings: dict[str, Any]
) -> dict[str, Array]:
    """The same, each record held to bounds."""
    from .whole import whole_sums

    keys, beta = settings["keys"], broadcast["beta"]
    if beta.ndim > 1 or any(kind_of(key).rows and bound_in(bounds, key).norm != 2 for key in keys):
        one_by_one: dict[str, Array] = record_by_record(
            broadcast, party, rng, ask=partial(linear_sums, **settings), bounds=bounds
        )
        return one_by_one
    with np.errstate(all="ignore"):
        return whole_sums(loss, party, beta, broadcast, keys, bounds, upper=settings["upper"])


@dataclass(frozen=True)
class Sum:
    """How a key is added up: a part of each record, times its row so many times, times a factor of the loss."""

    part: str
    rows: int = 0
    factor: Callable[[Loss], float] = lambda loss: 1.0


def _counted(loss: Loss) -> float:
    return loss.counted


SUMS = {
    "score": Sum("slope", 1, lambda loss: -1.0),
    "gradient": Sum("slope", 1, _counted),
    "information": Sum("curvature", 2),
    "curvature": Sum("curvature", 2, _counted),
    "deviance": Sum("value", 0, lambda loss: 2.0),
    "loss": Sum("value", 0, _counted),
    "inside": Sum("curvature"),
}
"""Other keys are named as their parts."""


def kind_of(key: str) -> Sum:
    """How a key is added up."""
    return SUMS.get(key) or Sum(key)


class At:
    """A party's records at one point: parts of the loss, each computed once, and their sums."""

    def __init__(self, loss: Loss, party: Party, beta: Array, broadcast: Mapping[str, Array]) -> None:
        self.loss, self.party, self.X = loss, party, party["X"]
        self.width, self.centre = float(broadcast.get("width", 0.0)), broadcast.get("centre", 0.0)
        self.linear = self.predictor(beta) + party["offset"]
        self.eta = np.clip(self.linear, *broadcast["reach"]) if "reach" in broadcast else self.linear
        self._made = loss.parts(party["y"], self.eta, self.width)
        self._known: dict[str, Array] = {}

    def predictor(self, beta: Array) -> Array:
        """Linear predictors without the offset, shape (..., n)."""
        return linear(self.X, beta)

    def part(self, name: str) -> Array:
        """One part of each record, shape (..., n)."""
        if name not in self._known:
            self._known[name] = self._made[name]() if name in self._made else self._other(name)
        return self._known[name]

    def _other(self, name: str) -> Array:
        match name:
            case "y":
                from_centre = self.party["y"] - self.centre
                return from_centre - self.party["offset"] if self.loss.quadratic else from_centre
            case "yy":
                return self.part("y") ** 2
            case "beyond":
                return np.asarray(self.eta != self.linear)
            case "smooth":  # of a loss without a corner
                return self.part("value")
            case "pull":
                return self.part("slope") ** 2
            case "gap":
                return self.part("value") - self.part("smooth") - self.width * self.part("pull") / 2
        raise KeyError(name)

    def sums(self, keys: Sequence[str], w: Array | None = None, *, upper: bool = False) -> dict[str, Array]:
        """Add up keys, with other weights than the party's where they are given."""
        weights = self.party.w if w is None else w
        return {key: self._sum(key, weights, upper) for key in keys}

    def _sum(self, key: str, w: Array, upper: bool) -> Array:
        if key == "n":
            return np.asarray(w.sum(-1))
        kind = kind_of(key)
        numbers, factor = w * self.part(kind.part), kind.factor(self.loss)
        if kind.rows == 2:
            matrix = products(self.X, numbers)
            found = triangle(matrix) if upper or key == "curvature" else matrix
        else:
            found = along(self.X, numbers) if kind.rows else numbers.sum(-1)
        return found if factor == 1.0 else np.asarray(factor * found)


def limits_of(loss: Loss, target: Interval, eta: Interval, away: float = math.inf, width: float = 0.0) -> dict[str, float]:
    """Largest absolute value of each part of a record, `away` being how far its target is from the centre."""
    found = loss.limits(target, eta, width)
    value, slope = found["value"], found["slope"]
    gap = min(value, width or value)
    return found | {"smooth": value, "gap": gap, "pull": slope * slope, "n": 1.0, "beyond": 1.0, "y": away, "yy": away * away}


def along(X: Array, v: Array) -> Array:
    """Add up rows (..., n, d), each times its own number (..., n); shape (..., d)."""
    return v @ X if v.ndim == 1 else (v[..., None, :] @ X)[..., 0, :]


def products(X: Array, v: Array) -> Array:
    """Add up products of rows with themselves, each times its own number; shape (..., d, d)."""
    found: Array = np.swapaxes(X, -1, -2) @ (v[..., None] * X)
    return found


# ---- symmetric matrices ---------------------------------------------------------------------------------------------
def triangle(matrix: Array) -> Array:
    """Return the upper triangles of symmetric matrices: (..., d, d) to (..., d (d + 1) / 2)."""
    rows, columns = np.triu_indices(matrix.shape[-1])
    return matrix[..., rows, columns]


def symmetric(upper: Array) -> Array:
    """Return the matrices of upper triangles: (..., d (d + 1) / 2) to (..., d, d)."""
    d = (math.isqrt(8 * upper.shape[-1] + 1) - 1) // 2
    rows, columns = np.triu_indices(d)
    found = np.empty((*upper.shape[:-1], d, d))
    found[..., rows, columns] = found[..., columns, rows] = upper
    return found
