"""The sections [party_budgets] and [forecast] of a study: what its owners agreed on before the first question."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from hedgerow.core.ledger import Ledger
from hedgerow.errors import BudgetInvalid, StudyInvalid, suggestion
from hedgerow.privacy import Budget
from hedgerow.privacy.accounting import Accountant, Filter
from hedgerow.report import Grid
from hedgerow.report.model import Cell

from .section import Section

if TYPE_CHECKING:
    from .study import Study

SHOWN = 1000
"""Parties whose budgets a table shows."""

LISTED = 50
"""Names of parties that a refusal compares an unknown one with."""


class PartyBudgetSection(Section):
    """What one party may lose by everything that this study releases, per record, counted by that party's own noise."""

    epsilon: float = Field(description="limit on everything released of this party's records, above zero")
    delta: float = Field(description="probability with which epsilon may fail, well below one over the party's records")
    accountant: Accountant = Field("tightest", description='how releases are added up; "basic" adds pure epsilons')
    filter: Filter | None = Field(
        None, description="admit questions by a privacy filter, which also holds where noise or sampling follow from answers"
    )

    @model_validator(mode="after")
    def is_a_budget(self) -> PartyBudgetSection:
        try:
            self.budget()
        except BudgetInvalid as error:
            raise ValueError(f"{error.reason}. {error.remedy}") from None
        return self

    def budget(self) -> Budget:
        """The budget, per record."""
        how: dict[str, Any] = {"accountant": self.accountant, "filter": self.filter}
        return Budget(self.epsilon, self.delta, unit="record", **how)


class ForecastSection(Section):
    """What was expected of a run before its first question; the report prints it beside what was achieved."""

    measure: str = Field("relative fitness", min_length=1, description="a metric of the program's result")
    expected: float = Field(allow_inf_nan=False, description="the mean over runs, between low and high")
    low: float = Field(allow_inf_nan=False, description="below which one run of twenty ends")
    high: float = Field(allow_inf_nan=False, description="above which one run of twenty ends")
    source: str = Field("", description="what was known before the first question, in a sentence")

    @model_validator(mode="after")
    def is_an_interval(self) -> ForecastSection:
        if not self.low <= self.high:
            raise ValueError(f"an interval of a run from {self.low:g} to {self.high:g}: low is at most high")
        if not self.low <= self.expected <= self.high:
            raise ValueError(f"{self.expected:g} is expected, outside the interval of a run from {self.low:g} to {self.high:g}")
        return self


def budgets_of(sections: Mapping[str, PartyBudgetSection], parties: Collection[str] | None = None) -> dict[str, Budget]:
    """The budgets of a study's parties.

    Raises
    ------
    StudyInvalid (HR-101)
        A name that is none of `parties`, where these are known.
    """
    for name in sections:
        if parties is not None and name not in parties:
            remedy = suggestion(name, [*parties][:LISTED])
            raise StudyInvalid(f"party_budgets names {name!r}, which is no party.", remedy=remedy)
    return {name: one.budget() for name, one in sections.items()}


def agreed_delta(sections: Mapping[str, PartyBudgetSection]) -> float | None:
    """The delta of all budgets, where it is the same."""
    found = {one.delta for one in sections.values()}
    return found.pop() if len(found) == 1 else None


def budget_grids(ledger: Ledger) -> tuple[Grid, ...]:
    """What each party with a budget has lost, beside it; nothing where there are none."""
    rows: list[tuple[Cell, ...]] = []
    for name, cost in ledger.by_party().costs.items():
        budget, spent = ledger.party_limits[name], cost.spent
        assert isinstance(budget, Budget)
        told = spent if math.isfinite(spent) else "not private"
        rows.append((name, budget.epsilon, told, max(budget.epsilon - spent, 0.0), budget.delta))
    if not rows:
        return ()
    note = (
        "Epsilon per record, add-remove, of everything that this study releases: counted from the ledger, by each party's own "
        "noise where parties add it, and else by that of the channel. Every question counts for all parties but those that are "
        "left out of it by name, also after a party stopped by itself. The table of epsilon by owner has what the owners' own "
        "agreement says of the same questions, which may be a little more than the ledger's accountant finds."
    )
    return (Grid("Budgets of parties", ("party", "budget", "spent", "left", "delta"), tuple(rows[:SHOWN]), note),)


def forecast_grids(
    study: Study, metrics: Mapping[str, float] | None = None, *, simulated: bool = True, finished: bool = True
) -> tuple[Grid, ...]:
    """What was expected of a run beside what was achieved; nothing where nobody said what.

    Parameters
    ----------
    metrics : mapping, optional
        What the program says of its result; None before a run.
    simulated : bool
        Whether whoever computed them holds all records.
    finished : bool
        Whether the run came to its end; of a shorter one nothing was expected.
    """
    said = study.forecast
    if said is None:
        return ()
    columns: tuple[str, ...] = ("measure", "expected", "low", "high")
    row: tuple[Cell, ...] = (said.measure, said.expected, said.low, said.high)
    note = f"Expected: the mean over runs. One run in twenty ends below low, and one above high. {said.source}".strip()
    if metrics is not None:
        achieved = metrics.get(said.measure)
        unknown = "the program tells no such number" if simulated else "not known: only a simulation can compute it"
        verdict = f"{'inside' if achieved is not None and said.low <= achieved <= said.high else 'outside'} the interval"
        if not finished:
            verdict = "not compared: the run ended before all that was expected of it was asked"
        elif achieved is None or not math.isfinite(achieved):
            verdict = unknown if achieved is None else "not compared: it is no finite number"
        columns, row = (*columns, "achieved", "which is"), (*row, achieved, verdict)
    return (Grid("Forecast", columns, (row,), note),)


def agreed_in_words(study: Study) -> dict[str, str]:
    """What parties may lose, and what is expected, in a sentence each; nothing where a study says nothing of it."""
    said = {name: f"may lose {one.budget()}, counted by its own noise" for name, one in study.party_budgets.items()}
    if (one := study.forecast) is not None:
        said["forecast"] = f"{one.measure} {one.expected:g}, in 90 of 100 runs between {one.low:g} and {one.high:g}"
    return said
