"""What an effect is asked of: the designs of score and outcome, and their sums with bounds from declared ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, l1, linf
from hedgerow.core.federation import Federation
from hedgerow.errors import FormulaInvalid, SettingsInvalid, UnboundedSum

from ..design import Design, design_of
from ..expressions import is_binary
from ..factors import Levels
from ..linear.asking import WHOLE, ask_for
from ..linear.losses import FamilyName, loss_of
from ..linear.reach import SLACK, reach_of, undeclared
from .sums import outcomes
from .weights import Weighting, largest_weight

if TYPE_CHECKING:
    from hedgerow.data import Schema

    from .weighting import CausalState


@dataclass(frozen=True)
class WeightingProblem:
    """Designs of score and outcome, and how records are weighed.

    Attributes
    ----------
    score : Design
        The treatment and its formula.
    outcome : Design
        The outcome; of a doubly robust estimate with the formula of its model, else with a constant.
    family : {"gaussian", "binomial"}
        Of the outcome's model.
    """

    score: Design
    outcome: Design
    family: FamilyName
    weighting: Weighting
    trim: float
    robust: bool

    @property
    def reads(self) -> tuple[str, ...]:
        """Columns of both designs."""
        return tuple(dict.fromkeys([*self.score.valued, *self.outcome.valued]))

    @property
    def outcome_name(self) -> str:
        """What is compared."""
        response = self.outcome.response
        return response.names[0] if isinstance(response, Levels) else response.text

    def asked(self, federation: Federation) -> AskedWeighting:
        """Prepare both designs at the parties.

        Raises
        ------
        UnboundedSum (HR-210)
            Rows are hidden or noise is added, and a range is not declared.
        """
        protection = federation.protection
        hidden, noisy = protection.hides_rows, protection.noisy
        unit = self.outcome.to_unit() if hidden or noisy else self.outcome
        whole = unit.limits is not None and unit.response_range is not None
        needed = noisy or (hidden and protection.largest is None)
        if needed and not whole:
            raise undeclared(self.outcome, " and the noise no scale" if noisy else WHOLE)
        if needed and not np.isfinite(largest_weight(self.weighting, self.trim)[0]):
            raise UnboundedSum(
                "inverse weights without a trim have no bound, and an aggregation that hides rows makes whole numbers of sums.",
                remedy="Give trim=0.01; or take overlap weights, which are at most 1.",
            )
        asked = ask_for(federation.prepare(outcomes, spec=unit), self.score)
        factors = np.array(unit.scales or np.ones(unit.size))
        low, high = unit.response_range or (-1.0, 1.0)
        return AskedWeighting(
            self,
            asked.federation,
            unit,
            asked.factors,
            factors,
            (low + high) / 2,
            (high - low) / 2 if high > low else 1.0,
            bounded=(hidden or noisy) and asked.bounded and whole and np.isfinite(largest_weight(self.weighting, self.trim)[0]),
            weight=self.score.weight_limit or 1.0,
        )


@dataclass(frozen=True)
class AskedWeighting:
    """A problem as its sums are asked for: columns in units of their limits where rows are hidden or noise is added.

    Attributes
    ----------
    federation : Federation
        With the rows of both designs prepared.
    unit : Design
        Of the outcome, as parties prepare it.
    score_factors, model_factors : arrays of shape (p,) and (q,)
        By how much the columns as given are larger.
    centre, scale : float
        Middle and half of the outcome's declared range; 0 and 1 where there is none.
    bounded : bool
        Whether sums need bounds, and every range is declared.
    weight : float
        The largest weight of a record.
    """

    problem: WeightingProblem
    federation: Federation
    unit: Design
    score_factors: Array
    model_factors: Array
    centre: float
    scale: float
    bounded: bool
    weight: float

    # ---- what is sent -----------------------------------------------------------------------------------------------
    def broadcast(self, state: CausalState) -> dict[str, Array]:
        """Coefficients in units of the columns as asked, and the means where they are known, in the outcome's frame."""
        found = {"score": state.score * self.score_factors, "frame": np.array([self.centre, self.scale])}
        if np.isfinite(state.mean).all():
            found["mean"] = (state.mean - self.centre) / self.scale
        if self.problem.robust:
            found["models"] = state.models * self.model_factors
        return found

    def broadcast_pulls(self, state: CausalState) -> dict[str, Array]:
        """The same with what the score of a first stage's own record does to a moment."""
        f = self.score_factors
        found = self.broadcast(state) | {"score pull": state.slopes["score"] @ (state.inverse * np.outer(f, f))}
        if self.problem.robust:
            g = self.model_factors
            pulls = [
                slope @ (inverse * np.outer(g, g))
                for slope, inverse in zip(state.slopes["models"], state.inverses, strict=True)
            ]
            found["model pull"] = np.array(pulls)
        return found | {"unit": np.array(self._largest_influence(found) if self.bounded else 1.0)}

    def sum(self, function: Callable[..., Any], broadcast: Mapping[str, Array], bounds: Any) -> Any:
        """Ask for a sum over records by arm."""
        one = self.problem
        settings = {"weighting": one.weighting, "trim": one.trim, "binary": one.family == "binomial"}
        return self.federation.sum(partial(function, **settings), dict(broadcast), bound=bounds)

    # ---- bounds -----------------------------------------------------------------------------------------------------
    def total_bounds(self, state: CausalState) -> dict[str, Bound] | None:
        """By how much a record moves `arm_totals`: without a model one arm alone."""
        if not self.bounded:
            return None
        value, share = self._largest_value(self.broadcast(state)), 1.0 if self.problem.robust else self._most
        ball = linf if self.problem.robust or not self.federation.protection.noisy else l1
        return {
            "value": ball(self._of(value), "record"),
            "share": ball(self._of(share), "record"),
            "n": ball(self._of(1.0), "record"),
            "beyond": ball(self._of(1.0), "record"),
        }

    def balance_bounds(self) -> dict[str, Bound] | None:
        """By how much a record moves `arm_balance`."""
        if not self.bounded:
            return None
        plain, weighed = linf(self._of(1.0), "record"), linf(self._of(self._most), "record")
        return {"n": plain, "sum": plain, "squares": plain, "weighted": weighed, "weight": weighed}

    def slope_bounds(self, state: CausalState) -> dict[str, Bound] | None:
        """By how much a record moves `arm_slopes`."""
        if not self.bounded:
            return None
        broadcast = self.broadcast(state)
        steep = largest_weight(self.problem.weighting, self.problem.trim)[1]
        found = {"score": linf(self._of(steep * self._largest_residual(broadcast)), "record")}
        if self.problem.robust:
            most = (0.25 if self.problem.family == "binomial" else 1.0) / self.scale * max(1.0, self._most - 1)
            found["models"] = linf(self._of(most), "record")
        return found

    def square_bound(self) -> Bound | None:
        """By how much a record moves `arm_squares`, in units of its largest influence."""
        return linf(self._of(1.0), "record") if self.bounded else None

    @property
    def _most(self) -> float:
        return largest_weight(self.problem.weighting, self.problem.trim)[0]

    def _of(self, limit: float) -> float:
        return self.weight * limit * SLACK

    def _fitted(self, broadcast: Mapping[str, Array]) -> float:
        """Largest mean of a model, in the frame."""
        if not self.problem.robust:
            return 0.0
        loss = loss_of(self.problem.family)
        ends = np.array([reach_of(self.unit, loss, point) for point in broadcast["models"]])
        means = loss.mean(np.array([ends.min(), ends.max()]))
        return float(np.abs((means - self.centre) / self.scale).max())

    def _largest_residual(self, broadcast: Mapping[str, Array]) -> float:
        """Of an outcome from its model, or from its mean."""
        away = self._fitted(broadcast) if self.problem.robust else float(np.abs(broadcast.get("mean", np.zeros(1))).max())
        return 1.0 + away

    def _largest_value(self, broadcast: Mapping[str, Array]) -> float:
        if not self.problem.robust:
            return self._most
        return self._fitted(broadcast) + self._most * self._largest_residual(broadcast)

    def _largest_influence(self, broadcast: Mapping[str, Array]) -> float:
        mean = float(np.abs(broadcast["mean"]).max())
        found = self._largest_value(broadcast) + mean * (1.0 if self.problem.robust else self._most)
        found += float(np.abs(broadcast["score pull"]).sum(1).max())
        if self.problem.robust:
            found += float(np.abs(broadcast["model pull"]).sum(1).max()) * self.scale * self._largest_residual(broadcast)
        return found


def problem_of(
    schema: Schema,
    outcome: str | None,
    propensity: str,
    treatment: str | None,
    *,
    weighting: Weighting,
    trim: float,
    outcome_formula: str | None,
) -> WeightingProblem:
    """Read the formulas of score and outcome, and check the settings; nobody is asked."""
    if not 0 <= trim < 0.5:
        raise SettingsInvalid(f"trim={trim!r} leaves no scores.", remedy="Give 0.01, or another number from 0 to below 0.5.")
    if weighting not in ("inverse", "treated", "overlap"):
        raise SettingsInvalid(f"weighting={weighting!r} is unknown.", remedy='Give "inverse", "treated" or "overlap".')
    if (outcome is None) == (outcome_formula is None):
        raise SettingsInvalid(
            f"outcome is {outcome!r} and outcome_formula is {outcome_formula!r}.",
            remedy="Give the outcome alone, or, for a doubly robust estimate, the formula of its model alone.",
        )
    score = design_of(schema, _formula(propensity, treatment), "binomial")
    if score.offset is not None:
        raise SettingsInvalid(f"the table declares the offset {score.offset!r}.", remedy="Give it another role.")
    text = outcome_formula or f"{outcome} ~ 1"
    family: FamilyName = "binomial" if _is_binary(text, schema) else "gaussian"
    model = design_of(schema, text, family)
    shared = set(score.response.reads(schema)) & {*model.response.reads(schema), *model.reads}
    if shared or set(score.response.reads(schema)) & set(score.reads):
        raise FormulaInvalid(
            f"the treatment {score.response.text!r} stands in the formula of the score or of the outcome.",
            remedy="The score is a model of the treatment; the outcome is modelled in each arm by itself.",
        )
    return WeightingProblem(score, model, family, weighting, trim, outcome_formula is not None)


def _formula(propensity: str, treatment: str | None) -> str:
    target, tilde, right = propensity.partition("~")
    if treatment is None:
        if not tilde:
            raise FormulaInvalid(f"{propensity!r} names no treatment.", remedy='Give "treated ~ age", or treatment="treated".')
        return propensity
    if tilde and target.strip() != treatment:
        raise FormulaInvalid(
            f"the formula is of {target.strip()!r}, and treatment is {treatment!r}.", remedy="Name the treatment once."
        )
    return f"{treatment} ~ {right if tilde else propensity}"


def _is_binary(text: str, schema: Schema) -> bool:
    target = Design.of(f"{text.partition('~')[0]} ~ 1", schema).response
    return isinstance(target, Levels) or is_binary(target.text, schema)
