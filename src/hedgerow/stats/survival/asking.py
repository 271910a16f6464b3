"""How sums of survival are asked for: who may be asked, in which units, and what a party may add at most."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hedgerow.core.bound import Bounds
from hedgerow.core.federation import Federation
from hedgerow.errors import UnboundedSum, UnlawfulChannel

from ..columns import is_exact
from ..indicators import cases_of_model
from ..linear.asking import WHOLE, Asked
from ..linear.reach import undeclared
from ..meta.asking import most_records
from .design import SurvivalDesign, survival_design

NO_BOUND = (
    "a record is in the risk sets of others, so with one record more, others weigh less: what one record moves has no bound, "
    "and noise for it no scale"
)


@dataclass(frozen=True)
class AskedSurvival:
    """A design of survival as its sums are asked for.

    Attributes
    ----------
    asked : Asked
        The federation, with rows prepared, and units.
    spec : SurvivalDesign
        As parties prepare it.
    most, heaviest : float
        Records of a party, and the largest probability weight.
    declared : bool
        Whether `most` was given, so that parties hold to it.
    """

    asked: Asked
    spec: SurvivalDesign
    most: float = 1.0
    heaviest: float = 1.0
    declared: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """Of every local function."""
        return {"most": self.most} if self.declared else {}

    def bounds(self, bounds: Bounds) -> Bounds | None:
        """Bounds where rows are hidden and every range is declared; else none are needed, or the aggregation has its own."""
        return bounds if self.asked.hidden and self.asked.bounded else None


def refuse_noise(federation: Federation, what: str, instead: str) -> None:
    """Refuse a channel that clips or adds noise.

    Raises
    ------
    UnlawfulChannel (HR-211)
    """
    if not is_exact(federation):
        raise UnlawfulChannel(f"{what} goes through no channel that clips or adds noise: {NO_BOUND}.", remedy=instead)


def ask_for_survival(federation: Federation, spec: SurvivalDesign, most: float | None) -> AskedSurvival:
    """As `ask_for_rows`, of sums that a party bounds by its records.

    Parameters
    ----------
    most : float, optional
        Most records of a party; by default what the aggregation declares, where rows are hidden.

    Raises
    ------
    UnboundedSum (HR-210), SettingsInvalid (HR-511)
    """
    largest = most_records(federation, most, "its risk sets")
    found = ask_for_rows(federation, spec)
    return replace(found, most=largest, declared=most is not None)


def ask_for_rows(federation: Federation, spec: SurvivalDesign) -> AskedSurvival:
    """Prepare a design at the parties, of the records that lack none of its columns.

    Where rows are hidden, parties divide each column by its declared limit.

    Raises
    ------
    UnboundedSum (HR-210)
        Rows are hidden, a range is not declared, and the aggregation has none of its own.
    """
    federation = cases_of_model(federation, spec)
    protection = federation.protection
    hidden = protection.hides_rows
    unit = spec.to_unit() if hidden else spec
    heaviest = 1.0 if spec.probability is None else spec.schema.absolute(spec.probability)
    rows = unit.rows
    bounded = (
        rows.limits is not None and rows.offset_range is not None and heaviest is not None and rows.weight_limit is not None
    )
    if hidden and protection.largest is None and not bounded:
        if heaviest is None:
            raise UnboundedSum(
                f"{spec.probability} declares no range, so weighted sums have no bound{WHOLE}.",
                remedy=f"Declare it: table.declare({spec.probability}=(0, 20)).",
            )
        raise undeclared(spec.rows, WHOLE)
    columns = list(spec.of_coefficient)
    factors = np.array(rows.scales or np.ones(rows.size))[columns] / np.array(spec.rows.scales or np.ones(rows.size))[columns]
    asked = Asked(federation.prepare(survival_design, spec=unit), rows, factors, hidden, False, bounded)
    return AskedSurvival(asked, unit, heaviest=heaviest or 1.0)
