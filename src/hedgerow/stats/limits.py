"""What one record can add to the sums of a regression, from declared ranges and public coefficients.

An aggregation that hides rows makes whole numbers of contributions, so that every sum needs a range, exact ones too. It
is computed at each question anew: of the linear predictor from the coefficients that are broadcast and the declared
ranges of the columns, of residuals, weights and deviances from that. Columns are asked for in units of their limits, so
that all of them have the same digits; states stay in the columns' own units.

Means behind a log link have no useful range in the corners of declared ranges, where there may be no record. So they are
cut off at `ROOM` times the target's own limit, and the records beyond are counted: a fit counts only if there are none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, linf
from hedgerow.core.federation import Federation
from hedgerow.errors import RangeExceeded, UnboundedSum

from .design import Design, design
from .expressions import Interval, interval
from .factors import Factor, Levels, Term
from .families import FARTHEST, Family
from .state import NewtonState

SLACK = 1 + 1e-9
"""Rounding may not lead out of a range."""
ROOM = 8.0
"""Means behind a log link may reach so many times the target's limit."""


@dataclass(frozen=True)
class Asked:
    """A design as its sums are asked for.

    Attributes
    ----------
    federation : Federation
        With the rows of the design prepared at each party.
    spec : Design
        In units of its columns' limits where rows are hidden, else as given.
    factors : array of shape (d,) or None
        By how much the columns as given are larger.
    hidden : bool
        Whether rows are hidden, so that sums need bounds.
    bounded : bool
        Whether bounds are known; without them the aggregation's own range holds.
    """

    federation: Federation
    spec: Design
    factors: Array | None = None
    hidden: bool = False
    bounded: bool = False

    def inward(self, state: NewtonState) -> NewtonState:
        """Return a state in units of the columns as asked."""
        return state if self.factors is None else state.of_columns(1 / self.factors)

    def outward(self, state: NewtonState) -> NewtonState:
        """Return a state in the columns' own units."""
        return state if self.factors is None else state.of_columns(self.factors)

    def bounds(self, limits: Callable[[], Mapping[str, float]], keys: Any = None) -> dict[str, Bound] | None:
        """Return the bounds of `keys` (all by default) per record; `None` where none are needed or known."""
        if not self.bounded:
            return None
        w = self.spec.weight_limit or 1.0
        found = limits()
        return {key: linf(w * (found[key] * SLACK or 1.0), "record") for key in keys or found}


def ask_for(federation: Federation, spec: Design, prepare: Any = design) -> Asked:
    """Prepare a design at the parties, in units of its columns' limits where rows are hidden.

    Raises
    ------
    UnboundedSum (HR-210)
        Rows are hidden, a range is not declared, and the aggregation has none of its own.
    """
    protection = federation.protection
    if not protection.hides_rows:
        return Asked(federation.prepare(prepare, spec=spec), spec)
    unit = spec.to_unit()
    bounded = unit.limits is not None and unit.weight_limit is not None and response_range(unit) is not None
    bounded = bounded and _offset_range(unit) is not None
    if not bounded and protection.largest is None:
        raise undeclared(spec, "an aggregation that hides rows makes whole numbers of sums, which need a range")
    factors = np.array(unit.scales or np.ones(spec.size)) / np.array(spec.scales or np.ones(spec.size))
    return Asked(federation.prepare(prepare, spec=unit), unit, factors, hidden=True, bounded=bounded)


def undeclared(spec: Design, why: str) -> UnboundedSum:
    """Name the columns without a range."""
    named = [spec.weights] if spec.weights and spec.weight_limit is None else []
    schema = spec.schema
    read = dict.fromkeys([*spec.response.reads(schema), *spec.reads, *named])
    columns = [name for name in read if schema[name].kind != "category" and schema.absolute(name) is None]
    return UnboundedSum(
        f"{', '.join(columns) or spec.formula} declares no range, so the sums of {spec.formula!r} have no bound: {why}.",
        remedy="Declare it: [data] ranges = { age = [18, 90] } in a study, table.declare(age=(18, 90)) in Python.",
    )


# ---- ranges of one record -------------------------------------------------------------------------------------------
def factor_range(factor: Factor, spec: Design) -> Interval | None:
    """Return the range of a factor; of levels that of their indicators."""
    return (0.0, 1.0) if isinstance(factor, Levels) else interval(factor.text, spec.schema)


def response_range(spec: Design) -> Interval | None:
    """Return the range of the target."""
    return factor_range(spec.response, spec)


def _offset_range(spec: Design) -> Interval | None:
    return interval(spec.offset, spec.schema) if spec.offset else (0.0, 0.0)


def _term_range(term: Term, spec: Design) -> Interval:
    low, high = 1.0, 1.0
    for factor in term.factors:
        found = factor_range(factor, spec)
        assert found is not None, "limits are asked for only where ranges are declared"
        ends = [a * b for a, b in product((low, high), found)]
        low, high = min(ends), max(ends)
    return low, high


def predictor_range(spec: Design, beta: Array) -> Interval:
    """Return the range of the linear predictor at coefficients `beta` (d,) of the columns as scaled."""
    low, high = _offset_range(spec) or (0.0, 0.0)
    beta = beta / np.array(spec.scales or np.ones(spec.size))
    starts = np.cumsum([0, *(len(term.names) for term in spec.terms)])
    for term, (a, b) in zip(spec.terms, pairwise(starts), strict=True):
        ends = np.outer(beta[a:b], _term_range(term, spec))  # of the columns of a term at most one differs from zero
        reduced = any(isinstance(f, Levels) and not f.full for f in term.factors)
        low += min(float(ends.min()), 0.0 if reduced else np.inf)
        high += max(float(ends.max()), 0.0 if reduced else -np.inf)
    return low, high


def reach_of(spec: Design, law: Family, beta: Array) -> Interval:
    """Return the range of the linear predictor, cut off for a log link."""
    low, high = predictor_range(spec, beta)
    if not law.log_link:
        return low, high
    bottom, top = response_range(spec) or (0.0, 0.0)
    roof = math.log(ROOM * max(top, 1e-9))
    floor = math.log(bottom / ROOM) if law.name == "gamma" and bottom > 0 else -FARTHEST
    low, high = min(max(low, floor), roof), max(min(high, roof), floor)
    return low - 1e-9 * (1 + abs(low)), high + 1e-9 * (1 + abs(high))  # rounding is not beyond


def glm_limits(spec: Design, law: Family, beta: Array, centre: float = 0.0) -> dict[str, float]:
    """Return by how much a record of weight one moves each sum of `score_and_information` at `beta`, in every coordinate.

    Parameters
    ----------
    spec : Design
        With declared ranges.
    beta : array of shape (d,)
    centre : float
        Of the target.
    """
    x, (low, high), target = max(spec.limits or (1.0,)), reach_of(spec, law, beta), response_range(spec)
    if target is None or (law.name == "gamma" and target[0] <= 0):
        raise undeclared(spec, "a gamma target needs a lower end above zero" if target else "the target has no range")
    y, eta = (np.array(ends) for ends in zip(*product(target, (low, high)), strict=True))
    mean = law.mean(eta)
    gain = law.gain(mean) if law.name == "gamma" and law.gain else 1.0  # of a negative binomial it is at most 1
    residual = law.residual_limit or float(np.abs(gain * (y - mean)).max())
    offset = _offset_range(spec) or (0.0, 0.0)
    shift = (offset if law.name == "gaussian" else (0.0, 0.0)) + np.array(centre)
    deviation = max(abs(target[1] - shift[0]), abs(target[0] - shift[1]))
    found = {
        "score": x * residual,
        "information": x**2 * min(law.variance_limit, float(law.variance(mean).max()) if law.log_link else np.inf),
        "n": 1.0,
        "deviance": float(law.deviance(y, eta).max()),  # it is convex in target and predictor: largest at a corner
        "y": deviation,
        "yy": deviation**2,
        "beyond": 1.0,
    }
    if law.saturated is not None:
        found["saturated"] = float(np.abs(law.saturated(np.array(target))).max())
    if law.pearson is not None:
        found["pearson"] = float(law.pearson(y, mean).max())
    return found


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
    found[..., rows, columns] = upper
    found[..., columns, rows] = upper
    return found
