"""The epsilon of a ledger as one number, at its budget's delta or at another."""

from __future__ import annotations

from hedgerow.core.events import Unit
from hedgerow.core.ledger import Ledger

from .accounting import Accountant, epsilon
from .budget import Budget
from .statement import DELTA, statement


def spent(ledger: Ledger, delta: float | None = None, unit: Unit | None = None, accountant: Accountant | None = None) -> float:
    """Epsilon of everything in a ledger, as its statement has it where nothing else is given."""
    if delta is None and unit is None and accountant is None:
        return statement(ledger, {"party": 0, "record": 0}).epsilon
    budget = ledger.limit if isinstance(ledger.limit, Budget) else None
    entries = [*ledger.others, *ledger.entries]
    asked: Unit = budget.unit if budget else next((entry.unit for entry in entries if entry.unit), "party")
    delta = delta if delta is not None else budget.delta if budget else DELTA
    by = accountant or (budget.accountant if budget else "tightest")
    return epsilon(ledger.charges(unit or asked), delta=delta, adjacency="add-remove", accountant=by)
