"""What a fit cost by its ledger, and where its noise came from."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hedgerow.core.events import Unit
from hedgerow.core.federation import Federation
from hedgerow.core.ledger import Entry, Ledger, grouped

from .accounting import Accountant, epsilon
from .budget import Budget

USUAL_DELTA = 1e-5
LEAST_DELTA = 1e-300
"""At which the sum of pure epsilons is read."""
PURE = ("none", "laplace", "pure", "exponential")
"""Kinds of events that cost an epsilon at delta zero."""


def costs(federation: Federation, delta: float | None, asked_before: int = 0) -> dict[str, tuple[float, float] | None]:
    """What a ledger holds, `spent`, and what its questions since then cost by themselves, `own`, if there are others.

    Each is epsilon and delta, or None where epsilon is not finite. Where no delta is given it is zero if all of it is of pure
    epsilon, and else 1e-5.
    """
    ledger = federation.ledger
    budget = ledger.limit if isinstance(ledger.limit, Budget) else None
    return costs_of(ledger.since(asked_before), [*ledger.others, *ledger.entries], delta, budget)


def epsilon_since(federation: Federation, asked_before: int, delta: float) -> float:
    """Epsilon per record, at this delta, of what was asked since the ledger had a length."""
    since = Ledger()
    since.entries = federation.ledger.since(asked_before)
    return since.epsilon(delta=delta, unit="record")


def costs_of(
    since: Sequence[Entry], everything: Sequence[Entry], delta: float | None, budget: Budget | None = None
) -> dict[str, tuple[float, float] | None]:
    """The same of entries of a ledger."""
    if not since:
        return {}
    unit: Unit = next((entry.unit for entry in since if entry.unit), "record")
    known: Accountant = budget.accountant if budget else "tightest"

    def cost(entries: Sequence[Entry]) -> tuple[float, float] | None:
        pure = not delta and all(entry.event.kind in PURE for entry in entries)
        at = LEAST_DELTA if pure else (delta or USUAL_DELTA)
        found = epsilon(grouped(entries, unit), delta=at, adjacency="add-remove", accountant="basic" if pure else known)
        return (found, 0.0 if pure else at) if math.isfinite(found) else None

    return {"spent": cost(everything), "own": cost(since) if len(everything) > len(since) else None}


def noise_from(federation: Federation, asked_before: int) -> str:
    """What is to be said of noise that is drawn from a seed, which whoever knows it can subtract; else nothing."""
    seeded = any(entry.randomness == "seeded" for entry in federation.ledger.since(asked_before))
    return "; noise from a simulation seed, not for deployment: this is no release" if seeded else ""
