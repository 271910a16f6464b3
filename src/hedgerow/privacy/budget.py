"""Budgets: what a unit may lose, asked before every query.

Which theorem makes a budget a guarantee depends on what answers decide.

    decided by answers                             the budget is a guarantee by            filter
    functions, broadcasts, when to stop            composition of a fixed plan             none, the default
    also noise, sampling and their order           a privacy filter                        rdp, gdp, zcdp, basic

Without a filter the charges are a *plan fixed beforehand*: how noisy each question is, and how its cohort is drawn, follows
from settings and from the number of the question, not from answers. A prefix of such a plan is computed from all of it. So
every accountant of `accounting.epsilon` may refuse the first question that does not fit any more, privacy loss distributions
included, and the least of their bounds may be taken, since for a fixed plan each is a fixed number. Hedgerow's own programs
are of this kind: what they ask next, and when they have converged, follows from answers, and what it costs does not. The
contract of programs rehearses each on made-up records and compares noise and sampling of its questions with those of a run
on real ones (`hedgerow.testing`, `is_rehearsed_as_it_runs`).

Where somebody reads answers and then decides how much noise the next question has, or which study runs next under the same
budget, that is no fixed plan, and nothing here can see it: name a filter. `gdp` costs nothing where all noise is Gaussian
without sampling; `rdp` costs 5 to 20 % of epsilon on sampled cohorts (`docs/accounting.md`). A statement says which it was.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from hedgerow.core.events import Charge, Debit, Unit
from hedgerow.errors import BudgetInvalid, HedgerowWarning
from hedgerow.privacy import accounting
from hedgerow.privacy.accounting import Accountant, Adjacency, Running, filters
from hedgerow.privacy.accounting.filters import Filter, Measure


@dataclass(frozen=True)
class Budget:
    """A limit on everything that is released about one unit.

    Parameters
    ----------
    epsilon : float
        Above 0; infinity sets no limit.
    delta : float
        In (0, 1), and well below one over the number of units (`warn_if_large`).
    unit : {"party", "record"}
        Whose data change between neighbours.
    adjacency : {"add-remove"}
        Neighbours differ by one unit that is there or not.
    accountant : {"tightest", "pld", "rdp", "zcdp", "advanced", "basic", "moments"}
        How the charges of a plan that was fixed beforehand are added up (`accounting.epsilon`).
    filter : {"rdp", "gdp", "zcdp", "basic"}, optional
        Admit questions by a privacy filter instead (`accounting.filters`), whose theorem also holds where noise and sampling
        follow from earlier answers. Its guarantee is (epsilon, delta), however little of it was used.
    order : float, optional
        Of the filter `rdp`; chosen from epsilon and delta where it is not given.

    Raises
    ------
    BudgetInvalid (HR-214)
        A value is out of its range.
    """

    epsilon: float
    delta: float
    unit: Unit = "party"
    adjacency: Adjacency = "add-remove"
    accountant: Accountant = "tightest"
    filter: Filter | None = None
    order: float | None = None

    def __post_init__(self) -> None:
        if self.unit not in ("party", "record"):
            raise BudgetInvalid(
                f"the unit {self.unit!r} is neither 'party' nor 'record'", remedy="Say whose presence is protected."
            )
        if math.isnan(self.epsilon) or self.epsilon <= 0:
            raise BudgetInvalid(
                f"a budget of epsilon {self.epsilon:g} admits no query: epsilon must be positive",
                remedy="Values between 0.1 (strong) and 10 (weak) are usual.",
            )
        if self.delta == 0:
            raise BudgetInvalid(
                "a budget of delta 0 is not kept, since accountants compare epsilons at a delta above 0",
                remedy="Choose it well below one over the number of units: what is pure is counted there, too. What was spent "
                "at delta 0 is `ledger.epsilon(delta=0)`.",
            )
        if self.adjacency != "add-remove":
            raise BudgetInvalid(
                f"a budget cannot be kept for adjacency {self.adjacency!r}: the bounds of questions and the statement of a "
                "ledger are about one unit more",
                remedy="Use 'add-remove'; `accounting.epsilon` prices a list of charges for 'replace-one'.",
            )
        self._price((), self.accountant)  # prices nothing, and refuses a delta, adjacency or accountant that is out of range
        if self.filter is None and self.order is not None:
            raise BudgetInvalid(f"an order of {self.order:g} belongs to no filter", remedy="Add filter='rdp'.")
        if self.filter is not None and self.accountant != "tightest":
            raise BudgetInvalid(
                f"a budget cannot have both the accountant {self.accountant!r} and the filter {self.filter!r}: a filter adds "
                "up by its own measure",
                remedy="Leave the accountant out.",
            )
        _ = self.measure  # refuses a filter or an order that there is not

    @property
    def measure(self) -> Measure | None:
        """What the filter adds up; None without one."""
        if self.filter is None:
            return None
        return filters.measure(self.filter, self.epsilon, self.delta, self.order)

    def warn_of(self, units: int) -> None:
        """Warn where delta is at least one over the number of units (`warn_if_large`)."""
        warn_if_large(self.delta, units)

    def admits(self, charges: Iterable[Charge]) -> bool:
        """Tell whether all of `charges` together, the next query's included, stay within the budget."""
        charges, measure = tuple(charges), self.measure
        if measure is not None:
            return filters.within(measure, filters.lost_by(measure, charges), self.epsilon, self.delta)
        if self.accountant == "tightest" and self._price(charges, "rdp") <= self.epsilon:
            return True  # the quick bound settles most queries; the tightest can only be smaller
        return self.spent(charges) <= self.epsilon

    def spent(self, charges: Iterable[Charge]) -> float:
        """Return the epsilon of `charges` at this budget's delta.

        Under a filter: the least epsilon with which the filter would have admitted them. That is how far the budget is used,
        and no guarantee, which is the budget's own epsilon.
        """
        measure = self.measure
        if measure is not None:
            return filters.reading(measure, filters.lost_by(measure, charges), self.delta)
        return self._price(charges, self.accountant)

    def running(self) -> RunningCost:
        """Return the cost of nothing, which grows debit by debit."""
        return RunningCost(self)

    def allows(self, so_far: Running, debit: Debit) -> bool:
        """Tell whether everything so far with one more debit stays within the budget: what `admits` says of all of it."""
        measure = self.measure
        if measure is not None:
            return so_far.stays_within(debit, measure, self.epsilon, self.delta)
        return so_far.would(debit, self.epsilon, self.delta, self.accountant)

    def used(self, so_far: Running) -> float:
        """Return what `spent` says of everything so far."""
        measure = self.measure
        if measure is not None:
            return filters.reading(measure, so_far.lost(measure), self.delta)
        return so_far.epsilon(self.delta, self.accountant)

    def _price(self, charges: Iterable[Charge], accountant: Accountant) -> float:
        return accounting.epsilon(charges, delta=self.delta, adjacency=self.adjacency, accountant=accountant)

    def __str__(self) -> str:
        by = "" if self.measure is None else f", {self.measure}"
        return f"epsilon {self.epsilon:g}, delta {self.delta:g} per {self.unit}, {self.adjacency}{by}"


class RunningCost:
    """What was charged so far under a budget; its decisions are those of `Budget.admits`, at a constant cost for each."""

    def __init__(self, budget: Budget) -> None:
        self._budget, self._so_far = budget, Running(budget.adjacency)

    def would(self, debit: Debit) -> bool:
        """Tell whether one more debit stays within the budget."""
        return self._budget.allows(self._so_far, debit)

    def add(self, debit: Debit) -> None:
        """Charge a debit."""
        self._so_far.add(debit)

    @property
    def spent(self) -> float:
        """The epsilon of everything at the budget's delta."""
        return self._budget.used(self._so_far)


def warn_if_large(delta: float, n: int) -> None:
    """Warn when `delta` is at least one over the number of units `n`.

    Warns
    -----
    HedgerowWarning
        Publishing one unit drawn at random, whole, satisfies delta = 1 / n.
    """
    if delta * n >= 1:
        warnings.warn(
            f"delta {delta:g} is at least 1/n for n = {n}: such a delta is met by publishing one of them, drawn at "
            f"random, whole. Choose a delta well below {1 / n:.2g}, such as {0.1 / n:.2g}.",
            HedgerowWarning,
            stacklevel=2,
        )
