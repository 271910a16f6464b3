"""Linear predictors of columns that lie apart: what the parties send, and what the hub asks at one point after another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy

from hedgerow.core.arrays import Array
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.randomness import uniforms
from hedgerow.crypto.cross.bits import ColumnReach
from hedgerow.errors import DisclosureExceeded
from hedgerow.stats.expressions import evaluate
from hedgerow.stats.linear.loss import Loss

from .channel import least_of
from .cross import Factors
from .design import Apart, HeldColumns
from .given import gives
from .linear import Normal
from .terms import CONSTANT, OwnTerm, Terms, block_of, own_columns

LINKED = 10.0
"""Rows that move, in the root mean square, by less than so many gaps between neighbours keep about their rank."""


# ---- at the parties -------------------------------------------------------------------------------------------------
@gives("linear predictors", told="the coefficients of all columns")
@local
def predictor_rows(
    beta: Array, party: Party, rng: Any, *, terms: Terms, places: int, offset: tuple[str, str] | None = None
) -> Array:
    """A party's part of the linear predictor, shape (n, 1); `beta` (d,) is in the order of a cross product.

    It is rounded to `places` binary places at home, up or down by chance so that it is right in the mean: the rounding of a few
    values that many people share would not average out.
    """
    start, rows = 0, np.zeros((len(party.w), 1))
    for name, own in terms:
        size = sum(len(one.names) for one in own)
        if name == party.id and size:
            rows = block_of(party, own) @ np.asarray(beta)[start : start + size, None]
        start += size
    if offset is not None and offset[0] == party.id:
        rows = rows + evaluate(offset[1], party.columns)[:, None]
    found: Array = np.ldexp(np.floor(np.ldexp(rows, places) + uniforms(rng.entropy, len(rows))[:, None]), -places)
    return found


@gives("the target")
@local
def target_rows(broadcast: Any, party: Party, rng: Any, *, at: str, target: OwnTerm) -> Array:
    """The target in own units at its party, no columns elsewhere; shape (n, 1)."""
    return block_of(party, (target,) if party.id == at else ())


@gives("logarithms of the target")
@local
def perfect_rows(broadcast: Any, party: Party, rng: Any, *, at: str, target: OwnTerm, unit: float) -> Array:
    """What a perfect fit of counts says: y log y - y and the logarithm of y!, divided by `unit`; shape (n, 2)."""
    if party.id != at:
        return np.zeros((len(party.w), 0))
    y = target.centre + target.scale * target.columns(party)[:, 0]
    return np.column_stack([xlogy(y, y) - y, gammaln(y + 1.0)]) / unit


# ---- at the hub -----------------------------------------------------------------------------------------------------
@dataclass
class Openings:
    """How often linear predictors were opened, and of how many openings rows could be linked with the one before.

    Attributes
    ----------
    most, most_linked : int
        The caps.
    """

    most: int
    most_linked: int
    times: int = 0
    linked: int = 0

    @property
    def spent(self) -> bool:
        return self.times >= self.most

    def admit(self, moved: float, gap: float) -> None:
        """Count an opening whose rows will have moved so far since the last one, beside the gap between neighbours there.

        Raises
        ------
        DisclosureExceeded (HR-216)
            Rows of more openings could be linked than the party with the fewest columns has.
        """
        linked = self.linked + (moved < LINKED * gap)
        if linked > self.most_linked:
            raise DisclosureExceeded(
                f"rows of {linked} openings of linear predictors could be linked by their rank, and the party with the fewest "
                f"columns has {self.most_linked}: so many equations may give its columns.",
                remedy="Take a larger tol=, so that Newton's method ends before.",
                asked=True,
            )
        self.times, self.linked = self.times + 1, linked


class Predictors:
    """Opens linear predictors to the hub, and asks for scores and informations there."""

    def __init__(self, aligned: Any, one: Apart, law: Loss, normal: Normal, openings: Openings, places: int) -> None:
        self.aligned, self.one, self.law, self.normal, self.openings = aligned, one, law, normal, openings
        self.held = HeldColumns.of(aligned.names, one.columns)
        self.columns = partial(own_columns, terms=self.held.terms, least=least_of(aligned))
        self.offset = None if one.offset_at is None else (one.offset_at, str(one.spec.offset))
        self.places = places
        self._last: tuple[Array, Array] | None = None

    def open(self, beta: Array) -> Array:
        """Linear predictors (n,) at `beta` (d,), in own units, in an order secret to the hub."""
        moved, gap = math.inf, 0.0
        if self._last is not None:
            step = beta - self._last[0]
            moved = math.sqrt(max(float(step @ self.normal.products @ step), 0.0) / self.aligned.n)
            gap = float(np.median(np.diff(np.sort(self._last[1]))))
        self.openings.admit(moved, gap)
        ask = partial(predictor_rows, terms=self.held.terms, places=self.places, offset=self.offset)
        eta = np.asarray(self.aligned.sum(ask, self.held.to_cross(beta)), dtype=float)[:, 0]
        self._last = (beta, eta)
        return eta

    def score(self, eta: Array) -> Array:
        """X' (y - mean) at the linear predictors that were opened last, shape (d,)."""
        target, ask = self.one.target, partial(target_rows, at=self.one.label_at, target=self.one.target)
        mean = self.law.mean(eta)[:, None]
        bound = Factors(self.held.reaches(), self._at_label(target.reach))
        found = self.aligned.cross(self.columns, right=ask, hub=-mean / target.scale, bound=bound)
        score: Array = np.asarray(found, dtype=float)[self.held.place, 0] * target.scale
        return score

    def information(self, eta: Array) -> Array:
        """X' diag(variance) X at the linear predictors that were opened last, shape (d, d)."""
        w = self.law.part("curvature", np.zeros_like(eta), eta)
        unit = 4.0 * 2.0 ** math.ceil(math.log2(max(float(w.max()), 1e-300)))  # weights of a quarter at most
        found = self.aligned.cross(self.columns, weights=w / unit, bound=Factors(self.held.reaches()))
        found = np.asarray(found, dtype=float)[np.ix_(self.held.place, self.held.place)] * unit
        information: Array = (found + found.T) / 2
        return information

    def _at_label(self, *largest: float) -> dict[str, ColumnReach]:
        """Reaches of rows that the target's party alone has."""
        return {name: ColumnReach(largest if name == self.one.label_at else ()) for name in self.aligned.names}

    def perfect(self, largest: float) -> tuple[float, float]:
        """Of counts, the sums of y log y - y and of the logarithm of y!, asked once; `largest` is their declared end."""
        one = self.one
        y = np.array([1.0, max(largest, 1.0)])
        unit = 2.0 ** math.ceil(math.log2(max(float(np.abs(xlogy(y, y) - y).max()), float(gammaln(y + 1).max()), 1.0)))
        constant = HeldColumns.of(self.aligned.names, [(one.label_at, CONSTANT)])
        ask = partial(perfect_rows, at=one.label_at, target=one.target, unit=unit)
        bound = Factors(constant.reaches(), self._at_label(1.0, 1.0))
        found = self.aligned.cross(partial(own_columns, terms=constant.terms), right=ask, bound=bound)
        sums = np.asarray(found, dtype=float)[0] * unit
        return float(sums[0]), float(sums[1])
