"""The privacy statement: what a ledger guarantees, in one sentence that leaves nothing out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hedgerow.core.events import Event, Unit
from hedgerow.core.ledger import Ledger

from .accounting import Adjacency, epsilon
from .budget import Budget


@dataclass(frozen=True)
class Statement:
    """What was spent, and the sentence that says so.

    Attributes
    ----------
    epsilon : float
        Infinity where some release was not private.
    delta : float
    unit : {"party", "record"}
    sentence : str
    """

    epsilon: float
    delta: float
    unit: Unit
    sentence: str

    @property
    def private(self) -> bool:
        """Whether a finite epsilon is claimed."""
        return math.isfinite(self.epsilon)


def statement(ledger: Ledger, *, delta: float, seeded: bool, adjacency: Adjacency = "add-remove") -> Statement:
    """Interpret a ledger.

    Parameters
    ----------
    delta : float
        Where there is no budget; a budget brings its own.
    seeded : bool
        Whether noise came from a simulation's seed, which anyone who knows the seed can subtract.
    """
    budget = ledger.limit if isinstance(ledger.limit, Budget) else None
    unit: Unit = budget.unit if budget else next((e.unit for e in ledger.entries if e.unit), "party")
    delta = budget.delta if budget else delta
    charges = ledger.charges(unit)
    if not charges:
        return Statement(0.0, delta, unit, "Nothing was released.")
    if any(_is_open(events) for _, events in charges):
        n_open = sum(_is_open(events) for _, events in charges)
        sentence = f"No epsilon is claimed: {n_open} of {len(charges)} releases went out without noise."
        return Statement(math.inf, delta, unit, sentence)
    spent = budget.spent(charges) if budget else epsilon(charges, delta=delta, adjacency=adjacency)
    sampling = sorted({str(sampling) for sampling, _ in charges})
    accountant = budget.accountant if budget else "tightest"
    limit = f" of a budget of {budget.epsilon:g}" if budget else ""
    noise = "noise from a simulation seed (not for deployment)" if seeded else "noise from the operating system's entropy"
    return Statement(
        spent,
        delta,
        unit,
        f"Epsilon {spent:.4g}{limit} at delta {delta:g} per {unit}, {adjacency} adjacency; {len(charges)} releases, sampling: "
        f"{', '.join(sampling)}; accountant: {accountant}; {noise}; tuning not counted.",
    )


def _is_open(events: tuple[Event, ...]) -> bool:
    return any(event.kind == "nonprivate" for event in events)
