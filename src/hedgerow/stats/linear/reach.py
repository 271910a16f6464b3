"""What one record can add to the sums of a regression, from declared ranges and public coefficients.

Noise is scaled by these bounds. An aggregation that hides rows makes whole numbers of contributions, so that it needs them
too. They are computed at each question anew: of the linear predictor from the coefficients that are broadcast and the
declared ranges of the columns, of slopes, curvatures and values from that.

Means behind a log link have no useful range in the corners of declared ranges, where there may be no record. So they are
cut off at `ROOM` times the target's own limit, and the records beyond are counted: a fit counts only if there are none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, l1, l2, linf
from hedgerow.errors import RangeExceeded, UnboundedSum

from ..design import Design
from ..expressions import Interval
from ..factors import Levels, Number, Term
from .loss import FARTHEST, Loss
from .sums import kind_of, limits_of

SLACK = 1 + 1e-9
"""Rounding may not lead out of a range."""
ROOM = 8.0
"""Means behind a log link may reach so many times the target's limit."""


@dataclass(frozen=True)
class Reach:
    """Where one record can be.

    Attributes
    ----------
    weight : float
    size : float
        Of its row: the largest column as scaled, or the Euclidean length.
    target, eta : (float, float)
        Ranges of the target and of the linear predictor; infinite where none is declared.
    away : float
        Of the target from a centre.
    """

    weight: float
    size: float
    target: Interval
    eta: Interval
    away: float = math.inf

    @classmethod
    def by_length(cls, spec: Design, beta: Array) -> Reach | None:
        """For noise, which follows lengths, at a point (d,); `None` where a range is not declared, other than the target's."""
        offset = Number(spec.offset).limit(spec.schema) if spec.offset else 0.0
        if spec.limits is None or spec.row_limit is None or spec.weight_limit is None or offset is None:
            return None
        with np.errstate(over="ignore"):
            eta = float(np.abs(beta) @ np.array(spec.limits)) + offset
        target = spec.response.limit(spec.schema)
        far = math.inf if target is None else target
        return cls(spec.weight_limit, spec.row_limit, (-far, far), (-eta, eta))

    @classmethod
    def by_column(cls, spec: Design, loss: Loss, points: Sequence[Array], centre: float = 0.0) -> Reach:
        """For fixed point, which follows the largest number, over some points (d,) each.

        Raises
        ------
        UnboundedSum (HR-210)
            The range of a gamma target holds zero.
        """
        target = spec.response_range or (-math.inf, math.inf)
        if loss.positive and target[0] <= 0:
            raise undeclared(spec, ": a gamma target needs a lower end above zero")
        ends = [reach_of(spec, loss, point) for point in points]
        eta = min(low for low, _ in ends), max(high for _, high in ends)
        below, above = (spec.offset_range or (0.0, 0.0)) if loss.quadratic else (0.0, 0.0)
        away = max(abs(target[1] - (below + centre)), abs(target[0] - (above + centre)))
        return cls(spec.weight_limit or 1.0, max(spec.limits or (1.0,)), target, eta, away)

    def bounds(
        self, loss: Loss, keys: Sequence[str], width: float = 0.0, *, lengths: bool, slack: float = SLACK
    ) -> dict[str, Bound] | None:
        """By how much one record moves each key of `linear_sums`; `None` where nothing holds it.

        Parameters
        ----------
        lengths : bool
            Whether rows are bounded by their length, as noise wants it, or every number by itself.
        """
        limits = limits_of(loss, self.target, self.eta, self.away, width)
        found = {}
        for key in keys:
            kind = kind_of(key)
            radius = self.weight * self.size**kind.rows * limits[kind.part] * abs(kind.factor(loss))
            if not math.isfinite(radius):
                return None
            ball = linf if not lengths else l2 if kind.rows else l1 if key == "deviance" else linf
            found[key] = ball(radius * slack or self.weight or 1.0, "record")
        return found


# ---- ranges ---------------------------------------------------------------------------------------------------------
def term_range(term: Term, spec: Design) -> Interval:
    """Return the range of a product of numbers and indicators, whose ranges are declared."""
    low, high = 1.0, 1.0
    for factor in term.factors:
        found = spec.factor_range(factor)
        assert found is not None, "limits are asked for only where ranges are declared"
        ends = [a * b for a, b in product((low, high), found)]
        low, high = min(ends), max(ends)
    return low, high


def predictor_range(spec: Design, beta: Array) -> Interval:
    """Return the range of the linear predictor at coefficients `beta` (d,) of the columns as scaled."""
    low, high = spec.offset_range or (0.0, 0.0)
    beta = beta / np.array(spec.scales or np.ones(spec.size))
    starts = np.cumsum([0, *(len(term.names) for term in spec.terms)])
    for term, (a, b) in zip(spec.terms, pairwise(starts), strict=True):
        ends = np.outer(beta[a:b], term_range(term, spec))  # of the columns of a term at most one differs from zero
        reduced = any(isinstance(f, Levels) and not f.full for f in term.factors)
        low += min(float(ends.min()), 0.0 if reduced else np.inf)
        high += max(float(ends.max()), 0.0 if reduced else -np.inf)
    return low, high


def reach_of(spec: Design, loss: Loss, beta: Array) -> Interval:
    """Return the range of the linear predictor, cut off for a log link."""
    low, high = predictor_range(spec, beta)
    if not loss.log_link:
        return low, high
    bottom, top = spec.response_range or (0.0, 0.0)
    roof = math.log(ROOM * max(top, 1e-9))
    floor = math.log(bottom / ROOM) if loss.positive and bottom > 0 else -FARTHEST
    low, high = min(max(low, floor), roof), max(min(high, roof), floor)
    return low - 1e-9 * (1 + abs(low)), high + 1e-9 * (1 + abs(high))  # rounding is not beyond


# ---- refusals -------------------------------------------------------------------------------------------------------
def undeclared(spec: Design, why: str) -> UnboundedSum:
    """Name the columns without a range; `why` goes on after "have no bound"."""
    named = [spec.weights] if spec.weights and spec.weight_limit is None else []
    schema = spec.schema
    read = dict.fromkeys([*spec.response.reads(schema), *spec.reads, *named])
    columns = [name for name in read if schema[name].kind != "category" and schema.absolute(name) is None]
    return UnboundedSum(
        f"{', '.join(columns) or spec.formula} declares no range, so the sums of {spec.formula!r} have no bound{why}.",
        remedy="Declare it: [data] ranges = { age = [18, 90] } in a study, table.declare(age=(18, 90)) in Python.",
    )


def refuse_beyond(beyond: float, spec: Design) -> None:
    """Refuse a fit of which some records' means were cut off.

    Raises
    ------
    RangeExceeded (HR-243)
    """
    if beyond > 1e-6:
        raise RangeExceeded(
            f"fitted means of {beyond:.3g} records of {spec.formula!r} lie beyond {ROOM:g} times the target's declared range, "
            "where hidden sums are cut off.",
            remedy="Declare a wider range of the target, or ask through an aggregation that does not hide rows.",
        )
