"""A regression's sums as they are asked for: columns in units of their limits where that matters, and bounds beside them.

Where rows are hidden or noise is added, parties divide each column by its declared limit, so that fixed point and noise are
in proportion to every column; states stay in the columns' own units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds, linf
from hedgerow.core.federation import Federation
from hedgerow.errors import ContributionInvalid, NotFinite, PartyDeclined

from ..design import Design, design
from ..indicators import cases_of_model
from .loss import Loss
from .losses import SHAPED, LossName, loss_of
from .reach import SLACK, Reach, reach_of, undeclared
from .sums import linear_sums, symmetric

WHOLE = ": an aggregation that hides rows makes whole numbers of sums, which need a range"


@dataclass(frozen=True)
class Asked:
    """A design as its sums are asked for.

    Attributes
    ----------
    federation : Federation
        With the rows of the design prepared at each party.
    spec : Design
        As parties prepare it.
    factors : array of shape (d,)
        By how much the columns as given are larger.
    hidden : bool
        Whether rows are hidden, so that sums need bounds.
    noisy : bool
        Whether noise is added, so that they need bounds of lengths.
    bounded : bool
        Whether every range is declared; without them a range of the aggregation's own may hold.
    """

    federation: Federation
    spec: Design
    factors: Array
    hidden: bool = False
    noisy: bool = False
    bounded: bool = False

    def inward(self, state: Any) -> Any:
        """Return a state in units of the columns as asked."""
        return state.of_columns(1 / self.factors)

    def outward(self, state: Any) -> Any:
        """Return a state in the columns' own units."""
        return state.of_columns(self.factors)

    # ---- any sum ----------------------------------------------------------------------------------------------------
    def total(self, local: Any, broadcast: Any, bounds: Bounds | None = None, batch: int | None = None) -> Any:
        """Ask for a sum, of so many parties that are drawn, or of everybody.

        Raises
        ------
        NotFinite (HR-404)
            A party's sums are not finite, which the formula or a diverging iteration explains.
        """
        asked = self.federation if batch is None else self.federation.sample(size=batch)
        try:
            return asked.sum(local, broadcast, bound=bounds)
        except PartyDeclined as refusal:
            if ContributionInvalid.code not in refusal.codes.values():
                raise
            raise self._not_finite(f"{', '.join(refusal.codes)}: ") from refusal

    def bounds(self, limits: Callable[[], Mapping[str, float]]) -> dict[str, Bound] | None:
        """Return bounds by what a record of weight one adds to each key; `None` where none are needed or known."""
        if not (self.hidden and self.bounded):
            return None
        w = self.spec.weight_limit or 1.0
        return {key: linf(w * (limit * SLACK or 1.0), "record") for key, limit in limits().items()}

    # ---- sums of a loss ---------------------------------------------------------------------------------------------
    def sums(
        self,
        loss: LossName,
        beta: Array,
        keys: tuple[str, ...],
        *,
        shape: float | None = None,
        centre: float | None = None,
        width: float = 0.0,
        batch: int | None = None,
        slack: float = SLACK,
    ) -> dict[str, Array]:
        """Ask for `linear_sums` at coefficients of the columns as asked: a point (d,), or several (k, d) at once.

        Parameters
        ----------
        loss, keys, shape
            As `linear_sums`.
        centre : float, optional
            Of the target.
        width : float
            Of a rounded corner, or of Huber's loss.
        batch : int, optional
            So many parties are drawn and asked; everybody by default.
        """
        if not np.isfinite(beta).all():
            raise self._not_finite("")
        one, points = loss_of(loss, shape), list(np.atleast_2d(beta))
        settings: dict[str, Any] = {"loss": loss, "keys": keys} | ({"shape": shape} if loss in SHAPED else {})
        broadcast = {"beta": beta} | ({"width": np.array(width)} if width else {})
        broadcast |= {} if centre is None else {"centre": np.array(centre)}
        if self.hidden and not self.noisy:
            settings["upper"] = True
            if one.log_link and self.bounded:
                broadcast["reach"] = np.array(self.reach(one, points))
        bounds = self.bounds_at(loss, beta, keys, shape=shape, width=width, centre=centre or 0.0, slack=slack)
        found: dict[str, Array] = self.total(partial(linear_sums, **settings), broadcast, bounds, batch)
        full = ("curvature", "information") if settings.get("upper") else ("curvature",)
        return found | {key: symmetric(found[key]) for key in full if key in found}

    def reach(self, loss: Loss, points: list[Array]) -> tuple[float, float]:
        """The range of linear predictors at all these points, cut off for a log link."""
        ends = [reach_of(self.spec, loss, point) for point in points]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def sums_in_own_units(self, loss: LossName, beta: Array, keys: tuple[str, ...], **settings: Any) -> dict[str, Array]:
        """Ask for `sums`, coefficients and answers being of the columns as given."""
        found = self.sums(loss, beta * self.factors, keys, **settings)
        for key in found.keys() & {"score", "gradient"}:
            found[key] = found[key] * self.factors
        for key in found.keys() & {"information", "curvature"}:
            found[key] = found[key] * np.outer(self.factors, self.factors)
        return found

    def bounds_at(
        self,
        loss: LossName,
        beta: Array,
        keys: tuple[str, ...],
        *,
        shape: float | None = None,
        width: float = 0.0,
        centre: float = 0.0,
        slack: float = SLACK,
    ) -> dict[str, Bound] | None:
        """Bounds of `sums`; `None` where none are needed, or a clip stands in for them.

        Raises
        ------
        UnboundedSum (HR-210)
            A range is not declared.
        NotFinite (HR-404)
            The point lies so far astray that nothing holds.
        """
        if not (self.noisy or (self.hidden and self.bounded)):
            return None
        one = loss_of(loss, shape)

        def found(at: list[Array]) -> dict[str, Bound] | None:
            if not self.noisy:
                return Reach.by_column(self.spec, one, at, centre).bounds(one, keys, width, lengths=False)
            reach = Reach.by_length(self.spec, np.abs(at).max(0))
            return reach and reach.bounds(one, keys, width, lengths=True, slack=slack)

        bounds = found(list(np.atleast_2d(beta)))
        if bounds is None and found([np.zeros(self.spec.size)]) is not None:
            raise self._not_finite("")
        if bounds is None and self.federation.protection.clip is None:
            raise undeclared(self.spec, " and the noise no scale" if self.noisy else WHOLE)
        return bounds

    def _not_finite(self, who: str) -> NotFinite:
        return NotFinite(
            f"{who}a sum for {self.spec.formula!r} is not finite.",
            remedy="Look for the log of zero, a division by zero, or a root of a negative number in the formula;\n"
            "counts are zero or more, and the target of a gamma regression is above zero.",
            asked=True,
        )


def ask_for(federation: Federation, spec: Design, prepare: Any = design, *, target: bool = True, scaled: bool = False) -> Asked:
    """Prepare a design at the parties, of the records that lack none of its columns.

    Parameters
    ----------
    prepare : callable
        Of the records' rows.
    target : bool
        Whether every sum depends on the target's range.
    scaled : bool
        Divide columns by their limits in any case.

    Raises
    ------
    UnboundedSum (HR-210)
        Rows are hidden, a range is not declared, and the aggregation has none of its own.
    """
    federation = cases_of_model(federation, spec)
    protection = federation.protection
    hidden, noisy = protection.hides_rows, protection.noisy
    unit = spec.to_unit() if hidden or noisy or scaled else spec
    bounded = unit.limits is not None and unit.weight_limit is not None and unit.offset_range is not None
    bounded = bounded and (unit.response_range is not None or not target)
    if hidden and not noisy and not bounded and protection.largest is None:
        raise undeclared(spec, WHOLE)
    factors = np.array(unit.scales or np.ones(spec.size)) / np.array(spec.scales or np.ones(spec.size))
    return Asked(federation.prepare(prepare, spec=unit), unit, factors, hidden, noisy, bounded)


def refuse_unbounded(federation: Federation, spec: Design, bounds: Bounds | None) -> None:
    """Refuse a sum that must have bounds, naming the columns that declare no range.

    Raises
    ------
    UnboundedSum (HR-210)
        The channel adds noise, or hides rows by fixed point, which needs a range.
    """
    protection = federation.protection
    ranged = not protection.hides_rows or protection.largest is not None
    if bounds is None and protection.clip is None and (protection.noisy or not ranged):
        raise undeclared(spec, " and the noise no scale" if protection.noisy else WHOLE)
