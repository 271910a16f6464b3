"""Losses of a linear predictor and their sums: value, gradient and curvature, with what one record can add to each.

    gaussian   (y - eta)^2                                   the mean of it is the mean squared error
    binomial   log(1 + exp(eta)) - y * eta                   log-loss
    hinge      max(0, 1 - s * eta), s = 2 y - 1              support vector machine
    huber      r^2 / 2, linear beyond |r| > width            r = y - eta
    check      r * (share - [r < 0])                         quantile regression

Hinge and check have a corner. With a width above zero it is rounded: `max over s of (s * z - width * s^2 / 2)`, s between
the slopes of both sides, which lies below the loss by at most half a width (Nesterov 2005).

Releases : of the keys asked, the gradient (d,), the upper triangle of the curvature, n, loss, smooth loss and gap.
Unit     : record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.special import expit

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, l2, linf
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.errors import ContributionInvalid, NotFinite, PartyDeclined, UnboundedSum

from ..design import Design, design
from ..factors import Number

LossName = Literal["gaussian", "binomial", "hinge", "huber", "check"]
HALF = 0.5
SLACK = 1 + 1e-9
"""Rounding may not lead out of a bound."""


@dataclass(frozen=True)
class Slopes:
    """A loss at the records: each of shape (..., n).

    Attributes
    ----------
    value : the loss itself
    smooth : the loss with its corner rounded
    slope, curvature : derivatives of `smooth` by the linear predictor
    """

    value: Array
    smooth: Array
    slope: Array
    curvature: Array


def _gaussian(y: Array, eta: Array, width: float, share: float) -> Slopes:
    square = (y - eta) ** 2
    return Slopes(square, square, 2.0 * (eta - y), np.full_like(eta, 2.0))


def _binomial(y: Array, eta: Array, width: float, share: float) -> Slopes:
    mean = expit(eta)
    value = np.logaddexp(0.0, np.where(y > HALF, -eta, eta))
    return Slopes(value, value, mean - y, mean * (1.0 - mean))


def _hinge(y: Array, eta: Array, width: float, share: float) -> Slopes:
    sign = np.where(y > HALF, 1.0, -1.0)
    z = 1.0 - sign * eta
    s = _pull(z, width, 0.0, 1.0)
    inside = (z > 0) & (z < width)
    return Slopes(np.maximum(z, 0.0), s * (z - width * s / 2), -sign * s, inside / (width or 1.0))


def _huber(y: Array, eta: Array, width: float, share: float) -> Slopes:
    r = y - eta
    pull = np.clip(r, -width, width)
    value = pull * (r - pull / 2)
    return Slopes(value, value, -pull, (np.abs(r) < width) * 1.0)


def _check(y: Array, eta: Array, width: float, share: float) -> Slopes:
    r = y - eta
    s = _pull(r, width, share - 1.0, share)
    inside = (r > (share - 1.0) * width) & (r < share * width)
    return Slopes(r * (share - (r < 0)), s * (r - width * s / 2), -s, inside / (width or 1.0))


def _pull(z: Array, width: float, low: float, high: float) -> Array:
    """The slope of the rounded corner; without a width one of the subgradients."""
    return np.clip(z / width, low, high) if width > 0 else np.where(z > 0, high, low)


@dataclass(frozen=True)
class Loss:
    """What differs between losses.

    Attributes
    ----------
    at : callable
        `(y, eta, width, share) -> Slopes`.
    binary : bool
        Whether the target is 0 or 1.
    limits : callable
        `(reach of |eta|, reach of |y - eta|, width) -> (value, slope, curvature)`, the largest of each; a reach that is not
        needed may be infinite.
    """

    name: LossName
    at: Callable[[Array, Array, float, float], Slopes]
    binary: bool
    limits: Callable[[float, float, float], tuple[float, float, float]]


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss("gaussian", _gaussian, False, lambda eta, r, width: (r * r, 2 * r, 2.0)),
        Loss("binomial", _binomial, True, lambda eta, r, width: (np.log(2.0) + eta, 1.0, 0.25)),
        Loss("hinge", _hinge, True, lambda eta, r, width: (1.0 + eta, 1.0, 1.0 / (width or 1.0))),
        Loss("huber", _huber, False, lambda eta, r, width: (width * r, width, 1.0)),
        Loss("check", _check, False, lambda eta, r, width: (r, 1.0, 1.0 / (width or 1.0))),
    )
}


@local(additive=True, stackable=True)
def loss_sums(
    broadcast: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    loss: LossName,
    keys: tuple[str, ...] = ("gradient", "n"),
    share: float = HALF,
) -> dict[str, Array]:
    """Add up what is asked of a loss at `beta`.

    Reads `X` (..., n, d), `y` and `offset` (..., n), as `design` prepares them, and the `width` of the broadcast if any.
    The curvature is its upper triangle, row by row. The gap is what the rounded corner hides:
    `value - s * z`; pull and inside are the squared slopes and the curvatures, added up.
    """
    X, y, w, width = party["X"], party["y"], party.w, float(broadcast.get("width", 0.0))
    with np.errstate(all="ignore"):  # a diverging iteration overflows, and is found once it has been added up
        at = LOSSES[loss].at(y, X @ broadcast["beta"] + party["offset"], width, share)
        made: dict[str, Callable[[], Array]] = {
            "gradient": lambda: _rows_times(X, w * at.slope),
            "curvature": lambda: upper(np.swapaxes(X, -1, -2) @ ((w * at.curvature)[..., None] * X)),
            "n": lambda: party.n,
            "loss": lambda: (w * at.value).sum(-1),
            "smooth": lambda: (w * at.smooth).sum(-1),
            "pull": lambda: (w * at.slope**2).sum(-1),
            "inside": lambda: (w * at.curvature).sum(-1),
            "gap": lambda: (w * (at.value - at.smooth - width * at.slope**2 / 2)).sum(-1),
        }
        return {key: made[key]() for key in keys}


@local(additive=True, stackable=True)
def sums_at_points(
    broadcast: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    loss: LossName,
    keys: tuple[str, ...],
    share: float = HALF,
) -> dict[str, Array]:
    """What `loss_sums` adds up, at each of k points `beta` (k, d): every key has a leading axis of k."""
    points = ({**broadcast, "beta": beta} for beta in broadcast["beta"])
    found = [loss_sums(point, party, rng, loss=loss, keys=keys, share=share) for point in points]
    return {key: np.stack([one[key] for one in found], axis=party.w.ndim - 1) for key in keys}


def _rows_times(X: Array, v: Array) -> Array:
    return v @ X if v.ndim == 1 else (v[..., None, :] @ X)[..., 0, :]


def upper(matrix: Array) -> Array:
    """The upper triangle of symmetric matrices (..., d, d), as (..., d * (d + 1) / 2)."""
    rows, columns = np.triu_indices(matrix.shape[-1])
    return matrix[..., rows, columns]


def symmetric(triangle: Array, d: int) -> Array:
    """The matrices (..., d, d) of which these are the upper triangles."""
    rows, columns = np.triu_indices(d)
    found = np.empty((*triangle.shape[:-1], d, d))
    found[..., rows, columns] = found[..., columns, rows] = triangle
    return found


# ---- how far one record reaches -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Reach:
    """Largest values of one record, by declared ranges.

    Attributes
    ----------
    w : weight
    column : of any column, as scaled
    row : length of the row
    eta : absolute linear predictor
    residual : absolute target minus linear predictor; infinite where the target declares no range
    """

    w: float
    column: float
    row: float
    eta: float
    residual: float

    @classmethod
    def of(cls, spec: Design, beta: Array) -> Reach | None:
        """From a public point `beta`, in the columns of `spec`; `None` where a range is not declared."""
        offset = Number(spec.offset).limit(spec.schema) if spec.offset else 0.0
        if spec.limits is None or spec.row_limit is None or spec.weight_limit is None or offset is None:
            return None
        with np.errstate(over="ignore"):
            eta = float(np.abs(beta) @ np.array(spec.limits)) + offset
        target = spec.response.limit(spec.schema)
        column = max(spec.limits, default=0.0)
        return cls(spec.weight_limit, column, spec.row_limit, eta, np.inf if target is None else target + eta)


def sum_bounds(loss: Loss, reach: Reach | None, keys: tuple[str, ...], width: float, *, noisy: bool) -> dict[str, Bound] | None:
    """By how much one record moves each key; `None` where a range is not declared or the point is astray.

    Parameters
    ----------
    noisy : bool
        Whether noise is added, which follows lengths; fixed point follows the largest number.
    """
    if reach is None:
        return None
    value, slope, curvature = loss.limits(reach.eta, reach.residual, width)
    w, row = reach.w, reach.row if noisy else reach.column
    ball = l2 if noisy else linf
    radii = {
        "gradient": w * slope * row,
        "curvature": w * curvature * row * row,
        "n": w,
        "loss": w * value,
        "smooth": w * value,
        "gap": w * min(value, width or value),
        "pull": w * slope * slope,
        "inside": w * curvature,
    }
    if not all(np.isfinite(radii[key]) for key in keys):
        return None
    return {key: (ball if key in ("gradient", "curvature") else linf)(radii[key] * SLACK or w or 1.0, "record") for key in keys}


def refuse_unbounded(federation: Federation, spec: Design, bounds: Mapping[str, Bound] | None) -> None:
    """Refuse a sum that must have a bound, naming the columns that declare no range.

    Raises
    ------
    UnboundedSum (HR-210)
        The channel adds noise, or hides rows by fixed point, which needs a range.
    """
    protection = federation.protection
    ranged = not protection.hides_rows or protection.largest is not None
    if bounds is not None or protection.clip is not None or (not protection.noisy and ranged):
        return
    names = dict.fromkeys((*spec.reads, *spec.response.reads(spec.schema), *((spec.weights,) if spec.weights else ())))
    open_ended = [name for name in names if spec.schema[name].kind != "category" and spec.schema.absolute(name) is None]
    raise UnboundedSum(
        f"{', '.join(open_ended) or spec.formula} declares no range, so the sums of {spec.formula!r} have no bound, by which "
        "noise is scaled and fixed point made.",
        remedy="Declare it: [data] ranges = { age = [18, 90] } in a study, table.declare(age=(18, 90)) in Python.",
    )


def undefined(formula: str) -> NotFinite:
    """Say that a sum is not finite before anything has moved, so that it is the formula."""
    return NotFinite(
        f"a sum for {formula!r} is not finite.",
        remedy="Look for the log of zero, a division by zero, or a root of a negative number in the formula.",
        asked=True,
    )


# ---- asking ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Asking:
    """Asks for the sums of one loss; answers are in the columns' own units.

    Where rows are hidden or noise is added, parties divide each column by its declared limit, so that fixed point and noise
    are in proportion to every column; the server multiplies back.
    """

    federation: Federation
    spec: Design
    loss: Loss
    share: float
    factors: Array | None

    @classmethod
    def of(cls, federation: Federation, spec: Design, loss: LossName, share: float = HALF) -> Asking:
        """Prepare the rows of `spec` at the parties."""
        protection = federation.protection
        unit = spec.to_unit() if protection.hides_rows or protection.noisy else spec
        factors = np.array(unit.scales) if unit.scales else None
        return cls(federation.prepare(design, spec=unit), unit, LOSSES[loss], share, factors)

    def sums(self, beta: Array, keys: tuple[str, ...], width: float = 0.0, batch: int | None = None) -> dict[str, Array] | None:
        """The sums at `beta`; `None` where they are not finite, which only a diverging iteration meets.

        Parameters
        ----------
        beta : array of shape (d,), or (k, d)
            One point, or several in one question: then every key has a leading axis.
        width : float
            Of the rounded corner, or of Huber's loss.
        batch : int, optional
            So many parties are drawn and asked; everybody by default.
        """
        factors, d = 1.0 if self.factors is None else self.factors, self.spec.size
        broadcast = {"beta": beta * factors} | ({"width": np.array(width)} if width else {})
        noisy = self.federation.protection.noisy
        bounds, nearest = (
            sum_bounds(self.loss, Reach.of(self.spec, point), keys, width, noisy=noisy)
            for point in (np.abs(np.atleast_2d(broadcast["beta"])).max(0), np.zeros(d))
        )
        refuse_unbounded(self.federation, self.spec, nearest)
        if (
            bounds is None and nearest is not None and not self.federation.protection.open
        ):  # so far astray that nothing holds it
            return None
        asked = self.federation if batch is None else self.federation.sample(size=batch)
        ask = partial(loss_sums if beta.ndim == 1 else sums_at_points, loss=self.loss.name, keys=keys, share=self.share)
        try:
            found: dict[str, Array] = asked.sum(ask, broadcast, bound=bounds)
        except PartyDeclined as refusal:
            if ContributionInvalid.code not in refusal.codes.values():
                raise
            return None
        if "gradient" in found:
            found["gradient"] = found["gradient"] * factors
        if "curvature" in found:
            found["curvature"] = symmetric(found["curvature"], d) * np.multiply.outer(factors, factors)
        return found

    def with_loss(self, loss: LossName) -> Asking:
        """The same question about another loss."""
        return replace(self, loss=LOSSES[loss])
