"""Budgets: what a unit may lose, asked before every query."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from hedgerow.core.events import Charge, Debit, Unit
from hedgerow.errors import BudgetInvalid, HedgerowWarning
from hedgerow.privacy import accounting
from hedgerow.privacy.accounting import Accountant, Adjacency, Running


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
        How charges are added up (`accounting.epsilon`).

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
        if self.adjacency != "add-remove":
            raise BudgetInvalid(
                f"a budget cannot be kept for adjacency {self.adjacency!r}: the bounds of questions and the statement of a "
                "ledger are about one unit more",
                remedy="Use 'add-remove'; `accounting.epsilon` prices a list of charges for 'replace-one'.",
            )
        self.spent(())  # prices nothing, and refuses a delta, adjacency or accountant that is out of range

    def admits(self, charges: Iterable[Charge]) -> bool:
        """Tell whether all of `charges` together, the next query's included, stay within the budget."""
        charges = tuple(charges)
        if self.accountant == "tightest" and self._price(charges, "rdp") <= self.epsilon:
            return True  # the quick bound settles most queries; the tightest can only be smaller
        return self.spent(charges) <= self.epsilon

    def spent(self, charges: Iterable[Charge]) -> float:
        """Return the epsilon of `charges` at this budget's delta."""
        return self._price(charges, self.accountant)

    def running(self) -> RunningCost:
        """Return the cost of nothing, which grows debit by debit."""
        return RunningCost(self)

    def allows(self, so_far: Running, debit: Debit) -> bool:
        """Tell whether everything so far with one more debit stays within the budget: what `admits` says of all of it."""
        return so_far.would(debit, self.epsilon, self.delta, self.accountant)

    def _price(self, charges: Iterable[Charge], accountant: Accountant) -> float:
        return accounting.epsilon(charges, delta=self.delta, adjacency=self.adjacency, accountant=accountant)

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g}, delta {self.delta:g} per {self.unit}, {self.adjacency}"


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
        return self._so_far.epsilon(self._budget.delta, self._budget.accountant)


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
