"""What a forest or an additive model cost: by its federation's ledger, kept with the model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hedgerow.core.federation import Federation
from hedgerow.core.ledger import Entry
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.costs import costs_of, noise_from
from hedgerow.report.numerals import show

Cost = tuple[float, float]


@dataclass(frozen=True)
class ForestCost:
    """What was asked for a model; what it cost is computed when somebody wants to know.

    Attributes
    ----------
    since, everything : tuple of Entry
        Of the ledger when the model was made: this model's questions, and all.
    delta : float or None
    budget : Budget or None
    protection : str
        Noise of its questions, and how often, in words.
    """

    since: tuple[Entry, ...]
    everything: tuple[Entry, ...]
    delta: float | None
    budget: Budget | None
    protection: str

    @cached_property
    def _found(self) -> dict[str, Cost | None]:
        return {"spent": None, "own": None, **costs_of(self.since, self.everything, self.delta, self.budget)}

    @property
    def spent(self) -> Cost | None:
        """Epsilon and delta of everything in the ledger; None where it has no finite epsilon."""
        return self._found["spent"]

    @property
    def own(self) -> Cost | None:
        """The same of this model's questions alone, where the ledger held others before."""
        return self._found["own"]


def charged(model: Any, federation: Federation, asked_before: int, delta: float | None) -> Any:
    """Return the model with what was asked since its federation's ledger had that length."""
    ledger = federation.ledger
    since, budget = tuple(ledger.since(asked_before)), ledger.limit if isinstance(ledger.limit, Budget) else None
    noises = Counter(entry.mechanism for entry in since)
    words = "; ".join(f"{noise}, {times} times" if times > 1 else f"{noise}, once" for noise, times in noises.items())
    words += noise_from(federation, asked_before) if set(noises) != {"none"} else ""
    return replace(model, cost=ForestCost(since, (*ledger.others, *ledger.entries), delta, budget, words))


def summary_of(model: Any, cost: ForestCost | None) -> str:
    """Return the model as text, and what it cost, if that is known: a model of a state alone has no ledger."""
    if cost is None:
        return str(model)
    spent = "no finite epsilon" if cost.spent is None else _said(cost.spent)
    spent += "" if cost.own is None else f" by everything in the ledger; {_said(cost.own)} by this fit"
    return "\n".join([str(model), f"questions   {len(cost.since)}", f"spent       {spent}", f"protection  {cost.protection}"])


def _said(cost: Cost) -> str:
    return f"epsilon {show(cost[0])} at delta {cost[1]:g}"
